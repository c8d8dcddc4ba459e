//! No decision depends on texts: with every letter in them replaced, all programs behave the same.
//!
//! The same commands run twice in a child process, once with `ZRAMD_REPLACE_LETTERS`, which client, daemon, set-up and
//! worker inherit. Exit statuses, JSON without texts, and the state of the machine have to be equal.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::support::kept::Kept;
use crate::support::private_bus::Guarded;
use crate::support::session::{Session, attribute, swaps};
use crate::support::{can_use_real_kernel, eventually, has_program, setup, skip, texts};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// In the child process: the file to which it writes the records.
const RECORDS: &str = "ZRAMD_TEXTS_RECORDS";
const REPLACE: &str = "ZRAMD_REPLACE_LETTERS";

/// JSON fields that contain texts.
const TEXTS: &[&str] = &[
    "cause",
    "detail",
    "doing",
    "hint",
    "last_save_message",
    "load_message",
    "message",
    "note",
    "reason",
    "refused",
    "remedy",
    "result",
    "skipped",
    "store_problem",
    "text",
    "why",
];

/// The result of one command.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Record {
    command: String,
    status: Option<i32>,
    /// Standard output where it is JSON, without texts and figures.
    json: Option<Value>,
    /// State of the machine afterwards.
    machine: String,
    /// Standard error.
    said: String,
}

/// The commands of one run.
struct Run {
    session: Session,
    kept: Kept,
    records: Vec<Record>,
}

impl Run {
    /// Devices, swaps, and the files and mounts of the test.
    fn machine(&self) -> String {
        let names = |directory: &Path| -> BTreeSet<String> {
            let entries = fs::read_dir(directory).into_iter().flatten().flatten();
            entries.map(|entry| entry.file_name().into_string().unwrap()).collect()
        };
        let devices = names(Path::new("/sys/block")).into_iter().filter(|name| name.starts_with("zram"));
        let devices = devices.map(|name| {
            let values = ["disksize", "comp_algorithm"].map(|file| attribute(&name, file));
            let limit = attribute(&name, "mm_stat").split_whitespace().nth(3).map(str::to_owned);
            (name, values, limit)
        });
        let devices: Vec<_> = devices.collect();
        let drop_ins = Path::new("/run/zramd/zramd.toml.d");
        let drop_ins =
            names(drop_ins).into_iter().map(|name| fs::read_to_string(drop_ins.join(name)).unwrap());
        let drop_ins: Vec<String> = drop_ins.collect();
        let (store, place) = (names(&self.kept.store()), names(&self.kept.mount_point()));
        format!("{devices:?} {:?} {drop_ins:?} {store:?} {:?} {place:?}", swaps(), self.kept.fs_type())
    }

    /// Text with the names of temporary directories replaced.
    fn anywhere(&self, text: &str) -> String {
        let directories =
            [self.kept.store().parent().unwrap().to_owned(), self.session.bus().bus().directory().to_owned()];
        directories
            .iter()
            .fold(text.to_owned(), |text, directory| text.replace(directory.to_str().unwrap(), "HERE"))
    }

    /// JSON reduced to names, identifiers, and the types of figures.
    fn bare(&self, value: Value) -> Value {
        match value {
            Value::Object(fields) => {
                let fields = fields.into_iter().map(|(name, value)| {
                    let value = if TEXTS.contains(&name.as_str()) && value.is_string() {
                        Value::from("(text)")
                    } else {
                        self.bare(value)
                    };
                    (name, value)
                });
                Value::Object(fields.collect())
            }
            Value::Array(items) => items.into_iter().map(|item| self.bare(item)).collect(),
            Value::String(text) => Value::from(self.anywhere(&text)),
            Value::Number(_) => Value::from("(number)"),
            other => other,
        }
    }

    fn note(&mut self, command: &str, output: &Output, json: bool) {
        let (result, said) = texts(output);
        let value = serde_json::from_str(&result).ok().filter(|_| json);
        let record = Record {
            command: self.anywhere(command),
            status: output.status.code(),
            json: value.map(|value| self.bare(value)),
            machine: self.machine(),
            said,
        };
        self.records.push(record);
    }

    /// Runs `zramdctl` and returns its output.
    fn ctl(&mut self, words: &str) -> String {
        let list: Vec<&str> = words.split(' ').collect();
        let output = self.session.command(&list).output().unwrap();
        self.note(words, &output, words.contains("--json"));
        texts(&output).0
    }

    fn setup(&mut self, words: &str) {
        let list: Vec<&str> = words.split(' ').collect();
        self.note(&format!("setup {words}"), &setup(&list), false);
    }
}

/// All operations that can be requested or refused here.
fn commands(run: &mut Run) {
    for words in
        ["list --json", "status", "doctor --json", "overrides --json", "plan", "reload", "show", "stats"]
    {
        run.ctl(words);
    }
    devices(run);
    configurations(run);
    others(run);
    disks(run);
    imports(run);
    benchmarks(run);
}

fn benchmarks(run: &mut Run) {
    // No benchmark: its result depends on the load of the machine.
    for words in [
        "bench run --algorithms nothing",
        "bench run --seconds 0",
        "bench run --sample /nonexistent",
        "bench swap --sample /nonexistent",
        "bench ramdisk --sample /nonexistent",
        "bench forget",
        "bench show",
    ] {
        run.ctl(words);
    }
}

fn devices(run: &mut Run) {
    let node = run.ctl("create --size 16MiB --priority 7");
    let name = node.trim_end().strip_prefix("/dev/").unwrap();
    for words in [
        "list --json",
        "status NAME",
        "doctor --json",
        "resize NAME 24MiB",
        "resize NAME nonsense",
        "resize zram990 24MiB",
        "limit NAME 8MiB",
        "limit NAME 1KiB",
        "limit NAME none",
        "overrides --json",
        "swap off NAME",
        "swap off NAME",
        "list --json",
        "swap on NAME",
        "set --runtime NAME swap-priority=9",
        "set NAME swap-priority=9",
        "set NAME mount-point=/srv",
        "set NAME swap-priority=nonsense",
        "unset NAME swap-priority",
        "edit",
        "compact NAME",
        "compact zram990",
        "adopt NAME",
        "adopt zram990",
        "remove zram990 NAME",
        "remove zram990",
        "create --size nonsense",
        "create --size 16MiB --algorithm nothing",
        "create --size 100TiB",
        "create --size 16MiB --set nonsense=1",
        "unset --runtime zram990",
        "show zram990",
        "show -p Nonsense",
        "status zram990",
        "--nonsense",
        "maintain run",
        "maintain run --only nonsense",
    ] {
        run.ctl(&words.replace("NAME", name));
    }
}

fn configurations(run: &mut Run) {
    let bus = run.session.bus().bus();
    let file = bus.config().display().to_string();
    for text in [
        "[zram0]\nzram-size = \"16MiB\"\nswap-priority = 100\ncompression-algorithm = \"lzo\"\n",
        "[zram0]\nzram-size = \"16MiB\"\nswap-priority = 50\ncompression-algorithm = \"nothing\"\n",
        "[zram0]\nzram-size = = \"32MiB\"\n",
        "[zram0]\nzram-size = \"ramm / 2\"\nswap-priority = 99999\n[zrm1]\n",
        "[zram0]\nzram-size = \"16MiB\"\nwriteback-device = \"/dev/nothing\"\n",
        "[zram0]\nzram-size = \"16MiB\"\nzram-sise = 1\nhost-memory-limit = \"1MiB\"\n",
        "[zram0]\nfs-type = \"ext4\"\nmount-point = \"/run/zramd-texts\"\nzram-size = \"24MiB\"\n",
        "[zram0]\nfs-type = \"nothing\"\nmount-point = \"/run/zramd-texts\"\nzram-size = \"24MiB\"\n",
        "[zram0]\nfs-type = \"ext4\"\nmount-point = \"/run/zramd-texts\"\nzram-size = \"32MiB\"\n",
    ] {
        run.session.write(text);
        for words in
            [&format!("check {file}"), "plan", "doctor --json", "reload", "list --json", "status zram0"]
        {
            run.ctl(words);
        }
        run.setup(&format!("check --config {file}"));
        run.setup(&format!("plan --json --config {file}"));
    }
    // Refused, because its contents would be lost.
    run.ctl("resize zram0 48MiB");
    run.ctl("resize --force zram0 48MiB");
    run.ctl("unset --runtime --force zram0");
    run.session.write("");
    run.ctl("reload");
    run.ctl("reload --force");
    run.setup("status");
    run.setup("down zram990");
    run.setup("nonsense");
}

/// A device of another program, a damaged record, a lost one, a missing bus, an unprivileged user.
fn others(run: &mut Run) {
    let number = fs::read_to_string("/sys/class/zram-control/hot_add").unwrap();
    let name = format!("zram{}", number.trim());
    fs::write(format!("/sys/block/{name}/disksize"), "16M").unwrap();
    run.session.write(&format!("[{name}]\nzram-size = \"16MiB\"\n"));
    for command in
        ["reload", "doctor --json", "plan", "compact NAME", "limit NAME 8MiB", "remove NAME", "adopt NAME"]
    {
        run.ctl(&command.replace("NAME", &name));
    }
    assert_eq!(attribute(&name, "disksize"), (16 << 20).to_string());
    fs::write(format!("/sys/block/{name}/reset"), "1").unwrap();
    fs::write("/sys/class/zram-control/hot_remove", number.trim()).unwrap();

    run.ctl("reload");
    let record = format!("/run/zramd/{name}.json");
    let text = fs::read_to_string(&record).unwrap();
    fs::write(&record, "nonsense").unwrap();
    for command in ["reload", "doctor --json", "plan", "limit NAME 8MiB", "remove NAME"] {
        run.ctl(&command.replace("NAME", &name));
    }
    fs::remove_file(&record).unwrap();
    for command in ["doctor --json", "reload", "adopt NAME"] {
        run.ctl(&command.replace("NAME", &name));
    }
    fs::write(&record, text).unwrap();
    run.session.write("");
    run.ctl("reload");

    let output = crate::support::session::zramdctl("unix:path=/nonexistent", &["reload"]).output().unwrap();
    run.note("reload without a bus", &output, false);
    if has_program("setpriv") {
        // A copy that this user can execute.
        let program = run.session.bus().bus().directory().join("zramdctl");
        fs::copy(env!("CARGO_BIN_EXE_zramdctl"), &program).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(&program).arg("reload");
        let address = run.session.bus().address().to_owned();
        let output = command.env("DBUS_SYSTEM_BUS_ADDRESS", address).stdin(Stdio::null()).output().unwrap();
        run.note("reload without rights", &output, false);
    }
}

fn disks(run: &mut Run) {
    let name = run.kept.name;
    let place = run.kept.mount_point();
    let section = run.kept.section("size = \"16MiB\"");
    run.session.write(&section);
    run.ctl("reload");
    fs::write(place.join("file"), "first").unwrap();
    let disk = |run: &mut Run, words: &str| run.ctl(&format!("ramdisk {}", words.replace("NAME", name)));
    for words in [
        "save NAME",
        "save NAME",
        "list --json",
        "status NAME --json",
        "snapshots NAME --json",
        "verify NAME",
        "verify NAME 9",
        "pin NAME 1",
        "pin NAME 1 --off",
        "pin NAME 1",
        "status nothing",
        "save nothing",
        "resize NAME 24MiB",
        "resize NAME 1KiB",
        "restore NAME 9",
        "delete NAME 1",
    ] {
        disk(run, words);
    }
    fs::write(place.join("file"), "second").unwrap();
    disk(run, "save NAME");

    // The disk is in use.
    let script = format!("exec 9<{}; exec sleep 300", place.join("file").display());
    let holder = Guarded(Command::new("sh").args(["-c", &script]).stdin(Stdio::null()).spawn().unwrap());
    let descriptor = format!("/proc/{}/fd/9", holder.0.id());
    eventually("the file is open", || Path::new(&descriptor).exists());
    disk(run, "restore NAME 1");
    drop(holder);
    disk(run, "restore NAME 1");

    let directory = run.kept.store().with_file_name("exported");
    fs::create_dir(&directory).unwrap();
    disk(run, &format!("export NAME {}", directory.display()));
    disk(run, &format!("export NAME {}", directory.display()));

    // A damaged snapshot, and a store that is too small.
    let newest = fs::read_dir(run.kept.store()).unwrap().flatten().map(|entry| entry.path());
    let newest = newest.filter(|path| path.extension().is_none()).max().unwrap();
    assert!(newest.ends_with("gen-2"), "{}", newest.display());
    fs::write(&newest, "nonsense").unwrap();
    disk(run, "verify NAME");
    disk(run, "restore NAME");
    run.ctl("doctor --json");
    run.session.write(&format!("{section}store-limit = \"1MiB\"\n"));
    run.ctl("reload");
    let noise: Vec<u8> = {
        let mut random = fastrand::Rng::with_seed(1);
        (0..4 << 20).map(|_| random.u8(..)).collect()
    };
    fs::write(place.join("noise"), noise).unwrap();
    disk(run, "save NAME");
    disk(run, "status NAME --json");
    run.ctl("doctor --json");
    run.session.write("");
    run.ctl("reload");
    run.ctl("reload --force");
    run.ctl("list --json");
}

fn imports(run: &mut Run) {
    let root = run.kept.store().with_file_name("root");
    let write = |path: &str, text: &str| {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    write("etc/systemd/zram-generator.conf", "[zram0]\nzram-size = ram / 4\nset!x = echo 1\nnonsense = 1\n");
    write("etc/default/zramswap", "ALGO=lz4\nPERCENTAGE=oops\n");
    let root = root.display().to_string();
    for peer in ["zram-generator", "zram-tools", "log2ram", "nothing"] {
        run.ctl(&format!("import {peer} --root {root}"));
    }
    run.ctl(&format!("import zram-tools --write --root {root}"));
    run.ctl(&format!("import zram-tools --write --root {root}"));
    let written = fs::read_to_string(Path::new(&root).join("etc/zramd/zramd.toml")).unwrap_or_default();
    let settings: Vec<&str> = written.lines().filter(|line| !line.trim_start().starts_with('#')).collect();
    run.records.last_mut().unwrap().machine += &format!("{settings:?}");
}

/// The child process of the test below.
#[test]
#[ignore = "the test below starts it"]
fn records() {
    let Some(file) = std::env::var_os(RECORDS) else { return };
    let Some(session) = Session::begin("") else { return };
    let mut run = Run { session, kept: Kept::new("texts"), records: Vec::new() };
    commands(&mut run);
    fs::write(file, serde_json::to_string(&run.records).unwrap()).unwrap();
}

/// The records of a run.
fn record(replace: bool) -> Vec<Record> {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("records");
    // Name of the test function in its test program.
    let name = module_path!().split_once("::").map_or(String::new(), |(_, module)| format!("{module}::"));
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", &format!("{name}records"), "--ignored", "--nocapture"]).env(RECORDS, &file);
    if replace {
        command.env(REPLACE, "1");
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}{}", texts(&output).0, texts(&output).1);
    let text = fs::read_to_string(file).unwrap();
    serde_json::from_str(&text).unwrap()
}

#[test]
fn replaced_texts_change_nothing_else() {
    if !can_use_real_kernel() {
        return;
    }
    if !has_program("dbus-daemon") {
        return skip("needs dbus-daemon");
    }
    if !cfg!(debug_assertions) {
        return skip("needs programs with debug assertions");
    }
    let (plain, replaced) = (record(false), record(true));
    let other_words = |(plain, replaced): &(&Record, &Record)| plain.said != replaced.said;
    let said = plain.iter().zip(&replaced).filter(other_words).count();
    for (plain, replaced) in plain.iter().zip(&replaced) {
        let fields = |record: &Record| {
            (record.command.clone(), record.status, record.json.clone(), record.machine.clone())
        };
        assert_eq!(fields(plain), fields(replaced), "{}\n{}", plain.said, replaced.said);
    }
    assert_eq!(plain.len(), replaced.len());
    let statuses: BTreeSet<Option<i32>> = plain.iter().map(|record| record.status).collect();
    println!("{} commands, statuses {statuses:?}, {said} with other words", plain.len());
    // Otherwise the comparison would be empty.
    assert!(statuses.is_superset(&[0, 1, 2, 4, 5, 6, 7, 77].map(Some).into()), "{statuses:?}");
    assert!(said > 50, "{said} of {} say something else", plain.len());
}
