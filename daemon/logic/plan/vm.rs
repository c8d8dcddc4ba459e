//! Kernel settings for compressed swap: the wanted values, and the steps.

use super::ownership::{Ownership, ownership};
use super::{Activation, Decision, Group, Item, Step};
use crate::config::settings::{Level, VmSettings};
use crate::facts::Facts;
use crate::finding::Finding;
use crate::record::{Progress, Record, Target, Undo};
use crate::request::{Purpose, Request, VmRequest};
use crate::vm::{Tunable, swappiness, watermark_scale_factor};

/// The item for `[vm]`, if it sets anything; `devices` are the items of the devices.
pub(super) fn planned(
    settings: &VmSettings,
    devices: &[Item],
    facts: &Facts,
    activation: Activation,
) -> Option<Item> {
    let mut values = Vec::new();
    for (tunable, level) in &settings.levels {
        let value = match (level, tunable) {
            (Level::Keep, _) => continue,
            (Level::Value(value), _) => *value,
            (Level::Auto, Tunable::WatermarkScaleFactor) => watermark_scale_factor(facts.memory.total_kib),
            (Level::Auto, _) => swappiness(facts.advice),
        };
        values.push((*tunable, value.to_string()));
    }
    if values.is_empty() {
        return None;
    }
    let reason = not_on_top(devices, facts, activation);
    let request = VmRequest { values, ..VmRequest::default() };
    Some(item(Target::Vm, request, reason.map(|(reason, _)| reason)))
}

/// A warning if these settings are left out because of other swap; `items` are those of the plan.
pub(super) fn outranked(
    settings: &VmSettings,
    items: &[Item],
    facts: &Facts,
    activation: Activation,
) -> Option<Finding> {
    items.iter().find(|item| item.target == Target::Vm)?;
    let (reason, by_others) = not_on_top(items, facts, activation)?;
    by_others.then(|| Finding::warning(settings.origin.clone(), format!("[vm] is not applied: {reason}")))
}

pub(super) fn item(target: Target, request: VmRequest, skipped: Option<String>) -> Item {
    Item {
        target,
        request: Some(Request::Vm(request)),
        candidates: Vec::new(),
        decision: if skipped.is_some() { Decision::Skipped } else { Decision::Planned },
        reason: skipped.unwrap_or_default(),
        kind: None,
    }
}

/// Numbers and priorities of active swap set up by zramd, including devices with a damaged record.
pub(super) fn active(facts: &Facts) -> impl Iterator<Item = (u32, i32)> + '_ {
    facts.swaps.iter().filter_map(|swap| {
        let number = swap.zram_number()?;
        let ours = matches!(ownership(number, facts), Ownership::Ours(_));
        let perhaps = || facts.damaged_record(&Target::Device(number)).is_some();
        (ours || perhaps()).then_some((number, swap.priority))
    })
}

/// The reason why no swap of zramd, active or planned, has the highest priority; and whether another program's swap has it.
fn not_on_top(devices: &[Item], facts: &Facts, activation: Activation) -> Option<(String, bool)> {
    let planned =
        devices.iter().filter(|_| activation != Activation::Systemd).filter_map(Item::swap_priority);
    let ours = active(facts).map(|(_, priority)| priority).chain(planned).max();
    let Some(ours) = ours else { return Some(("no compressed swap of zramd is in use".to_owned(), false)) };
    let is_ours =
        |number: Option<u32>| number.is_some_and(|number| active(facts).any(|(our, _)| our == number));
    let others = facts.swaps.iter().filter(|swap| !is_ours(swap.zram_number()));
    let best = others.max_by_key(|swap| swap.priority)?;
    (best.priority >= ours)
        .then(|| (format!("{} has priority {}, not below {ours}", best.path, best.priority), true))
}

/// The target whose swap the settings are for, if this plan sets it up.
pub(super) fn brings_swap(groups: &[Group]) -> Option<Target> {
    let rank = |group: &&Group| match group.request.as_ref()? {
        Request::Device(device) => match &device.purpose {
            Purpose::Swap { priority, .. } if !group.is_empty() => Some(*priority),
            _ => None,
        },
        _ => None,
    };
    let best = groups.iter().filter(|group| rank(group).is_some()).max_by_key(rank)?;
    Some(best.target.clone())
}

/// The group of settings that are not wanted, or that are as configured.
pub(super) fn kept(item: &Item, facts: &Facts) -> Option<Group> {
    let record = facts.records.get(&item.target);
    let group = Group::new(item.target.clone());
    if item.decision != Decision::Planned {
        return Some(Group { retire: record.cloned(), ..group });
    }
    // Keep changes made by others, as long as the configured values are the same.
    let is_done = record.is_some_and(|record| {
        record.progress == Progress::Done && Some(&record.request) == item.request.as_ref()
    });
    is_done.then_some(group)
}

/// The group of `[vm]`.
pub(super) fn group(item: &Item, facts: &Facts) -> Option<Group> {
    let Some(Request::Vm(request)) = &item.request else { return None };
    let record = facts.records.get(&item.target);
    if let Some(group) = kept(item, facts) {
        return Some(group);
    }
    let group = Group { request: item.request.clone(), ..Group::new(item.target.clone()) };
    let step = |(tunable, value): &(Tunable, String)| set(record, facts, *tunable, value);
    Some(Group { retire: record.cloned(), after: request.values.iter().filter_map(step).collect(), ..group })
}

/// The step that gives a setting this value after the record is undone, unless it has it then, or the kernel lacks it.
pub(super) fn set(record: Option<&Record>, facts: &Facts, tunable: Tunable, value: &str) -> Option<Step> {
    let before = value_without(record, tunable, facts.tunables.get(&tunable)?);
    (before != value).then(|| Step::SetTunable { tunable, before, value: value.to_owned() })
}

/// The value of a setting after the record is undone.
fn value_without(record: Option<&Record>, wanted: Tunable, now: &str) -> String {
    let undos = record.iter().flat_map(|record| record.undo.iter().rev());
    let restored = undos.fold(now, |value, undo| match undo {
        Undo::RestoreTunable { tunable, before, ours } if *tunable == wanted && ours == value => before,
        _ => value,
    });
    restored.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_set_for_this_setting_and_is_still_so_is_restored() {
        let undo = |tunable, before: &str, ours: &str| Undo::RestoreTunable {
            tunable,
            before: before.to_owned(),
            ours: ours.to_owned(),
        };
        let request = Request::Vm(VmRequest { values: Vec::new(), compressors: Vec::new() });
        let mut record = Record::begin(Target::Vm, request);
        record.undo = vec![undo(Tunable::Swappiness, "60", "150"), undo(Tunable::PageCluster, "3", "0")];
        for (tunable, now, before) in [
            (Tunable::Swappiness, "150", "60"),
            (Tunable::Swappiness, "0", "0"),
            (Tunable::PageCluster, "0", "3"),
            (Tunable::PageCluster, "150", "150"),
        ] {
            assert_eq!(value_without(Some(&record), tunable, now), before, "{tunable:?} {now}");
        }
        assert_eq!(value_without(None, Tunable::Swappiness, "150"), "150");
    }
}
