//! The configuration pipeline against the acceptance cases of zram-generator, and its messages against golden files.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::{golden, mistake, repository};
use logic::config::key::Key;
use logic::config::schema::SectionKind;
use logic::config::settings::PageSource;
use logic::config::{self, Loaded, schema, settings};
use logic::exit::ExitStatus;
use logic::facts::Facts;
use logic::finding::Level;
use logic::plan::{self, Activation, Decision, Plan};
use logic::proc::Memory;
use logic::record::Target;
use logic::render;
use logic::request::{Purpose, Request};
use proptest::prelude::*;

pub(super) fn load(texts: &[&str]) -> Loaded {
    load_with("", texts)
}

fn load_with(cmdline: &str, texts: &[&str]) -> Loaded {
    let files: Vec<(PathBuf, String)> = texts
        .iter()
        .enumerate()
        .map(|(index, text)| (format!("{index}.toml").into(), (*text).to_owned()))
        .collect();
    config::load(&files, cmdline)
}

fn machine(mem_total_kib: u64) -> Facts {
    Facts {
        memory: Memory { total_kib: mem_total_kib, available_kib: mem_total_kib, ..Memory::default() },
        cpus: 4,
        page_size: 4096,
        ..Facts::default()
    }
}

fn planned(mem_total_kib: u64, loaded: &Loaded) -> Plan {
    plan::plan(&loaded.settings, loaded.problems.clone(), &machine(mem_total_kib), Activation::Direct)
}

/// Size of a device: `Some(bytes)` if it has one (planned or refused), `None` if it is left out.
fn size(plan: &Plan, number: u32) -> Option<u64> {
    let item = plan.item(&Target::Device(number))?;
    match (&item.request, item.decision) {
        (_, Decision::Skipped) => None,
        (Some(Request::Device(request)), _) => Some(request.disk_size),
        _ => None,
    }
}

#[test]
fn the_example_file_shows_every_key_and_is_current() {
    golden("config/zramd.toml", &schema::example_file());
    let loaded = load(&[&schema::example_file()]);
    assert_eq!(loaded, load(&[""]), "everything in it is a comment");
}

#[test]
fn every_example_value_is_accepted_by_the_key_it_belongs_to() {
    for (kind, key) in keys() {
        let loaded = load(&[&format!("{}{} = {}\n", context(kind, key.name), key.name, key.example)]);
        assert_eq!(loaded.problems, [], "{}", key.name);
    }
}

/// Every key gets a date, which no key accepts: a key that is not parsed would cause no error.
#[test]
fn every_key_is_read() {
    for (kind, key) in keys() {
        let before = context(kind, key.name);
        let loaded = load(&[&format!("{before}{} = 2020-01-01\n", key.name)]);
        let line = u32::try_from(before.lines().count()).unwrap() + 1;
        let found =
            loaded.problems.iter().any(|problem| problem.level == Level::Error && problem.line() == line);
        assert!(found, "{}: {:?}", key.name, loaded.problems);
    }
}

/// The default in the table is that of the parser.
#[test]
fn writing_the_default_changes_nothing() {
    for (kind, key) in keys() {
        let Some(default) = key.default.value() else { continue };
        assert!(key.kind.accepts(&default), "{}", key.name);
        let before = context(kind, key.name);
        let (without, with) =
            (load(&[&before]), load(&[&format!("{before}{} = {}\n", key.name, key.default)]));
        assert_eq!((&with.problems, &without.problems), (&vec![], &vec![]), "{}", key.name);
        // Permissions that are written down are meant.
        let plain = |settings: &settings::Settings| {
            without_places(&format!("{settings:?}")).replace("unset: false", "unset: true")
        };
        assert_eq!(plain(&with.settings), plain(&without.settings), "{}", key.name);
    }
}

/// The settings as text, without the places of the values.
fn without_places(settings: &str) -> String {
    let mut out = String::new();
    let mut parts = settings.split("Origin {");
    out.push_str(parts.next().unwrap());
    for part in parts {
        out.push_str(part.split_once("width:").unwrap().1.split_once('}').unwrap().1);
    }
    out
}

pub(super) fn keys() -> impl Iterator<Item = (SectionKind, &'static Key)> {
    let kinds = SectionKind::ALL.into_iter().filter(|kind| *kind != SectionKind::Defaults);
    kinds.flat_map(|kind| kind.keys().iter().map(move |key| (kind, *key)))
}

/// A valid file to which a key can be added.
pub(super) fn context(kind: SectionKind, key: &str) -> String {
    match (kind, key) {
        (SectionKind::Ramdisk, "mount-point") => "[ramdisk.a]\n",
        (
            SectionKind::Ramdisk,
            "fs-type"
            | "compression-algorithm"
            | "zram-device"
            | "zram-resident-limit"
            | "force-resident-limit",
        ) => "[ramdisk.a]\nmount-point = \"/a\"\nbackend = \"zram\"\n",
        (
            SectionKind::Ramdisk,
            "save-interval" | "keep" | "store" | "store-limit" | "daily-budget" | "on-failure" | "seed"
            | "pre-save" | "post-restore" | "hook-time-limit" | "time-limit",
        ) => "[ramdisk.a]\nmount-point = \"/a\"\npersist = \"snapshot\"\n",
        (SectionKind::Benchmark, _) => "[benchmark]\n",
        (SectionKind::Ramdisk, _) => "[ramdisk.a]\nmount-point = \"/a\"\n",
        (_, "writeback-size" | "writeback-encryption") => "[zram0]\nwriteback-file = \"/a\"\n",
        (SectionKind::Vm, "tune") => "[vm]\n",
        (SectionKind::Zswap, "enabled") => "[zswap]\n",
        (SectionKind::Zswap, _) => "[zswap]\nenabled = true\n",
        (SectionKind::Vm, _) => "[vm]\ntune = true\n",
        (SectionKind::Maintenance, name) if name.ends_with(".enabled") => {
            "[zram0]\nwriteback-device = \"/a\"\n[maintenance]\n"
        }
        (SectionKind::Maintenance, name) if name.starts_with("writeback.") && name != "writeback.device" => {
            "[zram0]\nwriteback-device = \"/a\"\n[maintenance]\nwriteback.enabled = true\n"
        }
        (SectionKind::Maintenance, name) if name.starts_with("recompress.") => {
            "[zram0]\n[maintenance]\nrecompress.enabled = true\n"
        }
        (SectionKind::Maintenance, name) if name.starts_with("pressure.") => {
            "[zram0]\n[maintenance]\npressure.enabled = true\n"
        }
        (SectionKind::Maintenance, _) => "[zram0]\n[maintenance]\n",
        (_, "mode" | "owner" | "group" | "mkfs-options" | "force-resident-limit") => {
            "[zram0]\nmount-point = \"/a\"\n"
        }
        _ => "[zram0]\n",
    }
    .to_owned()
}

type SizeCase = (&'static str, u64, &'static str, &'static [(u32, Option<u64>)]);

/// RAM in KiB, configuration, and the expected size of each device (`None`: left out). The cases are those of
/// zram-generator's own fixtures (F) and of probes of it (P), written as TOML.
const SIZES: &[SizeCase] = &[
    ("F01", 801_322, "[zram0]", &[(0, Some(409_993_216))]),
    ("F03", 8_013_220, "[zram0]\nhost-memory-limit = 7824", &[(0, None)]),
    ("F06", 8_013_220, "[zram0]", &[(0, Some(4_102_553_600))]),
    ("F08", 801_322, "[zram11]\nfs-type = \"ext2\"", &[(11, Some(409_993_216))]),
    (
        "F09",
        801_322,
        "[zram0]\nzram-size = \"min(0.75 * ram, 6000)\"\nhost-memory-limit = 2050\n\
      compression-algorithm = \"zstd(dict=/etc/gaming, level=9)\"",
        &[(0, Some(614_989_824))],
    ),
    (
        "F10",
        801_322,
        "[zram0]\nhost-memory-limit = 9048\nzram-size = \"min(ram/10, 2048)\"\n\
      zram-resident-limit = \"8*1024*3/4\"\ncompression-algorithm = \"lzo-rle\"\n\
      recompression-algorithm = \"zstd(level=3)\"\noptions = \"\"\n\
      [zram1]\nzram-size = \"ram/10\"\nfs-type = \"ext2\"\nmount-point = \"/run/compressed-mount-point\"",
        &[(0, Some(81_998_643)), (1, Some(81_998_643))],
    ),
    (
        "F11",
        801_322,
        "[zram0]\nzram-fraction = 0.10\nmax-zram-size = 2048\nhost-memory-limit = 100000\n\
      [zram1]\nzram-fraction = 0.10\nmax-zram-size = \"none\"\nhost-memory-limit = \"none\"\n\
      [zram2]\nhost-memory-limit = 1",
        &[(0, Some(81_788_928)), (1, Some(81_788_928)), (2, None)],
    ),
    ("P01", 1_048_576, "[zram0]", &[(0, Some(536_870_912))]),
    ("P02", 16_384_000, "[zram0]", &[(0, Some(4_294_967_296))]),
    ("P03", 16_384_000, "[zram0]\nzram-size = \"min(ram, 8192)\"", &[(0, Some(8_589_934_592))]),
    ("P04", 4_028_000, "[zram0]\nzram-size = \"min(ram, 8192)\"", &[(0, Some(4_124_049_408))]),
    ("P05", 32_768_000, "[zram0]\nzram-size = \"ram/2\"\nfs-type = \"swap\"", &[(0, Some(16_777_216_000))]),
    ("P07", 5_120_000, "[zram0]\nzram-size = 500000", &[(0, Some(524_288_000_000))]),
    ("P08a", 8_013_220, "[zram0]\nzram-size = 0.5", &[(0, Some(524_288))]),
    ("P08b", 8_013_220, "[zram0]\nzram-size = 0.000001", &[(0, Some(1))]),
    ("P08c", 8_013_220, "[zram0]\nzram-size = 0", &[(0, None)]),
    ("P12a", 16_384_000, "[zram0]\nzram-fraction = 1.0", &[(0, Some(16_777_216_000))]),
    ("P12b", 16_384_000, "[zram0]\nmax-zram-size = 1000", &[(0, Some(1_048_576_000))]),
    ("P12c", 16_384_000, "[zram0]\nmax-zram-size = \"none\"", &[(0, Some(8_388_608_000))]),
    ("P14a", 8_012_800, "[zram0]\nhost-memory-limit = 7825", &[(0, Some(4_102_553_600))]),
    ("P14b", 8_012_800, "[zram0]\nhost-memory-limit = 7824", &[(0, None)]),
    (
        "units",
        16_384_000,
        "[zram0]\nzram-size = \"4GiB\"\n[zram1]\nzram-size = \"50%\"",
        &[(0, Some(4 << 30)), (1, Some(8_388_608_000))],
    ),
    ("cap", 16_384_000, "[zram0]\nzram-size = \"ram\"\nmax-zram-size = \"8GiB\"", &[(0, Some(8 << 30))]),
    ("off", 16_384_000, "[zram0]\nenabled = false\n[zram1]", &[(0, None), (1, Some(4 << 30))]),
    (
        "defaults",
        16_384_000,
        "[defaults]\nzram-size = \"1GiB\"\n[zram0]\n[zram1]\nzram-fraction = 0.5",
        &[(0, Some(1 << 30)), (1, Some(8_388_608_000))],
    ),
];

#[test]
fn sizes_are_those_of_zram_generator_to_the_byte() {
    for (id, ram, text, expected) in SIZES {
        let loaded = load(&[text]);
        assert_eq!(loaded.problems, [], "{id}");
        let plan = planned(*ram, &loaded);
        for (number, bytes) in *expected {
            assert_eq!(size(&plan, *number), *bytes, "{id} zram{number}");
        }
    }
}

#[test]
fn f02_a_resident_limit_is_kept_to_the_byte() {
    let loaded = load(&[
        "[zram0]\nzram-resident-limit = 9999\ncompression-algorithm = \"zstd\"\nzram-size = \"ram*0.75\"",
    ]);
    let plan = planned(801_322, &loaded);
    let Some(Request::Device(request)) = &plan.items[0].request else { panic!("{plan:?}") };
    assert_eq!((request.disk_size, request.memory_limit), (614_989_824, 10_484_711_424));
    let loaded = load(&["[zram0]\nzram-resident-limit = \"ram/4\""]);
    let plan = planned(8_013_220, &loaded);
    let Some(Request::Device(request)) = &plan.items[0].request else { panic!("{plan:?}") };
    assert_eq!(request.memory_limit, 2_051_276_800, "P20");
}

#[test]
fn f04_drop_ins_override_per_key_in_the_order_they_are_given() {
    let loaded = load(&[
        "[zram0]",
        "[zram0]\nhost-memory-limit = 1234",
        "[zram0]\nhost-memory-limit = 1235",
        "[zram2]\nzram-size = \"ram*0.8\"\nswap-priority = 200\noptions = \"\"",
    ]);
    let plan = planned(801_322, &loaded);
    assert_eq!((size(&plan, 0), size(&plan, 2), plan.items.len()), (Some(409_993_216), Some(655_989_145), 2));
    let Some(Request::Device(request)) = &plan.items[1].request else { panic!("{plan:?}") };
    assert_eq!(request.purpose, Purpose::Swap { priority: 200, options: String::new() });
    let limit = &loaded.merged.sections["zram0"].keys["host-memory-limit"];
    assert_eq!(limit.origin.file, Path::new("2.toml"), "the origin of the assignment that won");
    let refused = planned(1236 * 1024, &loaded);
    assert_eq!(refused.items[0].decision, Decision::Skipped);
}

#[test]
fn f05_f06_p30_to_p32_the_kernel_command_line_decides() {
    assert!(load_with("a systemd.zram=0", &["[zram0]"]).settings.devices.is_empty());
    // Mistakes are reported all the same.
    assert_eq!(load_with("systemd.zram=0", &["[zram0]\nno-such-key = 1"]).problems.len(), 1);
    let forced = planned(8_013_220, &load_with("a\nsystemd.zram\nb", &[]));
    assert_eq!(size(&forced, 0), Some(4_102_553_600));
    let both = planned(8_013_220, &load_with("systemd.zram=1", &["[zram1]"]));
    assert_eq!((size(&both, 0), size(&both, 1)), (Some(4_102_553_600), Some(4_102_553_600)));
    let limited = planned(8_013_220, &load_with("systemd.zram=on", &["[zram0]\nhost-memory-limit = 100"]));
    assert_eq!(size(&limited, 0), None);
}

#[test]
fn f07_mount_points_are_normalised() {
    for (written, expected) in [
        ("/var/compressed", "/var/compressed"),
        ("/foo//bar/baz/", "/foo/bar/baz"),
        ("///", "/"),
        ("/a/./b", "/a/b"),
    ] {
        let loaded = load(&[&format!("[zram11]\nfs-type = \"ext4\"\nmount-point = \"{written}\"")]);
        let plan = planned(801_322, &loaded);
        let Some(Request::Device(request)) = &plan.items[0].request else { panic!("{plan:?}") };
        let Purpose::Filesystem { mount, .. } = &request.purpose else { panic!("{request:?}") };
        assert_eq!((mount.mount_point.as_str(), request.disk_size), (expected, 409_993_216));
    }
}

#[test]
fn names_that_are_too_long_for_a_file_are_refused() {
    for (text, good) in [
        (format!("[zram0]\nmount-point = \"/srv/{}\"", "a".repeat(242)), true),
        (format!("[zram0]\nmount-point = \"/srv/{}\"", "a".repeat(243)), false),
        (format!("[zram0]\nmount-point = \"/srv/{}\"", "ż".repeat(40)), false),
        (format!("[ramdisk.{}]\nmount-point = \"/a\"", "a".repeat(64)), true),
        (format!("[ramdisk.{}]\nmount-point = \"/a\"", "a".repeat(65)), false),
    ] {
        let loaded = load(&[&text]);
        assert_eq!(loaded.problems.is_empty(), good, "{text}: {:?}", loaded.problems);
    }
}

#[test]
fn options_are_trimmed() {
    for (written, expected) in [
        ("\"discard, noatime \"", "discard,noatime"),
        ("[\"discard\", \" x-a=b c\"]", "discard,x-a=b c"),
        ("\"\"", ""),
    ] {
        let loaded = load(&[&format!("[ramdisk.a]\nmount-point = \"/a\"\noptions = {written}")]);
        assert_eq!(loaded.problems, [], "{written}");
        assert_eq!(loaded.settings.ramdisks[0].mount.options, expected);
    }
}

#[test]
fn p15_p18_a_later_file_overrides_an_earlier_one() {
    let loaded = load(&["[zram0]\nhost-memory-limit = 100", "[zram0]\nhost-memory-limit = \"none\""]);
    assert!(size(&planned(8_013_220, &loaded), 0).is_some());
    let loaded = load(&["[zram0]\ncompression-algorithm = \"zstd\"", "[zram0]\ncompression-algorithm = []"]);
    assert_eq!(loaded.settings.devices[0].algorithms, load(&["[zram0]"]).settings.devices[0].algorithms);
    let secondary = |text: &str| load(&["[zram0]", text]).settings.devices[0].recompression.clone();
    let default = secondary("[maintenance]\nrecompress = true");
    assert_eq!(default.len(), 1);
    assert_eq!(secondary("[maintenance]\nrecompress.algorithm = []"), default);
}

#[test]
fn p09_p16_p22_p25_p26_bad_values_are_refused_at_their_place() {
    let mut told = String::new();
    for (text, line) in [
        ("[zram0]\nzram-size = \"4Ki\"", 2),
        ("[zram0]\nzram-size = \"RAM/2\"", 2),
        ("[zram0]\nzram-size = \"ram/2 # x\"", 2),
        ("[zram0]\nzram-size = \"\"", 2),
        ("[zram0]\nzram-size = -5", 2),
        ("[zram0]\nswap-priority = -2", 2),
        ("[zram0]\nswap-priority = 32768", 2),
        ("[zram0]\nwriteback-device = \"sda3\"", 2),
        ("[zram0]\nmount-point = \"foo\"", 2),
        ("[zram0]\nmount-point = \"/a/../b\"", 2),
        ("[zram0]\nmount-point = \"/a \"", 2),
        ("[zram0]\nmount-point = '/a\\'", 2),
        ("[zram0]\nwriteback-device = \"/dev/x\\r\"", 2),
        ("[zram0]\noptions = \"discard\\nExecStart=/bin/true\"", 2),
        ("[zram0]\noptions = ['discard', '\\']", 2),
        ("[zram0]\nmount-point = \"/a\"\nfs-type = \"swap\"", 3),
        ("[zram0]\nmount-point = \"/a\"\nswap-priority = 5", 3),
        ("[zram0]\nmode = \"0755\"", 2),
        ("[zram0]\nfs-type = \"Swap\"", 2),
        ("[zram+1]", 1),
        ("[zram01]", 1),
        ("[ZRAM0]", 1),
        ("[zramx]", 1),
        ("[ramdisks.a]\nsize = 1", 1),
        ("[ramdisk.\"a b\"]\nsize = 1", 1),
        ("[ramdisk.a]\nmount-point = \"/a\"\nmode = 755", 3),
        ("[ramdisk.a]\nmount-point = \"/a\"\npersist = \"snapshots\"", 3),
        ("[ramdisk.a]\nmount-point = \"/a\"\nkeep = 3", 3),
        ("[ramdisk.a]\nmount-point = \"/a\"\npersist = \"snapshot\"\nkeep = 0", 4),
        ("[ramdisk.a]\nmount-point = \"/a\"\npersist = \"snapshot\"\nstore = \"/a/b\"", 4),
        ("[ramdisk.a]\nmount-point = \"/var\"\npersist = \"snapshot\"", 1),
        ("[ramdisk.a]\nmount-point = \"/a\"\npersist = \"snapshot\"\nsave-interval = \"1 fortnight\"", 4),
        ("[ramdisk.a]\nmount-point = \"/a\"\npersist = \"snapshot\"\nsave-interval = 5", 4),
        ("[ramdisk.a]\nmount-point = \"/a\"\npersist = \"snapshot\"\ntime-limit = 0", 4),
        ("[ramdisk.a]\nmount-point = \"/a\"\npersist = \"snapshot\"\non-failure = \"ignore\"", 4),
        ("[ramdisk.a]\nmount-point = \"/a\"\npersist = \"snapshot\"\npre-save = \"sync\"", 4),
        ("[ramdisk.a]\nmount-point = \"/a\"\npersist = \"snapshot\"\npre-save = \"/bin/a b\"", 4),
        ("[ramdisk.a]\nmount-point = \"/a\"\nfs-type = \"ext4\"", 3),
        ("[ramdisk.a]\nmount-point = \"/a\"\nbackend = \"zram\"\nhuge-pages = \"always\"", 4),
        ("[ramdisk.a]\nmount-point = \"/a\"\nbackend = \"zram\"\nfs-type = \"ext3\"", 4),
        ("[ramdisk.a]\nmount-point = \"/a\"\nbackend = \"zram\"\nfs-type = \"xfs\"\ninodes = 5", 5),
        ("[ramdisk.a]\nmount-point = \"/a\"\nbackend = \"disk\"", 3),
        ("[zram256]\nzram-size = 512", 1),
        ("[zram4000000000]", 1),
        ("[ramdisk.a]\nmount-point = \"/a\"\nbackend = \"zram\"\nzram-device = 256", 4),
        ("[ramdisk.A]\nmount-point = \"/a\"", 1),
        ("[ramdisk.a]", 1),
        ("[zram0]\nzram-size = 1\nzram-fraction = 0.5", 3),
        ("[zram0]\ncompression-algorithm = \"zstd lz4\"", 2),
        ("[zram0]\nenabled = \"yes\"", 2),
    ] {
        let loaded = load(&[text]);
        assert!(loaded.problems.iter().any(|problem| problem.line() == line), "{text}");
        assert!(loaded.settings.devices.is_empty() && loaded.settings.ramdisks.is_empty(), "{text}");
        told += &mistake(text, &loaded.problems);
    }
    golden("tests/golden/diagnostics/values.txt", &told);
}

#[test]
fn ram_disks_are_numbered_after_the_last_device_and_below_the_highest_number() {
    let disk = |name: &str| format!("[ramdisk.{name}]\nmount-point = \"/{name}\"\nbackend = \"zram\"\n");
    let (a, b) = (disk("a"), disk("b"));
    for (devices, expected) in
        [("[zram4]\n", [5, 6]), ("[zram254]\n[zram1]\n", [255, 0]), ("[zram4000000000]\n", [0, 1])]
    {
        let loaded = load(&[&format!("{devices}{a}{b}")]);
        let backends = loaded.settings.ramdisks.iter().map(|disk| disk.backend.clone());
        let expected = expected.map(|number| settings::Backend::Zram { number });
        assert_eq!(backends.collect::<Vec<_>>(), expected, "{devices}");
    }
}

#[test]
fn a_size_that_cannot_be_computed_fails_its_device_only() {
    let plan = planned(8_013_220, &load(&["[zram0]\nzram-size = \"0/0\"\n[zram1]"]));
    assert_eq!(plan.items[0].decision, Decision::Refused);
    assert_eq!(plan.items[1].decision, Decision::Planned);
    assert_eq!((plan.problems.len(), plan.problems[0].line()), (1, 2));
}

#[test]
fn unknown_keys_cause_a_warning_with_a_suggestion_and_the_section_is_used() {
    for (key, meant) in
        [("zram-sise", "zram-size"), ("memory-limit", "zram-resident-limit"), ("priority", "swap-priority")]
    {
        let loaded = load(&[&format!("[zram0]\n{key} = 5")]);
        assert_eq!(loaded.settings.devices.len(), 1);
        assert!(loaded.problems[0].remedy.contains(&format!("`{meant}`")));
    }
}

#[test]
fn messages_are_as_in_the_golden_files() {
    let directory = repository("tests/golden/diagnostics");
    let mut seen = 0;
    for entry in fs::read_dir(&directory).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "toml") {
            continue;
        }
        seen += 1;
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let loaded = config::load(&[(format!("{name}.toml").into(), fs::read_to_string(&path).unwrap())], "");
        golden(&format!("tests/golden/diagnostics/{name}.txt"), &render::render(&loaded.problems, false));
    }
    assert!(seen >= 2);
}

#[test]
fn a_check_without_files_does_not_report_success() {
    let verdict = |text: &str| {
        let loaded = load(&[text]);
        render::verdict(&planned(8_013_220, &loaded), &loaded)
    };
    assert!(verdict("").0.contains("zramdctl init --now"));
    assert_ne!(verdict(""), verdict("[zram0]\nenabled = false\n"));
    let (line, status) = verdict("[zram0]\n[zram1]\nzram-size = 0\n[zram2]\nhost-memory-limit = \"1GiB\"\n");
    let skipped = "zram1 (its size is 0), zram2 (this machine has 7.6 GiB of RAM, more than its host-memory-limit of 1.0 GiB)";
    assert_eq!(line, format!("no mistakes found: 1 zram device, 0 RAM disks; 2 skipped: {skipped}"));
    assert_eq!(status, ExitStatus::Success);
    let text = "[zram0]\nzram-size =\n[zram1]\nenabled = false\n[zram2]\nzram-size = \"1KiB\"\n[ramdisk.a]\nsize = 1\n";
    let rest = "1 refused: zram2; 2 not usable: ramdisk.a, zram0; 1 switched off: zram1";
    let expected = (format!("still usable: 0 zram devices, 0 RAM disks; {rest}"), ExitStatus::Failure);
    assert_eq!(verdict(text), expected, "no section is dropped");
}

#[test]
fn the_benchmark_reads_private_data_only_if_configured() {
    let sample = |text: &str| load(&[text]).settings.benchmark.sample;
    assert_eq!(sample(""), PageSource::Public);
    assert_eq!(sample("[benchmark]\n"), PageSource::Public);
    assert_eq!(sample("[benchmark]\nsample = \"public\"\n"), PageSource::Public);
    assert_eq!(sample("[benchmark]\nsample = \"swap\"\n"), PageSource::Swap);
    assert_eq!(sample("[benchmark]\nsample = \"processes\"\n"), PageSource::Processes);
    let wrong = load(&["[benchmark]\nsample = \"memory\"\nprofile = \"latency\"\n"]);
    assert_eq!((wrong.settings.benchmark.sample, wrong.problems.len()), (PageSource::Public, 1));
}

#[test]
fn five_mistakes_are_five_messages_and_the_rest_still_works() {
    let path = repository("tests/golden/diagnostics/five-mistakes.toml");
    let loaded = load(&[&fs::read_to_string(path).unwrap()]);
    assert_eq!(loaded.problems.len(), 5);
    assert_eq!((loaded.settings.devices.len(), loaded.settings.ramdisks.len()), (2, 0));
}

const SECTIONS: [&str; 8] = [
    "zram-size = \"1GiB\"",
    "zram-fraction = 0.25",
    "zram-size = \"oops(\"",
    "swap-priority = 99999",
    "mount-point = \"/a\"",
    "zram-size = ",
    "compression-algorithm = [\"zstd(level=3)\", \"auto\"]",
    "compression-algorithm = 5",
];

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in "(\\[[a-z0-9.+]{0,8}\\]?|[a-z-]{1,9} = [\"a-z0-9(%. ]{0,9}|\n|\r|#|é){0,12}") {
        load(&[&text]);
    }

    /// A section is parsed independently of the other sections.
    #[test]
    fn sections_are_independent(choices in prop::collection::vec(0..SECTIONS.len(), 1..5)) {
        let section = |number: usize, choice: usize| format!("[zram{number}]\n{}\n", SECTIONS[choice]);
        let all: String = choices.iter().enumerate().map(|(number, choice)| section(number, *choice)).collect();
        let together = load(&[&all]);
        for (number, choice) in choices.iter().enumerate() {
            let alone = load(&[&section(number, *choice)]);
            let number = u32::try_from(number).unwrap();
            let found = together.settings.devices.iter().any(|device| device.number == number);
            prop_assert_eq!(found, alone.settings.devices.len() == 1, "{}", all);
        }
    }
}

#[test]
fn disks_on_zram_get_unique_numbers() {
    let disk = |name: &str, more: &str| {
        format!("[ramdisk.{name}]\nmount-point = \"/{name}\"\nbackend = \"zram\"\nsize = \"64MiB\"\n{more}\n")
    };
    let numbers = |text: &str| -> Vec<(String, u32)> {
        let loaded = load(&[text]);
        let disks = loaded.settings.ramdisks.iter().map(|disk| match disk.backend {
            settings::Backend::Zram { number } => (disk.name.clone(), number),
            settings::Backend::Tmpfs { .. } => panic!("{disk:?}"),
        });
        disks.collect()
    };
    let both = format!("{}{}", disk("b", ""), disk("a", ""));
    assert_eq!(numbers(&both), [("a".to_owned(), 0), ("b".to_owned(), 1)]);
    // A disabled section keeps its number: it may be enabled while the disk is in use.
    assert_eq!(numbers(&format!("[zram4]\nenabled = false\n{both}"))[0].1, 5);
    // So does a section with a syntax error.
    assert_eq!(numbers(&format!("[zram4]\nzram-size = 12 .5\n{both}"))[0].1, 5);
    assert_eq!(numbers(&format!("{both}{}", disk("c", "zram-device = 7")))[0].1, 8);
    let taken = load(&[&format!("[zram7]\n{}", disk("c", "zram-device = 7"))]);
    assert!(taken.settings.ramdisks.is_empty());
    assert!(taken.problems[0].message.contains("zram7"), "{:?}", taken.problems);
    assert_eq!(taken.problems[0].line(), 6);
}
