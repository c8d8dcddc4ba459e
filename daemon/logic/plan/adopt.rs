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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::tests::{plan_of, set_up};

    const SWAP: &str = "[zram0]\nzram-size = 64\nswap-priority = 100\n";
    const FILES: &str = "[zram0]\nzram-size = 64\nmount-point = \"/srv\"\n";
    const RAW: &str = "[zram0]\nzram-size = 64\nfs-type = \"none\"\n";

    /// A machine on which this was set up, and zram0 has no record any more.
    fn without_record(text: &str) -> Facts {
        Facts { records: [].into(), ..set_up(text) }
    }

    fn adopted(
        text: &str,
        facts: &Facts,
        found: &Found,
        activation: Activation,
    ) -> Result<Option<Record>, String> {
        let plan = plan_of(text, facts, activation);
        record(0, &plan, facts, found, activation).map_err(|(_, why)| why)
    }

    #[test]
    fn what_pid_1_has_started_is_not_stopped_by_the_undo() {
        use Activation::{Direct, Managed, Systemd};
        let (number, mount_point) = (0, "/srv".to_owned());
        let (reset, swap_off) = (Undo::Reset { number }, Undo::SwapOff { number });
        let unmount = Undo::Unmount { mount_point, number: Some(number), mounted: None };
        for (text, activation, expected) in [
            (SWAP, Direct, vec![reset.clone(), swap_off]),
            (SWAP, Systemd, vec![reset.clone()]),
            (FILES, Direct, vec![reset.clone(), unmount]),
            (FILES, Managed, vec![reset.clone()]),
            (RAW, Direct, vec![reset]),
        ] {
            let record = adopted(text, &without_record(text), &Found::default(), activation);
            let record = record.unwrap().unwrap();
            assert_eq!((record.progress, &record.undo), (Progress::Done, &expected), "{text} {activation:?}");
        }
    }

    #[test]
    fn a_device_is_taken_over_only_as_it_is_configured() {
        let with = |line: &str| format!("{SWAP}{line}\n");
        for (there, configured, expected) in [
            (SWAP, SWAP.replace("64", "65"), "its size is 64.0 MiB, and 65.0 MiB is configured"),
            (SWAP, SWAP.replace("100", "7"), "it is swap with priority 100, and 7 is configured"),
            // The kernel chooses one.
            (SWAP, SWAP.replace("100", "-1"), ""),
            (RAW, SWAP.to_owned(), "it is not in use as swap"),
            (FILES, FILES.replace("/srv", "/mnt"), "it is not mounted on /mnt as ext4"),
            (FILES, format!("{FILES}fs-type = \"ext2\"\n"), "it is not mounted on /srv as ext2"),
            (SWAP, RAW.to_owned(), "it is not in use as raw"),
            (SWAP, with("compression-algorithm = \"zstd\""), "it uses lzo-rle, which is not configured"),
        ] {
            let found = adopted(&configured, &without_record(there), &Found::default(), Activation::Direct);
            let why = found.map(|record| assert!(record.is_some())).err().unwrap_or_default();
            assert_eq!(why, expected, "{there} {configured}");
        }
        let text = with("compression-algorithm = [\"zstd\", \"lzo-rle\"]");
        let found = adopted(&text, &without_record(SWAP), &Found::default(), Activation::Direct);
        assert_eq!(found.unwrap().unwrap().algorithm.unwrap().name, "lzo-rle");
    }

    #[test]
    fn write_back_is_taken_over_only_where_it_is_configured() {
        let found = |backing: &str| Found { backing: backing.to_owned(), has_loop: true, has_crypt: true };
        let facts = without_record(SWAP);
        let adopted = |text: &str, backing: &str| adopted(text, &facts, &found(backing), Activation::Systemd);
        for backing in ["", "none\n"] {
            assert!(adopted(SWAP, backing).is_ok(), "{backing}");
        }
        let why = adopted(SWAP, "/dev/dm-0\n").unwrap_err();
        assert_eq!(why, "it writes back to /dev/dm-0, which is not configured");
        let record = adopted(&format!("{SWAP}writeback-file = \"/w\"\n"), "/dev/dm-0\n").unwrap().unwrap();
        let (number, diskseq) = (0, None);
        let expected = [
            Undo::DetachFile { number, diskseq },
            Undo::CloseCrypt { number, diskseq },
            Undo::Reset { number },
        ];
        assert_eq!(record.undo, expected);
    }

    #[test]
    fn a_device_with_a_record_needs_no_other_one() {
        let mut facts = set_up(SWAP);
        let adopted = |facts: &Facts| adopted(SWAP, facts, &Found::default(), Activation::Direct);
        assert_eq!(adopted(&facts), Ok(None));
        facts.records.get_mut(&Target::Device(0)).unwrap().progress = Progress::Working;
        assert!(adopted(&facts).is_err_and(|why| why.starts_with("setting it up was interrupted")));
        facts.records.clear();
        facts.devices.get_mut(&0).unwrap().initialised = false;
        assert_eq!(adopted(&facts), Err("it is not set up".to_owned()));
    }
}
