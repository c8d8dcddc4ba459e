//! The scripts for init systems other than systemd, on the running kernel.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Output};

use crate::support::kept::Kept;
use crate::support::private_bus::{Bus, Guarded, bound};
use crate::support::session::{swaps, zramdctl};
use crate::support::{
    can_use_real_kernel, eventually, real_kernel_lock, repository, setup, texts, write_program,
};

/// A script with the built programs and this configuration, instead of the installed ones.
fn install(script: &str, directory: &Path, config: &Path) {
    let installed = fs::read_to_string(repository(&format!("packaging/init/{script}"))).unwrap();
    let mut text = installed.clone();
    for (path, built) in [
        ("/usr/lib/zramd/zramd-setup", env!("CARGO_BIN_EXE_zramd-setup")),
        ("/usr/lib/zramd/zramd-worker", env!("CARGO_BIN_EXE_zramd-worker")),
        ("/usr/bin/zramdctl", env!("CARGO_BIN_EXE_zramdctl")),
        ("exec /usr/lib/zramd/zramd\n", env!("CARGO_BIN_EXE_zramd")),
    ] {
        let name = Path::new(built).file_name().unwrap();
        let wrapper = directory.join(name);
        let call = format!("#!/bin/sh\nexec {built} \"$@\" --config {}\n", config.display());
        write_program(&wrapper, &call);
        let new = wrapper.to_str().unwrap();
        text = match path.strip_prefix("exec ") {
            Some(_) => text.replace(path, &format!("exec {new}\n")),
            None => text.replace(path, new),
        };
    }
    assert_ne!(text, installed, "{script} uses no program");
    text = text.replace("/run/dbus/system_bus_socket", directory.join("socket").to_str().unwrap());
    write_program(&directory.join(script), &text);
}

/// Removes what is left after a failure.
struct Reverted {
    _lock: fs::File,
}

impl Drop for Reverted {
    fn drop(&mut self) {
        setup(&["revert"]);
    }
}

#[track_caller]
fn ends(output: &Output, status: i32) {
    assert_eq!(output.status.code(), Some(status), "{output:?}");
}

#[test]
fn the_script_sets_up_saves_and_removes() {
    if !can_use_real_kernel() {
        return;
    }
    let lock = real_kernel_lock();
    let Some(bus) = Bus::start() else { return };
    let kept = Kept::new("init");
    let _reverted = Reverted { _lock: lock };
    let directory = bus.directory();
    let swap = "[zram0]\nzram-size = \"16MiB\"\n";
    fs::write(bus.config(), format!("{swap}{}", kept.section("size = \"16MiB\""))).unwrap();
    install("zramd-memory", directory, &bus.config());
    install("zramd-daemon", directory, &bus.config());
    let script = |action: &str| -> Output {
        Command::new(directory.join("zramd-memory")).arg(action).output().unwrap()
    };
    let snapshots = || fs::read_dir(kept.store()).map_or(0, Iterator::count);

    ends(&script("status"), 3);
    ends(&script("nonsense"), 2);
    ends(&script("start"), 0);
    assert_eq!((swaps().len(), kept.fs_type().as_deref()), (1, Some("tmpfs")));
    ends(&script("status"), 0);
    // What is in use stays.
    let device = || fs::metadata(kept.mount_point()).unwrap().dev();
    let first = device();
    ends(&script("restart"), 0);
    assert_eq!(device(), first);

    let daemon = Guarded(bus.connect(bound(&directory.join("zramd-daemon"))).spawn().unwrap());
    eventually("the daemon answers", || {
        zramdctl(bus.address(), &["compact", "zram0"]).output().unwrap().status.success()
    });
    drop(daemon);

    fs::write(kept.mount_point().join("file"), "one").unwrap();
    let earlier = snapshots();
    ends(&script("save"), 0);
    assert!(snapshots() > earlier);

    // A program still uses the disk at shutdown: it stays, but it is saved.
    fs::write(kept.mount_point().join("file"), "two").unwrap();
    let open = fs::File::open(kept.mount_point().join("file")).unwrap();
    let earlier = snapshots();
    let output = script("stop");
    assert!(!output.status.success() && !texts(&output).1.is_empty(), "{output:?}");
    assert!(snapshots() > earlier && swaps().is_empty());
    drop(open);
    ends(&script("stop"), 0);
    assert_eq!((swaps(), kept.fs_type()), (vec![], None));
    ends(&script("status"), 3);
    ends(&script("start"), 0);
    assert_eq!(fs::read_to_string(kept.mount_point().join("file")).unwrap(), "two");
    ends(&script("stop"), 0);
}
