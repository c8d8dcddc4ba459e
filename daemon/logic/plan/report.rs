//! A plan as text and as JSON.

use std::collections::BTreeSet;
use std::fmt::Write;

use serde::Serialize;

use super::{Decision, Group, Item, Plan, Taken};
use crate::config::Loaded;
use crate::finding::Finding;
use crate::record::{Target, Undo};
use crate::request::{DeviceRequest, Purpose, RamdiskRequest, Request, Store};

/// Version of the JSON form; incremented when a key is removed or changes its meaning.
pub const SCHEMA_VERSION: u32 = 1;

/// What the configuration asks for, and its problems.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "check"))]
pub struct PlanReport<'a> {
    /// Version of this form, incremented when a key is removed or changes its meaning.
    schema_version: u32,
    /// Configured devices.
    devices: Vec<DeviceReport<'a>>,
    /// Configured RAM disks.
    ramdisks: Vec<RamdiskReport<'a>>,
    /// Steps that would be executed, in order; absent in a check.
    #[serde(skip_serializing_if = "Option::is_none")]
    steps: Option<Vec<StepReport>>,
    /// Mistakes, refusals and doubtful settings, and for a plan what is in the way.
    problems: Vec<&'a Finding>,
}

/// A configured device.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct DeviceReport<'a> {
    /// `zramN`.
    name: String,
    /// `swap`, `filesystem` or `raw`; null if it is refused.
    role: Option<&'static str>,
    /// Capacity in uncompressed bytes.
    disk_size_bytes: Option<u64>,
    /// Memory that it may use; 0 for no limit.
    memory_limit_bytes: Option<u64>,
    /// Primary algorithm; null if the kernel chooses.
    algorithm: Option<&'a str>,
    /// Why it was chosen.
    algorithm_reason: Option<&'a str>,
    /// Its parameters.
    algorithm_parameters: Option<serde_json::Map<String, serde_json::Value>>,
    /// Secondary algorithms.
    recompression: Vec<RecompressionReport<'a>>,
    /// Backing device.
    writeback_device: Option<&'a str>,
    /// Backing file.
    writeback_file: Option<&'a str>,
    /// Whether pages are written encrypted.
    writeback_encrypted: Option<bool>,
    /// Priority of the swap.
    swap_priority: Option<i32>,
    /// Mount point.
    mount_point: Option<&'a str>,
    /// Type of the file system.
    fs_type: Option<&'a str>,
    /// Options of the mount or swap.
    options: Option<&'a str>,
    /// Label of the file system.
    label: Option<&'a str>,
    /// What would be done.
    state: Decision,
    /// Why.
    reason: &'a str,
}

/// A secondary algorithm.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct RecompressionReport<'a> {
    /// Priority of the algorithm, 1 to 3.
    priority: usize,
    /// Its name.
    algorithm: &'a str,
    /// Its parameters.
    parameters: serde_json::Map<String, serde_json::Value>,
}

/// A configured RAM disk.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct RamdiskReport<'a> {
    /// NAME of `[ramdisk.NAME]`.
    name: &'a str,
    /// `tmpfs` or `zram`.
    backend: &'static str,
    /// Size in bytes.
    size_bytes: Option<u64>,
    /// Limit of files; null for the default.
    inodes: Option<u64>,
    /// Mount point.
    mount_point: Option<&'a str>,
    /// Mount options.
    options: Option<&'a str>,
    /// Which contents are kept over reboots.
    persist: Option<&'static str>,
    /// Directory of its snapshots.
    store: Option<&'a str>,
    /// What would be done.
    state: Decision,
    /// Why.
    reason: &'a str,
}

/// A step of the plan.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct StepReport {
    /// The target.
    target: String,
    /// The step, in words.
    action: String,
    /// How it is undone, in words.
    undo: String,
}

/// Creates the JSON form.
pub fn report(plan: &Plan) -> PlanReport<'_> {
    PlanReport {
        schema_version: SCHEMA_VERSION,
        devices: plan.items.iter().filter_map(device_report).collect(),
        ramdisks: plan.items.iter().filter_map(ramdisk_report).collect(),
        steps: Some(plan.groups.iter().flat_map(step_reports).collect()),
        problems: plan.findings().collect(),
    }
}

/// Creates the JSON form of a check, which has no steps.
pub fn checked(plan: &Plan) -> PlanReport<'_> {
    PlanReport { steps: None, ..report(plan) }
}

fn step_reports(group: &Group) -> impl Iterator<Item = StepReport> + '_ {
    group.expected_steps().map(|step| StepReport {
        target: group.target.to_string(),
        action: step.to_string(),
        undo: match step.taken_back() {
            Taken::By(undo) => undo.to_string(),
            Taken::WithEarlier => match group.target {
                Target::Device(number) => Undo::Reset { number }.to_string(),
                Target::Ramdisk(_) => "unmounting forgets it".to_owned(),
                Target::Vm | Target::Zswap => "none".to_owned(),
            },
            Taken::Never(reason) => format!("none: {reason}"),
        },
    })
}

fn parameters(algorithm: &crate::device::algorithm::Algorithm) -> serde_json::Map<String, serde_json::Value> {
    algorithm.parameters.iter().map(|(key, value)| (key.clone(), value.clone().into())).collect()
}

fn device_report(item: &Item) -> Option<DeviceReport<'_>> {
    let Target::Device(_) = item.target else { return None };
    let request: Option<&DeviceRequest> = match &item.request {
        Some(Request::Device(request)) => Some(request),
        _ => None,
    };
    let purpose = request.map(|request| &request.purpose);
    let candidate = item.algorithm();
    let algorithm = candidate.and_then(|candidate| candidate.algorithm.as_ref());
    let mount = purpose.and_then(Purpose::mount);
    let writeback = request.and_then(|request| request.writeback.as_ref());
    let store = writeback.map(|writeback| &writeback.store);
    let is_file = |store: &&Store| matches!(store, Store::File { .. });
    Some(DeviceReport {
        name: item.target.to_string(),
        role: purpose.map(Purpose::role),
        disk_size_bytes: request.map(|request| request.disk_size),
        memory_limit_bytes: request.map(|request| request.memory_limit),
        algorithm: algorithm.map(|algorithm| algorithm.name.as_str()),
        algorithm_reason: candidate.map(|candidate| candidate.reason.as_str()),
        algorithm_parameters: algorithm.map(parameters),
        recompression: request
            .into_iter()
            .flat_map(|request| request.recompression.iter().enumerate())
            .map(|(index, algorithm)| RecompressionReport {
                priority: index + 1,
                algorithm: &algorithm.name,
                parameters: parameters(algorithm),
            })
            .collect(),
        writeback_device: store.filter(|store| !is_file(store)).map(Store::path),
        writeback_file: store.filter(is_file).map(Store::path),
        writeback_encrypted: writeback.map(|writeback| writeback.encrypted),
        swap_priority: match purpose {
            Some(Purpose::Swap { priority, .. }) => Some(*priority),
            _ => None,
        },
        mount_point: mount.map(|mount| mount.mount_point.as_str()),
        fs_type: purpose.and_then(Purpose::fs_type),
        options: match purpose {
            Some(Purpose::Swap { options, .. }) => Some(options),
            _ => mount.map(|mount| mount.options.as_str()),
        },
        label: request.map(|request| request.label.as_str()),
        state: item.decision,
        reason: &item.reason,
    })
}

fn ramdisk_report(item: &Item) -> Option<RamdiskReport<'_>> {
    let Target::Ramdisk(name) = &item.target else { return None };
    let request: Option<&RamdiskRequest> = match &item.request {
        Some(Request::Ramdisk(request)) => Some(request),
        _ => None,
    };
    Some(RamdiskReport {
        name,
        backend: request.map_or("tmpfs", RamdiskRequest::backend),
        size_bytes: request.map(|request| request.size),
        inodes: request.and_then(|request| request.inodes),
        mount_point: request.map(|request| request.mount.mount_point.as_str()),
        options: request.map(|request| request.mount.options.as_str()),
        persist: request.map(|request| request.persist().word()),
        store: request.and_then(|request| request.keep.as_ref()).map(|keep| keep.settings.store.as_str()),
        state: item.decision,
        reason: &item.reason,
    })
}

/// The plan as text: a heading with the decision for each target, and its numbered steps. In the order of execution,
/// which differs from that of the numbers if one mount point is below another; targets without steps are last, and after them the
/// sections of `loaded` that are not used.
pub fn text(plan: &Plan, loaded: &Loaded) -> String {
    let mut out = String::new();
    let mut number = 0;
    // Writing to a String cannot fail.
    let mut line = |text: std::fmt::Arguments<'_>| out.write_fmt(text).unwrap_or_default();
    let items = plan.by_target();
    for group in &plan.groups {
        let decided = items
            .get(&group.target)
            .map_or_else(|| "left unfinished by an interrupted run".to_owned(), |item| headline(item));
        line(format_args!("{}: {decided}\n", group.target));
        if group.is_empty() {
            line(format_args!("    nothing to do\n"));
        }
        for step in group.expected_steps() {
            number += 1;
            line(format_args!("{number:4}. {step}\n"));
        }
    }
    let grouped: BTreeSet<&Target> = plan.groups.iter().map(|group| &group.target).collect();
    for item in plan.items.iter().filter(|item| !grouped.contains(&item.target)) {
        line(format_args!("{}: {}\n", item.target, headline(item)));
    }
    for (name, why) in plan.unused(loaded) {
        line(format_args!("{name}: {why}\n"));
    }
    if out.is_empty() {
        out = format!("{}\n", loaded.nothing());
    }
    out
}

fn headline(item: &Item) -> String {
    match item.decision {
        Decision::Skipped => return format!("skipped: {}", item.reason),
        Decision::Refused => return format!("refused: {}", item.reason),
        Decision::Planned => {}
    }
    let human = crate::human::human;
    match &item.request {
        Some(Request::Device(request)) => {
            let what = match &request.purpose {
                Purpose::Swap { priority, .. } => format!("swap with priority {priority}"),
                Purpose::Filesystem { fs_type, mount, .. } => format!("{fs_type} on {}", mount.mount_point),
                Purpose::Raw { fs_type: Some(fs_type), .. } => format!("{fs_type}, not mounted"),
                Purpose::Raw { fs_type: None, .. } => "raw device".to_owned(),
            };
            let algorithm = item.algorithm().map_or_else(String::new, |candidate| {
                let name =
                    candidate.algorithm.as_ref().map_or("default algorithm".to_owned(), ToString::to_string);
                format!(", {name} ({})", candidate.reason)
            });
            let remark = if item.reason.is_empty() { String::new() } else { format!("; {}", item.reason) };
            format!("{} of {what}{algorithm}{remark}", human(request.disk_size))
        }
        Some(Request::Ramdisk(request)) => {
            let what = format!("{} of {}", human(request.size), request.backend());
            let kept = match &request.keep {
                Some(keep) => format!(", kept as {} in {}", request.persist().word(), keep.settings.store),
                None => String::new(),
            };
            format!("{what} on {}{kept}", request.mount.mount_point)
        }
        Some(Request::Vm(request)) => request.to_string(),
        // Evaluated at boot.
        None => item.reason.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::plan::Activation;
    use crate::plan::tests::{facts, plan_of};

    fn device(keys: &str) -> Value {
        let plan = plan_of(&format!("[zram0]\nzram-size = 64\n{keys}\n"), &facts(), Activation::Direct);
        serde_json::to_value(report(&plan)).unwrap()["devices"][0].take()
    }

    #[test]
    fn each_key_of_a_device_is_in_its_own_field() {
        let secondary = "compression-algorithm = \"lz4\"\nrecompression-algorithm = [\"lz4hc\", \"zstd\"]";
        let (disk, file) = ("writeback-device = \"/dev/x\"", "writeback-file = \"/var/w\"");
        for (keys, field, expected) in [
            (secondary, "/recompression/0/priority", json!(1)),
            (secondary, "/recompression/1/priority", json!(2)),
            (secondary, "/recompression/1/algorithm", json!("zstd")),
            (disk, "/writeback_device", json!("/dev/x")),
            (disk, "/writeback_file", Value::Null),
            (file, "/writeback_device", Value::Null),
            (file, "/writeback_file", json!("/var/w")),
            ("options = \"discard=once\"", "/options", json!("discard=once")),
            ("mount-point = \"/srv\"\noptions = \"noatime\"", "/options", json!("noatime")),
            ("swap-priority = 7", "/swap_priority", json!(7)),
            ("mount-point = \"/srv\"", "/swap_priority", Value::Null),
        ] {
            assert_eq!(device(keys).pointer(field), Some(&expected), "{keys}");
        }
    }

    #[test]
    fn a_check_has_no_steps() {
        let plan = plan_of("[zram0]", &facts(), Activation::Direct);
        let has_steps = |report: PlanReport<'_>| serde_json::to_value(report).unwrap().get("steps").is_some();
        assert!(has_steps(report(&plan)) && !has_steps(checked(&plan)));
    }
}
