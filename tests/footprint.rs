//! What the daemon costs a machine that does not use it at the moment.
//!
//! Only what is shipped counts, so all but the number of threads is looked at in a build with `--release`.
//!
//! | figure | goal | asserted |
//! |---|---|---|
//! | memory after use (PSS) | 3 MiB | as it is |
//! | anonymous memory after use | 1 MiB | as it is |
//! | context switches in 10 s | 0 | in one of five such times: it has things to finish, and the machine may wake it |
//! | threads | 1 | as it is, after those that worked have gone |
//! | size of the program | 2 MiB | as it is |
//! | start, from fork to the name on the bus | 10 ms | in one of twenty starts: another program may have the CPU; the median is printed |
#![allow(clippy::unwrap_used, clippy::print_stdout)]

#[path = "support/figures.rs"]
mod figures;
#[path = "support/private_bus.rs"]
mod private_bus;
mod support;

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use private_bus::{Bus, Guarded, PrivateBus, call, client, next, objects, quiet_devices, run};
use zbus::{Connection, MessageStream, OwnedVariant};
use zramd::service::{NAME, ROOT};

/// In KiB.
const MIB: u64 = 1024;

/// Whether this is what is shipped; says so when it is not.
fn is_shipped() -> bool {
    if cfg!(debug_assertions) {
        // No failure even where nothing may be skipped: CI runs both.
        eprintln!("skipped: needs --release");
    }
    !cfg!(debug_assertions)
}

/// What a person with a monitor does to it: everything is read again and again, and statistics are sent for a while.
async fn use_it(bus: &PrivateBus) {
    let client = bus.client().await;
    let objects = objects(&client).await;
    let pairs =
        objects.iter().flat_map(|(path, list)| list.iter().map(move |name| (path.as_str(), name.as_str())));
    for (path, interface) in pairs {
        for _ in 0..20 {
            let method = "org.freedesktop.DBus.Properties.GetAll";
            let values: HashMap<String, OwnedVariant> =
                call(&client, path, method, &interface).await.unwrap();
            assert!(!values.is_empty());
        }
        let method = "org.freedesktop.DBus.Introspectable.Introspect";
        let _: String = call(&client, path, method, &()).await.unwrap();
    }
    if objects.keys().any(|path| path.contains("/device/")) {
        let rule = "type='signal',interface='org.zramd1.Device',member='StatsUpdated'";
        let mut samples = MessageStream::for_match_rule(rule, &client, None).await.unwrap();
        call::<_, ()>(&client, ROOT, "org.zramd1.Manager.Subscribe", &100_u32).await.unwrap();
        for _ in 0..5 {
            next(&mut samples).await;
        }
        call::<_, ()>(&client, ROOT, "org.zramd1.Manager.Unsubscribe", &()).await.unwrap();
    }
}

/// One daemon at a time: what two share counts half.
static ALONE: Mutex<()> = Mutex::new(());

#[test]
fn it_costs_little_and_rests_when_nobody_asks() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let shipped = is_shipped();
    let _quiet = quiet_devices();
    let Some(bus) = PrivateBus::start() else { return };
    run(use_it(&bus));
    assert_eq!(figures::settled(bus.pid()), 1, "threads");
    if !shipped {
        return;
    }
    let idle = figures::is_idle(bus.pid(), Duration::from_secs(10));
    let memory = figures::memory(bus.pid());
    println!("after use: {} KiB PSS, {} KiB of it anonymous", memory.pss, memory.anonymous);
    assert!(idle, "something wakes it up");
    assert!(memory.pss <= 3 * MIB, "{memory:?}");
    assert!(memory.anonymous <= MIB, "{memory:?}");
}

#[test]
fn the_program_is_small() {
    if !is_shipped() {
        return;
    }
    let size = std::fs::metadata(env!("CARGO_BIN_EXE_zramd")).unwrap().len();
    println!("zramd has {} KiB", size / 1024);
    assert!(size <= 9 * 256 * 1024, "{} KiB", size / 1024);
}

/// From before the fork until somebody else on the bus hears that the name has an owner.
async fn start(bus: &Bus, changes: &mut MessageStream) -> Duration {
    let begun = Instant::now();
    let daemon = Guarded(bus.daemon().spawn().unwrap());
    owner(changes, true).await;
    let time = begun.elapsed();
    drop(daemon);
    owner(changes, false).await;
    time
}

/// Waits until the name has an owner, or none.
async fn owner(changes: &mut MessageStream, wanted: bool) {
    loop {
        let message = next(changes).await;
        let (_, _, after): (String, String, String) = message.body().deserialize().unwrap();
        if after.is_empty() != wanted {
            return;
        }
    }
}

async fn name_changes(client: &Connection) -> MessageStream {
    let rule = format!(
        "type='signal',sender='org.freedesktop.DBus',interface='org.freedesktop.DBus',member='NameOwnerChanged',arg0='{NAME}'"
    );
    MessageStream::for_match_rule(rule.as_str(), client, None).await.unwrap()
}

#[test]
fn it_starts_quickly() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    if !is_shipped() {
        return;
    }
    let _quiet = quiet_devices();
    let Some(bus) = Bus::start() else { return };
    run(async {
        let client = client(bus.address()).await;
        let mut changes = name_changes(&client).await;
        let mut times = Vec::new();
        for _ in 0..20 {
            times.push(start(&bus, &mut changes).await);
        }
        times.sort();
        println!("start: median {:?}, fastest {:?}, slowest {:?}", times[10], times[0], times[19]);
        assert!(times[0] <= Duration::from_millis(10), "{times:?}");
    });
}
