//! Asks the linker for packed relative relocations: they make the daemon some 60 KiB smaller, and a start faster.

fn main() {
    println!("cargo:rerun-if-changed=daemon/build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux") {
        // Linkers that do not know it say so and go on.
        println!("cargo:rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}
