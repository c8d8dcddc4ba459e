//! The D-Bus interface: compatibility, and that the daemon behaves as documented; seen by clients.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::Write;
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::support::described::{FLEETING, PLACES, described, json, same};
use crate::support::introspection;
use crate::support::introspection::Interface;
use crate::support::polkit::Authority;
use crate::support::private_bus::{
    Bus, Guarded, PATIENCE, PrivateBus, as_user, call, ends_within, next, objects, property, quiet_devices,
    run,
};
use crate::support::{golden, has_program, repository, skip};
use logic::error::ErrorKind;
use logic::figure::{self, FIGURES};
use logic::sample::ReasonView::{self, Auto, Benchmark, Config, Fallback, KernelDefault, Unknown};
use logic::sample::StateView::{self, Active, Mounted, Ready, Unfinished, Unused};
use logic::sample::{DeviceView, RoleView, Snapshot};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use service::bus::introspection::interfaces;
use service::names::{device_path, ramdisk_path};
use service::{NAME, ROOT};
use zbus::message::Flags;
use zbus::{Connection, Message, MessageStream, OwnedObjectPath, OwnedVariant, Variant};

fn promised() -> BTreeMap<String, Interface> {
    interfaces().iter().flat_map(|(_, xml)| introspection::read(xml)).collect()
}

fn golden_path(interface: &str) -> String {
    format!("packaging/interfaces/{interface}.xml")
}

/// `UPDATE_GOLDEN=1` writes additions. Incompatible changes need the file to be deleted by hand, only before the first
/// release.
#[test]
fn interfaces_stay_compatible() {
    for (name, xml) in interfaces() {
        let path = golden_path(&name);
        if let Ok(before) = std::fs::read_to_string(repository(&path)) {
            let (before, now) = (introspection::read(&before), introspection::read(&xml));
            let missing = before[&name].missing_in(&now[&name]);
            assert!(missing.is_empty(), "{name}: clients would miss {missing:?}");
        }
        golden(&path, &xml);
    }
}

/// The daemon announces changes of all of them.
#[test]
fn all_properties_of_the_benchmark_are_announced() {
    let promised = promised();
    let properties = &promised["org.zramd1.Benchmark"].properties;
    assert!(!properties.is_empty() && properties.values().all(|property| property.emits == "true"));
}

#[test]
fn methods_can_grow_options_and_everything_is_described() {
    for (name, interface) in promised() {
        for (member, method) in &interface.methods {
            let incoming = method.incoming();
            for (index, argument) in incoming.iter().enumerate() {
                let last = index + 1 == incoming.len();
                let is_options = argument.kind == "a{sv}" && (argument.name == "options") && last;
                assert_eq!(
                    argument.kind == "a{sv}" || argument.name == "options",
                    is_options,
                    "{name}.{member}"
                );
            }
            assert!(!method.documentation.is_empty(), "{name}.{member} is not described");
            for argument in &method.arguments {
                assert!(!argument.name.is_empty(), "{name}.{member} has an argument without a name");
            }
        }
        for (member, signal) in &interface.signals {
            assert!(!signal.documentation.is_empty(), "{name}.{member} is not described");
        }
        for (member, property) in &interface.properties {
            assert!(!property.documentation.is_empty(), "{name}.{member} is not described");
            assert_eq!(
                property.access, "read",
                "{name}.{member}: a method changes things, because it can be refused"
            );
        }
    }
}

/// Every method that returns a job takes options, so that it can be extended.
#[test]
fn methods_that_make_jobs_take_options() {
    for (name, interface) in promised() {
        for (member, method) in &interface.methods {
            if method.arguments.iter().any(|argument| !argument.incoming && argument.name == "job") {
                let last = method.incoming().last().map(|argument| argument.name.as_str());
                assert_eq!(last, Some("options"), "{name}.{member}");
            }
        }
    }
}

#[test]
fn error_names_are_stable() {
    let names: Vec<&str> = ErrorKind::all().map(|(_, name)| name).collect();
    golden(
        "tests/golden/introspection/errors",
        &names.iter().map(|name| format!("{name}\n")).collect::<String>(),
    );
    for (kind, text) in ErrorKind::all() {
        assert_eq!(kind.on_the_bus(), text);
        assert!(zbus::names::ErrorName::try_from(text).is_ok(), "{text}");
    }
    assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len(), "a name stands for one kind only");
}

/// The objects of the daemon have the documented interfaces.
#[test]
fn objects_have_the_promised_interfaces() {
    let _quiet = quiet_devices();
    let Some(bus) = PrivateBus::start() else { return };
    run(async {
        let client = bus.client().await;
        let xml: String =
            call(&client, ROOT, "org.freedesktop.DBus.Introspectable.Introspect", &()).await.unwrap();
        let promised = promised();
        let found = introspection::read(&xml);
        let ours: Vec<_> = found.iter().filter(|(name, _)| name.starts_with(NAME)).collect();
        assert!(ours.iter().any(|(name, _)| *name == "org.zramd1.Manager"), "{xml}");
        for (name, interface) in ours {
            assert_eq!(promised.get(name), Some(interface), "{name}");
        }
    });
}

#[test]
fn subscriptions_have_a_sensible_interval() {
    let _quiet = quiet_devices();
    let Some(bus) = PrivateBus::start() else { return };
    run(async {
        let client = bus.client().await;
        for interval in [0_u32, 50, 99, 3_600_001, u32::MAX] {
            let refused = call::<_, ()>(&client, ROOT, "org.zramd1.Manager.Subscribe", &interval).await;
            assert_eq!(refused, Err("org.zramd1.Error.InvalidArgument".to_owned()), "{interval}");
        }
        for interval in [100_u32, 3_600_000] {
            call::<_, ()>(&client, ROOT, "org.zramd1.Manager.Subscribe", &interval).await.unwrap();
        }
        // Subscribing twice has the same effect.
        for _ in 0..2 {
            call::<_, ()>(&client, ROOT, "org.zramd1.Manager.Unsubscribe", &()).await.unwrap();
        }
    });
}

#[test]
fn unknown_names_are_not_found() {
    let _quiet = quiet_devices();
    let Some(bus) = PrivateBus::start() else { return };
    run(async {
        let client = bus.client().await;
        let long = "z".repeat(5_000);
        for name in
            ["", "zram4000000", "zram", "/dev/zram4000000", "../zram0", "zram0\n", "zram-1", "ä", &long]
        {
            for method in ["org.zramd1.Manager.GetDevice", "org.zramd1.Manager.GetRamDisk"] {
                let refused = call::<_, OwnedObjectPath>(&client, ROOT, method, &name).await;
                assert_eq!(refused, Err("org.zramd1.Error.NotFound".to_owned()), "{method} {name:.20}");
            }
        }
        if rustix::process::geteuid().is_root() {
            let arguments = ("zram4000000", HashMap::<String, OwnedVariant>::new());
            let refused: Result<OwnedObjectPath, String> =
                call(&client, ROOT, "org.zramd1.Manager.RemoveDevice", &arguments).await;
            assert_eq!(refused, Err("org.zramd1.Error.NotFound".to_owned()));
        }
    });
}

/// Changing methods: interface, name and arguments.
fn mutating() -> Vec<(String, String, Vec<String>)> {
    let kinds = |method: &introspection::Member| {
        method.incoming().iter().map(|argument| argument.kind.clone()).collect()
    };
    let found = introspection::mutating(promised()).into_iter();
    found.map(|(interface, member, method)| (interface, member, kinds(&method))).collect()
}

/// Runs a program through `setpriv` if the test is run by root.
fn ordinary_user(program: &str) -> Command {
    if !rustix::process::geteuid().is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups", program]);
    command
}

/// Methods of interfaces without an object here are called in `rights`.
#[test]
fn an_ordinary_user_is_refused_every_change() {
    if !has_program("busctl") || !has_program("setpriv") {
        return skip("needs busctl and setpriv");
    }
    let _quiet = quiet_devices();
    let Some(bus) = PrivateBus::start() else { return };
    let objects = run(async { objects(&bus.client().await).await });
    let mut tried = 0;
    for (interface, member, kinds) in mutating() {
        for path in objects.iter().filter(|(_, list)| list.contains(&interface)).map(|(path, _)| path) {
            let mut busctl = ordinary_user("busctl");
            busctl.env("SYSTEMD_LOG_LEVEL", "debug").arg(format!("--address={}", bus.address()));
            busctl.args(["call", NAME, path, &interface, &member]);
            if !kinds.is_empty() {
                busctl.arg(kinds.concat());
            }
            for kind in &kinds {
                busctl.arg(match kind.as_str() {
                    // The name of a device that does not exist, in case the call is not refused.
                    "s" => "zram4000000",
                    "t" => "4096",
                    "b" => "true",
                    "a{sv}" | "a{sa{sv}}" => "0",
                    other => panic!("{interface}.{member} takes a {other}: what is a harmless one?"),
                });
            }
            let output = busctl.output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr);
            if said.contains("org.freedesktop.DBus.Error.UnknownObject") {
                // The device was removed in the meantime. Objects of the manager stay, and are counted.
                continue;
            }
            let tune = ["Compact", "ResetPeak", "MarkIdle", "Recompress", "Writeback", "Maintain"]
                .contains(&member.as_str());
            let action = match (interface.as_str(), member.as_str()) {
                ("org.zramd1.Benchmark", _) => "org.zramd1.benchmark: ",
                ("org.zramd1.RamDisk", "Save" | "Verify") => "org.zramd1.save-ramdisk: ",
                ("org.zramd1.RamDisk", "Restore" | "DeleteSnapshot" | "Pin") => {
                    "org.zramd1.restore-ramdisk: "
                }
                ("org.zramd1.Manager", "Configure") => "org.zramd1.configure: ",
                _ if tune => "org.zramd1.tune: ",
                _ => "org.zramd1.manage: ",
            };
            let by_us = said.contains("org.freedesktop.DBus.Error.AccessDenied") && said.contains(action);
            assert!(!output.status.success() && by_us, "{path} {interface}.{member}: {said}");
            tried += 1;
        }
    }
    println!("{tried} calls refused, on {} objects", objects.len());
    assert!(tried >= mutating().iter().filter(|(interface, ..)| interface == "org.zramd1.Manager").count());
}

#[test]
fn every_property_has_its_place_in_the_description() {
    let elsewhere = [
        ("org.zramd1.Manager", "Version"),
        ("org.zramd1.Manager", "State"),
        ("org.zramd1.Manager", "Problems"),
        ("org.zramd1.Manager", "ProblemDetails"),
        ("org.zramd1.Manager", "ConfigFiles"),
        ("org.zramd1.Manager", "Configuration"),
        ("org.zramd1.Manager", "Overrides"),
        ("org.zramd1.Manager", "VmSettings"),
        ("org.zramd1.Manager", "MaintenanceActions"),
        ("org.zramd1.Manager", "MaintenanceSkipped"),
        ("org.zramd1.Manager", "WritebackBudgetLeftBytes"),
        ("org.zramd1.Manager", "WritebackDayBytes"),
        ("org.zramd1.Manager", "WritebackTotalBytes"),
        ("org.zramd1.Manager", "TotalOriginalBytes"),
        ("org.zramd1.Manager", "TotalCompressedBytes"),
        ("org.zramd1.Manager", "TotalMemoryUsedBytes"),
        // They change from one reading to the next.
        ("org.zramd1.Manager", "MemoryAvailableBytes"),
        ("org.zramd1.Manager", "SwapFreeBytes"),
        ("org.zramd1.Manager", "SwappedInBytes"),
        ("org.zramd1.Manager", "SwappedOutBytes"),
        ("org.zramd1.Manager", "MemoryStalledUSec"),
        // In `zswap`, which is null without it.
        ("org.zramd1.Manager", "ZswapEnabled"),
        ("org.zramd1.Manager", "ZswapManaged"),
        ("org.zramd1.Manager", "ZswapAlgorithm"),
        ("org.zramd1.Manager", "ZswapMemoryLimitBytes"),
        ("org.zramd1.Manager", "ZswapOriginalDataBytes"),
        ("org.zramd1.Manager", "ZswapMemoryUsedBytes"),
        ("org.zramd1.Manager", "ZswapCompressionRatio"),
        ("org.zramd1.Manager", "ZswapSavedBytes"),
        ("org.zramd1.Manager", "ZswapReadBytes"),
        ("org.zramd1.Manager", "ZswapWrittenBytes"),
        ("org.zramd1.Manager", "ZswapBackingWrittenBytes"),
        ("org.zramd1.Manager", "ZswapRejected"),
        ("org.zramd1.Swap", "Active"),
        // An object path on the bus, a name in the JSON.
        ("org.zramd1.RamDisk", "Device"),
        ("org.zramd1.Device", "RamDisk"),
        // Only PID 1 has the value.
        ("org.zramd1.RamDisk", "NextSaveTimestamp"),
    ];
    for (name, places) in PLACES {
        let known: BTreeSet<&str> = places.iter().map(|(property, _)| *property).collect();
        let own = elsewhere.iter().filter(|(interface, _)| *interface == name).map(|(_, property)| *property);
        let known: BTreeSet<&str> = known.into_iter().chain(own).collect();
        let promised = promised();
        let promised = promised[name].properties.keys().map(String::as_str);
        // Those of the table are compared as such.
        let promised = promised.filter(|name| FIGURES.iter().all(|figure| figure.name != *name));
        assert_eq!(known, promised.collect(), "{name}");
    }
}

#[test]
fn every_word_that_a_device_may_have_is_described() {
    let reasons = [Config, Benchmark, Auto, Fallback, KernelDefault, Unknown].map(ReasonView::word);
    let roles = [RoleView::Swap, RoleView::Filesystem, RoleView::Raw, RoleView::Unused].map(RoleView::word);
    let states = [Active, Mounted, Ready, Unfinished, Unused].map(StateView::word);
    let properties = &promised()["org.zramd1.Device"].properties;
    for (name, words) in [("AlgorithmReason", &reasons[..]), ("Role", &roles), ("State", &states)] {
        let text = &properties[name].documentation;
        for word in words {
            assert!(text.contains(&format!("`{word}`")), "{name}: {word}: {text}");
        }
    }
}

#[test]
fn every_reason_for_an_omission_is_described() {
    use logic::ramdisk::omitted::Reason;
    let text = &promised()["org.zramd1.RamDisk"].properties["LastSaveOmitted"].documentation;
    // `contents` and `refused` are reasons of a load.
    for reason in [
        Reason::Attributes,
        Reason::Damaged,
        Reason::Flags,
        Reason::Format,
        Reason::Lease,
        Reason::Path,
        Reason::Unreadable,
        Reason::Other,
    ] {
        assert!(text.contains(&format!("`{}`", reason.word())), "{reason:?}: {text}");
    }
}

/// Describe, properties and GetStats agree.
#[test]
fn description_and_properties_agree() {
    let _quiet = quiet_devices();
    let Some(bus) = PrivateBus::start() else { return };
    run(async {
        let client = bus.client().await;
        // Other programs may use the devices meanwhile; then the comparison is repeated.
        let mut wrong = Vec::new();
        for _ in 0..20 {
            wrong = disagreements(&client).await;
            if wrong.is_empty() {
                return;
            }
        }
        panic!("{}", wrong.join("\n"));
    });
}

async fn describe(client: &Connection) -> (Snapshot, Value) {
    let text: String = call(client, ROOT, "org.zramd1.Manager.Describe", &()).await.unwrap();
    (serde_json::from_str(&text).unwrap(), serde_json::from_str(&text).unwrap())
}

async fn disagreements(client: &Connection) -> Vec<String> {
    let (snapshot, json) = describe(client).await;
    let mut wrong = Vec::new();
    assert_eq!(serde_json::to_value(&snapshot).unwrap(), json, "the description has more than a snapshot");
    let devices = snapshot.devices.iter().map(|device| device_path(&device.name));
    let disks = snapshot.ramdisks.iter().map(|disk| ramdisk_path(&disk.name));
    let places = std::iter::once((ROOT.to_owned(), json.clone()))
        .chain(devices.zip(json["devices"].as_array().unwrap().iter().cloned()))
        .chain(disks.zip(json["ramdisks"].as_array().unwrap().iter().cloned()));
    let places: BTreeMap<String, Value> = places.collect();
    let mut shown = objects(client).await;
    // It is about the machine, and has a method of its own.
    shown.remove("/org/zramd1/benchmark");
    if shown.keys().ne(places.keys()) {
        wrong.push(format!("{:?} are described, {:?} are shown", places.keys(), shown.keys()));
    }
    for (path, object) in &places {
        for interface in shown.get(path).into_iter().flatten() {
            let Some((_, properties)) = PLACES.iter().find(|(name, _)| name == interface) else { continue };
            let method = "org.freedesktop.DBus.Properties.GetAll";
            let values: Result<HashMap<String, OwnedVariant>, _> =
                call(client, path, method, interface).await;
            let values = values.unwrap_or_default();
            compare(&mut wrong, path, object, properties, &values);
            let device = snapshot.devices.iter().find(|device| device_path(&device.name) == *path);
            if let Some(device) = device.filter(|_| interface == "org.zramd1.Device") {
                let stats = call(client, path, "org.zramd1.Device.GetStats", &()).await;
                compare_figures(&mut wrong, device, &values, &stats.unwrap_or_default());
            }
        }
    }
    wrong
}

/// GetStats has all figures of the table, and properties of the same name are the same.
fn compare_figures(
    wrong: &mut Vec<String>,
    device: &DeviceView,
    properties: &HashMap<String, OwnedVariant>,
    stats: &HashMap<String, OwnedVariant>,
) {
    let names: BTreeSet<&str> = FIGURES.iter().map(|figure| figure.name).collect();
    if stats.keys().map(String::as_str).collect::<BTreeSet<_>>() != names {
        wrong.push(format!("{}: GetStats has {:?}", device.name, stats.keys()));
    }
    for figure in FIGURES.iter().filter(|figure| !FLEETING.contains(&figure.name)) {
        let wanted: Value = match figure.value(device) {
            figure::Value::Count(count) => count.into(),
            figure::Value::Real(quotient) => quotient.into(),
        };
        for found in [stats.get(figure.name), properties.get(figure.name)].into_iter().flatten() {
            if !same(&json(found), &wanted) {
                wrong.push(format!("{} {} is {found:?}, Describe says {wanted}", device.name, figure.name));
            }
        }
    }
}

fn compare(
    wrong: &mut Vec<String>,
    path: &str,
    object: &Value,
    places: &[(&str, &str)],
    values: &HashMap<String, OwnedVariant>,
) {
    for (name, pointer) in places {
        let wanted = described(object, name, pointer);
        let Some(found) = values.get(*name).map(|value| json(value)) else {
            wrong.push(format!("{path} {name} is missing"));
            continue;
        };
        if !FLEETING.contains(name) && !same(&found, &wanted) {
            wrong.push(format!("{path} {name} is {found}, Describe says {wanted}"));
        }
    }
}

/// All messages on the bus from now on; no client is sent them except this one.
async fn eavesdrop(bus: &PrivateBus) -> MessageStream {
    let client = bus.client().await;
    let mut stream = MessageStream::from(&client);
    stream.set_max_queued(10_000.try_into().unwrap());
    let driver = "org.freedesktop.DBus";
    let arguments: (Vec<&str>, u32) = (Vec::new(), 0);
    let interface = "org.freedesktop.DBus.Monitoring";
    let path = "/org/freedesktop/DBus";
    client.call_method(Some(driver), path, Some(interface), "BecomeMonitor", &arguments).await.unwrap();
    stream
}

fn receiver(message: &Message) -> Option<String> {
    let header = message.header();
    let is_stats = header.member().is_some_and(|member| member.as_str() == "StatsUpdated");
    is_stats.then(|| header.destination().map(ToString::to_string).unwrap_or_default())
}

/// The clients that receive StatsUpdated in this time.
async fn receivers(everything: &mut MessageStream, time: Duration) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let watch = async {
        loop {
            found.extend(receiver(&next(everything).await));
        }
    };
    tokio::time::timeout(time, watch).await.ok();
    found
}

/// Time for several samples.
const WHILE: Duration = Duration::from_millis(450);

#[test]
fn statistics_go_to_the_subscribers_only_while_they_want_them() {
    let _quiet = quiet_devices();
    let Some(bus) = PrivateBus::start() else { return };
    run(async {
        let client = bus.client().await;
        if describe(&client).await.0.devices.is_empty() {
            return skip("needs a zram device");
        }
        let mut everything = eavesdrop(&bus).await;
        let (one, two) = (bus.client().await, bus.client().await);
        let name = |client: &Connection| client.unique_name().unwrap().to_string();
        let names: BTreeSet<String> = [name(&one), name(&two)].into();
        // A match rule for the signal does not deliver those of other subscribers.
        let rule = "type='signal',interface='org.zramd1.Device',member='StatsUpdated'";
        let mut overheard = MessageStream::for_match_rule(rule, &client, None).await.unwrap();
        for subscriber in [&one, &two] {
            call::<_, ()>(subscriber, ROOT, "org.zramd1.Manager.Subscribe", &100_u32).await.unwrap();
        }
        let mut samples = 0;
        let mut seen = BTreeSet::new();
        while samples < 8 || seen != names {
            if let Some(name) = receiver(&next(&mut everything).await) {
                samples += 1;
                seen.insert(name);
            }
            assert!(seen.is_subset(&names), "{seen:?} get what {names:?} asked for");
        }
        call::<_, ()>(&one, ROOT, "org.zramd1.Manager.Unsubscribe", &()).await.unwrap();
        until(&mut everything, |message| is_reply_to(message, &name(&one))).await;
        assert_eq!(receivers(&mut everything, WHILE).await, [name(&two)].into());
        // It disconnects without unsubscribing.
        let gone = name(&two);
        drop(two);
        until(&mut everything, |message| is_departure(message, &gone)).await;
        // One sample may be in transit; after it there are no more.
        receivers(&mut everything, WHILE).await;
        assert_eq!(receivers(&mut everything, WHILE).await, BTreeSet::new());
        let heard = tokio::time::timeout(Duration::ZERO, next(&mut overheard)).await;
        assert!(heard.is_err(), "{heard:?}");
    });
}

async fn until(everything: &mut MessageStream, wanted: impl Fn(&Message) -> bool) {
    while !wanted(&next(everything).await) {}
}

fn is_reply_to(message: &Message, name: &str) -> bool {
    let to = message.header().destination().map(ToString::to_string);
    message.message_type() == zbus::message::Type::MethodReturn && to.as_deref() == Some(name)
}

fn is_departure(message: &Message, name: &str) -> bool {
    let member = message.header().member().map(ToString::to_string);
    let arguments = message.body().deserialize::<(String, String, String)>();
    member.as_deref() == Some("NameOwnerChanged")
        && arguments.is_ok_and(|(who, _, after)| who == name && after.is_empty())
}

/// The process that owns the name.
async fn owner(client: &Connection) -> u32 {
    let bus = "org.freedesktop.DBus";
    let method = "GetConnectionUnixProcessID";
    let answer = client.call_method(Some(bus), "/org/freedesktop/DBus", Some(bus), method, &NAME).await;
    answer.unwrap().body().deserialize().unwrap()
}

#[test]
fn a_second_daemon_does_not_take_the_name() {
    let _quiet = quiet_devices();
    let Some(bus) = PrivateBus::start() else { return };
    let mut command = bus.bus().daemon();
    let mut second = Guarded(command.stderr(Stdio::piped()).spawn().unwrap());
    assert!(ends_within(&second.0, PATIENCE), "it serves");
    assert_eq!(second.0.wait().unwrap().code(), Some(1));
    let said = std::io::read_to_string(second.0.stderr.take().unwrap()).unwrap();
    let mut numbers = said.split(|letter: char| !letter.is_ascii_digit());
    assert!(numbers.any(|number| number == bus.pid().to_string()), "it names the running one: {said}");
    run(async {
        let client = bus.client().await;
        assert_eq!(owner(&client).await, bus.pid());
        assert!(!objects(&client).await.is_empty());
    });
}

/// Forwards one connection to the bus. The returned socket leads to the client.
fn forward(bus: &Bus, to: &Path) -> std::thread::JoinHandle<UnixStream> {
    let (listener, bus) = (UnixListener::bind(to).unwrap(), UnixStream::connect(bus.socket()).unwrap());
    std::thread::spawn(move || {
        let client = listener.accept().unwrap().0;
        let copy = |mut from: UnixStream, mut to: UnixStream| {
            std::thread::spawn(move || {
                std::io::copy(&mut from, &mut to).ok();
                to.shutdown(Shutdown::Write).ok();
            })
        };
        copy(client.try_clone().unwrap(), bus.try_clone().unwrap());
        copy(bus, client.try_clone().unwrap());
        client
    })
}

/// dbus-daemon takes no name away, so the signal is inserted on the way from it.
#[test]
fn a_daemon_that_loses_its_name_ends() {
    let _quiet = quiet_devices();
    let Some(bus) = Bus::start() else { return };
    let path = bus.directory().join("forwarded");
    let forwarded = forward(&bus, &path);
    let mut command = bus.daemon();
    command.env("DBUS_SYSTEM_BUS_ADDRESS", format!("unix:path={}", path.display()));
    let mut daemon = bus.ready(command);
    let lost = Message::signal("/org/freedesktop/DBus", "org.freedesktop.DBus", "NameLost");
    let lost = lost.sender("org.freedesktop.DBus").build(&NAME).unwrap();
    let mut connection = forwarded.join().unwrap();
    connection.write_all(lost.data()).unwrap();
    assert!(ends_within(&daemon.0, PATIENCE), "it serves");
    assert_eq!(daemon.0.wait().unwrap().code(), Some(1));
}

#[test]
fn a_daemon_without_a_bus_ends() {
    let _quiet = quiet_devices();
    let Some(mut bus) = PrivateBus::start() else { return };
    assert_eq!(bus.end_bus(), Some(1));
}

/// The bus is stopped, so that the daemon receives nothing: then the watchdog is not notified.
#[test]
fn a_deaf_daemon_does_not_notify_the_watchdog() {
    let _quiet = quiet_devices();
    let Some(bus) = Bus::start() else { return };
    let mut command = bus.daemon();
    command.env("WATCHDOG_USEC", "100000").env_remove("WATCHDOG_PID");
    let (_daemon, notified) = bus.notifying(command);
    let mut message = [0; 512];
    let mut next = || notified.recv(&mut message).map(|length| message[..length].to_vec());
    assert_eq!(next().unwrap(), b"WATCHDOG=1\n");
    let stopped = Pid::from_child(bus.process());
    kill_process(stopped, Signal::STOP).unwrap();
    notified.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
    // What was sent before the bus stopped, and then nothing for ten intervals.
    let late = (0..20).take_while(|_| next().is_ok()).count();
    assert!(late < 20, "it notifies without hearing anything");
    kill_process(stopped, Signal::CONT).unwrap();
    notified.set_read_timeout(Some(PATIENCE)).unwrap();
    assert_eq!(next().unwrap(), b"WATCHDOG=1\n");
}

// The bus requires users in /etc/passwd: `nobody`, and bin or daemon.
const OWNER: u32 = 65534;
const STRANGER: u32 = 1;
const DENIED: &str = "org.freedesktop.DBus.Error.AccessDenied";

/// Starts a benchmark as the owner, and returns its job.
fn job_of_owner(bus: &PrivateBus) -> OwnedObjectPath {
    as_user(OWNER, bus, async |client| {
        let options = HashMap::<String, OwnedVariant>::new();
        call(&client, "/org/zramd1/benchmark", "org.zramd1.Benchmark.Run", &options).await.unwrap()
    })
}

fn cancel_as(user: u32, bus: &PrivateBus, job: &str) -> Result<(), String> {
    as_user(user, bus, async |client| call(&client, job, "org.zramd1.Job.Cancel", &()).await)
}

/// The result of an ended job.
fn result(bus: &PrivateBus, job: &str) -> String {
    run(async {
        let client = bus.client().await;
        let rule = "type='signal',interface='org.zramd1.Job',member='Finished'";
        let mut ends = MessageStream::for_match_rule(rule, &client, None).await.unwrap();
        loop {
            let found: String = property(&client, job, "org.zramd1.Job", "Result").await;
            if !found.is_empty() {
                return found;
            }
            next(&mut ends).await;
        }
    })
}

#[test]
fn a_job_is_cancelled_by_its_owner_or_root() {
    if !rustix::process::geteuid().is_root() {
        return skip("needs root, to be several users");
    }
    let _quiet = quiet_devices();
    let Some(bus) = PrivateBus::start_with_worker("", "exec sleep 1000\n") else { return };
    let authority = Authority::start(bus.address());
    let job = job_of_owner(&bus);
    let listed = run(async { objects(&bus.client().await).await });
    assert_eq!(listed.get(job.as_str()), Some(&vec!["org.zramd1.Job".to_owned()]));
    assert_eq!(cancel_as(STRANGER, &bus, &job), Err(DENIED.to_owned()));
    // The next caller does not answer the password dialog, and the job ends nevertheless.
    as_user(STRANGER, &bus, async |client| {
        let call = Message::method_call(job.as_str(), "Cancel").destination(NAME).interface("org.zramd1.Job");
        client.send(&call.with_flags(Flags::ALLOW_INTERACTIVE_AUTH).build(&()).unwrap()).await.unwrap();
        authority.dialog().await;
    });
    // It has left the bus, so the dialog is closed.
    run(async { tokio::time::timeout(PATIENCE, authority.closed()).await }).expect("the dialog is closed");
    assert_eq!(cancel_as(OWNER, &bus, &job), Ok(()));
    assert_eq!(result(&bus, &job), "cancelled");
    let job = job_of_owner(&bus);
    assert_eq!(cancel_as(0, &bus, &job), Ok(()));
    assert_eq!(result(&bus, &job), "cancelled");
    for (kind, name, _) in authority.asked() {
        assert_eq!((kind.as_str(), name.starts_with(':')), ("system-bus-name", true));
    }
}

/// The worker runs as root, so it must not read files for callers.
#[test]
fn a_benchmark_reads_no_file_for_its_caller() {
    if !rustix::process::geteuid().is_root() {
        return skip("needs root: others are refused before their options are read");
    }
    let _quiet = quiet_devices();
    let Some(bus) = PrivateBus::start_with_worker("", "echo begun > $HERE/begun\n") else { return };
    run(async {
        let client = bus.client().await;
        for (name, value) in
            [("words", Variant::from(vec!["--data", "/dev/watchdog"])), ("data", "/dev/watchdog".into())]
        {
            let options = HashMap::from([(name, value)]);
            let method = "org.zramd1.Benchmark.Run";
            let refused =
                call::<_, OwnedObjectPath>(&client, "/org/zramd1/benchmark", method, &options).await;
            assert_eq!(refused, Err("org.zramd1.Error.InvalidArgument".to_owned()));
        }
    });
    assert!(!bus.bus().directory().join("begun").exists());
}
