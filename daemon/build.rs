//! What the linker is asked for, to keep the programs small.

fn main() {
    println!("cargo:rerun-if-changed=daemon/build.rs");
    println!("cargo:rerun-if-changed=daemon/lean.ld");
    println!("cargo:rerun-if-changed=daemon/list.ld");
    if !std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux") {
        return;
    }
    // Packed relocations: the daemon is some 60 KiB smaller, and starts faster. Linkers that do not know them say so and go on.
    println!("cargo:rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    let folder = std::env::var("CARGO_MANIFEST_DIR").unwrap_or_default();
    if std::env::var("PROFILE").is_ok_and(|profile| profile == "release") {
        for (program, script) in [("zramd", "lean"), ("zramd-setup", "lean"), ("zramdctl", "list")] {
            println!("cargo:rustc-link-arg-bin={program}=-Wl,-T,{folder}/daemon/{script}.ld");
        }
        link_unwinder();
    }
}

/// What the compiler's `-static-libgcc` does for C: the few functions that a panic needs become part of the programs, instead of a
/// library that is loaded at every start. It comes with every GCC; where there is none, the library is loaded.
fn link_unwinder() {
    let linker = std::env::var("RUSTC_LINKER").unwrap_or_else(|_| "cc".to_owned());
    let answer = std::process::Command::new(linker).arg("-print-file-name=libgcc_eh.a").output();
    let path =
        answer.map(|answer| String::from_utf8_lossy(&answer.stdout).trim().to_owned()).unwrap_or_default();
    let path = std::path::Path::new(&path);
    if let (true, Some(folder)) = (path.is_file(), path.parent()) {
        println!("cargo:rustc-link-search=native={}", folder.display());
        println!("cargo:rustc-link-lib=static:-bundle=gcc_eh");
    }
}
