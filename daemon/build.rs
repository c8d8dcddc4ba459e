//! What the linker is asked for, to keep the programs small.

fn main() {
    println!("cargo:rerun-if-changed=daemon/build.rs");
    println!("cargo:rerun-if-changed=daemon/lean.ld");
    if !std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux") {
        return;
    }
    // Packed relocations: the daemon is some 60 KiB smaller, and starts faster. Linkers that do not know them say so and go on.
    println!("cargo:rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    let folder = std::env::var("CARGO_MANIFEST_DIR").unwrap_or_default();
    if std::env::var("PROFILE").is_ok_and(|profile| profile == "release") {
        for program in ["zramd", "zramd-setup"] {
            println!("cargo:rustc-link-arg-bin={program}=-Wl,-T,{folder}/daemon/lean.ld");
        }
    }
}
