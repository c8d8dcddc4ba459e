//! What zramd shows on the bus, from the point of view of its clients.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

#[path = "support/private_bus.rs"]
mod private_bus;
mod support;

use private_bus::PrivateBus;

#[test]
fn starts() {
    let Some(bus) = PrivateBus::start() else { return };
    let out = std::process::Command::new("busctl")
        .arg(format!("--address={}", bus.address()))
        .args(["--json=short", "introspect", "--xml-interface", "org.zramd1", "/org/zramd1"])
        .output()
        .unwrap();
    println!("{}", String::from_utf8_lossy(&out.stdout));
    let out = std::process::Command::new("busctl")
        .arg(format!("--address={}", bus.address()))
        .args(["tree", "org.zramd1"])
        .output()
        .unwrap();
    println!("{}", String::from_utf8_lossy(&out.stdout));
}
