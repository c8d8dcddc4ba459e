//! `zramdctl` for changes: real programs, a private bus, the running kernel.
//!
//! Tests that change the kernel need root and zram; otherwise each is skipped with the reason. The machine must have no
//! active zram device, and is left as it was.

use std::collections::HashMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Output, Stdio};

use host::linux::work;

use crate::support::private_bus::{Bus, Guarded, PrivateBus, call, run};
use rustix::process::{Pid, Signal, kill_process};
use zbus::{Connection, OwnedObjectPath, OwnedVariant};

use crate::support::session::{Session, attribute, machine, swaps, zramdctl};
use crate::support::{copy_program, eventually, eventually_some, setup, texts, write_program};

/// The limit in `mm_stat`.
fn memory_limit(device: &str) -> u64 {
    attribute(device, "mm_stat").split_whitespace().nth(3).unwrap().parse().unwrap()
}

fn swap(name: &str) -> Option<(u64, i32)> {
    swaps().into_iter().find(|swap| swap.0 == name).map(|(_, size, priority)| (size, priority))
}

/// The header of a swap is one page.
const HEADER_KIB: u64 = 4;
const MIB: u64 = 1 << 20;

#[test]
fn a_device_from_its_creation_to_its_end() {
    let Some(session) = Session::begin("") else { return };
    let node = session.ok(&["create", "--size", "16MiB", "--priority", "7"]);
    let name = node.strip_prefix("/dev/").unwrap();
    assert_eq!(swap(name), Some((16 * 1024 - HEADER_KIB, 7)));
    assert_eq!(attribute(name, "disksize"), (16 * MIB).to_string());

    session.ok(&["resize", &node, "24MiB"]);
    assert_eq!(swap(name), Some((24 * 1024 - HEADER_KIB, 7)));

    session.ok(&["limit", name, "8MiB"]);
    assert_eq!(memory_limit(name), 8 * MIB);
    // The header of the swap needs more.
    session.fails(&["limit", name, "1KiB"], 7);
    session.fails(&["set", "--runtime", name, "zram-resident-limit=1KiB"], 7);
    assert_eq!(memory_limit(name), 8 * MIB);
    session.ok(&["limit", name, "none"]);
    assert_eq!(memory_limit(name), 0);

    session.ok(&["swap", "off", name]);
    assert_eq!(swap(name), None);
    session.ok(&["swap", "on", name]);
    assert_eq!(swap(name), Some((24 * 1024 - HEADER_KIB, 7)), "as it was, resized");

    assert!(session.ok(&["compact", name]).contains(name));
    let messages = session.fails(&["remove", "zram990", name], 6);
    assert!(messages.contains("zram990"), "{messages}");
    assert_eq!(swap(name), None);
    assert_eq!(machine(), session.before, "nothing is left");
}

#[test]
fn a_created_device_that_is_off_can_be_removed_and_its_number_used_again() {
    let Some(session) = Session::begin("") else { return };
    let first = session.ok(&["create", "-s", "16MiB"]);
    session.ok(&["swap", "off", &first]);
    let second = session.ok(&["create", "-s", "16MiB", "-a", "lzo-rle,lzo", "--set", "label=second"]);
    assert_ne!(first, second, "the number of a section that is off is taken");
    session.ok(&["remove", &first, &second]);
    assert_eq!(session.ok(&["create", "-s", "16MiB"]), first);
    session.ok(&["remove", &first]);
    assert_eq!(machine(), session.before);
}

#[test]
fn a_reload_follows_the_file_and_refuses_one_with_mistakes() {
    let Some(session) = Session::begin("[zram0]\nzram-size = \"16MiB\"\nswap-priority = 100\n") else {
        return;
    };
    let plan = session.ok(&["plan"]);
    assert_eq!(plan, "ACTION  OBJECT  DETAIL\ncreate  zram0   16.0 MiB of swap with priority 100");
    assert_eq!(swaps(), [], "a plan changes nothing");
    session.ok(&["reload"]);
    assert_eq!(swap("zram0"), Some((16 * 1024 - HEADER_KIB, 100)));
    assert_eq!(session.bus().plan(), [""; 0]);

    session.write("[zram0]\nzram-size = \"16MiB\"\nswap-priority = 50\n");
    assert_eq!(session.bus().plan(), ["reactivate zram0"]);
    session.ok(&["reload"]);
    assert_eq!(swap("zram0"), Some((16 * 1024 - HEADER_KIB, 50)));

    session.write("[zram0]\nzram-size = = \"32MiB\"\n");
    let messages = session.fails(&["reload"], 1);
    assert!(messages.contains("zramd.toml:2:13:"), "{messages}");
    let output = session.command(&["plan"]).output().unwrap();
    let (result, messages) = texts(&output);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(result.ends_with("changes nothing\n") && messages.contains("zramd.toml:2:13\n"), "{output:?}");
    session.write("[zram0]\nzram-size = \"16MiB\"\nswap-priority = 50\n[zram1]\nzram-size = 0\n");
    let (result, _) = texts(&session.command(&["plan"]).output().unwrap());
    assert_eq!(result, "ACTION  OBJECT  DETAIL\nskip    zram1   its size is 0\nnothing to change\n");
    session.write("[zram0]\nzram-size = = \"32MiB\"\n");
    assert_eq!(swap("zram0"), Some((16 * 1024 - HEADER_KIB, 50)), "the old one stays");

    session.write("");
    assert_eq!(session.bus().plan(), ["remove zram0"]);
    session.ok(&["reload"]);
    assert_eq!(machine(), session.before);
}

/// The JSON of `zramdctl overrides`.
fn overrides(session: &Session) -> Vec<serde_json::Value> {
    let document = session.json(&["overrides"]);
    assert_eq!(document["schema_version"], 1);
    document["overrides"].as_array().unwrap().clone()
}

/// Object, key and runtime value of each.
fn overridden(session: &Session) -> Vec<String> {
    let text = |found: &serde_json::Value, field: &str| found[field].as_str().unwrap_or("-").to_owned();
    let one = |found: &serde_json::Value| {
        ["object", "key", "value", "configured", "command"].map(|field| text(found, field)).join(" ")
    };
    overrides(session).iter().map(one).collect()
}

/// The codes of `doctor` about overrides.
fn notes(session: &Session) -> Vec<String> {
    let output = session.command(&["doctor", "--json"]).output().unwrap();
    let document: serde_json::Value = serde_json::from_str(&texts(&output).0).unwrap();
    let notes = document["problems"].as_array().unwrap().iter().filter(|found| found["level"] == "note");
    let codes = notes.map(|found| found["code"].as_str().unwrap().to_owned());
    // This machine has its own past.
    codes.filter(|code| code != "program-ended").collect()
}

/// Runs a command that succeeds, and returns its notes.
#[track_caller]
fn succeeds(session: &Session, words: &[&str]) -> String {
    let output = session.command(words).output().unwrap();
    assert!(output.status.success(), "{words:?}: {output:?}");
    texts(&output).1
}

#[test]
fn an_override_is_shown_and_can_be_removed() {
    let Some(session) = Session::begin("[zram0]\nzram-size = \"16MiB\"\n") else { return };
    let size = || swap("zram0").map(|(kib, _)| (kib + HEADER_KIB) / 1024);
    session.ok(&["reload"]);
    assert_eq!(overridden(&session), [""; 0]);
    session.ok(&["resize", "zram0", "24MiB"]);
    session.write("[zram0]\nzram-size = \"20MiB\"\n");
    // A later edit of the same key has no effect, which is reported.
    for words in [&["plan"][..], &["reload"], &["check"], &["status"], &["status", "zram0"]] {
        let output = session.command(words).output().unwrap();
        let (result, messages) = texts(&output);
        assert!(output.status.success(), "{words:?}: {output:?}");
        assert!((result + &messages).contains("unset --runtime zram0"), "{words:?}: {output:?}");
    }
    assert_eq!(size(), Some(24));
    assert_eq!(notes(&session), ["overridden"]);
    assert_eq!(overridden(&session), ["zram0 zram-size \"24MiB\" \"20MiB\" resize"]);
    assert!(overrides(&session)[0]["configured_at"].as_str().unwrap().ends_with("zramd.toml:2"));

    succeeds(&session, &["unset", "--runtime", "zram0"]);
    assert_eq!(size(), Some(20), "as the file says");
    assert_eq!(overridden(&session), [""; 0]);
    assert_eq!(session.bus().plan(), [""; 0]);
    session.fails(&["unset", "--runtime", "zram0"], 4);
    session.fails(&["unset", "--runtime", "../zram0"], 4);
    session.fails(&["unset", "zram0"], 4);
    succeeds(&session, &["unset", "--runtime", "--all"]);
}

#[test]
fn an_override_does_not_keep_a_device_or_disk_that_is_no_longer_configured() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("scratch");
    let disk = format!("[ramdisk.scratch]\nmount-point = \"{}\"\nsize = \"4MiB\"\n", path.display());
    let device = "[zram0]\nzram-size = \"16MiB\"\n";
    let Some(session) = Session::begin(&format!("{device}{disk}")) else { return };
    session.ok(&["reload"]);
    session.ok(&["resize", "zram0", "24MiB"]);
    session.ok(&["ramdisk", "resize", "scratch", "8MiB"]);
    assert_eq!(overridden(&session).len(), 2);
    session.write(device);
    succeeds(&session, &["reload"]);
    assert_eq!(overridden(&session).len(), 1, "the override goes with its disk");
    assert!(swap("zram0").is_some());
    session.write("");
    assert_eq!(notes(&session), ["override-orphaned"]);
    session.ok(&["reload"]);
    assert_eq!(swap("zram0"), None);
    assert_eq!(overridden(&session), [""; 0]);
    // The override does not return with the section.
    session.write(device);
    session.ok(&["reload"]);
    assert_eq!(swap("zram0"), Some((16 * 1024 - HEADER_KIB, 100)));
}

#[test]
fn an_override_that_says_what_the_configuration_says_is_not_kept() {
    let Some(session) = Session::begin("[zram0]\nzram-size = \"16MiB\"\n") else { return };
    session.ok(&["reload"]);
    session.ok(&["limit", "zram0", "none"]);
    assert_eq!(overridden(&session), [""; 0]);
    session.ok(&["limit", "zram0", "8MiB"]);
    session.ok(&["resize", "zram0", "24MiB"]);
    assert_eq!(overridden(&session).len(), 2);
    session.ok(&["limit", "zram0", "none"]);
    assert_eq!(overridden(&session), ["zram0 zram-size \"24MiB\" \"16MiB\" resize"]);
    // Editing the file to the same value ends the override.
    session.write("[zram0]\nzram-size = \"24576KiB\"\n");
    session.ok(&["reload"]);
    assert_eq!(overridden(&session), [""; 0]);
    session.ok(&["resize", "zram0", "16MiB"]);
    session.ok(&["resize", "zram0", "24MiB"]);
    assert_eq!(overridden(&session), [""; 0]);
}

#[test]
fn what_is_switched_off_or_created_can_be_unset() {
    // Not zram0, which may be there before: a device that zramd creates is removed again.
    let Some(session) = Session::begin("[zram6]\nzram-size = \"16MiB\"\n") else { return };
    session.ok(&["reload"]);
    session.ok(&["remove", "zram6"]);
    assert_eq!(overridden(&session), ["zram6 enabled false - remove"]);
    for words in [&["resize", "zram6", "24MiB"][..], &["limit", "zram6", "8MiB"]] {
        let messages = session.fails(words, 4);
        assert!(messages.contains("unset --runtime zram6"), "{words:?}: {messages}");
    }
    let output = session.command(&["status", "zram6"]).output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    let node = session.ok(&["create", "-s", "16MiB"]);
    let name = node.strip_prefix("/dev/").unwrap();
    session.ok(&["resize", name, "24MiB"]);
    let standing: Vec<String> =
        overrides(&session).iter().map(|found| found["standing"].as_str().unwrap().to_owned()).collect();
    assert!(standing.contains(&"created".to_owned()), "{standing:?}");
    succeeds(&session, &["reload"]);
    assert!(swap(name).is_some(), "what was created stays");
    succeeds(&session, &["unset", "--runtime", "--all"]);
    assert_eq!(swap(name), None);
    assert!(swap("zram6").is_some());
    assert_eq!(overridden(&session), [""; 0]);
    session.write("");
    session.ok(&["reload"]);
    assert_eq!(machine(), session.before, "nothing is left");
}

#[test]
fn what_cannot_be_followed_without_an_override_keeps_it() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("data");
    let config = |size: &str| {
        format!("[zram0]\nzram-size = \"{size}\"\nmount-point = \"{}\"\nfs-type = \"ext4\"\n", path.display())
    };
    let Some(session) = Session::begin(&config("16MiB")) else { return };
    session.ok(&["reload"]);
    session.ok(&["resize", "--force", "zram0", "24MiB"]);
    session.fails(&["unset", "--runtime", "zram0"], 7);
    assert_eq!(overridden(&session).len(), 1);
    assert_eq!(attribute("zram0", "disksize"), (24 * MIB).to_string());
    // A mistake in the file must not remove the device.
    session.write("[zram0]\nzram-size = \n");
    session.fails(&["unset", "--runtime", "--force", "zram0"], 1);
    assert_eq!(overridden(&session).len(), 1);
    assert_eq!(attribute("zram0", "disksize"), (24 * MIB).to_string());
    session.write(&config("16MiB"));
    succeeds(&session, &["unset", "--runtime", "--force", "zram0"]);
    assert_eq!(attribute("zram0", "disksize"), (16 * MIB).to_string());
}

/// Reports that it has begun, and ends with the requested status.
const SLOW_WORKER: &str = r#"
mkfifo "$HERE/end-$1" 2>&-
echo "$*" > "$HERE/begun-$1.new" && mv "$HERE/begun-$1.new" "$HERE/begun-$1"
read status < "$HERE/end-$1" && rm "$HERE/begun-$1" && exit "$status"
"#;

/// Waits until the work begins or ends.
#[track_caller]
fn wait_for_work(session: &Session, verb: &str, going_on: bool) {
    let file = session.bus().bus().directory().join(format!("begun-{verb}"));
    let what = format!("{verb} {}", if going_on { "begins" } else { "ends" });
    eventually(&what, || file.exists() == going_on);
}

/// Ends the work.
fn end_work(session: &Session, verb: &str) {
    fs::write(session.bus().bus().directory().join(format!("end-{verb}")), "0\n").unwrap();
    wait_for_work(session, verb, false);
}

/// Starts a benchmark, and returns its job.
async fn measure(client: &Connection) -> Result<OwnedObjectPath, String> {
    let options = HashMap::<String, OwnedVariant>::new();
    call(client, "/org/zramd1/benchmark", "org.zramd1.Benchmark.Run", &options).await
}

/// Result and message of a job.
async fn job(client: &Connection, path: &str) -> (String, String) {
    let method = "org.freedesktop.DBus.Properties.GetAll";
    let mut all: HashMap<String, OwnedVariant> = call(client, path, method, &"org.zramd1.Job").await.unwrap();
    let mut text = |name: &str| String::try_from(all.remove(name).unwrap()).unwrap();
    (text("Result"), text("Message"))
}

/// The same after its end.
async fn end_of(client: &Connection, path: &str) -> (String, String) {
    let ended = async || Some(job(client, path).await).filter(|(result, _)| !result.is_empty());
    eventually_some("the job ends", ended).await
}

#[test]
fn changes_do_not_wait_for_what_zramd_worker_does() {
    let swap = |size: u32| format!("[zram0]\nzram-size = \"{size}MiB\"\n");
    let start = || PrivateBus::start_with_worker("", SLOW_WORKER);
    let Some(session) = Session::with(start) else { return };
    run(async {
        let client = session.bus().client().await;
        let measuring = measure(&client).await.unwrap();
        wait_for_work(&session, "benchmark", true);
        session.write(&swap(32));
        session.ok(&["reload"]);
        assert_eq!(swaps().len(), 1, "{:?}", swaps());
        session.ok(&["swap", "off", "zram0"]);
        session.ok(&["swap", "on", "zram0"]);
        // A second run of the same work is refused, without a job and without a line in the journal.
        assert_eq!(measure(&client).await, Err("org.zramd1.Error.Busy".to_owned()));
        assert_eq!(job(&client, &measuring).await.0, "", "it runs all the while");
        end_work(&session, "benchmark");
        assert_ne!(end_of(&client, &measuring).await.0, "");
    });
}

#[test]
fn a_run_of_maintenance_that_is_asked_for_begins_after_the_one_in_progress() {
    let start = || PrivateBus::start_with_worker("", SLOW_WORKER);
    let Some(session) = Session::with(start) else { return };
    run(async {
        let client = session.bus().client().await;
        let maintain = async || -> OwnedObjectPath {
            let options = HashMap::<String, OwnedVariant>::new();
            call(&client, "/org/zramd1", "org.zramd1.Manager.Maintain", &options).await.unwrap()
        };
        let first = maintain().await;
        wait_for_work(&session, "maintain", true);
        let second = maintain().await;
        end_work(&session, "maintain");
        assert_ne!(end_of(&client, &first).await.0, "");
        wait_for_work(&session, "maintain", true);
        assert_eq!(job(&client, &second).await.0, "");
        end_work(&session, "maintain");
        assert_ne!(end_of(&client, &second).await.0, "");
    });
}

#[test]
fn maintenance_waits_for_a_run_by_hand() {
    let worker = env!("CARGO_BIN_EXE_zramd-worker");
    let script = format!("echo $$ > \"$HERE/started\"\nexec {worker} \"$@\"\n");
    let start = || PrivateBus::start_with_worker("[zram0]\nzram-size = \"16MiB\"\n", &script);
    let Some(session) = Session::with(start) else { return };
    session.ok(&["reload"]);
    let root = Path::new("/");
    let by_hand = work::take(root, "maintenance").unwrap().unwrap();
    let run = session.command(&["maintain"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let started = session.bus().bus().directory().join("started");
    eventually("the second run waits", || {
        let process = Path::new("/proc").join(fs::read_to_string(&started).unwrap_or_default().trim());
        fs::read_link(process.join("exe")).is_ok_and(|program| program == Path::new(worker))
            && fs::read_to_string(process.join("stat")).is_ok_and(|stat| stat.contains(") S "))
    });
    work::give_up(root, "maintenance", by_hand);
    let output = run.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn refusals_and_mistakes_have_their_status() {
    let Some(session) = Session::begin("[zram0]\nzram-size = \"16MiB\"\n") else { return };
    for (words, status, expected) in [
        (&["resize", "zram990", "1GiB"][..], 4, "zram990"),
        (&["resize", "sda", "1GiB"], 4, "sda"),
        (&["resize", "zram0", "1GB"], 2, "1GiB"),
        (&["resize", "zram0", "0"], 2, "zramdctl remove zram0"),
        (&["create", "--size", "16MiB", "--set", "frob=1"], 2, "`frob`"),
        (&["create", "--size", "16 apples"], 2, ".zram-size: "),
        (&["create", "zram9", "--size", "0"], 2, "zramdctl create"),
        (&["create", "zram9", "--set", "zram-size=0"], 2, "[zram9]"),
        (&["create", "zram0", "--size", "16MiB"], 2, "[zram0]"),
        (&["remove", "sda"], 4, "sda"),
        (&["swap", "on", "scratch"], 4, "zramdctl ramdisk"),
    ] {
        let messages = session.fails(words, status);
        assert!(messages.contains(expected), "{words:?}: {messages}");
    }
    // None of them prevents valid operations.
    session.ok(&["create", "zram9", "--size", "16MiB"]);
    session.ok(&["remove", "zram9"]);
    assert_eq!(machine(), session.before);
}

#[test]
fn read_only_commands_use_the_configuration_of_the_daemon() {
    let Some(session) = Session::begin("[zram6]\nzram-size = \"16MiB\"\n") else { return };
    session.ok(&["reload"]);
    let file = session.bus().bus().config();
    let file = file.to_str().unwrap();
    for words in [&["doctor"][..], &["check"], &["status", "zram6"], &["overrides"]] {
        let named = session.command(&[&["-c", file], words].concat()).output().unwrap();
        let unnamed = session.command(words).output().unwrap();
        assert_eq!(texts(&unnamed).0, texts(&named).0, "{words:?}: {unnamed:?}");
        assert_eq!(unnamed.status, named.status);
        assert!(texts(&unnamed).1.contains(file), "{words:?}: {unnamed:?}");
    }
}

/// As `zramd-setup`, but planning waits for a signal.
const SLOW_SETUP: &str = r#"
case "$*" in *propose*)
    # Only the first one waits.
    mkfifo "$HERE/hold" 2>&- && touch "$HERE/begun-propose" && read line < "$HERE/hold";;
esac
exec "$HERE/real-setup" "$@"
"#;

#[test]
fn waiting_for_a_change_can_be_cancelled() {
    let Some(session) = Session::with(|| PrivateBus::start_with_worker("", "")) else { return };
    let bus = session.bus();
    let here = bus.bus().directory();
    let (setup, real) = (here.join("zramd-setup"), here.join("real-setup"));
    copy_program(&setup, &real);
    let script = here.join("slow-setup");
    write_program(&script, &format!("#!/bin/sh\nHERE={}\n{SLOW_SETUP}", here.display()));
    fs::rename(&script, &setup).unwrap();
    run(async {
        let client = bus.client().await;
        let options = HashMap::<String, OwnedVariant>::new();
        let manager = |method: &str| format!("org.zramd1.Manager.{method}");
        let reload = || async {
            call::<_, OwnedObjectPath>(&client, "/org/zramd1", &manager("Reload"), &options).await.unwrap()
        };
        // A caller gets its job when the plan is made, or after some seconds.
        let (first, second) = tokio::join!(reload(), async {
            while !here.join("begun-propose").exists() {
                tokio::task::yield_now().await;
            }
            reload().await
        });
        call::<_, ()>(&client, &second, "org.zramd1.Job.Cancel", &()).await.unwrap();
        assert_eq!(end_of(&client, &second).await.0, "cancelled");
        assert_eq!(job(&client, &first).await.0, "", "it runs all the while");
        fs::write(here.join("hold"), "\n").unwrap();
        assert_eq!(end_of(&client, &first).await.0, "done");
    });
}

#[test]
fn monitor_sees_a_device_come_and_go() {
    let Some(session) = Session::begin("") else { return };
    let mut command = session.command(&["monitor", "--json=short"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut child = Guarded(child);
    let mut events = lines.map(|line| serde_json::from_str::<serde_json::Value>(&line.unwrap()).unwrap());
    let mut find = |event: &str, object: &str| {
        let found = events.by_ref().find(|line| line["event"] == event && line["object"] == object);
        found.unwrap_or_else(|| panic!("{event} of {object} is not told"))
    };
    find("watching", "zramd");
    let node = session.ok(&["create", "-s", "16MiB"]);
    let name = node.strip_prefix("/dev/").unwrap();
    let appeared = find("appeared", name);
    assert!(appeared["time"].as_str().is_some_and(|time| time.contains('T')), "{appeared}");
    assert_eq!(appeared["properties"]["Name"], name);
    session.ok(&["limit", name, "8MiB"]);
    let limited = find("changed", name);
    assert!(limited["before"] != limited["after"], "{limited}");
    session.ok(&["remove", name]);
    find("gone", name);
    kill_process(Pid::from_child(&child.0), Signal::INT).unwrap();
    assert!(child.0.wait().unwrap().success(), "Ctrl-C is no failure");
}

#[test]
fn exit_statuses_are_consistent() {
    let directory = tempfile::tempdir().unwrap();
    let config = format!(
        "[zram0]\nzram-size = \"16MiB\"\n[zram1]\nzram-size = \"16MiB\"\nmount-point = {:?}\n",
        directory.path().join("mounted")
    );
    let Some(session) = Session::begin(&config) else { return };
    session.ok(&["reload"]);
    assert_eq!(session.fails(&["swap", "on", "zram1"], 4), session.fails(&["swap", "off", "zram1"], 4));
    for state in ["on", "off"] {
        session.ok(&["swap", state, "zram0"]);
        session.ok(&["swap", state, "zram0"]);
        assert_eq!(swap("zram0").is_some(), state == "on");
    }
    session.fails(&["swap", "off", "zram9"], 4);
    session.ok(&["swap", "on", "zram0"]);
    for words in [
        &["create", "--size", "512KiB"][..],
        &["resize", "zram0", "512KiB"],
        &["set", "--runtime", "zram0", "zram-size=512KiB"],
        &["set", "--runtime", "zram0", "swap-priority=32768"],
        &["resize", "zram0", "0"],
        &["limit", "zram0", "much"],
        &["bench", "run", "--threads", "65535"],
        &["stats", "--format", "xml"],
    ] {
        session.fails(words, 2);
    }
    session.ok(&["compact", "zram0", "zram1"]);
    session.fails(&["compact", "zram0", "zram9"], 6);
    session.fails(&["remove", "zram8", "zram9"], 4);
    session.fails(&["remove", "zram1"], 7);
    session.fails(&["remove", "zram0", "zram9"], 6);
    session.ok(&["remove", "--force", "zram1"]);
}

#[test]
fn without_a_daemon_each_command_says_what_to_do() {
    let Some(bus) = Bus::start() else { return };
    let run = |words: &[&str]| -> Output { zramdctl(bus.address(), words).output().unwrap() };
    let has_systemd = Path::new("/run/systemd/system").exists();
    let remedy = if has_systemd { "`systemctl enable --now zramd.service`" } else { "other-inits.md" };
    for words in [&["reload"][..], &["create", "-s", "16MiB"], &["remove", "zram0"], &["monitor"]] {
        let output = run(words);
        assert_eq!(output.status.code(), Some(69), "{words:?}: {output:?}");
        assert!(texts(&output).1.contains(remedy), "{words:?}: {output:?}");
    }
    let nowhere = zramdctl("unix:path=/nonexistent", &["reload"]).output().unwrap();
    assert_eq!(nowhere.status.code(), Some(69));
    let messages = texts(&nowhere).1;
    assert!(!messages.is_empty() && !messages.contains("os error"), "{messages}");
    // Read-only commands need neither.
    let top = zramdctl("unix:path=/nonexistent", &["top", "--iterations", "2", "--interval", "0.1"]);
    let output = { top }.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = texts(&output).0;
    assert_eq!(text.matches("memory ").count(), 2, "{text}");
    assert!(!text.contains('\u{1b}'), "no escape codes outside of a terminal: {text}");
}

/// A file below `/run/zramd` that is removed at the end of the test.
struct Planted(std::path::PathBuf);

impl Planted {
    fn new(name: &str) -> Planted {
        Planted(std::path::Path::new("/run/zramd").join(name))
    }

    fn with(name: &str, contents: &[u8]) -> Planted {
        let planted = Planted::new(name);
        fs::create_dir_all(planted.0.parent().unwrap()).unwrap();
        fs::write(&planted.0, contents).unwrap();
        planted
    }
}

impl Drop for Planted {
    fn drop(&mut self) {
        fs::remove_file(&self.0).or_else(|_| fs::remove_dir(&self.0)).ok();
    }
}

#[test]
fn a_damaged_file_in_run_zramd_does_not_affect_other_targets() {
    let Some(session) = Session::begin("[zram0]\nzram-size = \"16MiB\"\n[zram1]\nzram-size = \"16MiB\"\n")
    else {
        return;
    };
    session.ok(&["reload"]);
    let good = fs::read("/run/zramd/zram0.json").unwrap();
    let version = format!("\"version\": {}", logic::record::VERSION);
    let newer = String::from_utf8_lossy(&good).replacen(&version, "\"version\": 99", 1).into_bytes();
    assert_ne!(newer, good);
    let mut planted: Vec<Planted> = [&b""[..], b"{", b"{}", b"\xff\xfe{", &good, &newer]
        .iter()
        .zip(20..)
        .map(|(text, number)| Planted::with(&format!("zram{number}.json"), text))
        .collect();
    for name in ["ramdisk-gone.json", "unknown.json", "zram29.scratch", "operation", "work/maintenance.json"]
    {
        planted.push(Planted::with(name, b"\xff\xfe{"));
    }
    let unreadable = Planted::new("zram30.json");
    fs::create_dir(&unreadable.0).unwrap();
    let pipe = Planted::new("zram31.json");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe.0, rustix::fs::Mode::from(0o600)).unwrap();

    let file = session.bus().bus().config().to_str().unwrap().to_owned();
    let with_file = |words: &[&str]| {
        let words: Vec<&str> = ["--config", &file].iter().chain(words).copied().collect();
        let output = setup(&words);
        assert!(output.status.success(), "{words:?}: {output:?}");
    };
    for words in [
        &["list"][..],
        &["status", "zram0"],
        &["show", "zram0"],
        &["stats"],
        &["top", "-n", "1"],
        &["plan"],
        &["reload"],
        &["limit", "zram0", "8MiB"],
        &["limit", "zram0", "none"],
        &["compact", "zram0"],
        &["swap", "off", "zram0"],
        &["swap", "on", "zram0"],
        &["create", "zram8", "--size", "16MiB"],
        &["resize", "zram8", "20MiB"],
        &["remove", "zram8"],
    ] {
        let output = session.command(words).output().unwrap();
        assert!(output.status.success(), "{words:?}: {output:?}");
    }
    for words in
        [&["plan"][..], &["status"], &["propose"], &["down", "zram1"], &["up", "zram1"], &["down", "zram1"]]
    {
        with_file(words);
    }
    {
        let _section = Planted::with("zramd.toml.d/50-damaged.toml", b"\xff\xfe{");
        for words in [&["list"][..], &["status", "zram0"], &["limit", "zram0", "8MiB"]] {
            let output = session.command(words).output().unwrap();
            assert!(output.status.success(), "{words:?}: {output:?}");
        }
        session.fails(&["reload"], 1);
    }
    let doctor = session.command(&["doctor", "--json"]).output().unwrap();
    let found: serde_json::Value = serde_json::from_slice(&doctor.stdout).unwrap();
    let found =
        found["problems"].as_array().unwrap().iter().filter(|found| found["code"] == "record-damaged");
    let objects: Vec<&str> = found.map(|found| found["object"].as_str().unwrap()).collect();
    let devices = ["zram20", "zram21", "zram22", "zram23", "zram24", "zram25", "zram30", "zram31"];
    let expected: Vec<&str> =
        ["ramdisk.gone", "unknown.json"].into_iter().chain(devices).chain(["zram29.scratch"]).collect();
    assert_eq!(objects, expected);
    assert_eq!(setup(&["down", "zram25"]).status.code(), Some(7));
    drop((planted, unreadable, pipe));
}

#[test]
fn a_device_whose_record_is_damaged_is_adopted_with_its_swap_on() {
    let Some(session) = Session::begin("[zram0]\nzram-size = \"16MiB\"\nswap-priority = 100\n") else {
        return;
    };
    session.ok(&["reload"]);
    let before = swap("zram0").unwrap();
    let file = session.bus().bus().config().to_str().unwrap().to_owned();
    let adopt = ["--config", &file, "adopt", "zram0"];
    for damage in [None, Some(&b"\xff"[..]), Some(b"{}")] {
        let record = Planted::new("zram0.json");
        fs::remove_file(&record.0).unwrap();
        if let Some(text) = damage {
            fs::write(&record.0, text).unwrap();
        }
        session.fails(&["resize", "zram0", "24MiB"], 7);
        session.write("[zram0]\nzram-size = \"20MiB\"\nswap-priority = 100\n");
        session.fails(&adopt, 7);
        session.write("");
        session.fails(&adopt, 4);
        session.write("[zram0]\nzram-size = \"16MiB\"\nswap-priority = 100\n");
        session.ok(&adopt);
        assert_eq!(swap("zram0"), Some(before));
        session.ok(&adopt);
        std::mem::forget(record);
    }
    assert_eq!(session.bus().plan(), [""; 0]);
    session.write("");
    session.ok(&["reload"]);
    assert_eq!(swap("zram0"), None);
    // It is reset and stays, because it could have been there before zramd.
    assert_eq!(attribute("zram0", "disksize"), "0");
    if !session.before.contains("zram0") {
        fs::write("/sys/class/zram-control/hot_remove", "0").unwrap();
    }
    assert_eq!(machine(), session.before);
}

#[test]
fn a_device_that_was_removed_is_not_set_up() {
    let Some(session) = Session::begin("[zram0]\nzram-size = \"16MiB\"\n") else { return };
    session.ok(&["reload"]);
    session.ok(&["remove", "zram0"]);
    session.fails(&["resize", "zram0", "24MiB"], 4);
}
