//! `check` and `plan`: what one refuses because of the configuration, the other reports too.

use std::collections::BTreeSet;

use engine::reload::{Scope, survey};
use host::{BlockProbe, Host, MountSpec};
use logic::config::schema::section_of;
use logic::config::{self, Loaded};
use logic::error::ErrorKind;
use logic::finding::{Code, Finding, Level};
use logic::plan::Activation;
use sim::kernel::KernelConfig;
use sim::{SimHost, SimMachine};

/// Section, key and kind.
type Refused = BTreeSet<(Option<String>, String, ErrorKind)>;

fn refused(problems: &[Finding]) -> Refused {
    let errors = problems.iter().filter(|problem| problem.level == Level::Error);
    errors
        .map(|problem| (section_of(problem.key()), problem.key().to_owned(), problem.kind.unwrap()))
        .collect()
}

fn checked(host: &SimHost, loaded: &Loaded) -> Refused {
    refused(&engine::check(host, loaded, Vec::new()).problems)
}

fn loaded(text: &str) -> Loaded {
    config::load(&[("z.toml".into(), text.to_owned())], "")
}

/// 4 GiB of memory; `mkfs.ext4` is the only one.
fn machine() -> SimMachine {
    SimMachine::new(KernelConfig::newest())
}

/// A configuration, and the key and kind of each refusal.
type Case = (&'static str, &'static [(&'static str, ErrorKind)]);

const CASES: &[Case] = {
    use ErrorKind::{Config, Unsafe, Unsupported};
    &[
        ("[zram0]\nmount-point = \"/\"", &[("zram0.mount-point", Unsafe)]),
        ("[zram0]\nmount-point = \"/usr\"", &[("zram0.mount-point", Unsafe)]),
        ("[zram0]\nmount-point = \"/etc/cron.d\"", &[("zram0.mount-point", Unsafe)]),
        ("[zram0]\nmount-point = \"/proc/x\"", &[("zram0.mount-point", Unsafe)]),
        ("[ramdisk.a]\nmount-point = \"/usr/lib/x\"\nsize = \"9MiB\"", &[("ramdisk.a.mount-point", Unsafe)]),
        ("[ramdisk.a]\nmount-point = \"/srv/a\"\nsize = \"1KiB\"", &[("ramdisk.a.size", Config)]),
        (
            "[zram0]\nmount-point = \"/srv/a\"\n[zram1]\nmount-point = \"/srv/a\"",
            &[("zram1.mount-point", Config)],
        ),
        (
            "[zram0]\nmount-point = \"/srv/a\"\n[ramdisk.b]\nmount-point = \"/srv//a/\"",
            &[("ramdisk.b.mount-point", Config)],
        ),
        ("[zram0]\nzram-size = \"1TiB\"", &[("zram0.zram-size", Unsafe)]),
        ("[zram0]\nzram-size = \"4KiB\"", &[("zram0.zram-size", Config)]),
        ("[zram0]\nzram-size = \"0/0\"", &[("zram0.zram-size", Config)]),
        (
            "[zram0]\nmount-point = \"/srv/a\"\nzram-resident-limit = 100",
            &[("zram0.zram-resident-limit", Unsafe)],
        ),
        ("[zram0]\nmount-point = \"/srv/a\"\nfs-type = \"ntfs\"", &[("zram0", Unsupported)]),
        ("[zram0]\nmount-point = \"/srv/a\"\nowner = \"nemo\"", &[("zram0.owner", Config)]),
        ("[zram0]\nmount-point = \"/srv/a\"\ngroup = \"nemo\"", &[("zram0.group", Config)]),
        ("[zram0]\nlabel = \"longer than a swap label\"", &[("zram0", Config)]),
        ("[zram0]\ncompression-algorithm = \"snappy\"", &[("zram0.compression-algorithm", Unsupported)]),
        ("[zram0]\ncompression-algorithm = \"(\"", &[("zram0.compression-algorithm", Config)]),
        ("[zram0]\nzram-size = \"oops(\"", &[("zram0.zram-size", Config)]),
        (
            "[zram0]\nzram-size = \"1TiB\"\n[zram1]\nmount-point = \"/dev\"\n[zram2]\nzram-size = 64",
            &[("zram0.zram-size", Unsafe), ("zram1.mount-point", Unsafe)],
        ),
        ("[zram0]\nzram-size = \"3 * ram\"\n[zram1]\nzram-size = \"3 * ram\"", &[]),
        ("[zram0]\n[zram1]\nmount-point = \"/srv/a\"", &[]),
    ]
};

#[test]
fn check_reports_everything_that_plan_refuses() {
    let host = machine().process();
    for (text, expected) in CASES {
        let loaded = loaded(text);
        let expected: Refused =
            expected.iter().map(|(key, kind)| (section_of(key), (*key).to_owned(), *kind)).collect();
        assert_eq!(checked(&host, &loaded), expected, "{text}");
        for activation in [Activation::Direct, Activation::Managed] {
            let found = survey(&host, &loaded, activation, &Scope::default()).unwrap();
            assert_eq!(refused(&found.plan.problems), expected, "{text}: {activation:?}");
        }
        let plan = engine::plan(&host, &loaded, Activation::Direct).unwrap();
        assert_eq!(refused(&plan.problems), expected, "{text}");
    }
}

/// A machine with mounts of other programs, and a block device with data.
fn occupied() -> SimMachine {
    let machine = machine();
    for directory in ["/srv", "/srv/m", "/srv/m/b"] {
        machine.process().make_directory(directory).unwrap();
    }
    let mount = MountSpec {
        source: "tmpfs".into(),
        mount_point: "/srv/m/b".into(),
        fs_type: "tmpfs".into(),
        options: String::new(),
    };
    machine.process().mount(&mount).unwrap();
    let head = [vec![0; 1080], vec![0x53, 0xef], vec![0; 1000]].concat();
    let probe = |device, head: &[u8]| BlockProbe { device, head: head.to_owned(), holders: Vec::new() };
    machine.change().blocks.extend([
        ("/dev/full".to_owned(), probe(Some((8, 1)), &head)),
        ("/dev/empty".to_owned(), probe(Some((8, 2)), &[])),
        ("/etc/hostname".to_owned(), probe(None, &[])),
    ]);
    machine
}

#[test]
fn check_looks_at_the_same_mounts_disks_and_files_as_plan() {
    use ErrorKind::{Config, Unsafe};
    let machine = occupied();
    let cases: &[Case] = &[
        ("[ramdisk.a]\nmount-point = \"/srv/m/b\"\nsize = \"9MiB\"", &[("ramdisk.a.mount-point", Unsafe)]),
        ("[ramdisk.a]\nmount-point = \"/srv/m\"\nsize = \"9MiB\"", &[("ramdisk.a.mount-point", Unsafe)]),
        ("[zram1]\nwriteback-device = \"/dev/nosuch\"", &[("zram1.writeback-device", Config)]),
        ("[zram1]\nwriteback-device = \"/etc/hostname\"", &[("zram1.writeback-device", Config)]),
        ("[zram1]\nwriteback-device = \"/dev/full\"", &[("zram1.writeback-device", Unsafe)]),
        ("[zram1]\nwriteback-device = \"/dev/empty\"", &[]),
        // Once, in the section that has the mistake.
        (
            "[zram1]\n[maintenance]\nwriteback = { device = \"/dev/nosuch\" }",
            &[("maintenance.writeback.device", Config)],
        ),
    ];
    for (text, expected) in cases {
        let (host, loaded) = (machine.process(), loaded(text));
        let expected: Refused =
            expected.iter().map(|(key, kind)| (section_of(key), (*key).to_owned(), *kind)).collect();
        let plan = engine::plan(&host, &loaded, Activation::Managed).unwrap();
        assert_eq!(refused(&plan.problems), expected, "{text}");
        assert_eq!(checked(&host, &loaded), expected, "{text}");
        // The disks and mounts of another machine are not known, nor are they those of a container.
        assert_eq!(engine::check_elsewhere(&host, &loaded).problems, [], "{text}");
        machine.change().container = Some("lxc".to_owned());
        assert_eq!(checked(&host, &loaded), Refused::new(), "{text}");
        machine.change().container = None;
    }
    let elsewhere = loaded("[zram1]\nwriteback-file = \"/nosuch/x\"");
    let problems = engine::check(&machine.process(), &elsewhere, Vec::new()).problems;
    assert!(problems[0].message.contains("/nosuch/x does not exist"), "{problems:?}");
}

#[test]
fn a_number_without_a_unit_that_is_hardly_anything_is_doubtful() {
    let doubtful = |text: &str| {
        let problems = engine::check(&machine().process(), &loaded(text), Vec::new()).problems;
        assert!(problems.iter().all(|problem| problem.level == Level::Warning), "{problems:?}");
        problems.iter().map(|problem| problem.key().to_owned()).collect::<Vec<_>>()
    };
    for text in ["zram-size = 8", "zram-size = \"8\""] {
        assert_eq!(doubtful(&format!("[zram0]\n{text}")), ["zram0.zram-size"], "{text}");
    }
    for text in ["zram-size = 4096", "zram-size = \"8MiB\"", "zram-size = 8\nmount-point = \"/srv/a\""] {
        assert_eq!(doubtful(&format!("[zram0]\n{text}")), [""; 0], "{text}");
    }
    assert_eq!(doubtful("[zram0]\nzram-size = \"min(ram / 2, 4)\""), ["zram0.zram-size"]);
    for share in ["0.1%", "ram / 2000"] {
        assert_eq!(doubtful(&format!("[zram0]\nzram-size = \"{share}\"")), [""; 0], "{share}");
    }
    assert_eq!(
        doubtful("[defaults]\nhost-memory-limit = 16\n[zram0]\n[zram1]"),
        ["defaults.host-memory-limit"]
    );
    assert_eq!(doubtful("[zram0]\nhost-memory-limit = 16"), ["zram0.host-memory-limit"]);
    assert_eq!(doubtful("[zram0]\nzram-resident-limit = 2"), ["zram0.zram-resident-limit"]);
    assert_eq!(doubtful("[zram0]\nzram-fraction = 3\nmax-zram-size = 8"), ["zram0.max-zram-size"]);
    let disk = "[ramdisk.a]\nmount-point = \"/srv/a\"\nsize";
    assert_eq!(doubtful(&format!("{disk} = 8")), ["ramdisk.a.size"]);
    assert_eq!(doubtful(&format!("{disk} = \"8MiB\"")), [""; 0]);
}

#[test]
fn a_fraction_that_is_meant_in_percent_is_refused_at_its_place() {
    let problems =
        engine::check(&machine().process(), &loaded("[zram0]\nzram-fraction = 50"), Vec::new()).problems;
    let [problem] = &problems[..] else { panic!("{problems:?}") };
    assert_eq!((problem.key(), problem.line()), ("zram0.zram-fraction", 2));
    assert!(problem.remedy.starts_with("zram-fraction"), "{problem:?}");
}

#[test]
fn a_check_refuses_what_another_program_uses_and_not_what_zramd_has_set_up() {
    let machine = machine();
    let loaded = loaded("[zram0]\nmount-point = \"/srv/a\"\n[zram1]\n");
    let applied = engine::apply(&mut machine.process(), &loaded).unwrap();
    assert!(applied.outcomes.iter().all(|outcome| outcome.errors.is_empty()), "{applied:?}");
    let host = machine.process();
    assert_eq!(checked(&host, &loaded), Refused::new());
    let changed =
        self::loaded("[zram0]\nmount-point = \"/srv/a\"\nzram-size = 99\n[zram1]\nzram-size = 64\n");
    let would_lose = engine::check(&host, &changed, Vec::new()).problems;
    let found: Vec<_> = would_lose.iter().map(|found| (found.code, found.object.as_str())).collect();
    assert_eq!(found, [(Code::Refused, "zram0")], "the swap can be set up again");
    assert!(would_lose[0].message.contains("lose its contents"), "{would_lose:?}");
    let moved = self::loaded("[zram0]\nmount-point = \"/srv/b\"\n[zram1]\n");
    assert_eq!(engine::check(&host, &moved, Vec::new()).problems.len(), 1, "as another mount point does");
    // Without records, the devices are those of another program.
    machine.change().records.clear();
    let planned = refused(&engine::plan(&host, &loaded, Activation::Direct).unwrap().problems);
    assert_eq!(planned.len(), 2);
    assert_eq!(checked(&host, &loaded), planned);
    assert_eq!(engine::check_elsewhere(&host, &loaded).problems, []);
}

#[test]
fn what_a_user_may_not_look_at_is_no_mistake() {
    let machine = occupied();
    machine.change().privileged = false;
    let loaded = loaded("[zram1]\nwriteback-device = \"/dev/empty\"\n[zram2]\nmount-point = \"/srv/a\"");
    assert_eq!(checked(&machine.process(), &loaded), Refused::new());
}
