//! zswap: the wanted values, the steps, and what does not fit this machine.

use super::vm::{active, kept, set};
use super::wanted::{AUTO, bytes};
use super::{Candidate, Decision, Group, Item, Step, Way, refuse};
use crate::config::settings::{SizeExpr, ZswapSettings};
use crate::device::algorithm::Algorithm;
use crate::error::ErrorKind;
use crate::facts::Facts;
use crate::finding::Finding;
use crate::human::human;
use crate::record::Target;
use crate::request::{Choice, Request, VmRequest};
use crate::verdict::Unusable;
use crate::vm::Tunable;

/// The item for `[zswap]`; `devices` are the items of the devices.
pub(super) fn item(
    settings: &ZswapSettings,
    devices: &[Item],
    facts: &Facts,
    problems: &mut Vec<Finding>,
) -> Item {
    let mut item = super::vm::item(Target::Zswap, VmRequest::default(), None);
    if !settings.enabled {
        let any = active(facts).next().is_some() || devices.iter().any(|item| item.swap_priority().is_some());
        if !any {
            item.decision = Decision::Skipped;
            item.reason = "no compressed swap is configured".to_owned();
        }
        item.request = Some(request(vec![(Tunable::Zswap, "N".to_owned())], Vec::new()));
        return item;
    }
    // Without facts, for another machine.
    let has = |tunable: Tunable| facts.tunables.is_empty() || facts.tunables.contains_key(&tunable);
    if !has(Tunable::Zswap) {
        let refusal = Finding::refusal(ErrorKind::Unsupported, &settings.origin, "this kernel has no zswap");
        let hint = "use zram, or a kernel with CONFIG_ZSWAP";
        refuse(&mut item, refusal.remedy(hint), problems);
        return item;
    }
    let mut values = Vec::new();
    if let Some(size) = &settings.max_pool {
        match percent(size, facts) {
            Ok(percent) => values.push((Tunable::ZswapMaxPool, percent.to_string())),
            Err(refusal) => {
                refuse(&mut item, refusal, problems);
                return item;
            }
        }
    }
    for (tunable, value, origin) in &settings.values {
        if has(*tunable) {
            values.push((*tunable, value.clone()));
        } else {
            let problem = Finding::warning(origin.clone(), format!("this kernel has no {tunable}"));
            problems.push(problem.remedy("leave it out"));
        }
    }
    values.push((Tunable::Zswap, "Y".to_owned()));
    item.candidates = candidates(&settings.compressors, facts);
    problems.extend(on_cmdline(settings, &values, &item.candidates, facts));
    item.request = Some(request(values, settings.compressors.clone()));
    item
}

fn request(values: Vec<(Tunable, String)>, compressors: Vec<Choice>) -> Request {
    Request::Vm(VmRequest { values, compressors })
}

/// The share of the memory in whole percents, 1 to 100.
fn percent(size: &SizeExpr, facts: &Facts) -> Result<u64, Finding> {
    let (wanted, total) = (bytes(size, facts)?, facts.memory.total_kib << 10);
    let percent = (wanted.saturating_mul(100) + total / 2).checked_div(total).unwrap_or(0);
    let refusal = |message: String| Err(Finding::refusal(ErrorKind::Config, &size.origin, message));
    match percent {
        0 => refusal(format!("`{}` is less than 1 % of the memory, {}", size.text, human(total / 100)))
            .map_err(|found| found.remedy("write more, or enabled = false to disable zswap")),
        1..=100 => Ok(percent),
        _ => refusal(format!("`{}` is more than the memory, {}", size.text, human(total)))
            .map_err(|found| found.remedy("write at most \"100%\"; 20% to 50% are usual")),
    }
}

/// Compressors in order of preference. `auto` ends with the kernel's.
fn candidates(choices: &[Choice], facts: &Facts) -> Vec<Candidate> {
    let mut found: Vec<Candidate> = Vec::new();
    let mut add = |name: Option<&str>, reason: String| {
        let algorithm = name.map(Algorithm::plain);
        if !found.iter().any(|known| known.algorithm == algorithm) {
            found.push(Candidate { algorithm, reason, measured: false });
        }
    };
    for choice in choices {
        match choice {
            Choice::Named(algorithm) => add(Some(&algorithm.name), "configured".to_owned()),
            Choice::Auto => {
                if let Some(Ok(best)) = &facts.best {
                    let reason = "auto: the verdict of the benchmark for zram, inferred for zswap";
                    add(Some(&best.algorithm.name), reason.to_owned());
                }
                let why = match &facts.best {
                    Some(Err(why)) if *why != Unusable::Absent => format!("; {why}"),
                    _ => String::new(),
                };
                for name in AUTO {
                    let all = AUTO.join(", ");
                    add(Some(name), format!("auto: the first of {all} that this kernel has{why}"));
                }
                add(None, "auto: the kernel's default".to_owned());
            }
        }
    }
    if choices.is_empty() {
        add(None, "the kernel's default".to_owned());
    }
    found
}

/// Options on the kernel command line that say something else: they are in effect until `[zswap]` is applied, and would be
/// without it.
fn on_cmdline(
    settings: &ZswapSettings,
    values: &[(Tunable, String)],
    candidates: &[Candidate],
    facts: &Facts,
) -> Vec<Finding> {
    let compressor = candidates.first().and_then(|candidate| candidate.algorithm.as_ref());
    let compressor = compressor.map(|algorithm| (Tunable::ZswapCompressor, algorithm.name.clone()));
    let wanted = compressor.iter().chain(values);
    let differs = |(tunable, value): &(Tunable, String)| {
        let found = tunable.on_cmdline(&facts.cmdline).filter(|found| found != value)?;
        let message = format!(
            "the kernel command line has {tunable}={found}, and this section sets it to {value} after boot"
        );
        let hint = format!("remove {tunable}= from the kernel command line");
        Some(Finding::warning(settings.origin.clone(), message).remedy(hint))
    };
    wanted.filter_map(differs).collect()
}

/// The steps that enable or disable zswap: its settings, then one compressor after another, each with the switch.
pub(super) fn group(item: &Item, facts: &Facts) -> Option<Group> {
    let Some(Request::Vm(request)) = &item.request else { return None };
    let record = facts.records.get(&item.target);
    if let Some(group) = kept(item, facts) {
        return Some(group);
    }
    let step = |tunable: Tunable, value: &str| set(record, facts, tunable, value);
    let mut group = Group {
        request: item.request.clone(),
        retire: record.cloned(),
        before: request.values.iter().filter_map(|(tunable, value)| step(*tunable, value)).collect(),
        ..Group::new(item.target.clone())
    };
    let switch = group.before.pop_if(|step| matches!(step, Step::SetTunable { tunable: Tunable::Zswap, .. }));
    let way = |candidate: &Candidate| {
        let name = candidate.algorithm.as_ref().map(|algorithm| algorithm.name.as_str());
        let select = name.and_then(|name| step(Tunable::ZswapCompressor, name));
        let check = name
            .filter(|_| select.is_some() || switch.is_some())
            .map(|name| Step::CheckTunable { tunable: Tunable::ZswapCompressor, value: name.to_owned() });
        let steps = select.into_iter().chain(switch.clone()).chain(check).collect();
        Way { algorithm: candidate.algorithm.clone(), measured: false, steps }
    };
    group.ways = item.candidates.iter().map(way).collect();
    if item.candidates.is_empty() {
        group.after.extend(switch);
    } else if group.ways.first().is_some_and(|way| way.steps.is_empty()) {
        // The first one is in use.
        group.ways.clear();
    }
    Some(group)
}
