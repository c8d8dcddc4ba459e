//! The module for NixOS, evaluated by Nix with stand-ins for nixpkgs. No NixOS is booted.

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
