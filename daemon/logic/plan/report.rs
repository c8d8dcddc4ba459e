//! A plan as text and as JSON.

use std::fmt::Write;

use serde::Serialize;

use super::{Decision, Group, Item, Plan, Taken};
use crate::config::problem::Problem;
use crate::error::ErrorKind;
use crate::finding::Code;
use crate::record::{Target, Undo};
use crate::request::{DeviceRequest, Purpose, RamDiskRequest, Request, Store};
use crate::view::section_of;

/// Version of the JSON form; incremented when a key is removed or changes its meaning.
pub const SCHEMA_VERSION: u32 = 1;

/// The JSON form of a plan.
#[derive(Debug, Serialize)]
pub struct PlanReport<'a> {
    schema_version: u32,
    devices: Vec<DeviceReport<'a>>,
    ramdisks: Vec<RamDiskReport<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    steps: Option<Vec<StepReport>>,
    problems: Vec<ProblemReport<'a>>,
}

#[derive(Debug, Serialize)]
struct DeviceReport<'a> {
    name: String,
    role: Option<&'static str>,
    disk_size_bytes: Option<u64>,
    memory_limit_bytes: Option<u64>,
    algorithm: Option<&'a str>,
    algorithm_reason: Option<&'a str>,
    algorithm_parameters: Option<serde_json::Map<String, serde_json::Value>>,
    recompression: Vec<RecompressionReport<'a>>,
    writeback_device: Option<&'a str>,
    writeback_file: Option<&'a str>,
    writeback_encrypted: Option<bool>,
    swap_priority: Option<i32>,
    mount_point: Option<&'a str>,
    fs_type: Option<&'a str>,
    options: Option<&'a str>,
    label: Option<&'a str>,
    state: Decision,
    reason: &'a str,
}

#[derive(Debug, Serialize)]
struct RecompressionReport<'a> {
    priority: usize,
    algorithm: &'a str,
    parameters: serde_json::Map<String, serde_json::Value>,
}

#[derive(Debug, Serialize)]
struct RamDiskReport<'a> {
    name: &'a str,
    backend: &'static str,
    size_bytes: Option<u64>,
    inodes: Option<u64>,
    mount_point: Option<&'a str>,
    options: Option<&'a str>,
    persist: Option<&'static str>,
    store: Option<&'a str>,
    state: Decision,
    reason: &'a str,
}

#[derive(Debug, Serialize)]
struct StepReport {
    target: String,
    action: String,
    undo: String,
}

/// The JSON form of a problem.
#[derive(Debug, Serialize)]
pub struct ProblemReport<'a> {
    severity: crate::config::problem::Severity,
    kind: ErrorKind,
    section: Option<String>,
    file: &'a std::path::Path,
    line: u32,
    column: u32,
    key: &'a str,
    code: Option<Code>,
    about: &'a str,
    message: &'a str,
    hint: Option<&'a str>,
}

/// Creates the JSON form.
pub fn report(plan: &Plan) -> PlanReport<'_> {
    PlanReport {
        schema_version: SCHEMA_VERSION,
        devices: plan.items.iter().filter_map(device_report).collect(),
        ramdisks: plan.items.iter().filter_map(ramdisk_report).collect(),
        steps: Some(plan.groups.iter().flat_map(step_reports).collect()),
        problems: plan.problems.iter().map(problem).collect(),
    }
}

/// Creates the JSON form of a check, which has no steps: it does not look at what is set up.
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
                Target::RamDisk(_) => "unmounting forgets it".to_owned(),
                Target::Vm | Target::Zswap => "none".to_owned(),
            },
            Taken::Never(reason) => format!("none: {reason}"),
        },
    })
}

/// Creates the JSON form of a problem.
pub fn problem(problem: &Problem) -> ProblemReport<'_> {
    ProblemReport {
        severity: problem.severity,
        kind: problem.kind,
        section: section_of(&problem.origin.key),
        file: &problem.origin.file,
        line: problem.origin.line,
        column: problem.origin.column,
        key: &problem.origin.key,
        code: problem.code,
        about: &problem.about,
        message: &problem.message,
        hint: problem.hint.as_deref(),
    }
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

fn ramdisk_report(item: &Item) -> Option<RamDiskReport<'_>> {
    let Target::RamDisk(name) = &item.target else { return None };
    let request: Option<&RamDiskRequest> = match &item.request {
        Some(Request::RamDisk(request)) => Some(request),
        _ => None,
    };
    Some(RamDiskReport {
        name,
        backend: request.map_or("tmpfs", RamDiskRequest::backend),
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
/// which differs from that of the numbers if one mount point is below another; targets without steps are last.
pub fn text(plan: &Plan) -> String {
    let mut out = String::new();
    let mut number = 0;
    // Writing to a String cannot fail.
    let mut line = |text: std::fmt::Arguments<'_>| out.write_fmt(text).unwrap_or_default();
    for group in &plan.groups {
        let decided = plan
            .item(&group.target)
            .map_or_else(|| "left unfinished by an interrupted run".to_owned(), headline);
        line(format_args!("{}: {decided}\n", group.target));
        if group.is_empty() {
            line(format_args!("    nothing to do\n"));
        }
        for step in group.expected_steps() {
            number += 1;
            line(format_args!("{number:4}. {step}\n"));
        }
    }
    for item in plan.items.iter().filter(|item| plan.groups.iter().all(|group| group.target != item.target)) {
        line(format_args!("{}: {}\n", item.target, headline(item)));
    }
    if plan.items.is_empty() && plan.groups.is_empty() {
        line(format_args!("nothing is configured\n"));
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
            format!("{} of {what}{algorithm}", human(request.disk_size))
        }
        Some(Request::RamDisk(request)) => {
            let what = format!("{} of {}", human(request.size), request.backend());
            let kept = match &request.keep {
                Some(keep) => format!(", kept as {} in {}", request.persist().word(), keep.settings.store),
                None => String::new(),
            };
            format!("{what} on {}{kept}", request.mount.mount_point)
        }
        Some(Request::Vm(request)) => request.to_string(),
        None => "planned".to_owned(),
    }
}
