//! Lasting changes, with real programs on the running kernel. The daemon reads the usual files: its mount namespace has a
//! directory of the test as `/etc/zramd`, and no systemd.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use host::linux::unit_files::is_booted;

use crate::support::outputs::{BROKEN, Broken, UNWRITTEN};
use crate::support::private_bus::{Bus, Guarded, PATIENCE, ends_within};
use crate::support::session::{self, attribute, machine, swaps};
use crate::support::{
    can_use_real_kernel, copy_program, has_program, real_kernel_lock, setup, skip, texts, write_program,
};

/// The drop-in, in the directory of the test.
const DROP_IN: &str = "zramd.toml.d/99-zramdctl.toml";

/// Exclusive use of the machine, with a daemon that reads `/etc/zramd`.
struct Machine {
    // In this order: the daemon ends before its bus.
    daemon: Option<Guarded>,
    bus: Bus,
    before: String,
    _lock: fs::File,
}

impl Machine {
    fn begin(config: &str) -> Option<Machine> {
        if !can_use_real_kernel() {
            return None;
        }
        if !has_program("unshare") || !has_program("nsenter") {
            skip("needs unshare and nsenter");
            return None;
        }
        let lock = real_kernel_lock();
        let before = machine();
        let bus = Bus::start()?;
        fs::create_dir(bus.directory().join("etc")).unwrap();
        fs::write(bus.directory().join("etc/zramd.toml"), config).unwrap();
        for name in ["zramd", "zramd-setup", "zramd-worker"] {
            let program = Path::new(env!("CARGO_BIN_EXE_zramd")).with_file_name(name);
            copy_program(&program, &bus.directory().join(name));
        }
        let mut machine = Machine { daemon: None, bus, before, _lock: lock };
        machine.start();
        machine.ok(&["reload"]);
        Some(machine)
    }

    fn start(&mut self) {
        // The mount point; removed again if this test made it.
        fs::create_dir_all("/etc/zramd").unwrap();
        let hide = if is_booted(Path::new("/")) { "mount -t tmpfs none /run/systemd" } else { "true" };
        let here = self.bus.directory().display();
        let script = format!("mount --bind {here}/etc /etc/zramd && {hide} && exec {here}/zramd");
        let mut command = Command::new("unshare");
        command.args(["--mount", "--propagation", "private", "sh", "-c", &script]);
        self.daemon = Some(self.bus.ready(self.bus.connect(command)));
    }

    /// A command in the mount namespace of the daemon.
    fn inside(&self, program: impl AsRef<Path>) -> Command {
        self.entering(Command::new("nsenter"), program)
    }

    fn entering(&self, mut command: Command, program: impl AsRef<Path>) -> Command {
        let namespace = format!("--mount=/proc/{}/ns/mnt", self.daemon.as_ref().unwrap().0.id());
        command.arg(namespace).arg(program.as_ref()).stdin(Stdio::null());
        command.env("DBUS_SYSTEM_BUS_ADDRESS", self.bus.address());
        command
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = self.inside(env!("CARGO_BIN_EXE_zramdctl"));
        command.args(words);
        command
    }

    #[track_caller]
    fn ok(&self, words: &[&str]) -> String {
        let output = self.command(words).output().unwrap();
        assert!(output.status.success(), "{words:?}: {output:?}");
        texts(&output).0
    }

    /// A command that ends with this status, and changes neither the drop-in nor the swaps.
    #[track_caller]
    fn refuses(&self, words: &[&str], status: i32) -> String {
        self.refused(words, status, |command| command.output().unwrap())
    }

    #[track_caller]
    fn refused(&self, words: &[&str], status: i32, run: impl FnOnce(&mut Command) -> Output) -> String {
        let before = (self.drop_in(), self.names(), swaps());
        let output = run(&mut self.command(words));
        assert_eq!(output.status.code(), Some(status), "{words:?}: {output:?}");
        assert_eq!((self.drop_in(), self.names(), swaps()), before, "{words:?}");
        texts(&output).1
    }

    fn path(&self, name: &str) -> PathBuf {
        self.bus.directory().join("etc").join(name)
    }

    /// The text of the drop-in; empty without one.
    fn drop_in(&self) -> String {
        fs::read_to_string(self.path(DROP_IN)).unwrap_or_default()
    }

    /// Files in the directories of the configuration.
    fn names(&self) -> Vec<String> {
        let entries =
            [self.path(""), self.path("zramd.toml.d")].into_iter().filter_map(|path| fs::read_dir(path).ok());
        let mut names: Vec<String> =
            entries.flatten().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// A program as the editor: this shell script, with the file as `$1`.
    fn editor(&self, script: &str) -> String {
        let program = self.bus.directory().join("editor");
        write_program(&program, &format!("#!/bin/sh\n{script}\n"));
        program.display().to_string()
    }

    /// Replaces `zramd-setup` by a script that runs these commands before `carry-out`.
    fn before_carry_out(&self, commands: &str) {
        let program = Path::new(env!("CARGO_BIN_EXE_zramd")).with_file_name("zramd-setup");
        let script = format!(
            "#!/bin/sh\ncase $1 in carry-out) {commands};; esac\nexec {} \"$@\"\n",
            program.display()
        );
        let replaced = self.bus.directory().join("zramd-setup");
        fs::remove_file(&replaced).unwrap();
        write_program(&replaced, &script);
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        self.daemon = None;
        let output = setup(&["revert"]);
        if !output.status.success() {
            eprintln!("could not clean up: {output:?}");
        }
        // It stays if it has files.
        fs::remove_dir("/etc/zramd").ok();
    }
}

/// Size without the header, and priority.
fn swap(name: &str) -> Option<(u64, i32)> {
    let found = swaps().into_iter().find(|swap| swap.0 == name);
    found.map(|(_, size, priority)| ((size + 4) / 1024, priority))
}

const CONFIG: &str = "[zram0]\nzram-size = \"16MiB\"\n";

#[test]
fn a_change_lasts_is_shown_and_can_be_unset() {
    let Some(machine) = Machine::begin(CONFIG) else { return };
    machine.ok(&["set", "/dev/zram0", "zram-size=24MiB", "swap-priority=50"]);
    assert_eq!(swap("zram0"), Some((24, 50)));
    let text = machine.drop_in();
    assert!(text.ends_with("\n[zram0]\nswap-priority = 50\nzram-size = \"24MiB\"\n"), "{text}");
    let shown = machine.ok(&["cat-config"]);
    assert!(shown.contains("99-zramdctl.toml:5\n"), "{shown}");
    assert_eq!(fs::read_to_string(machine.path("zramd.toml")).unwrap(), CONFIG);

    // An override until the next boot takes precedence.
    machine.ok(&["set", "--runtime", "zram0", "swap-priority=7"]);
    let written = machine.ok(&["set", "zram0", "swap-priority=60"]);
    assert!(written.contains(DROP_IN), "{written}");
    assert_eq!(swap("zram0"), Some((24, 7)));
    machine.ok(&["unset", "--runtime", "zram0"]);
    assert_eq!(swap("zram0"), Some((24, 60)));

    // Comments stay.
    fs::write(machine.path(DROP_IN), machine.drop_in().replace("60", "60 # high")).unwrap();
    machine.ok(&["unset", "zram0", "zram-size"]);
    assert_eq!(swap("zram0"), Some((16, 60)));
    assert!(machine.drop_in().ends_with("\n[zram0]\nswap-priority = 60 # high\n"), "{}", machine.drop_in());
    machine.ok(&["set", "zram1", "zram-size=8MiB"]);
    assert_eq!(swap("zram1").unwrap().0, 8);
    machine.ok(&["set", "zram1", "swap-priority=9"]);
    // All of it.
    let said = texts(&machine.command(&["unset", "zram1"]).output().unwrap()).1;
    assert!(said.contains("Unsetting swap-priority, zram-size of [zram1].\n"), "{said}");
    assert_eq!(swap("zram1"), None);
    let said = machine.refuses(&["unset", "zram1"], 4);
    assert!(said.contains("/etc/zramd/zramd.toml.d/99-zramdctl.toml has no keys of [zram1]"), "{said}");
    machine.ok(&["unset", "zram0", "swap-priority"]);
    assert_eq!(swap("zram0"), Some((16, 100)));
    assert_eq!(machine.names(), ["zramd.toml", "zramd.toml.d"]);
}

#[test]
fn what_cannot_be_applied_is_not_written() {
    let mount_point = tempfile::tempdir().unwrap();
    let config = format!(
        "{CONFIG}[zram1]\nzram-size = \"16MiB\"\nfs-type = \"ext4\"\nmount-point = \"{}\"\n",
        mount_point.path().display()
    );
    let Some(machine) = Machine::begin(&config) else { return };
    machine.ok(&["set", "zram0", "swap-priority=50"]);
    let again = machine.ok(&["set", "zram0", "swap-priority=50"]);
    assert!(!again.contains(DROP_IN), "{again}");
    for (words, status) in [
        ("zram0 swap-priority=32768", 2),
        ("--runtime zram0 swap-priority=32768", 2),
        ("zram0 zram-size=8Gib8", 2),
        ("zram0 zram-size=-5", 2),
        ("zram0 zram-size=1KiB", 2),
        ("zram0 zram-resident-limit=1KiB", 7),
        ("zram5 swap-priority=3", 4),
        ("scratch size=8MiB", 4),
        ("../x size=8MiB", 2),
        (" size=8MiB", 2),
        ("zram0 zram-sise=8MiB", 2),
        ("zram0 zram-size=", 2),
        ("zram0 zram-size", 2),
        ("zram0 zram-size=8MiB zram-size=9MiB", 2),
        ("zram0 mount-point=/srv/elsewhere", 7),
        ("zram0 writeback-device=/dev/sda", 7),
        ("logs pre-save=/bin/true", 7),
        ("logs store=/root", 7),
        ("vm tune=true", 7),
        ("maintenance recompress=true", 7),
        ("zram1 zram-size=24MiB", 7),
        ("--runtime defaults swap-priority=5", 2),
        ("--runtime zram7 swap-priority=5", 4),
    ] {
        let words: Vec<&str> = ["set"].into_iter().chain(words.split(' ')).collect();
        machine.refuses(&words, status);
    }
    machine.refuses(&["unset", "zram0", "zram-size"], 4);
    machine.refuses(&["unset", "zram1"], 4);
    machine.refuses(&["unset"], 2);
    // Wrong values make no job.
    let busctl = |words: &[&str]| {
        let mut call = machine.inside("busctl");
        call.env("SYSTEMD_LOG_LEVEL", "debug").arg(format!("--address={}", machine.bus.address()));
        texts(&call.arg("call").args(["org.zramd1", "/org/zramd1"]).args(words).output().unwrap()).1
    };
    for value in
        [["zram-size", "s", "ram / 0"], ["zram-size", "s", "4 parsecs"], ["swap-priority", "i", "40000"]]
    {
        if !has_program("busctl") {
            break;
        }
        for options in [&["0"][..], &["1", "runtime", "b", "true"]] {
            let call = ["org.zramd1.Manager", "Configure", "a{sa{sv}}a{sv}", "1", "zram0", "1"];
            let said = busctl(&[&call[..], &value, options].concat());
            assert!(said.contains("org.zramd1.Error.InvalidArgument"), "{value:?} {options:?}: {said}");
        }
    }
    assert_eq!((machine.drop_in().contains("zram-size"), swap("zram0")), (false, Some((16, 50))));
    // One target of two.
    let mut call = machine.inside("busctl");
    call.arg(format!("--address={}", machine.bus.address())).args(["call", "org.zramd1", "/org/zramd1"]);
    call.args(["org.zramd1.Manager", "Configure", "a{sa{sv}}a{sv}", "2"]);
    call.args(["zram0", "1", "swap-priority", "i", "60", "zram1", "1", "zram-size", "s", "24MiB", "0"]);
    if has_program("busctl") {
        let before = machine.drop_in();
        assert!(call.status().unwrap().success(), "it returns a job");
        // The next change waits for its end.
        machine.refuses(&["unset", "zram0", "zram-size"], 4);
        assert_eq!((machine.drop_in(), swap("zram0")), (before, Some((16, 50))));
    }
    // A later file takes precedence.
    fs::write(machine.path("zramd.toml.d/zz.toml"), "[zram0]\nswap-priority = 70\n").unwrap();
    machine.refuses(&["set", "zram0", "swap-priority=60"], 5);
    // As for a reload, no file may have a mistake.
    fs::write(machine.path("zramd.toml.d/zz.toml"), "[zram2]\nzram-size = \n").unwrap();
    machine.refuses(&["set", "zram0", "swap-priority=60"], 1);
    fs::remove_file(machine.path("zramd.toml.d/zz.toml")).unwrap();

    let remount = |how: &str| {
        let mut command = machine.inside("mount");
        command.args(["-o", &format!("remount,bind,{how}"), "/etc/zramd"]).status().unwrap().success()
    };
    assert!(remount("ro"));
    machine.refuses(&["set", "zram0", "swap-priority=60"], 77);
    let editor = machine.editor("exit 0");
    let said = machine.refused(&["edit"], 77, |command| command.env("VISUAL", &editor).output().unwrap());
    assert!(said.contains(DROP_IN) && !said.contains(".edit-"), "{said}");
    machine.ok(&["set", "--runtime", "zram0", "swap-priority=60"]);
    assert_eq!(swap("zram0"), Some((16, 60)));
    machine.ok(&["unset", "--runtime", "zram0"]);
    assert!(remount("rw"));
    machine.ok(&["set", "zram0", "swap-priority=60"]);
    assert_eq!(swap("zram0"), Some((16, 60)));
    machine.ok(&["set", "--force", "zram1", "zram-size=24MiB"]);
    assert_eq!(attribute("zram1", "disksize"), (24 << 20).to_string());
}

#[test]
fn sizes_that_exceed_the_memory_together_are_reported() {
    let Some(machine) = Machine::begin(CONFIG) else { return };
    for (words, warns) in [("create zram1 --size ram*3", false), ("create zram2 --size ram*3", true)] {
        let words: Vec<&str> = words.split(' ').collect();
        let output = machine.command(&words).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let warnings = texts(&output).1.lines().filter(|line| line.starts_with("warning: ")).count();
        assert_eq!(warnings, usize::from(warns), "{output:?}");
    }
    assert!(machine.refuses(&["create", "--size", "0"], 2).contains("zramdctl create"));
    // Named twice, removed once.
    machine.ok(&["remove", "zram1", "/dev/zram1"]);
    assert!(machine.refuses(&["create", "zram0", "--size", "8MiB"], 2).contains("zramdctl resize zram0"));
    machine.ok(&["unset", "--runtime", "--all"]);
}

/// Action, target and detail of each change that `PlanConfigure` announces, or the name of the error.
fn planned(machine: &Machine, section: &str, key: (&str, &str, &str), options: &[&str]) -> Vec<String> {
    let (name, kind, value) = key;
    let mut call = machine.inside("busctl");
    call.arg(format!("--address={}", machine.bus.address())).args(["call", "org.zramd1", "/org/zramd1"]);
    call.args(["--json=short", "org.zramd1.Manager", "PlanConfigure", "a{sa{sv}}a{sv}", "1", section, "1"]);
    call.args([name, kind, value, &options.len().to_string()]);
    for option in options {
        call.args([option, "b", "true"]);
    }
    let output = call.output().unwrap();
    if !output.status.success() {
        return vec![texts(&output).1];
    }
    let reply: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let rows = reply["data"][0].as_array().unwrap().iter();
    rows.map(|row| format!("{} {}: {}", row[0], row[1], row[2]).replace('"', "")).collect()
}

#[test]
fn what_a_change_will_do_is_told_before() {
    if !has_program("busctl") {
        return skip("needs busctl");
    }
    let mount_point = tempfile::tempdir().unwrap();
    let config = format!(
        "{CONFIG}[zram1]\nzram-size = \"16MiB\"\nfs-type = \"ext4\"\nmount-point = \"{}\"\n",
        mount_point.path().display()
    );
    let Some(machine) = Machine::begin(&config) else { return };
    let before = (machine.drop_in(), machine.names(), swaps());
    let larger = ("zram-size", "s", "24MiB");
    let recreated = ["recreate zram0: size 16.0 MiB → 24.0 MiB"];
    for options in [&[][..], &["runtime"]] {
        assert_eq!(planned(&machine, "zram0", larger, options), recreated);
        assert_eq!(planned(&machine, "zram0", ("zram-size", "s", "16MiB"), options), [""; 0]);
        let mistake = planned(&machine, "zram0", ("zram-size", "s", "ram *"), options);
        assert!(mistake[0].contains("zram-size"), "{mistake:?}");
    }
    // Those of RemoveDevice and CreateDevice.
    let gone = planned(&machine, "zram0", ("enabled", "b", "false"), &["runtime"]);
    assert!(gone[0].starts_with("remove zram0: "), "{gone:?}");
    let new = planned(&machine, "zram7", ("zram-size", "s", "8MiB"), &["runtime"]);
    assert!(new[0].starts_with("create zram7: "), "{new:?}");
    // A file system is refused, unless it is forced.
    assert!(planned(&machine, "zram1", larger, &["runtime"])[0].starts_with("refuse zram1: "));
    assert!(planned(&machine, "zram1", larger, &["runtime", "force"])[0].starts_with("recreate zram1: "));
    // What only root changes in files.
    let refused = planned(&machine, "zram0", ("mount-point", "s", "/srv"), &[]);
    assert!(refused[0].contains("zramdctl edit"), "{refused:?}");
    let odd = planned(&machine, "ramdisk.../x", ("size", "s", "8MiB"), &["runtime"]);
    assert!(odd[0].contains("RAM disk"), "{odd:?}");
    assert_eq!((machine.drop_in(), machine.names(), swaps()), before);
    // It is what Configure then does.
    machine.ok(&["set", "--runtime", "zram0", "zram-size=24MiB"]);
    assert_eq!(planned(&machine, "zram0", larger, &["runtime"]), [""; 0]);
}

#[test]
fn concurrent_changes_lose_nothing() {
    let Some(machine) = Machine::begin(CONFIG) else { return };
    let words = |number: usize| match number {
        0 => ["set".to_owned(), "zram0".to_owned(), "swap-priority=50".to_owned()],
        number => ["set".to_owned(), format!("zram{number}"), format!("zram-size={}MiB", 8 + number)],
    };
    let mut running: Vec<std::process::Child> = (0..5)
        .map(|number| {
            let words = words(number);
            machine.command(&words.each_ref().map(String::as_str)).spawn().unwrap()
        })
        .collect();
    for child in &mut running {
        assert!(child.wait().unwrap().success());
    }
    assert_eq!(swap("zram0"), Some((16, 50)));
    for number in 1..5 {
        assert_eq!(swap(&format!("zram{number}")).unwrap().0, 8 + number);
    }
    // A change during an editing session: neither is overwritten.
    let program = env!("CARGO_BIN_EXE_zramdctl");
    let editor = machine.editor(&format!("echo '# Mine.' >>\"$1\"; {program} set zram0 swap-priority=60"));
    let output = machine.command(&["edit"]).env("EDITOR", editor).env_remove("VISUAL").output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert_eq!(swap("zram0"), Some((16, 60)));
    assert!(!machine.drop_in().contains("Mine"), "{}", machine.drop_in());
    let names = machine.names();
    let [kept, rest @ ..] = names.as_slice() else { panic!("{names:?}") };
    assert_eq!(rest, ["99-zramdctl.toml", "zramd.toml", "zramd.toml.d"]);
    let kept = fs::read_to_string(machine.path(kept).join("99-zramdctl.toml")).unwrap();
    assert!(kept.ends_with("# Mine.\n"), "{kept}");
}

#[test]
fn an_edited_copy_is_checked_before_it_is_used() {
    let Some(machine) = Machine::begin(CONFIG) else { return };
    let edit = |script: &str| {
        let editor = machine.editor(script);
        let mut command = machine.command(&["edit"]);
        command.env("VISUAL", format!("{editor} --wait")).output().unwrap()
    };
    let with = |text: &str| format!("[ \"$1\" = --wait ] && printf '%s\\n' '{text}' >>\"$2\"");
    let output = edit(&with("[zram0]\nswap-priority = 50 # mine"));
    assert!(output.status.success(), "{output:?}");
    assert_eq!(swap("zram0"), Some((16, 50)));
    assert!(machine.drop_in().contains("swap-priority = 50 # mine\n"), "{}", machine.drop_in());

    let before = machine.drop_in();
    for (script, status, text_stays) in [
        ("exit 0".to_owned(), 0, false),
        ("exit 3".to_owned(), 1, false),
        (with("[zram1]\nswap-priority = 5x"), 1, true),
        (with("[zram1]\nswap-priority = 32768"), 1, true),
        // An unknown key, which other files may have.
        (with("[zram1]\nzram-sise = \"8MiB\""), 1, true),
        (with("[zram1]\nzram-size = \"8MiB\"\nmount-point = \"/proc\""), 1, true),
        (with(&"nonsense\n".repeat(20)), 1, true),
        ("printf '\\377' >\"$2\"".to_owned(), 1, true),
        ("rm \"$2\"".to_owned(), 1, false),
        ("rm \"$2\"; mkdir \"$2\"".to_owned(), 1, true),
    ] {
        let output = edit(&script);
        assert_eq!(output.status.code(), Some(status), "{script}");
        assert_eq!(machine.drop_in(), before, "{script}");
        let said = texts(&output).1.to_lowercase();
        assert!(said.contains("nothing is changed"), "{script}: {said}");
        assert!(said.matches("\n --> ").count() <= 5, "{said}");
        let kept: Vec<String> =
            machine.names().into_iter().filter(|name| name.starts_with(".edit-")).collect();
        assert_eq!(kept.len(), usize::from(text_stays), "{script}: {kept:?}");
        for name in kept {
            assert!(said.contains(&format!("{name}/99-zramdctl.toml")), "{script}: {said}");
            fs::remove_dir_all(machine.path(&name)).unwrap();
        }
    }
    // Those of processes that have ended: one in which nothing was written goes, another is named. That of a process that runs stays.
    let draft = |process: &str, text: &str| {
        fs::create_dir(machine.path(&format!(".edit-{process}"))).unwrap();
        fs::write(machine.path(&format!(".edit-{process}/99-zramdctl.toml")), text).unwrap();
    };
    let us = std::process::id().to_string();
    for (process, text) in [
        ("4194301", before.as_str()),
        ("4194302", "# Mine.\n"),
        (us.as_str(), before.as_str()),
        ("x", before.as_str()),
    ] {
        draft(process, text);
    }
    let said = texts(&edit("exit 0")).1;
    let told = "An earlier `zramdctl edit` has left a text in /etc/zramd/.edit-4194302; remove that directory when you do not need it.";
    assert!(said.contains(told) && said.matches("An earlier").count() == 1, "{said}");
    for (process, stays) in [("4194301", false), ("4194302", true), (us.as_str(), true), ("x", true)] {
        let name = format!(".edit-{process}");
        assert_eq!(machine.names().contains(&name), stays, "{name}");
        fs::remove_dir_all(machine.path(&name)).ok();
    }
    let missing = machine.command(&["edit"]).env("VISUAL", "/nonexistent/editor").output().unwrap();
    assert!(texts(&missing).1.contains("VISUAL"), "{missing:?}");
    // A second attempt starts from the text of the first.
    let editor =
        machine.editor("grep -q 5x \"$1\" && sed -i s/5x/7/ \"$1\" || echo 'swap-priority = 5x' >>\"$1\"");
    fs::write(machine.path(DROP_IN), "[zram0]\n").unwrap();
    let mut command = machine.command(&["edit"]);
    command.env("VISUAL", editor).stdin(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), b"y\n").unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!((machine.drop_in().as_str(), swap("zram0")), ("[zram0]\nswap-priority = 7\n", Some((16, 7))));
    assert_eq!(machine.names(), ["99-zramdctl.toml", "zramd.toml", "zramd.toml.d"]);
    // Without text, the file would hide others of its name.
    assert!(edit(": >\"$2\"").status.success());
    assert_eq!((machine.drop_in().as_str(), swap("zram0")), ("", Some((16, 100))));
    assert_eq!(machine.names(), ["zramd.toml", "zramd.toml.d"]);
}

#[test]
fn a_change_is_made_although_output_cannot_be_written() {
    let Some(machine) = Machine::begin("[zram0]\nzram-size = \"16MiB\"\n") else { return };
    let editor = machine.editor("printf '[zram0]\\nswap-priority = 9\\n' >\"$1\"");
    let tell = |command: &dyn Fn() -> Command| {
        [&["edit"][..], &["set", "zram0", "swap-priority=7"], &["unset", "zram0", "swap-priority"]].map(
            |words| {
                let mut command = machine.entering(command(), env!("CARGO_BIN_EXE_zramdctl"));
                let status = command.args(words).env("VISUAL", &editor).status().unwrap();
                (words, status.code(), machine.drop_in(), swaps())
            },
        )
    };
    let usual = tell(&|| {
        let mut command = Command::new("nsenter");
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command
    });
    assert!(usual.iter().all(|(_, status, ..)| *status == Some(0)), "{usual:?}");
    let priorities = usual.clone().map(|(.., swaps)| swaps[0].2);
    assert_eq!(priorities, [9, 7, 100]);
    for broken in BROKEN {
        for (found, usual) in tell(&|| broken.command("nsenter")).into_iter().zip(&usual) {
            assert_eq!((&found.0, &found.2, &found.3), (&usual.0, &usual.2, &usual.3), "{broken:?}");
            let is_lost = broken == Broken::Full && found.1 == Some(UNWRITTEN);
            assert!(is_lost || found.1 == usual.1, "{found:?}, {broken:?}");
        }
    }
}

#[test]
fn a_change_that_fails_is_taken_back_and_an_interrupted_one_is_completed() {
    let Some(mut machine) = Machine::begin(CONFIG) else { return };
    machine.ok(&["set", "zram0", "swap-priority=50"]);
    // The first call fails. The second, which restores, does not.
    let fails = "[ -e \"$0.failed\" ] || { : >\"$0.failed\"; echo '{\"Err\":{\"kind\":\"busy\",\"message\":\"x\"}}'; exit 1; }";
    machine.before_carry_out(fails);
    machine.refuses(&["set", "zram0", "swap-priority=60"], 1);

    machine.before_carry_out("kill -KILL $PPID; exit");
    let output = machine.command(&["set", "zram0", "swap-priority=60"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(ends_within(&machine.daemon.as_ref().unwrap().0, PATIENCE));
    assert!(machine.drop_in().contains("swap-priority = 60\n"), "{}", machine.drop_in());
    machine.before_carry_out("true");
    machine.start();
    assert_eq!(swap("zram0"), Some((16, 60)));
    assert_eq!(machine.ok(&["plan"]).lines().count(), 1);
    machine.daemon = None;
    assert!(setup(&["revert"]).status.success());
    assert_eq!(crate::support::session::machine(), machine.before, "nothing is left");
}

#[test]
fn off_takes_everything_away_and_keeps_the_configuration() {
    if Path::new("/etc/init.d/zramd-memory").exists() {
        return skip("would disable the boot script of this machine");
    }
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let config = format!(
        "{CONFIG}[ramdisk.kept]\nmount-point = \"{}\"\nsize = \"4MiB\"\npersist = \"snapshot\"\nstore = \"{}\"\n\
         [ramdisk.scratch]\nmount-point = \"{}\"\nsize = \"4MiB\"\n\
         [ramdisk.dense]\nmount-point = \"{}\"\nsize = \"16MiB\"\nbackend = \"zram\"\nzram-device = 7\n",
        path("kept").display(),
        path("store").display(),
        path("scratch").display(),
        path("dense").display()
    );
    let Some(machine) = Machine::begin(&config) else { return };
    machine.ok(&["set", "zram0", "swap-priority=50"]);
    machine.ok(&["set", "zram1", "zram-size=8MiB"]);
    machine.ok(&["set", "--runtime", "zram0", "swap-priority=7"]);
    machine.ok(&["create", "zram5", "--size", "8MiB"]);
    // In the namespace of the daemon, which a working directory outside is not in.
    let script = |script: &str| {
        let mut command = machine.inside("sh");
        command.args(["-c", &format!("cd {} && {script}", directory.path().display())]);
        command
    };
    let sh = |text: &str| texts(&script(text).output().unwrap()).0.trim().to_owned();
    assert_eq!(sh("echo saved >kept/file; echo lost >scratch/file; cat kept/file"), "saved");
    let written = machine.drop_in();

    // The end of standard input is a no. What is lost is named before.
    let said = machine.refuses(&["off"], 1);
    for part in
        ["ramdisk.kept, which is saved first", "scratch (4.0 KiB) is lost", "zram5", "Nothing was changed"]
    {
        assert!(said.contains(part), "{part}: {said}");
    }
    let dense = format!("\n  ramdisk.dense: what is on {} (", path("dense").display());
    let line = said.split_once(&dense).and_then(|(_, rest)| rest.lines().next());
    assert!(line.is_some_and(|line| line.ends_with("iB) is lost")), "{said}");
    let mut held = script("cd scratch && echo ready && exec cat");
    held.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut held = Guarded(held.spawn().unwrap());
    let mut line = String::new();
    BufReader::new(held.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let output = machine.command(&["off", "--yes"]).output().unwrap();
    let said = texts(&output).1;
    assert_eq!(output.status.code(), Some(6), "{output:?}");
    assert!(said.contains("scratch") && said.contains(&held.0.id().to_string()), "{said}");
    drop(held);

    let said = machine.command(&["off", "--yes"]).output().unwrap();
    assert!(said.status.success(), "{said:?}");
    assert!(texts(&said).1.contains("sets everything up again"), "{said:?}");
    assert_eq!(session::machine(), machine.before);
    assert_eq!(sh("ls -A kept scratch store | grep -c gen-"), "1", "one file for each save");
    assert_eq!(sh("ls /run/zramd/zramd.toml.d"), "");
    assert_eq!(
        (machine.drop_in(), fs::read_to_string(machine.path("zramd.toml")).unwrap()),
        (written, config)
    );
    assert!(machine.command(&["off", "--yes"]).status().unwrap().success(), "again");

    // The way back.
    machine.ok(&["reload"]);
    assert_eq!((swap("zram0"), swap("zram1").map(|swap| swap.0)), (Some((16, 50)), Some(8)));
    assert_eq!(sh("cat kept/file"), "saved");
}
