//! `zramdctl off` where PID 1 is systemd: on the running kernel, with a program in place of systemctl(1); the lab has the real
//! one. `lasting` has the case without systemd.

use std::fs;
use std::process::Command;

use logic::unit::HEAD;

use crate::support::session::machine;
use crate::support::{can_use_real_kernel, has_program, real_kernel_lock, setup, skip, texts, write_program};

#[test]
fn units_stop_swap_before_its_device_and_the_service_is_disabled() {
    if !can_use_real_kernel() {
        return;
    }
    if !has_program("unshare") {
        return skip("needs unshare");
    }
    let _lock = real_kernel_lock();
    let before = machine();
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path().display();
    let config = directory.path().join("zramd.toml");
    fs::write(&config, "[zram0]\nzram-size = \"16MiB\"\n").unwrap();
    let setup_program = std::path::Path::new(env!("CARGO_BIN_EXE_zramd")).with_file_name("zramd-setup");
    let setup_program = setup_program.display();
    let systemctl = format!(
        "#!/bin/sh
        shift
        echo \"$*\" >>{here}/calls
        case \"$*\" in
        'show --value --property=LoadState zramd-textfile.timer') echo not-found ;;
        'show --value --property=LoadState '*) echo loaded ;;
        'show --value --property=ActiveState '*) echo active ;;
        'stop dev-zram0.swap') swapoff /dev/zram0 ;;
        'stop zramd-setup@zram0.service') {setup_program} down zram0 ;;
        esac\n"
    );
    write_program(&directory.path().join("systemctl"), &systemctl);
    let script = format!(
        "set -e
        mount -t tmpfs none /run/systemd
        mkdir -p /run/systemd/system/swap.target.wants /run/zramd/zramd.toml.d
        printf '%s\\n' '{HEAD}' '[Swap]' >/run/systemd/system/dev-zram0.swap
        echo '[Unit]' >/run/systemd/system/other.service
        {setup_program} --config {here}/zramd.toml up zram0
        swapon /dev/zram0
        printf '[zram0]\\nswap-priority = 7\\n' >/run/zramd/zramd.toml.d/zz-runtime-zram0.toml
        touch /run/zramd/provisioned
        PATH={here}:$PATH {zramdctl} off --yes >{here}/said 2>&1
        ls /run/systemd/system",
        HEAD = HEAD.trim_end(),
        zramdctl = env!("CARGO_BIN_EXE_zramdctl"),
    );
    let mut command = Command::new("unshare");
    let output = command.args(["--mount", "--propagation", "private", "sh", "-c", &script]).output().unwrap();
    let said = fs::read_to_string(directory.path().join("said")).unwrap_or_default();
    let after = machine();
    // In case it has failed.
    setup(&["revert"]);
    assert!(output.status.success(), "{output:?}\n{said}");
    let (left, _) = texts(&output);
    assert!(left.lines().any(|line| line == "other.service"), "{left}");
    assert!(!left.contains("zram0"), "{left}");
    assert!(
        said.contains("zram0: removed") && said.contains("`systemctl enable --now zramd.service`"),
        "{said}"
    );
    assert_eq!(after.replace(", \"zramd.toml.d\"", "").replace("\"zramd.toml.d\"", ""), before);
    let calls = fs::read_to_string(directory.path().join("calls")).unwrap();
    let calls: Vec<&str> = calls.lines().filter(|line| !line.starts_with("show ")).collect();
    assert_eq!(
        calls,
        [
            "stop zramd.servic[e] zramd-maintenance.*",
            "disable --no-reload zramd.service",
            "disable --no-reload zramd-drain.service",
            "disable --no-reload zramd-metrics.socket",
            "stop zramd-*.timer zramd-*.socket zramd-benchmark*.service",
            "daemon-reload",
            "stop dev-zram0.swap",
            "stop zramd-setup@zram0.service",
        ]
    );
}
