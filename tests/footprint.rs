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
#![allow(clippy::unwrap_used, clippy::print_stdout)]

#[path = "support/figures.rs"]
mod figures;
#[path = "support/private_bus.rs"]
mod private_bus;
mod support;

use std::collections::HashMap;
use std::time::Duration;

use private_bus::{PrivateBus, call, next, objects, quiet_devices, run};
use zbus::{MessageStream, OwnedVariant};
use zramd::service::ROOT;

/// In KiB.
const MIB: u64 = 1024;

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

#[test]
fn it_costs_little_and_rests_when_nobody_asks() {
    let _quiet = quiet_devices();
    let Some(bus) = PrivateBus::start() else { return };
    run(use_it(&bus));
    assert_eq!(figures::settled(bus.pid()), 1, "threads");
    if cfg!(debug_assertions) {
        // No failure even where nothing may be skipped: CI runs both.
        eprintln!("skipped: needs --release");
        return;
    }
    let idle = figures::is_idle(bus.pid(), Duration::from_secs(10));
    let memory = figures::memory(bus.pid());
    println!("after use: {} KiB PSS, {} KiB of it anonymous", memory.pss, memory.anonymous);
    assert!(idle, "something wakes it up");
    assert!(memory.pss <= 3 * MIB, "{memory:?}");
    assert!(memory.anonymous <= MIB, "{memory:?}");
}
