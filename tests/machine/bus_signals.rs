//! PropertiesChanged of what changes, as a settings panel receives it.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::support::private_bus::{PrivateBus, call, next, property, run};
use crate::support::session::{Session, attribute, swaps};
use crate::support::validator::{definition, validated};
use crate::support::verdict::Verdict;
use crate::support::{bench_run, eventually, eventually_some, has_program, skip, texts};
use serde_json::Value;
use service::ROOT;
use zbus::{Connection, MessageStream, ObjectPath, OwnedObjectPath, OwnedVariant};

/// A problem as in `ProblemDetails`.
type Problem = (String, String, String, String, String);

/// The code of a mistake in the configuration.
const INVALID: &str = "config-invalid";

/// PropertiesChanged of this object.
async fn changes(client: &Connection, path: &str) -> MessageStream {
    let rule = format!(
        "type='signal',interface='org.freedesktop.DBus.Properties',member='PropertiesChanged',path='{path}'"
    );
    MessageStream::for_match_rule(rule.as_str(), client, None).await.unwrap()
}

/// Waits until this property changes to such a value.
async fn until<T: TryFrom<OwnedVariant>>(
    changes: &mut MessageStream,
    property: &str,
    wanted: impl Fn(&T) -> bool,
) {
    type Changed = (String, HashMap<String, OwnedVariant>, Vec<String>);
    loop {
        let message = next(changes).await;
        let (_, mut values, _): Changed = message.body().deserialize().unwrap();
        let value = values.remove(property).and_then(|value| T::try_from(value).ok());
        if value.is_some_and(|value| wanted(&value)) {
            return;
        }
    }
}

#[test]
fn a_problem_has_a_level_and_a_remedy_and_its_end_is_signalled() {
    let Some(session) = Session::begin("[zram4000]\nzram-size = \"1MiB\"\n") else { return };
    run(async {
        let client = session.bus().client().await;
        // The configuration is read after the daemon has begun to serve.
        let found = eventually_some("the mistake is a problem", async || {
            let problems: Vec<Problem> =
                property(&client, ROOT, "org.zramd1.Manager", "ProblemDetails").await;
            problems.into_iter().find(|(_, code, ..)| code == INVALID)
        });
        let (level, code, object, message, remedy) = found.await;
        assert_eq!(level, "error");
        assert!(message.contains("zram4000") && !remedy.is_empty(), "{message}: {remedy}");
        let short: Vec<(String, String, String)> =
            property(&client, ROOT, "org.zramd1.Manager", "Problems").await;
        assert!(short.contains(&(code, object, message)), "{short:?}");

        let mut changes = changes(&client, ROOT).await;
        session.write("");
        session.ok(&["reload"]);
        let ended = |problems: &Vec<Problem>| problems.iter().all(|(_, code, ..)| code != INVALID);
        until(&mut changes, "ProblemDetails", ended).await;
    });
}

#[test]
fn a_verdict_is_announced_when_it_is_stored_and_forgotten() {
    type Row = (String, f64, f64, f64, f64, f64, String);
    let Some(session) = Session::begin("") else { return };
    let _verdict = Verdict::none();
    run(async {
        let client = session.bus().client().await;
        let path = format!("{ROOT}/benchmark");
        let interface = "org.zramd1.Benchmark";
        let chosen = async || -> (String, bool) {
            (
                property(&client, &path, interface, "Chosen").await,
                property(&client, &path, interface, "Fresh").await,
            )
        };
        let mut changes = changes(&client, &path).await;
        Verdict::prefer("lz4");
        let row = ("lz4".to_owned(), 2.5, 3e3, 4e3, 2e9, 1e9, String::new());
        until(&mut changes, "Results", |rows: &Vec<Row>| rows[..] == [row.clone()]).await;
        assert_eq!(chosen().await, ("lz4".to_owned(), true));
        call::<_, ()>(&client, &path, "org.zramd1.Benchmark.Forget", &()).await.unwrap();
        until(&mut changes, "Results", Vec::<Row>::is_empty).await;
        assert_eq!(chosen().await, (String::new(), false));
    });
}

/// Without a request.
#[test]
fn an_empty_swap_follows_another_verdict_at_once() {
    let Some(session) = Session::begin("") else { return };
    let _verdict = Verdict::none();
    Verdict::prefer("lz4");
    session.write("[zram9]\nzram-size = \"16MiB\"\ncompression-algorithm = \"auto\"\n");
    session.ok(&["reload"]);
    let used = || {
        let listed = attribute("zram9", "comp_algorithm");
        listed.split(['[', ']']).nth(1).map(str::to_owned).unwrap_or_default()
    };
    assert_eq!(used(), "lz4");
    Verdict::prefer("lzo-rle");
    eventually("the other algorithm", || used() == "lzo-rle");
    eventually("the swap", || swaps().iter().any(|(name, ..)| name == "zram9"));
    run(async {
        let client = session.bus().client().await;
        let path = format!("{ROOT}/benchmark");
        let followers: Vec<(String, String, String, String)> =
            call(&client, &path, "org.zramd1.Benchmark.Followers", &()).await.unwrap();
        let [(name, state, sentence, remedy)] = &followers[..] else { panic!("{followers:?}") };
        assert_eq!((name.as_str(), state.as_str(), remedy.as_str()), ("zram9", "follows", ""));
        assert_eq!(sentence, "zram9 follows the verdict of the benchmark, lzo-rle");
    });
}

/// The verdict of a real benchmark, as an independent validator reads it.
#[test]
fn a_verdict_is_described_as_its_schema_says() {
    let Some(session) = Session::begin("") else { return };
    let _verdict = Verdict::none();
    let run_once = bench_run(&["--json=short"]);
    assert!(run_once.status.success(), "{run_once:?}");
    let printed = texts(&run_once).0;
    let described: String = run(async {
        let client = session.bus().client().await;
        call(&client, &format!("{ROOT}/benchmark"), "org.zramd1.Benchmark.Describe", &()).await.unwrap()
    });
    for (name, document, field) in [("benchmark", &described, "page_in_ns"), ("bench", &printed, "rounds")] {
        let mut without: Value = serde_json::from_str(document).unwrap();
        without.as_object_mut().unwrap().remove(field).unwrap();
        let documents = [(name.to_owned(), document.clone()), (field.to_owned(), without.to_string())];
        let Some(found) = validated(&definition(name), &documents) else { return };
        assert_eq!(found[0].1, None, "{name}: {document}");
        assert!(found[1].1.as_ref().is_some_and(|complaint| complaint.contains(field)), "{name}: {found:?}");
    }
}

#[test]
fn statistics_are_those_of_the_selected_objects() {
    let directory = tempfile::tempdir().unwrap();
    let config = format!(
        "[ramdisk.stream]\nmount-point = {:?}\nsize = \"8MiB\"\n[ramdisk.other]\nmount-point = {:?}\nsize = \"8MiB\"\n",
        directory.path().join("stream"),
        directory.path().join("other"),
    );
    let Some(session) = Session::begin(&config) else { return };
    session.ok(&["reload"]);
    run(async {
        let client = session.bus().client().await;
        let subscribe = async |interval: u32, objects: &[&str]| -> Result<(), String> {
            let objects: Vec<_> = objects.iter().map(|path| ObjectPath::try_from(*path).unwrap()).collect();
            call(&client, ROOT, "org.zramd1.Manager.SubscribeTo", &(interval, objects)).await
        };
        let mut updates = MessageStream::from(&client);
        let disk = "/org/zramd1/ramdisk/stream";
        subscribe(100, &[disk, ROOT, disk]).await.unwrap();
        let mut seen = Vec::new();
        for _ in 0..4 {
            let (path, stats) = update(&mut updates).await;
            let interface = if path == ROOT { "org.zramd1.Manager" } else { "org.zramd1.RamDisk" };
            for (name, value) in stats.into_iter().filter(|(name, _)| name != "StatsTimestampMonotonic") {
                let value = u64::try_from(value).unwrap();
                let current: u64 = property(&client, &path, interface, &name).await;
                // Space of a tmpfs without files, and totals without devices, do not change; the machine's figures do.
                if path == disk || name.starts_with("Total") {
                    assert_eq!(value, current, "{path} {name}");
                }
            }
            seen.push(path);
        }
        assert_eq!(seen, [disk, ROOT, disk, ROOT]);

        subscribe(100, &[]).await.unwrap();
        let mut seen = BTreeSet::new();
        while !["/org/zramd1/ramdisk/other", disk, ROOT].iter().all(|path| seen.contains(*path)) {
            seen.insert(update(&mut updates).await.0);
        }
        for (interval, objects, error) in [
            (100, &["/org/zramd1/ramdisk/none"][..], "org.zramd1.Error.NotFound"),
            (100, &[ROOT, "/org/zramd1/benchmark"], "org.zramd1.Error.NotFound"),
            (99, &[ROOT], "org.zramd1.Error.InvalidArgument"),
        ] {
            assert_eq!(subscribe(interval, objects).await, Err(error.to_owned()), "{objects:?}");
        }
        call::<_, ()>(&client, ROOT, "org.zramd1.Manager.Unsubscribe", &()).await.unwrap();
    });
}

/// The kernel announces no write to an attribute.
#[test]
fn what_another_program_changes_in_sysfs_is_announced_to_subscribers() {
    let Some(session) = Session::begin("[zram9]\nzram-size = \"16MiB\"\n") else { return };
    session.ok(&["reload"]);
    run(async {
        let client = session.bus().client().await;
        let mut changes = changes(&client, "/org/zramd1/device/zram9").await;
        call::<_, ()>(&client, ROOT, "org.zramd1.Manager.Subscribe", &500_u32).await.unwrap();
        let limit = Path::new("/sys/block/zram9/mem_limit");
        for (written, bytes) in [("8M", 8 << 20), ("0", 0_u64)] {
            std::fs::write(limit, written).unwrap();
            until(&mut changes, "MemoryLimitBytes", |now: &u64| *now == bytes).await;
        }
    });
}

#[test]
fn a_subscription_can_end_by_itself() {
    let Some(bus) = PrivateBus::start() else { return };
    run(async {
        let client = bus.client().await;
        let subscribe = async |seconds: u32| -> Result<(), String> {
            let objects = vec![ObjectPath::try_from(ROOT).unwrap()];
            call(&client, ROOT, "org.zramd1.Manager.SubscribeFor", &(100_u32, objects, seconds)).await
        };
        for seconds in [0, 3601] {
            assert_eq!(subscribe(seconds).await, Err("org.zramd1.Error.InvalidArgument".to_owned()));
        }
        let mut updates = MessageStream::from(&client);
        // Each lasts longer than the one before, which it replaces.
        subscribe(1).await.unwrap();
        subscribe(2).await.unwrap();
        update(&mut updates).await;
        // Thirty intervals without a signal: it has ended.
        eventually_some("the end", async || {
            tokio::time::timeout(Duration::from_secs(3), update(&mut updates)).await.err()
        })
        .await;
    });
}

/// Path and contents of the next signal with statistics; such signals need no match rule.
async fn update(updates: &mut MessageStream) -> (String, HashMap<String, OwnedVariant>) {
    loop {
        let message = next(updates).await;
        let header = message.header();
        let member = header.member().map_or("", |member| member.as_str());
        if ["StatsUpdated", "UsageUpdated", "SpaceUpdated", "TotalsUpdated"].contains(&member) {
            return (header.path().unwrap().to_string(), message.body().deserialize().unwrap());
        }
    }
}

#[test]
fn objects_lead_to_each_other() {
    if !has_program("mkfs.ext4") {
        return skip("needs mkfs.ext4");
    }
    let directory = tempfile::tempdir().unwrap();
    let place = |name| directory.path().join(name);
    let config = format!(
        "[ramdisk.held]\nmount-point = {:?}\nsize = \"24MiB\"\nbackend = \"zram\"\nfs-type = \"ext4\"\n\
         [ramdisk.plain]\nmount-point = {:?}\nsize = \"8MiB\"\n",
        place("held"),
        place("plain"),
    );
    let Some(session) = Session::begin(&config) else { return };
    session.ok(&["reload"]);
    run(async {
        let client = session.bus().client().await;
        let path_of = async |path: &str, interface: &str, name: &str| -> OwnedObjectPath {
            property(&client, path, &format!("org.zramd1.{interface}"), name).await
        };
        let disk = "/org/zramd1/ramdisk/held";
        let device = path_of(disk, "RamDisk", "Device").await;
        assert_eq!(path_of(device.as_str(), "Device", "RamDisk").await.as_str(), disk);

        // It is there before it is mounted, and what is not known then is announced.
        let mut changes = changes(&client, disk).await;
        let node = format!("/dev/{}", device.rsplit('/').next().unwrap());
        assert!(Command::new("umount").arg(place("held")).status().unwrap().success());
        until(&mut changes, "Options", String::is_empty).await;
        assert_eq!(path_of(disk, "RamDisk", "Device").await, device);
        assert_eq!(property::<String>(&client, disk, "org.zramd1.RamDisk", "FsType").await, "ext4");
        assert!(Command::new("mount").arg(node).arg(place("held")).status().unwrap().success());
        until(&mut changes, "Options", |options: &String| !options.is_empty()).await;

        let plain = "/org/zramd1/ramdisk/plain";
        let options = HashMap::<String, OwnedVariant>::new();
        let resize = (16_u64 << 20, options.clone());
        let job: OwnedObjectPath = call(&client, plain, "org.zramd1.RamDisk.Resize", &resize).await.unwrap();
        assert_eq!(path_of(job.as_str(), "Job", "ObjectPath").await.as_str(), plain);
        let job: OwnedObjectPath = call(&client, ROOT, "org.zramd1.Manager.Reload", &options).await.unwrap();
        assert_eq!(path_of(job.as_str(), "Job", "ObjectPath").await.as_str(), "/");
    });
}

#[test]
fn a_resized_device_is_one_object_that_changes() {
    let Some(session) = Session::begin("[zram9]\nzram-size = \"16MiB\"\n") else { return };
    session.ok(&["reload"]);
    run(async {
        let client = session.bus().client().await;
        let device = "/org/zramd1/device/zram9";
        let rule = "type='signal',path_namespace='/org/zramd1'";
        let mut signals = MessageStream::for_match_rule(rule, &client, None).await.unwrap();
        let diskseq = || std::fs::read_to_string("/sys/block/zram9/diskseq").unwrap();
        let before = diskseq();
        let resize = (24_u64 << 20, HashMap::<String, OwnedVariant>::new());
        let job: OwnedObjectPath = call(&client, device, "org.zramd1.Device.Resize", &resize).await.unwrap();
        let (mut has_changed, mut is_finished) = (false, false);
        while !(has_changed && is_finished) {
            let message = next(&mut signals).await;
            let header = message.header();
            let path = header.path().unwrap().as_str();
            match header.member().unwrap().as_str() {
                "PropertiesChanged" if path == device => {
                    let (_, values, _): (String, HashMap<String, OwnedVariant>, Vec<String>) =
                        message.body().deserialize().unwrap();
                    let size = values.get("DiskSizeBytes").map(|size| u64::try_from(size.clone()).unwrap());
                    has_changed |= size == Some(24 << 20);
                }
                "Finished" if path == job.as_str() => {
                    assert_eq!(diskseq(), before);
                    is_finished = true;
                }
                // While it is no swap, it has no such interface.
                "InterfacesRemoved" => {
                    let (removed, interfaces): (OwnedObjectPath, Vec<String>) =
                        message.body().deserialize().unwrap();
                    let is_swap = interfaces == ["org.zramd1.Swap"];
                    assert!(removed.as_str() != device || is_swap, "{interfaces:?} {before} {}", diskseq());
                }
                _ => {}
            }
        }
    });
}
