//! A mount with a path that is not UTF-8.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Command;

use crate::support::mounted::Mounted;
use crate::support::{can_use_real_kernel, real_kernel_lock, setup};
use logic::proc;

#[test]
fn a_mount_with_an_odd_path_has_no_effect() {
    if !can_use_real_kernel() {
        return;
    }
    let _lock = real_kernel_lock();
    let directory = tempfile::tempdir().unwrap();
    let _odd = Mounted::tmpfs(&directory.path().join(OsStr::from_bytes(b"\xff \xe9")), "size=64k");
    let file = directory.path().join("z.toml");
    let mount_point = directory.path().join("disk");
    let text = format!(
        "[zram7]\nzram-size = \"16MiB\"\n[ramdisk.odd]\nmount-point = \"{}\"\nsize = \"1MiB\"\n",
        mount_point.display()
    );
    fs::write(&file, text).unwrap();
    let config = file.to_str().unwrap();
    let run = |words: &[&str]| {
        let output = setup(&[&["--config", config], words].concat());
        assert_eq!(output.status.code(), Some(0), "{words:?}: {output:?}");
    };
    run(&["apply"]);
    let swaps = fs::read("/proc/swaps").unwrap();
    assert!(proc::parse_swaps(&swaps).iter().any(|swap| swap.zram_number() == Some(7)));
    run(&["apply"]);
    // As in a reload.
    run(&["propose"]);
    run(&["status"]);
    for words in [&["list"][..], &["status"], &["plan"]] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_zramdctl"));
        let output = command.args(["--config", config]).args(words).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{words:?}: {output:?}");
    }
    // As when the service of a device stops and starts.
    run(&["down", "zram7"]);
    run(&["up", "zram7"]);
    run(&["revert"]);
    assert!(!mount_point.exists());
    assert!(!Path::new("/sys/block/zram7").exists());
}
