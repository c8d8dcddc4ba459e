//! Whether the machine shuts down, so that a RAM disk is unmounted even if its save is refused.

use std::env;
use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::{pid_1, unit_files};

/// The flag of runit(8): executable after a shutdown was requested.
const RUNIT: &str = "etc/runit/stopit";

/// Whether the file system of this mount unit is unmounted next whatever a save answers: PID 1 has a job for that, or shuts
/// the machine down. If PID 1 does not answer, it counts as such: what is not saved then may be lost.
pub fn is_begun(root: &Path, mount: &str) -> bool {
    if unit_files::is_booted(root) {
        let has_job = |unit| pid_1::property(unit, "Job").map_or(true, |job| is_queued(&job));
        return has_job(mount) || has_job("shutdown.target");
    }
    let variable = |name: &str| env::var_os(name).unwrap_or_default();
    is_begun_by(root, &variable("RUNLEVEL"), &variable("RC_RUNLEVEL"))
}

/// Whether this is a job: systemctl(1) writes its number, and nothing or 0 without one.
fn is_queued(job: &str) -> bool {
    !matches!(job, "" | "0")
}

/// As [`is_begun`], without systemd: by the runlevel that SysV init, or the one that OpenRC gives its children, or by runit.
fn is_begun_by(root: &Path, sysv: &OsStr, openrc: &OsStr) -> bool {
    let runit = || root.join(RUNIT).metadata().is_ok_and(|found| found.permissions().mode() & 0o111 != 0);
    sysv == "0" || sysv == "6" || openrc == "shutdown" || runit()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_shutdown_is_seen_without_systemd() {
        let root = tempfile::tempdir().unwrap();
        let begun = |sysv: &str, openrc: &str| is_begun_by(root.path(), sysv.as_ref(), openrc.as_ref());
        assert!(!begun("", "") && !begun("2", "default") && !begun("S", "boot"));
        assert!(begun("0", "") && begun("6", "") && begun("", "shutdown"));
        let flag = root.path().join(RUNIT);
        fs::create_dir_all(flag.parent().unwrap()).unwrap();
        fs::write(&flag, "").unwrap();
        for (mode, expected) in [(0o000, false), (0o100, true)] {
            fs::set_permissions(&flag, fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(begun("", ""), expected);
        }
    }
}
