//! Rebuilds the record of a device that is in use as configured, but whose record is missing or damaged.

use super::diff::round_up;
use super::ownership::{Ownership, ownership};
use super::{Activation, Candidate, Plan};
use crate::error::ErrorKind;
use crate::facts::{DeviceFacts, Facts, Seen, Use};
use crate::human::human;
use crate::proc::mount_of;
use crate::record::{Carried, Progress, Record, Target, Undo};
use crate::request::{DeviceRequest, Purpose, Request};

/// State of the device's write-back.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Found {
    /// `backing_dev`.
    pub backing: String,
    /// Whether it uses a loop device of ours.
    pub has_loop: bool,
    /// Whether it uses an encrypted mapping of ours.
    pub has_crypt: bool,
}

impl Found {
    fn writes_back(&self) -> bool {
        !["", "none"].contains(&self.backing.trim())
    }
}

/// The record; `None` if the device has a valid one.
///
/// # Errors
///
/// Why the device is not taken over: it does not exist, or is not as configured.
pub fn record(
    number: u32,
    plan: &Plan,
    facts: &Facts,
    found: &Found,
    activation: Activation,
) -> Result<Option<Record>, (ErrorKind, String)> {
    let target = Target::Device(number);
    let refused = |why: String| (ErrorKind::Unsafe, why);
    match ownership(number, facts) {
        Ownership::Ours(record) if record.progress == Progress::Done => return Ok(None),
        Ownership::Ours(_) => {
            let why = format!("setting it up was interrupted; run `zramd-setup down zram{number}`");
            return Err(refused(why));
        }
        _ => {}
    }
    let Some(device) = facts.devices.get(&number).filter(|device| device.initialised) else {
        let why = match facts.damaged_record(&target) {
            Some(damaged) => format!("it is not set up; remove /run/zramd/{}", damaged.file),
            None => "it is not set up".to_owned(),
        };
        return Err(refused(why));
    };
    let item = plan.item(&target);
    let Some(Request::Device(request)) = item.and_then(|item| item.request.as_ref()) else {
        let why = item.map_or_else(|| "it is not configured".to_owned(), |item| item.reason.clone());
        return Err((ErrorKind::Config, why));
    };
    differs(request, device, facts, found).map_or(Ok(()), |why| Err(refused(why)))?;
    let candidates = item.map(|item| item.candidates.as_slice()).unwrap_or_default();
    let candidate = candidates.iter().find(|candidate| is_used(candidate, device)).ok_or_else(|| {
        let used = device.algorithm.as_deref().unwrap_or("no algorithm");
        refused(format!("it uses {used}, which is not configured"))
    })?;
    // What it takes to undo it is known if only the contents of the device have changed.
    let known = facts.records.get(&target).filter(|record| record.is_of(device.diskseq));
    Ok(Some(Record {
        found_algorithm: known.and_then(|record| record.found_algorithm.clone()),
        diskseq: device.diskseq,
        carries: Some(carried(device)),
        progress: Progress::Done,
        algorithm: candidate.algorithm.clone(),
        measured: candidate.measured,
        undo: known.map_or_else(|| undo(request, found, activation), |record| record.undo.clone()),
        memory_kib: facts.memory.total_kib,
        ..Record::begin(target, Request::Device(request.clone()))
    }))
}

/// What the device carries now.
fn carried(device: &DeviceFacts) -> Carried {
    let signature = match &device.seen {
        Seen::Signature(signature) => Some(signature.clone()),
        Seen::Unknown | Seen::Nothing => None,
    };
    Carried { disk_size: device.disk_size, algorithm: device.algorithm.clone(), signature }
}

fn is_used(candidate: &Candidate, device: &DeviceFacts) -> bool {
    candidate.algorithm.as_ref().is_none_or(|algorithm| Some(&algorithm.name) == device.algorithm.as_ref())
}

/// How the device differs from the configuration, if so.
fn differs(request: &DeviceRequest, device: &DeviceFacts, facts: &Facts, found: &Found) -> Option<String> {
    let wanted = round_up(request.disk_size, facts.page_size);
    if device.disk_size != wanted {
        return Some(format!("its size is {}, and {} is configured", human(device.disk_size), human(wanted)));
    }
    if found.writes_back() && request.writeback.is_none() {
        return Some(format!("it writes back to {}, which is not configured", found.backing.trim()));
    }
    let number = request.number;
    let mounted = mount_of(&facts.mounts, number, device.device);
    match (&request.purpose, facts.device_use(number)) {
        (Purpose::Swap { priority: wanted, .. }, Some(Use::Swap { priority, .. })) => (*wanted >= 0
            && *wanted != priority)
            .then(|| format!("it is swap with priority {priority}, and {wanted} is configured")),
        (Purpose::Filesystem { fs_type, mount, .. }, Some(Use::Mounted { .. })) => {
            let here = mounted.filter(|found| found.mount_point == mount.mount_point);
            (here.map(|found| &found.fs_type) != Some(fs_type))
                .then(|| format!("it is not mounted on {} as {fs_type}", mount.mount_point))
        }
        (Purpose::Raw { .. }, None) => None,
        (purpose, _) => Some(format!("it is not in use as {}", purpose.role())),
    }
}

/// How to undo it. It is unknown whether we created the device, so it is only reset, not removed.
fn undo(request: &DeviceRequest, found: &Found, activation: Activation) -> Vec<Undo> {
    let number = request.number;
    let mut undo = Vec::new();
    if found.has_loop {
        undo.push(Undo::DetachFile { number, diskseq: None });
    }
    if found.has_crypt {
        undo.push(Undo::CloseCrypt { number, diskseq: None });
    }
    undo.push(Undo::Reset { number });
    match &request.purpose {
        Purpose::Swap { .. } if activation == Activation::Direct => undo.push(Undo::SwapOff { number }),
        Purpose::Filesystem { mount, .. } if activation == Activation::Direct => {
            let mount_point = mount.mount_point.clone();
            undo.push(Undo::Unmount { mount_point, number: Some(number), mounted: None });
        }
        _ => {}
    }
    undo
}
