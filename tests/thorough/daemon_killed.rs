//! SIGKILL of the daemon during each operation, on the running kernel: the next daemon completes or reverts it, and pages in
//! swap are intact.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::support::holder::{Holder, swap};
use crate::support::operations::{CONFIG, CONFIGURED, OPERATIONS, Operation};
use crate::support::private_bus::PrivateBus;
use crate::support::verdict::Verdict;
use crate::support::{PYTHON, can_use_real_kernel, eventually, has_program, real_kernel_lock, setup, skip};
use crate::support::{copy_program, introspection};
use service::bus::introspection::interfaces;

/// Methods that are tested elsewhere, or need no test.
const ELSEWHERE: [(&str, &str); 9] = [
    ("org.zramd1.Job.Cancel", "a job ends with its daemon: what it did is interrupted here"),
    ("org.zramd1.Manager.Configure", "tests/machine/lasting.rs: a kill while it is carried out"),
    ("org.zramd1.Manager.PlanConfigure", "it changes nothing"),
    ("org.zramd1.RamDisk.DeleteSnapshot", DISKS),
    ("org.zramd1.RamDisk.Pin", DISKS),
    ("org.zramd1.RamDisk.Resize", DISKS),
    ("org.zramd1.RamDisk.Restore", DISKS),
    ("org.zramd1.RamDisk.Save", DISKS),
    ("org.zramd1.RamDisk.Verify", DISKS),
];
const DISKS: &str = "tests/thorough/ramdisk_faults.rs: a kill at each call";

/// The moment of the kill.
#[derive(Debug, Clone, Copy)]
enum Moment {
    /// This number of milliseconds after the call.
    After(u64),
    /// After the operation was noted, before it is planned.
    Noted,
    /// After the program that does it was started, before it changes anything.
    Begun,
    /// After the program is done, before the daemon reads its reply.
    Done,
}

impl Operation {
    fn moments(&self) -> &'static [Moment] {
        match self.verb {
            // From before its beginning to after its end.
            None => &[Moment::After(3), Moment::After(25)],
            // These plan before they note the operation.
            Some("carry-out") if !["Adopt", "Reload", "Resize"].contains(&self.call[2]) => {
                &[Moment::After(7), Moment::Noted, Moment::Begun, Moment::Done]
            }
            Some(_) => &[Moment::After(7), Moment::Begun, Moment::Done],
        }
    }
}

/// State files of `zramd-worker`.
const WORK: &str = "/run/zramd/work";

/// Wrapper of `zramd-setup` and `zramd-worker`: the first command with the word in `verb` waits, before or after it runs,
/// for a write to `go`.
const HOLD: &str = r#"
trap '' PIPE
real=$REAL/${0##*/}
case " $* " in
*" $(cat "$HERE/verb") "*) mv "$HERE/hold" "$HERE/when" 2>&- || exec "$real" "$@" ;;
*) exec "$real" "$@" ;;
esac
do_it() {
    "$real" "$@" >"$HERE/answer" &
    echo $! >"$HERE/pid"
    wait $!
    status=$?
}
when=$(cat "$HERE/when")
[ "$when" != Done ] || do_it "$@"
: >"$HERE/holding"
read line <"$HERE/go"
[ "$when" = Done ] || do_it "$@"
cat "$HERE/answer" 2>&-
: >"$HERE/ended"
exit "$status"
"#;

fn zramdctl(bus: &PrivateBus, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_zramdctl"));
    command.args(words).env("DBUS_SYSTEM_BUS_ADDRESS", bus.address()).stdin(Stdio::null());
    command
}

fn ask(bus: &PrivateBus, operation: &Operation) -> Child {
    let [object, interface, rest @ ..] = operation.call else { panic!("{}", operation.name) };
    let mut command = Command::new("busctl");
    command.arg(format!("--address={}", bus.address())).args(["call", "org.zramd1"]);
    command.args([format!("/org/zramd1{object}"), format!("org.zramd1.{interface}")]).args(rest);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

fn algorithm(device: &str) -> String {
    let text = fs::read_to_string(format!("/sys/block/{device}/comp_algorithm")).unwrap();
    text.split_whitespace().find_map(|word| word.strip_prefix('[')).unwrap().trim_end_matches(']').to_owned()
}

fn devices() -> Vec<String> {
    let names =
        fs::read_dir("/sys/block").unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.filter(|name| name.starts_with("zram")).collect();
    names.sort();
    names
}

/// Removes everything that a round leaves behind, also after a failure.
struct Cleanup {
    work: bool,
}

impl Cleanup {
    fn later() -> Cleanup {
        Cleanup { work: Path::new(WORK).exists() }
    }
}

impl Drop for Cleanup {
    fn drop(&mut self) {
        let output = setup(&["revert"]);
        if !self.work {
            fs::remove_dir_all(WORK).ok();
        }
        fs::remove_dir_all("/run/zramd/zramd.toml.d").ok();
        fs::remove_file("/run/zramd/operation").ok();
        fs::remove_dir("/run/zramd").ok();
        if !output.status.success() {
            eprintln!("could not clean up: {output:?}");
        }
    }
}

/// Waits until programs started by the killed daemon have ended.
fn settle() {
    // The daemon itself has been waited for: its process id may be reused.
    let programs =
        [env!("CARGO_BIN_EXE_zramd"), env!("CARGO_BIN_EXE_zramd-setup"), env!("CARGO_BIN_EXE_zramd-worker")];
    let ours = programs.map(|program| fs::canonicalize(program).unwrap());
    let is_ours = |process: &Path| fs::read_link(process.join("exe")).is_ok_and(|exe| ours.contains(&exe));
    eventually("what the daemon has started ends", || {
        !fs::read_dir("/proc").unwrap().filter_map(Result::ok).any(|process| is_ours(&process.path()))
    });
}

/// A bus on which the programs of the daemon are wrapped.
fn holding_bus(config: &str) -> Option<PrivateBus> {
    let real = Path::new(env!("CARGO_BIN_EXE_zramd")).parent().unwrap();
    let bus = PrivateBus::start_with_worker(config, &format!("REAL={}\n{HOLD}", real.display()))?;
    let here = bus.bus().directory();
    let script = here.join("script");
    fs::write(here.join("verb"), "nothing yet").unwrap();
    copy_program(&here.join("zramd-worker"), &script);
    fs::rename(&script, here.join("zramd-setup")).unwrap();
    Some(bus)
}

/// Kills the daemon while its program waits, and starts the next one before that program continues.
fn kill_while_held(bus: &mut PrivateBus, operation: &Operation, moment: Moment) {
    let here: PathBuf = bus.bus().directory().to_owned();
    assert!(Command::new("mkfifo").arg(here.join("go")).status().unwrap().success());
    let verb = if matches!(moment, Moment::Noted) { "propose" } else { operation.verb.unwrap() };
    fs::write(here.join("verb"), verb).unwrap();
    fs::write(here.join("hold"), format!("{moment:?}\n")).unwrap();
    let mut asked = ask(bus, operation);
    eventually(&format!("{} comes to {moment:?}", operation.name), || here.join("holding").exists());
    bus.crash();
    bus.start_again();
    fs::write(here.join("go"), "\n").unwrap();
    eventually(&format!("{} ends", operation.name), || here.join("ended").exists());
    asked.wait().unwrap();
}

fn kill_after(bus: &mut PrivateBus, operation: &Operation, milliseconds: u64) {
    let mut asked = ask(bus, operation);
    // Not a synchronisation: the moment is the subject of the test.
    std::thread::sleep(Duration::from_millis(milliseconds));
    bus.crash();
    asked.wait().unwrap();
    settle();
    bus.start_again();
}

fn round(operation: &Operation, moment: Moment, holder: &mut Holder) -> bool {
    let what = format!("{} killed at {moment:?}", operation.name);
    let before = devices();
    let _cleanup = Cleanup::later();
    let _verdict = Verdict::none();
    let config = if operation.verdict { CONFIG.replace("lzo-rle", "auto") } else { CONFIG.to_owned() };
    let timed = matches!(moment, Moment::After(_));
    let bus = if timed { PrivateBus::start_with(&config) } else { holding_bus(&config) };
    let Some(mut bus) = bus else { return false };
    assert!(zramdctl(&bus, &["reload"]).output().unwrap().status.success());
    assert_eq!(swap("zram1"), CONFIGURED, "{what}");
    let chosen = algorithm("zram1");
    if operation.verdict {
        Verdict::prefer(if chosen == "lz4" { "lzo" } else { "lz4" });
    }
    if !operation.prepare.is_empty() {
        assert!(zramdctl(&bus, operation.prepare).output().unwrap().status.success());
    }
    if let Some((from, to)) = operation.config {
        fs::write(bus.bus().config(), config.replace(from, to)).unwrap();
    }
    assert_eq!(swap(operation.device), operation.before, "{what}");
    // A benchmark only replaces the algorithm of a swap that is nearly empty.
    if swap("zram1").is_some() && !operation.verdict {
        holder.fill("zram1");
    }
    match moment {
        Moment::After(milliseconds) => kill_after(&mut bus, operation, milliseconds),
        _ => kill_while_held(&mut bus, operation, moment),
    }
    let found = swap(operation.device);
    let finished = found == operation.after;
    // An operation that had begun was noted, and is completed. A device is created only after its section has been planned.
    let may_be_undone = timed || operation.name == "create" && matches!(moment, Moment::Noted);
    assert!(finished || (may_be_undone && found == operation.before), "{what}: {found:?}");
    if operation.name == "adopt" && !timed {
        assert_ne!(algorithm("zram1"), chosen, "{what}");
    }
    if operation.name == "limit" && !timed {
        let text = fs::read_to_string("/sys/block/zram1/mm_stat").unwrap();
        assert_eq!(text.split_whitespace().nth(3), Some("16777216"), "{what}");
    }
    if let Some(verb @ ("maintain" | "benchmark")) = operation.verb
        && !timed
    {
        let name = if verb == "maintain" { "maintenance" } else { verb };
        let text = fs::read_to_string(format!("{WORK}/{name}.json")).unwrap();
        let work: serde_json::Value = serde_json::from_str(&text).unwrap();
        let pid = fs::read_to_string(bus.bus().directory().join("pid")).unwrap();
        // Another test may have run the benchmark since.
        let is_its_own = work["pid"].as_u64() == pid.trim().parse().ok();
        assert!(work["result"].is_string() || !is_its_own, "{what}: it has no end: {text}");
    }
    assert_eq!(holder.ask("check"), "True", "{what}: a program has lost its pages");
    assert!(!Path::new("/run/zramd/operation").exists(), "{what}: still to be finished");
    let plan = bus.plan();
    // Killed before it received the call: the file or verdict still differs from the machine, as plan shows.
    let ahead = operation.verdict || (operation.config.is_some() && found == operation.before);
    assert!(plan.is_empty() || (timed && ahead), "{what}: {plan:?}");
    for name in devices() {
        let known = before.contains(&name) || swap(&name).is_some();
        assert!(known, "{what}: {name} was left behind");
    }
    true
}

#[test]
fn an_interrupted_operation_is_completed_or_undone() {
    if !can_use_real_kernel() {
        return;
    }
    if !has_program("busctl") || !has_program(PYTHON) {
        return skip("needs busctl and python3");
    }
    let mut holder = Holder::start();
    for operation in &OPERATIONS {
        // Released after each operation, so that other tests can run.
        let _lock = real_kernel_lock();
        let before = devices();
        for moment in operation.moments() {
            if !round(operation, *moment, &mut holder) {
                return;
            }
        }
        assert_eq!(devices(), before, "after {}", operation.name);
    }
}

/// A new method has to be added to the operations.
#[test]
fn every_method_that_changes_something_is_interrupted() {
    let promised = interfaces().iter().flat_map(|(_, xml)| introspection::read(xml)).collect();
    let methods = introspection::mutating(promised).into_iter();
    let methods: BTreeSet<String> = methods.map(|(name, member, _)| format!("{name}.{member}")).collect();
    let here = OPERATIONS.iter().map(|known| format!("org.zramd1.{}.{}", known.call[1], known.call[2]));
    let here: BTreeSet<String> = here.collect();
    let elsewhere = ELSEWHERE.iter().map(|(method, _)| (*method).to_owned()).collect();
    assert_eq!(here.intersection(&elsewhere).next(), None);
    assert_eq!(&here | &elsewhere, methods);
}
