//! Maintenance on the simulator when something goes wrong, or is not as usual: what fails does not hold up the rest.
#![allow(clippy::unwrap_used, clippy::panic)]

#[path = "support/upkeep.rs"]
mod upkeep;

use upkeep::*;
use zramd::engine::maintain::Order;
use zramd::engine::work::Stopped;
use zramd::host::Errno;
use zramd::host::sim::kernel::KernelConfig;
use zramd::logic::policy::Cause;

#[test]
fn what_fails_does_not_hold_up_the_rest() {
    let two = format!("{SWAP}[zram1]\nzram-size = \"256MiB\"\n{BOTH}");
    let loaded = load(&two);
    let machine = machine(KernelConfig::full(), &loaded);
    machine.change().available_kib = 1 << 20;
    store(&machine, false, 0..1000);
    pass_time(&machine, 26 * HOUR);
    machine.take_transcript();
    machine.fail_at(1, Errno::NOSPC);
    let (report, ended) = maintain(&machine, &loaded, &Order::all(Cause::Timer));
    assert!(
        matches!(&ended, Err(Stopped::Failed(error)) if error.to_string().contains("budget.json")),
        "{ended:?}"
    );
    assert!(done(&report).contains(&("recompress", "idle")), "{report:?}");
    assert_eq!(report.memory.len(), 2, "{report:?}");
    assert!(machine.take_transcript()[0].contains("budget.json"));
}
