//! The maintainer scripts of the Debian package with mounts.

use std::fs;
use std::process::Command;

use crate::support::{has_program, may_mount, repository, skip, texts};

/// A purge removes what zramd measured, and nothing else, wherever there is a mount point.
#[test]
fn a_purge_tolerates_mount_points() {
    if !may_mount() || !has_program("unshare") {
        return skip("needs root and unshare");
    }
    for mount_point in ["var/lib/zramd", "var/lib/zramd/disks", "var/lib/zramd/disks/logs", "etc/zramd"] {
        for source in ["tmpfs", "--bind"] {
            let root = tempfile::tempdir().unwrap();
            let bound = tempfile::tempdir().unwrap();
            let here = root.path().display();
            let mount = match source {
                "tmpfs" => format!("mount -t tmpfs none {here}/{mount_point}"),
                _ => format!("mount --bind {} {here}/{mount_point}", bound.path().display()),
            };
            fs::create_dir_all(root.path().join(mount_point)).unwrap();
            let script = format!(
                "set -e
                {mount}
                mkdir -p {here}/var/lib/zramd/disks/logs {here}/etc/zramd
                echo 1 >{here}/var/lib/zramd/benchmark.json
                DPKG_ROOT={here} sh {postrm} purge
                mountpoint -q {here}/{mount_point}
                [ ! -e {here}/var/lib/zramd/benchmark.json ]
                mkdir -p {here}/var/lib/zramd/disks/logs
                echo 1 >{here}/var/lib/zramd/disks/logs/gen-1.tar.zst
                DPKG_ROOT={here} sh {postrm} purge
                cat {here}/var/lib/zramd/disks/logs/gen-1.tar.zst",
                postrm = repository("packaging/debian/postrm").display(),
            );
            let mut command = Command::new("unshare");
            command.args(["--mount", "--propagation", "private", "sh", "-c", &script]);
            let output = command.output().unwrap();
            let (said, errors) = texts(&output);
            assert!(output.status.success() && errors.is_empty(), "{mount_point} {source}: {output:?}");
            assert_eq!(said.lines().last(), Some("1"), "{mount_point} {source}: {said}");
            assert!(said.contains("/var/lib/zramd is kept"), "{mount_point} {source}: {said}");
        }
    }
}
