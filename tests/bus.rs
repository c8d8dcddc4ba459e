//! What zramd promises on the bus, and that it keeps it; from the point of view of its clients.
#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::format_collect)]

#[path = "support/introspection.rs"]
mod introspection;
#[path = "support/private_bus.rs"]
mod private_bus;
mod support;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use introspection::Interface;
use private_bus::{PrivateBus, call, run};
use support::{golden, repository};
use zbus::{OwnedObjectPath, OwnedVariant};
use zramd::service::bus::{EMITTING, error, introspection::interfaces};
use zramd::service::{NAME, ROOT};

/// An interface that emits its changes itself; those of the others are found by comparing.
const OWN_SIGNALS: &str = "org.zramd1.Job";

fn promised() -> BTreeMap<String, Interface> {
    interfaces().iter().flat_map(|(_, xml)| introspection::read(xml)).collect()
}

fn golden_path(interface: &str) -> String {
    format!("tests/golden/introspection/{interface}.xml")
}

/// Additions are written with `UPDATE_GOLDEN=1`. What would break a client is not: that takes deleting the file by hand,
/// and before the first release only.
#[test]
fn nothing_is_taken_back() {
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

#[test]
fn emitting_properties_are_those_of_the_introspection() {
    let told: BTreeMap<String, BTreeSet<&str>> =
        EMITTING.iter().map(|(name, list)| ((*name).to_owned(), list.iter().copied().collect())).collect();
    let all = promised();
    let found: BTreeMap<String, BTreeSet<&str>> = all
        .iter()
        .filter(|(name, _)| *name != OWN_SIGNALS)
        .map(|(name, interface)| {
            let emitting = interface.properties.iter().filter(|(_, property)| property.emits == "true");
            (name.clone(), emitting.map(|(name, _)| name.as_str()).collect())
        })
        .collect();
    assert_eq!(told, found);
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

/// `Resize`, `Activate`, …: whatever makes a job takes options, so that it can learn something later.
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
fn error_names_are_settled() {
    let names: Vec<&str> = error::NAMES.iter().map(|(_, name)| *name).collect();
    golden(
        "tests/golden/introspection/errors",
        &names.iter().map(|name| format!("{name}\n")).collect::<String>(),
    );
    for (name, text) in error::NAMES {
        assert_eq!(name.on_the_bus(), text);
        assert!(zbus::names::ErrorName::try_from(text).is_ok(), "{text}");
    }
    assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len(), "a name stands for one kind only");
}

/// What the daemon shows is what is promised.
#[test]
fn objects_have_the_promised_interfaces() {
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
        // Twice is as good as once.
        for _ in 0..2 {
            call::<_, ()>(&client, ROOT, "org.zramd1.Manager.Unsubscribe", &()).await.unwrap();
        }
    });
}

#[test]
fn unknown_names_are_not_found() {
    let Some(bus) = PrivateBus::start() else { return };
    run(async {
        let client = bus.client().await;
        let long = "z".repeat(100_000);
        for name in
            ["", "zram4000000", "zram", "/dev/zram4000000", "../zram0", "zram0\n", "zram-1", "ä", &long]
        {
            for method in ["org.zramd1.Manager.GetDevice", "org.zramd1.Manager.GetDisk"] {
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
