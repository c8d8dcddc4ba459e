//! The configuration on the bus, and what the prompts of polkit say about a change.

use std::collections::HashMap;
use std::fs;
use std::process::Command;

use serde_json::{Value, json};
use zbus::{MessageStream, OwnedObjectPath, OwnedVariant, Variant};

use crate::support::described;
use crate::support::introspection;
use crate::support::polkit::Authority;
use crate::support::private_bus::{
    PrivateBus, USER, as_user, call, next, objects, property, quiet_devices, run,
};
use crate::support::{can_use_real_kernel, real_kernel_lock, skip, texts};
use service::action;
use service::bus::introspection::interfaces;
use service::{NAME, ROOT};

const MANAGER: &str = "org.zramd1.Manager";
const CONFIG: &str = "[defaults]
swap-priority = 7
[zram50]
enabled = false
zram-size = \"min(ram / 512, 64MiB)\"
compression-algorithm = [\"zstd(level=3)\", \"auto\"]
";

/// The rows of the property in the form of `cat-config --json`, without what the value is a number of.
fn rows(value: &OwnedVariant) -> Vec<Value> {
    let rows = described::json(value);
    let row = |row: &Value| {
        let [section, key, written, value, source, file, line] = &row.as_array().unwrap()[..] else {
            panic!("{row}")
        };
        json!({"section": section, "key": key, "written": written, "value": value, "source": source, "file": file, "line": line})
    };
    rows.as_array().unwrap().iter().map(row).collect()
}

#[test]
fn each_key_has_its_formula_its_value_and_its_place() {
    let _quiet = quiet_devices();
    let Some(bus) = PrivateBus::start_with(CONFIG) else { return };
    let file = bus.bus().config().display().to_string();
    let found = run(async {
        let client = bus.client().await;
        loop {
            // It is read a moment after the start.
            let found = rows(&property(&client, ROOT, MANAGER, "Configuration").await);
            if !found.is_empty() {
                return found;
            }
            tokio::task::yield_now().await;
        }
    });
    let row = |section: &str, key: &str| {
        let is_it = |row: &&Value| row["section"] == section && row["key"] == key;
        found.iter().find(is_it).unwrap_or_else(|| panic!("{section} {key} in {found:#?}"))
    };
    let memory = fs::read_to_string("/proc/meminfo").unwrap();
    let kib: u64 = memory.lines().next().unwrap().split_whitespace().nth(1).unwrap().parse().unwrap();
    let size = ((kib / 1024) << 11).min(64 << 20);
    let expected = json!({"section": "zram50", "key": "zram-size", "written": "\"min(ram / 512, 64MiB)\"", "value": size,
        "source": "file", "file": file, "line": 5});
    assert_eq!(row("zram50", "zram-size"), &expected);
    assert_eq!(row("zram50", "compression-algorithm")["value"], json!(["zstd(level=3)", "auto"]));
    assert_eq!(
        (&row("zram50", "swap-priority")["value"], &row("zram50", "swap-priority")["line"]),
        (&json!(7), &json!(2))
    );
    assert_eq!(
        (&row("zram50", "yield")["value"], &row("zram50", "yield")["source"]),
        (&json!(false), &json!("default"))
    );

    let mut cat = Command::new(env!("CARGO_BIN_EXE_zramdctl"));
    let output = cat.args(["--config", &file, "cat-config", "--json=short"]).output().unwrap();
    let mut document: Value = serde_json::from_str(&texts(&output).0).unwrap();
    let settings = document["settings"].as_array_mut().unwrap();
    for setting in &mut *settings {
        // `{"bytes": 5}` is 5 on the bus.
        setting["value"] = setting["value"].as_object().unwrap().values().next().unwrap().clone();
    }
    assert_eq!(&found, settings);
}

#[test]
fn a_changed_configuration_is_announced() {
    if !can_use_real_kernel() {
        return;
    }
    let _lock = real_kernel_lock();
    let Some(bus) = PrivateBus::start_with(CONFIG) else { return };
    run(async {
        let client = bus.client().await;
        let rule = format!("type='signal',sender='{NAME}',path='{ROOT}',member='PropertiesChanged'");
        let mut changes = MessageStream::for_match_rule(rule.as_str(), &client, None).await.unwrap();
        let changed = CONFIG.replace("swap-priority = 7", "swap-priority = 8");
        fs::write(bus.bus().config(), changed).unwrap();
        let options = HashMap::<String, OwnedVariant>::new();
        let _: OwnedObjectPath = call(&client, ROOT, "org.zramd1.Manager.Reload", &options).await.unwrap();
        loop {
            let message = next(&mut changes).await;
            let body = message.body();
            let (_, values, without): (String, HashMap<String, OwnedVariant>, Vec<String>) =
                body.deserialize().unwrap();
            assert!(!values.contains_key("Configuration"), "the value is large");
            // The first one may be that of the start.
            let found = rows(&property(&client, ROOT, MANAGER, "Configuration").await);
            let is_new = found.iter().any(|row| row["key"] == "swap-priority" && row["value"] == 8);
            if without == ["Configuration"] && is_new {
                return;
            }
        }
    });
}

#[test]
fn every_change_has_a_prompt_that_names_it() {
    let promised = interfaces().iter().flat_map(|(_, xml)| introspection::read(xml)).collect();
    for (interface, member, method) in introspection::mutating(promised) {
        let message = action::message(&interface, &member).unwrap_or_else(|| panic!("{interface}.{member}"));
        assert!(message.starts_with("Authentication is required to "), "{message}");
        let has = |kind: &str| method.incoming().iter().any(|argument| argument.kind == kind);
        let is_about = |name: &str| message.contains(&format!("$({name})"));
        match interface.as_str() {
            "org.zramd1.Device" | "org.zramd1.Swap" => assert!(is_about("device"), "{message}"),
            "org.zramd1.RamDisk" => assert!(is_about("ramdisk"), "{message}"),
            "org.zramd1.Manager" if has("s") => assert!(is_about("device"), "{message}"),
            "org.zramd1.Manager" if has("a{sa{sv}}") => assert!(is_about("change"), "{message}"),
            _ => {}
        }
        assert!(!["Resize", "SetMemoryLimit"].contains(&member.as_str()) || is_about("size"), "{message}");
    }
}

#[test]
fn a_prompt_names_device_and_change() {
    if !rustix::process::geteuid().is_root() {
        return skip("needs root, to be another user");
    }
    let _quiet = quiet_devices();
    let Some(bus) = PrivateBus::start() else { return };
    let authority = Authority::start(bus.address());
    let device =
        run(async { objects(&bus.client().await).await.into_keys().find(|path| path.contains("/device/")) });
    let denied = Err("org.freedesktop.DBus.Error.AccessDenied".to_owned());
    as_user(USER, &bus, async |client| {
        let none = HashMap::<&str, Variant<'_>>::new();
        let asks = async |path: &str, method: &str, arguments| {
            let refused: Result<OwnedObjectPath, String> = call(&client, path, method, &arguments).await;
            assert_eq!(refused, denied, "{method}");
            authority.prompt()
        };
        let prompt = asks(ROOT, "org.zramd1.Manager.RemoveDevice", ("/dev/zram4000000", none.clone())).await;
        assert_eq!(prompt, "Authentication is required to remove zram4000000.");
        let prompt = asks(ROOT, "org.zramd1.Manager.RemoveDevice", ("a $(size)\n\"b", none.clone())).await;
        assert_eq!(prompt, "Authentication is required to remove asizeb.");
        let keys = HashMap::from([("zram-size", Variant::from("ram / 2")), ("swap-priority", 5_i32.into())]);
        let sections = HashMap::from([("zram0", keys)]);
        let refused: Result<OwnedObjectPath, String> =
            call(&client, ROOT, "org.zramd1.Manager.Configure", &(sections, none.clone())).await;
        assert_eq!(refused, denied);
        let expected = "Authentication is required to change the configuration of compressed memory: \
                        zram0: swap-priority = 5, zram-size = \"ram / 2\"";
        assert_eq!(authority.prompt(), expected);
        let Some(device) = device else { return };
        let name = device.rsplit('/').next().unwrap();
        let refused: Result<OwnedObjectPath, String> =
            call(&client, &device, "org.zramd1.Device.Resize", &(3_u64 << 30, none.clone())).await;
        assert_eq!(refused, denied);
        let expected = format!("Authentication is required to change the size of {name} to 3.0 GiB.");
        assert_eq!(authority.prompt(), expected);
    });
}
