//! The command line of `zramd-setup`: output, messages, exit statuses. Nothing here changes the machine.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Output, Stdio};

use crate::apart::command_for;
use crate::support::{CTL, SETUP, WORKER, has_program, repository, setup, skip, texts};

fn zramdctl(words: &[&str]) -> Output {
    command_for(CTL).args(words).output().unwrap()
}

#[test]
fn check_names_every_mistake_and_ends_with_1() {
    let file = |path: &str| repository(path).to_str().unwrap().to_owned();
    let output = setup(&["check", &file("tests/golden/diagnostics/five-mistakes.toml")]);
    let (result, messages) = texts(&output);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(
        messages.matches("\n  = help").count() + messages.matches("\n   = help").count(),
        5,
        "{messages}"
    );
    assert_eq!(
        result,
        "still usable: 2 zram devices, 0 RAM disks; 4 not usable: ramdisk.cache, zram1, zram2, zram3\n"
    );
    let good = setup(&["check", &file("config/example.toml")]);
    assert_eq!(
        (good.status.code(), texts(&good).0.as_str()),
        (Some(0), "no mistakes found: 2 zram devices, 1 RAM disk\n")
    );
}

/// They are not absent: `nothing is configured` would be wrong.
#[test]
fn sections_that_are_not_used_are_in_a_plan() {
    let directory = tempfile::tempdir().unwrap();
    let config = directory.path().join("etc/zramd/zramd.toml");
    fs::create_dir_all(config.parent().unwrap()).unwrap();
    let plan = |text: &str| {
        fs::write(&config, text).unwrap();
        texts(&setup(&["--root", directory.path().to_str().unwrap(), "plan"])).0
    };
    assert_eq!(
        plan("[zram990]\nzram-size = \"oops(\"\n[zram991]\nzram-size = 16\nenabled = false\n"),
        "zram990: not usable: it has a mistake\nzram991: switched off\n"
    );
    assert_eq!(plan("[maintenance]\n"), "nothing is configured\n");
    for vm in ["[vm]\nswappiness = \"oops\"\n", "[vm]\nswappiness =\n"] {
        assert_eq!(plan(vm), "nothing is usable: the configuration has mistakes\n", "{vm}");
    }
}

#[test]
fn a_missing_file_is_named() {
    let output = setup(&["check", "/nonexistent/zramd.toml"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(texts(&output).1.contains("/nonexistent/zramd.toml"), "{output:?}");
}

#[test]
fn wrong_usage_ends_with_2() {
    for words in [&["frobnicate"][..], &[], &["up"], &["--json", "apply"], &["start"]] {
        assert_eq!(setup(words).status.code(), Some(2), "{words:?}");
    }
    assert_eq!(setup(&["--help"]).status.code(), Some(0));
}

#[test]
fn users_of_zramctl_are_helped() {
    let other = zramdctl(&["/dev/null"]);
    assert_eq!(other.status.code(), Some(4));
    assert!(texts(&other).1.starts_with("error: /dev/null: "), "{other:?}");
    for words in [&["-r"][..], &["-s", "5M"], &["-f", "/dev/zram77"], &["-r", "/dev/zram77", "-s", "5M"]] {
        let output = zramdctl(words);
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        assert!(texts(&output).1.contains("zramdctl -r DEVICE..."), "{output:?}");
    }
}

#[test]
fn long_output_on_a_terminal_is_paged() {
    if !has_program("script") {
        return skip("needs script(1) for a terminal");
    }
    let file = repository("config/example.toml");
    let on_a_terminal = |words: &str, environment: &[(&str, &str)]| {
        let line = format!("{CTL} --config {} {words}", file.display());
        let mut command = command_for("script");
        command.args(["--quiet", "--return", "--command", &line, "/dev/null"]).stdin(Stdio::null());
        for name in ["SYSTEMD_PAGER", "SYSTEMD_PAGERSECURE", "SUDO_UID", "PKEXEC_UID", "DOAS_USER"] {
            command.env_remove(name);
        }
        let environment = environment.iter().copied();
        let output =
            command.env("TERM", "xterm").env("PAGER", "sed s/^/paged:/").envs(environment).output().unwrap();
        assert!(output.status.success(), "{words}: {output:?}");
        texts(&output).0
    };
    let paged = on_a_terminal("cat-config", &[]);
    assert!(paged.lines().count() > 5 && paged.lines().all(|line| line.contains("paged:")), "{paged}");
    for (words, environment) in [
        ("cat-config --no-pager", &[][..]),
        ("cat-config", &[("PAGER", "")]),
        ("cat-config", &[("SYSTEMD_PAGER", "cat")]),
        ("cat-config", &[("TERM", "dumb")]),
        ("completions bash", &[]),
    ] {
        let plain = on_a_terminal(words, environment);
        assert!(!plain.is_empty() && !plain.contains("paged:"), "{words} {environment:?}: {plain}");
    }
    // Without a terminal.
    let output = zramdctl(&["--config", file.to_str().unwrap(), "cat-config"]);
    assert!(!texts(&output).0.contains("paged:") && output.status.success(), "{output:?}");
}

/// A user of `zramdctl bench run` does not know the worker.
#[test]
fn the_worker_names_itself_only_to_those_who_ran_it() {
    for (words, names_itself) in [(&["frobnicate"][..], true), (&["--reply", "frobnicate"], false)] {
        let output = command_for(WORKER).args(words).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        let (reply, messages) = texts(&output);
        assert_eq!(format!("{reply}{messages}").contains("zramd-worker"), names_itself, "{output:?}");
    }
}

#[test]
fn plan_json_has_the_promised_shape() {
    let output = setup(&["--config", repository("config/example.toml").to_str().unwrap(), "--json", "plan"]);
    let plan: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(plan["schema_version"], 1);
    let device = &plan["devices"][0];
    for key in [
        "name",
        "role",
        "disk_size_bytes",
        "memory_limit_bytes",
        "algorithm",
        "algorithm_reason",
        "algorithm_parameters",
        "recompression",
        "swap_priority",
        "mount_point",
        "fs_type",
        "options",
        "state",
        "reason",
    ] {
        assert!(device.get(key).is_some(), "{key} is missing in {device}");
    }
    assert_eq!(
        (device["name"].as_str(), device["disk_size_bytes"].as_u64()),
        (Some("zram0"), Some(256 << 20))
    );
    assert_eq!(plan["ramdisks"][0]["size_bytes"], 64 << 20);
    assert!(plan["steps"].is_array() && plan["problems"].is_array());
}

#[test]
fn problems_in_json_have_their_place() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("z.toml");
    fs::write(&file, "[zram0]\nzram-size = \"4Ki\"\n").unwrap();
    let output = setup(&["-c", file.to_str().unwrap(), "--json", "plan"]);
    assert_eq!(output.status.code(), Some(1));
    let plan: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let problem = &plan["problems"][0];
    assert_eq!((problem["place"]["line"].as_u64(), problem["place"]["column"].as_u64()), (Some(2), Some(14)));
    assert_eq!(problem["place"]["key"], "zram0.zram-size");
    assert!(problem["remedy"].as_str().unwrap().contains("4KiB"));
}

/// `--root` reads configuration and memory below a directory, to plan for another machine.
#[test]
fn a_plan_can_be_made_for_another_machine() {
    let root = tempfile::tempdir().unwrap();
    for (path, text) in [
        ("proc/meminfo", "MemTotal: 801322 kB\n"),
        ("proc/cmdline", ""),
        ("usr/lib/zramd/zramd.toml", "[zram0]\nswap-priority = 5\n"),
        ("etc/zramd/zramd.toml.d/50-a.toml", "[zram0]\nswap-priority = 7\n"),
    ] {
        let path = root.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let output = setup(&["--root", root.path().to_str().unwrap(), "--json", "plan"]);
    let plan: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(plan["devices"][0]["disk_size_bytes"], 409_993_216, "F01");
    assert_eq!(plan["devices"][0]["swap_priority"], 7);
}

#[test]
fn credentials_are_read_before_the_files_of_the_administrator() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    let credential = |name: &str| format!("run/credentials/@system/{name}");
    for (path, text) in [
        ("proc/meminfo", "MemTotal: 801322 kB\n"),
        ("proc/cmdline", ""),
        ("etc/systemd/system/multi-user.target.wants/zramd.service", ""),
        ("usr/lib/zramd/zramd.toml", "[zram0]\nswap-priority = 1\nzram-size = 64\n"),
        ("usr/lib/zramd/zramd.toml.d/50-a.toml", "[zram1]\nswap-priority = 2\n"),
        ("etc/zramd/zramd.toml", "[zram0]\nswap-priority = 3\n"),
        (&credential("zramd.toml"), "[zram0]\nswap-priority = 4\nzram-size = 32\n"),
        (&credential("zramd.toml.d.50-a.toml"), "[zram1]\nswap-priority = 5\n"),
        (&credential("zramd.toml.d.60-b.toml"), "[zram0]\nswap-priority = 6\nno-such-key = 1\n"),
        ("etc/zramd/zramd.toml.d/70-c.toml", "[zram0]\nswap-priority = 7\n"),
        // Neither a drop-in nor of zramd.
        (&credential("zramd.toml.d.80-d"), "[zram2]\n"),
        (&credential("80-d.toml"), "[zram3]\n"),
    ] {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let named = root.to_str().unwrap();
    let plan = || -> serde_json::Value {
        serde_json::from_slice(&setup(&["--root", named, "--json", "plan"]).stdout).unwrap()
    };
    let priorities = |plan: &serde_json::Value| -> Vec<_> {
        plan["devices"].as_array().unwrap().iter().map(|device| device["swap_priority"].as_i64()).collect()
    };
    let first = plan();
    assert_eq!(priorities(&first), [Some(7), Some(5)]);
    assert_eq!(first["devices"][0]["disk_size_bytes"], 32 << 20);
    let place = &first["problems"][0]["place"];
    let file = root.join(credential("zramd.toml.d.60-b.toml"));
    assert_eq!((place["file"].as_str(), place["line"].as_u64()), (file.to_str(), Some(3)));
    fs::remove_file(root.join("etc/zramd/zramd.toml.d/70-c.toml")).unwrap();
    assert_eq!(priorities(&plan()), [Some(6), Some(5)]);
    fs::remove_file(file).unwrap();
    assert_eq!(priorities(&plan()), [Some(3), Some(5)]);

    let units = root.join("units");
    let drop_in = |unit: &str| units.join(unit).join("zramd-credentials.conf");
    let generate = || {
        fs::create_dir_all(&units).unwrap();
        assert!(setup(&["--root", named, "generate", units.to_str().unwrap()]).status.success());
    };
    generate();
    for unit in ["zramd.service.d", "zramd-.service.d"] {
        let text = fs::read_to_string(drop_in(unit)).unwrap();
        assert!(text.ends_with("[Service]\nImportCredential=zramd.toml*\n"), "{text}");
    }
    fs::remove_dir_all(&units).unwrap();
    fs::remove_dir_all(root.join("run")).unwrap();
    generate();
    assert!(!drop_in("zramd.service.d").exists() && units.join("dev-zram0.swap").exists());
}

#[test]
fn changing_the_machine_without_rights_is_refused_in_one_sentence() {
    // In a user namespace of its own, root has no rights outside.
    let mut command = command_for("unshare");
    command.args(["--user", SETUP, "--config"]).arg(repository("config/example.toml")).arg("apply");
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(77));
    assert_eq!(texts(&output).1.lines().count(), 1, "{output:?}");
}

/// A FIFO without a writer, a device, a directory, a socket, links to them, and a file that is too large: each is named, and
/// the program exits.
#[test]
fn only_regular_files_of_some_size_are_configuration() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    rustix::fs::mkfifoat(rustix::fs::CWD, path("pipe"), 0o600.into()).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(path("socket")).unwrap();
    fs::create_dir(path("directory")).unwrap();
    fs::write(path("large"), vec![b'\n'; (1 << 20) + 1]).unwrap();
    fs::write(path("latin-1"), b"# m\xfcller\n[zram0]\n").unwrap();
    for (name, target) in [("link", path("pipe")), ("zeros", "/dev/zero".into()), ("tty", "/dev/ptmx".into())]
    {
        std::os::unix::fs::symlink(target, path(name)).unwrap();
    }
    for name in ["pipe", "socket", "directory", "large", "latin-1", "link", "zeros", "tty"] {
        let file = path(name);
        let file = file.to_str().unwrap();
        for words in
            [&["check", file][..], &["--config", file, "--json", "plan"], &["--config", file, "view"]]
        {
            let output = setup(words);
            let (result, messages) = texts(&output);
            assert!(messages.contains(file) || result.contains(file), "{words:?}: {output:?}");
            assert_eq!(output.status.success(), words.contains(&"view"), "{words:?}: {output:?}");
        }
        let output = zramdctl(&["check", file]);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert!(texts(&output).1.contains(file), "{output:?}");
    }
    let output = setup(&["check", "/dev/null"]);
    assert_eq!(output.status.code(), Some(0), "as an empty file: {output:?}");
}

/// The other drop-ins are used.
#[test]
fn a_pipe_among_the_drop_ins_is_named_and_left_out() {
    let root = tempfile::tempdir().unwrap();
    let drop_ins = root.path().join("etc/zramd/zramd.toml.d");
    fs::create_dir_all(&drop_ins).unwrap();
    fs::create_dir_all(root.path().join("proc")).unwrap();
    fs::write(root.path().join("proc/meminfo"), "MemTotal: 801322 kB\n").unwrap();
    fs::write(drop_ins.join("20-b.toml"), "[zram0]\nswap-priority = 7\n").unwrap();
    fs::write(drop_ins.join("40-c.toml"), "[zram0]\nlabel = \"c\"\n").unwrap();
    fs::set_permissions(drop_ins.join("40-c.toml"), fs::Permissions::from_mode(0o646)).unwrap();
    let pipe = drop_ins.join("30-pipe.toml");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, 0o600.into()).unwrap();
    let output = setup(&["--root", root.path().to_str().unwrap(), "--json", "plan"]);
    let plan: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(plan["devices"][0]["swap_priority"], 7);
    let problems: Vec<(&str, &str)> = plan["problems"]
        .as_array()
        .unwrap()
        .iter()
        .map(|problem| (problem["level"].as_str().unwrap(), problem["place"]["file"].as_str().unwrap()))
        .collect();
    // The last one is world-writable.
    let writable = drop_ins.join("40-c.toml");
    assert_eq!(problems, [("error", pipe.to_str().unwrap()), ("warning", writable.to_str().unwrap())]);
}

/// The same for configuration of other programs.
#[test]
fn a_pipe_is_not_imported() {
    let root = tempfile::tempdir().unwrap();
    fs::create_dir_all(root.path().join("etc/default")).unwrap();
    let pipe = root.path().join("etc/default/zramswap");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, 0o600.into()).unwrap();
    let words = ["import", "zram-tools", "--root", root.path().to_str().unwrap()];
    let import = || zramdctl(&words);
    assert_eq!(import().status.code(), Some(1));
    fs::remove_file(&pipe).unwrap();
    fs::write(&pipe, "PERCENT=25\n").unwrap();
    assert_eq!(import().status.code(), Some(0));
}

/// What `plan` refuses on any machine is an error for `check`.
#[test]
fn check_refuses_what_plan_refuses() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("z.toml");
    for text in [
        "[zram0]\nmount-point = \"/\"",
        "[zram0]\nmount-point = \"/usr\"",
        "[zram0]\nmount-point = \"/etc/cron.d\"",
        "[zram0]\nmount-point = \"/proc/x\"",
        "[ramdisk.a]\nmount-point = \"/usr/lib/x\"\nsize = 9",
        "[zram0]\nmount-point = \"/srv/a\"\n[zram1]\nmount-point = \"/srv/a\"",
        "[zram0]\nzram-size = \"1024TiB\"",
        "[zram0]\nmount-point = \"/srv/a\"\nzram-resident-limit = 100",
        "[zram0]\nmount-point = \"/srv/a\"\nfs-type = \"ntfs\"",
        "[zram0]\nmount-point = \"/srv/a\"\nowner = \"no-such-user-here\"",
        "[zram0]\nmount-point = \"/var/run/a\"",
    ] {
        fs::write(&file, text).unwrap();
        let file = file.to_str().unwrap();
        for output in [setup(&["check", file]), zramdctl(&["check", file])] {
            assert_eq!(output.status.code(), Some(1), "{text}: {output:?}");
        }
        let output = setup(&["--config", file, "--json", "plan"]);
        let plan: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let states = ["devices", "ramdisks"].map(|key| plan[key].as_array().unwrap().clone()).concat();
        assert!(states.iter().any(|target| target["state"] == "refused"), "{text}: {plan}");
    }
}
