//! Package and module for NixOS, built and evaluated by Nix with stand-ins for nixpkgs. No NixOS is booted.

use std::fs;
use std::path::Path;

use crate::apart::outside;
use crate::support::{has_program, repository, skip, texts};
use logic::config::load;
use serde_json::{Value, json};

/// What the module uses of nixpkgs. The example of an option is its text.
const STAND_INS: &str = r#"
  lib = {
    mkEnableOption = description: { inherit description; };
    mkOption = option: option;
    mkIf = condition: content: if condition then content else { };
    literalExpression = text: text;
    types.package = "package";
  };
  pkgs.formats.toml = { }: { type = "TOML"; generate = name: value: { inherit name value; }; };
  module = other: import MODULE {
    inherit lib pkgs;
    config = {
      zramSwap.enable = other;
      services.zram-generator.enable = false;
      services.zramd = { enable = true; package = "zramd"; settings.zram0.zram-size = "1GiB"; };
    };
  };
"#;

/// The value of an expression in which `module` is the module. `None` if Nix is missing.
fn evaluated(expression: &str) -> Option<Value> {
    if !has_program("nix-instantiate") {
        skip("needs nix-instantiate (Debian: nix-bin)");
        return None;
    }
    let module = repository("packaging/nix/module.nix");
    let stand_ins = STAND_INS.replace("MODULE", module.to_str().unwrap());
    let home = tempfile::tempdir().unwrap();
    let mut command = outside("nix-instantiate");
    // Without a store, nothing outside of the directory is written.
    command
        .args(["--store", "dummy://", "--eval", "--strict", "--json", "--expr"])
        .arg(format!("let {stand_ins} in {expression}"))
        .env("HOME", home.path())
        .env("NIX_STATE_DIR", home.path());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", texts(&output).1);
    Some(serde_json::from_slice(&output.stdout).unwrap())
}

/// A value as TOML.
fn toml(value: &Value) -> String {
    match value {
        Value::Object(fields) => {
            let fields: Vec<String> =
                fields.iter().map(|(name, value)| format!("{name} = {}", toml(value))).collect();
            format!("{{ {} }}", fields.join(", "))
        }
        other => other.to_string(),
    }
}

#[test]
fn the_module_installs_the_package_and_writes_the_settings() {
    let Some(config) = evaluated("(module false).config") else { return };
    let file = json!({ "name": "zramd.toml", "value": { "zram0": { "zram-size": "1GiB" } } });
    assert_eq!(config["environment"]["etc"]["zramd/zramd.toml"]["source"], file);
    for place in [
        "/environment/systemPackages",
        "/services/dbus/packages",
        "/services/udev/packages",
        "/systemd/packages",
    ] {
        assert_eq!(config.pointer(place), Some(&json!(["zramd"])), "{place}");
    }
    let daemon = &config["systemd"]["services"]["zramd"];
    assert_eq!(
        (&daemon["wantedBy"], &daemon["reloadTriggers"]),
        (&json!(["multi-user.target"]), &json!([file]))
    );
    assert_eq!(config["assertions"][0]["assertion"], true);
    let beside_another = evaluated("builtins.map (a: a.assertion) (module true).config.assertions");
    assert_eq!(beside_another, Some(json!([false])));
}

#[test]
fn the_example_of_the_module_has_no_mistakes() {
    let Some(example) = evaluated("(module false).options.services.zramd.settings.example") else { return };
    let settings = evaluated(example.as_str().unwrap()).unwrap();
    let sections = settings.as_object().unwrap().iter();
    let file: String = sections.map(|(name, value)| format!("{name} = {}\n", toml(value))).collect();
    let loaded = load(&[("zramd.toml".into(), file.clone())], "");
    assert_eq!(loaded.problems, [], "{file}");
    assert!(!loaded.settings.devices.is_empty() && !loaded.settings.ramdisks.is_empty(), "{file}");
}

/// What the package uses of nixpkgs. The programs are not compiled, because Nix has no Rust here: empty scripts are installed.
const BUILD: &str = r#"
  let
    lib.cleanSource = path: builtins.path {
      inherit path;
      name = "source";
      filter = path: type: !builtins.elem (baseNameOf path) [ ".git" "target" "tests" ];
    };
    lib.licenses = { mit = "MIT"; asl20 = "Apache-2.0"; };
    lib.platforms.linux = [ builtins.currentSystem ];
    rustPlatform.buildRustPackage = args: derivation {
      name = "${args.pname}-${args.version}";
      inherit (args) src postPatch installPhase;
      system = builtins.currentSystem;
      builder = "/bin/sh";
      args = [ "-euc" ''
        PATH=/usr/bin:/bin
        cp -r "$src" tree && chmod -R u+w tree && cd tree
        runHook() { :; }
        patchShebangs() { :; }
        substituteInPlace() {
            file=$1
            shift
            while [ $# -gt 0 ]; do
                [ "$1" = --replace-fail ] || exit 1
                python3 -c 'import sys
        path, old, new = sys.argv[1:]
        text = open(path).read()
        assert old in text, old
        open(path, "w").write(text.replace(old, new))' "$file" "$2" "$3"
                shift 3
            done
        }
        mkdir -p target/release
        for program in zramd zramdctl zramd-setup zramd-worker; do
            printf '#!/bin/sh\n' >target/release/$program
            chmod 755 target/release/$program
        done
        eval "$postPatch"
        eval "$installPhase"
        mkdir "$out/patched"
        cp daemon/logic/unit/ramdisk.rs daemon/host/linux/process.rs daemon/host/linux/mkfs.rs "$out/patched"
      '' ];
    };
  in import PACKAGE { inherit lib rustPlatform; coreutils = "/coreutils"; systemd = "/systemd"; }
"#;

#[test]
fn the_package_has_its_paths_in_its_output() {
    if !has_program("nix-build") {
        return skip("needs nix-build (Debian: nix-bin)");
    }
    let place = tempfile::tempdir().unwrap();
    let package = repository("packaging/nix/zramd.nix");
    let mut command = outside("nix-build");
    command
        .args(["--no-out-link", "--option", "sandbox", "false", "--option", "build-users-group", ""])
        .args(["--option", "substitute", "false", "--expr"])
        .arg(BUILD.replace("PACKAGE", package.to_str().unwrap()))
        .env("HOME", place.path());
    for (name, directory) in [("STORE", "store"), ("STATE", "state"), ("LOG", "log"), ("CONF", "conf")] {
        command.env(format!("NIX_{name}_DIR"), place.path().join(directory));
    }
    let built = command.output().unwrap();
    assert!(built.status.success(), "{}", texts(&built).1);
    let out = texts(&built).0.trim().to_owned();
    let text = |path: &str| fs::read_to_string(Path::new(&out).join(path)).unwrap();
    for unit in fs::read_dir(Path::new(&out).join("lib/systemd/system")).unwrap() {
        let unit = unit.unwrap().path();
        if unit.is_dir() {
            continue;
        }
        for line in fs::read_to_string(&unit).unwrap().lines().filter(|line| line.starts_with("Exec")) {
            assert!(!line.contains("/usr/"), "{}: {line}", unit.display());
        }
    }
    let daemon = text("lib/systemd/system/zramd.service");
    assert!(daemon.contains(&format!("ExecStart={out}/lib/zramd/zramd\n")), "{daemon}");
    assert!(daemon.contains("ExecStartPre=-+/coreutils/bin/mkdir -p /etc/zramd"), "{daemon}");
    assert!(text("patched/ramdisk.rs").contains(&format!("\"{out}/lib/zramd/zramd-worker places\"")));
    assert!(text("patched/process.rs").contains(&format!("Path::new(\"{out}/lib/zramd\")")));
    assert!(text("patched/mkfs.rs").contains("/run/current-system/sw/bin:"));
    for program in ["bin/zramdctl", "lib/systemd/system-generators/zramd-generator", "lib/zramd/zramd"] {
        assert!(Path::new(&out).join(program).is_file(), "{program}");
    }
    // The store is read-only, and the temporary directory is removed.
    assert!(outside("chmod").args(["-R", "u+w"]).arg(place.path()).status().unwrap().success());
}
