//! Programs that were ended since boot because memory ran out.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use super::clock::moment;
use host::linux::{LinuxHost, process};
use host::{Host, MachineFile};
use logic::ended::{self, Log};
use logic::finding::Finding;
use logic::maintain::taken_in::Totals;
use logic::sample::Snapshot;
use service::journal::{ALARM, PRESSURE, SWAPPING};

/// Time limit for journalctl, which may read a large journal from a slow medium.
const LIMIT: Duration = Duration::from_secs(30);
/// Where systemd-oomd is, if it is installed.
const OOMD: [&str; 2] = ["/usr/lib/systemd/systemd-oomd", "/lib/systemd/systemd-oomd"];

/// Looks for them, in the journal only if there may be one.
pub(super) fn look(host: &LinuxHost, snapshot: &Snapshot, has_systemd: bool) -> Vec<Finding> {
    let kills = ended::kills(&host.text(MachineFile::Vmstat).unwrap_or_default());
    let may_be = kills != Some(0) || OOMD.iter().any(|path| Path::new(path).exists());
    let log = (has_systemd && may_be).then(journal).flatten();
    findings(log.as_ref(), kills, snapshot, moment)
}

fn findings(
    log: Option<&Log>,
    kills: Option<u64>,
    snapshot: &Snapshot,
    clock: impl Fn(u64) -> String,
) -> Vec<Finding> {
    let is_swap = snapshot.devices.iter().any(|device| device.managed && device.swap.is_some());
    let now = if is_swap {
        Totals::of(snapshot).sentence(snapshot)
    } else {
        "zramd has no compressed swap".to_owned()
    };
    ended::findings(log, kills, &now, clock)
}

fn journal() -> Option<Log> {
    let mut command = Command::new("journalctl");
    command.args(ended::query(&[PRESSURE, ALARM, SWAPPING]));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let output = process::output(&mut command, "journalctl", LIMIT, |_| {}).ok()?;
    output.status.success().then(|| Log::parse(&output.stdout))
}

/// Notes of a machine on which the kernel and systemd-oomd ended programs, for tests of the output.
#[cfg(test)]
pub(super) fn example(snapshot: &Snapshot) -> Vec<Finding> {
    let text = include_bytes!("../../tests/fast/fuzz/seeds/journal/ended");
    let clock = |usec: u64| {
        jiff::Timestamp::from_microsecond(i64::try_from(usec).unwrap()).unwrap().strftime("%F %T").to_string()
    };
    findings(Some(&Log::parse(text)), Some(3), snapshot, clock)
}
