//! What a caller without root can do with each polkit action: every method with every action, and every key.

use std::collections::HashMap;
use std::fs;

use logic::config::schema::SectionKind;
use service::ROOT;
use service::bus::introspection::interfaces;
use zbus::{Connection, OwnedObjectPath, OwnedVariant, Variant};

use crate::support::eventually;
use crate::support::introspection::{self, mutating};
use crate::support::polkit::Authority;
use crate::support::private_bus::{USER, as_user, call, run};
use crate::support::session::{Session, machine};
use crate::support::verdict::Verdict;

const DENIED: &str = "org.freedesktop.DBus.Error.AccessDenied";
const INVALID: &str = "org.zramd1.Error.InvalidArgument";
const UNSAFE: &str = "org.zramd1.Error.Unsafe";

const TUNE: &str = "org.zramd1.tune";
const MANAGE: &str = "org.zramd1.manage";
const CONFIGURE: &str = "org.zramd1.configure";
const SAVE_RAMDISK: &str = "org.zramd1.save-ramdisk";
const RESTORE_RAMDISK: &str = "org.zramd1.restore-ramdisk";
const BENCHMARK: &str = "org.zramd1.benchmark";
const ACTIONS: [&str; 6] = [TUNE, MANAGE, CONFIGURE, SAVE_RAMDISK, RESTORE_RAMDISK, BENCHMARK];

/// Every changing method: interface, name, the action that allows it.
const METHODS: [(&str, &str, &str); 27] = [
    ("Benchmark", "Adopt", BENCHMARK),
    ("Benchmark", "Forget", BENCHMARK),
    ("Benchmark", "Run", BENCHMARK),
    ("Device", "Compact", TUNE),
    ("Device", "MarkIdle", TUNE),
    ("Device", "Recompress", TUNE),
    ("Device", "ResetPeak", TUNE),
    ("Device", "Resize", MANAGE),
    ("Device", "SetMemoryLimit", MANAGE),
    ("Device", "Writeback", TUNE),
    ("Job", "Cancel", MANAGE),
    ("Manager", "ActivateDevice", MANAGE),
    ("Manager", "Configure", CONFIGURE),
    ("Manager", "CreateDevice", MANAGE),
    ("Manager", "Maintain", TUNE),
    ("Manager", "PlanConfigure", MANAGE),
    ("Manager", "Reload", MANAGE),
    ("Manager", "RemoveDevice", MANAGE),
    ("Manager", "UnsetOverride", MANAGE),
    ("RamDisk", "DeleteSnapshot", RESTORE_RAMDISK),
    ("RamDisk", "Pin", RESTORE_RAMDISK),
    ("RamDisk", "Resize", MANAGE),
    ("RamDisk", "Restore", RESTORE_RAMDISK),
    ("RamDisk", "Save", SAVE_RAMDISK),
    ("RamDisk", "Verify", SAVE_RAMDISK),
    ("Swap", "Activate", MANAGE),
    ("Swap", "Deactivate", MANAGE),
];

/// Keys whose values amount to running code as root are not among these.
const DEVICE: [&str; 8] = [
    "zram-size",
    "zram-fraction",
    "max-zram-size",
    "host-memory-limit",
    "zram-resident-limit",
    "compression-algorithm",
    "recompression-algorithm",
    "swap-priority",
];
const RAMDISK: [&str; 4] = ["size", "inodes", "zram-resident-limit", "compression-algorithm"];

type Options = HashMap<String, OwnedVariant>;

fn options(key: &str, value: impl Into<Variant<'static>>) -> Options {
    HashMap::from([(key.to_owned(), value.into().try_into().unwrap())])
}

/// `PlanConfigure` or `Configure` with one key of a section.
async fn configure(
    client: &Connection,
    method: &str,
    section: &str,
    keys: Options,
    runtime: bool,
) -> Result<(), String> {
    let sections = HashMap::from([(section.to_owned(), keys)]);
    let method = format!("org.zramd1.Manager.{method}");
    let arguments = (sections, options("runtime", runtime));
    if method.ends_with("PlanConfigure") {
        call::<_, Vec<(String, String, String)>>(client, ROOT, &method, &arguments).await.map(drop)
    } else {
        call::<_, OwnedObjectPath>(client, ROOT, &method, &arguments).await.map(drop)
    }
}

/// A session with a swap and a RAM disk, in which polkit decides; and their verdict.
fn begin() -> Option<(Session, Authority, tempfile::TempDir)> {
    let directory = tempfile::tempdir().unwrap();
    let disk = directory.path().join("scratch");
    let session = Session::begin(&format!(
        "[zram0]\nzram-size = \"16MiB\"\n[ramdisk.scratch]\nmount-point = \"{}\"\nsize = \"4MiB\"\n",
        disk.display()
    ))?;
    session.ok(&["reload"]);
    let authority = Authority::start(session.bus().address());
    Some((session, authority, directory))
}

#[test]
fn each_method_takes_its_own_action_only() {
    let Some((session, authority, _directory)) = begin() else { return };
    // `Forget` removes it.
    let _verdict = Verdict::none();
    let interfaces = interfaces();
    let promised = interfaces.iter().flat_map(|(_, xml)| introspection::read(xml)).collect();
    let changing = mutating(promised);
    let known: Vec<String> =
        METHODS.iter().map(|(interface, member, _)| format!("org.zramd1.{interface}.{member}")).collect();
    let found: Vec<String> =
        changing.iter().map(|(interface, member, _)| format!("{interface}.{member}")).collect();
    assert_eq!(known, found, "every method has its line in the table");
    let before = machine();
    let job: OwnedObjectPath = run(async {
        let client = session.bus().client().await;
        call(&client, ROOT, "org.zramd1.Manager.Reload", &Options::new()).await.unwrap()
    });
    eventually("the job has ended", || machine() == before);
    for held in ACTIONS {
        authority.allow(&[held]);
        for ((interface, member, needed), (_, _, method)) in METHODS.iter().zip(&changing) {
            let path = match *interface {
                "Manager" => ROOT,
                "Benchmark" => "/org/zramd1/benchmark",
                "RamDisk" => "/org/zramd1/ramdisk/scratch",
                "Job" => job.as_str(),
                _ => "/org/zramd1/device/zram0",
            };
            let kinds: String = method.incoming().iter().map(|argument| argument.kind.as_str()).collect();
            let name = format!("org.zramd1.{interface}.{member}");
            // An allowed call changes nothing: its option is wrong, or it has none and is harmless.
            let wrong = || options(if *member == "CreateDevice" { "name" } else { "no-such-option" }, 5);
            let result = as_user(USER, session.bus(), async |client| {
                let (client, name) = (&client, name.as_str());
                match kinds.as_str() {
                    "" => call::<_, ()>(client, path, name, &()).await,
                    "t" => call::<_, ()>(client, path, name, &0_u64).await,
                    "a{sv}" => call::<_, OwnedObjectPath>(client, path, name, &wrong()).await.map(drop),
                    "sa{sv}" => {
                        call::<_, OwnedObjectPath>(client, path, name, &("zram0", wrong())).await.map(drop)
                    }
                    "ta{sv}" => {
                        call::<_, OwnedObjectPath>(client, path, name, &(1_u64, wrong())).await.map(drop)
                    }
                    "tba{sv}" => call::<_, OwnedObjectPath>(client, path, name, &(1_u64, true, wrong()))
                        .await
                        .map(drop),
                    "a{sa{sv}}a{sv}" => {
                        configure(client, member, "zram0", options("swap-priority", "wrong"), true).await
                    }
                    other => panic!("{name} takes {other}: what is a harmless call?"),
                }
            });
            if needed == &held {
                assert_ne!(result, Err(DENIED.to_owned()), "{name} with {held}");
            } else {
                assert_eq!(result, Err(DENIED.to_owned()), "{name} with {held}");
            }
        }
        assert_eq!(machine(), before, "{held}");
    }
}

#[test]
fn no_action_lets_a_user_assign_a_key_that_amounts_to_root() {
    let Some((session, authority, directory)) = begin() else { return };
    let before = machine();
    let bus = session.bus();
    let victim = directory.path().join("victim");
    fs::create_dir(&victim).unwrap();
    // A value that every key that a user may assign refuses, so that nothing changes.
    let wrong = "!";
    let mut tried = 0;
    for held in [MANAGE, CONFIGURE] {
        authority.allow(&[held]);
        for (section, kind) in [
            ("zram0", SectionKind::Device),
            ("zram5", SectionKind::Device),
            ("defaults", SectionKind::Defaults),
            ("ramdisk.scratch", SectionKind::Ramdisk),
            ("ramdisk.other", SectionKind::Ramdisk),
            ("vm", SectionKind::Vm),
            ("maintenance", SectionKind::Maintenance),
            ("benchmark", SectionKind::Benchmark),
        ] {
            for key in kind.keys() {
                let key = key.name;
                let is_open = match kind {
                    SectionKind::Device | SectionKind::Defaults => DEVICE.contains(&key),
                    SectionKind::Ramdisk => RAMDISK.contains(&key),
                    _ => false,
                };
                let cell = format!("{held} [{section}] {key}");
                as_user(USER, bus, async |client| {
                    let client = &client;
                    let try_it = async |method, runtime| {
                        configure(client, method, section, options(key, wrong), runtime).await
                    };
                    let created = if section == "zram5" {
                        let all = [options("name", section), options(key, wrong)].into_iter().flatten();
                        let all: Options = all.collect();
                        let method = "org.zramd1.Manager.CreateDevice";
                        Some(call::<_, OwnedObjectPath>(client, ROOT, method, &all).await.map(drop))
                    } else {
                        None
                    };
                    let (denied, refused) = (Err(DENIED.to_owned()), Err(UNSAFE.to_owned()));
                    for runtime in [false, true] {
                        let plan = try_it("PlanConfigure", runtime).await;
                        let change = try_it("Configure", runtime).await;
                        if held == MANAGE {
                            assert_eq!(change, denied, "Configure {cell}");
                        } else {
                            assert_eq!(plan, denied, "PlanConfigure {cell}");
                            assert_eq!(change == refused, !is_open, "Configure {cell}: {change:?}");
                        }
                        if held == MANAGE && !runtime {
                            assert_eq!(plan == refused, !is_open, "PlanConfigure {cell}: {plan:?}");
                        }
                        // `enabled` is what RemoveDevice assigns. Names with a dot, in [maintenance], are refused earlier.
                        if held == MANAGE && runtime && key != "enabled" && !key.contains('.') {
                            assert_eq!(plan == denied, !is_open, "PlanConfigure {cell}: {plan:?}");
                        }
                    }
                    if let Some(created) = created {
                        let expected = if held == MANAGE && is_open { INVALID } else { DENIED };
                        assert_eq!(created, Err(expected.to_owned()), "CreateDevice {cell}");
                    }
                });
                tried += 1;
            }
        }
        // A dictionary is a file that root reads.
        for key in ["compression-algorithm", "recompression-algorithm"] {
            let keys = || options(key, vec!["lz4", "zstd(dict=/etc/shadow)"]);
            as_user(USER, bus, async |client| {
                let method = "org.zramd1.Manager.CreateDevice";
                let created = call::<_, OwnedObjectPath>(&client, ROOT, method, &keys()).await;
                assert_eq!(created, Err(DENIED.to_owned()), "{held} {key}");
                for (method, runtime) in [
                    ("Configure", false),
                    ("Configure", true),
                    ("PlanConfigure", false),
                    ("PlanConfigure", true),
                ] {
                    let result = configure(&client, method, "zram0", keys(), runtime).await;
                    assert!(
                        [DENIED, UNSAFE].map(|name| Err(name.to_owned())).contains(&result),
                        "{key}: {result:?}"
                    );
                }
            });
        }
    }
    println!("{tried} keys tried");

    // The whole attack: a directory of root becomes the user's, with set-user-ID programs.
    authority.allow(&ACTIONS);
    let attack: Options = [
        ("zram-size", "16MiB".to_owned()),
        ("mount-point", victim.display().to_string()),
        ("owner", USER.to_string()),
        ("options", "suid,dev,exec".to_owned()),
        ("mkfs-options", "-d /root".to_owned()),
    ]
    .into_iter()
    .flat_map(|(key, value)| options(key, value))
    .collect();
    let create = "org.zramd1.Manager.CreateDevice";
    let tried = attack.clone();
    let refused = as_user(USER, bus, async |client| {
        let call =
            client.call_method(Some("org.zramd1"), ROOT, Some("org.zramd1.Manager"), "CreateDevice", &tried);
        call.await.unwrap_err().to_string()
    });
    for part in ["`mount-point`", "`owner`", "`options`", "`mkfs-options`", "as root", "zram-size"] {
        assert!(refused.contains(part), "{part}: {refused}");
    }
    assert_eq!(machine(), before);
    assert!(!fs::read_to_string("/proc/self/mounts").unwrap().contains(victim.to_str().unwrap()));

    // What is left to the user: swap. And root may use every key.
    let swap = as_user(USER, bus, async |client| {
        call::<_, OwnedObjectPath>(&client, ROOT, create, &options("zram-size", "16MiB")).await.unwrap()
    });
    session.ok(&["remove", swap.rsplit('/').next().unwrap()]);
    let mounted =
        session.ok(&["create", "-s", "16MiB", "-m", victim.to_str().unwrap(), "--set", "options=nosuid"]);
    session.ok(&["remove", "--force", &mounted]);
    assert_eq!(machine(), before);
}
