//! `check` and `plan`: what one refuses because of the configuration, the other reports too.

use std::collections::BTreeSet;

use engine::reload::{Scope, survey};
use logic::config::problem::{Problem, Severity};
use logic::config::{self, Loaded};
use logic::error::ErrorKind;
use logic::plan::Activation;
use logic::view::section_of;
use sim::kernel::KernelConfig;
use sim::{SimHost, SimMachine};

/// Section, key and kind.
type Refused = BTreeSet<(Option<String>, String, ErrorKind)>;

fn refused(problems: &[Problem]) -> Refused {
    let errors = problems.iter().filter(|problem| problem.severity == Severity::Error);
    errors
        .map(|problem| (section_of(&problem.origin.key), problem.origin.key.clone(), problem.kind))
        .collect()
}

fn checked(host: &SimHost, loaded: &Loaded) -> Refused {
    refused(&engine::check(host, loaded).problems)
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
        ("[ramdisk.a]\nmount-point = \"/usr/lib/x\"\nsize = 9", &[("ramdisk.a.mount-point", Unsafe)]),
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

/// What is in use now may be free when the configuration is applied.
#[test]
fn a_check_does_not_depend_on_what_is_in_use() {
    let machine = machine();
    let loaded = loaded("[zram0]\nmount-point = \"/srv/a\"\n[zram1]\n");
    let applied = engine::apply(&mut machine.process(), &loaded).unwrap();
    assert!(applied.outcomes.iter().all(|outcome| outcome.errors.is_empty()), "{applied:?}");
    // Without records, the devices are those of another program.
    machine.change().records.clear();
    let host = machine.process();
    assert_eq!(refused(&engine::plan(&host, &loaded, Activation::Direct).unwrap().problems).len(), 2);
    assert_eq!(checked(&host, &loaded), Refused::new());
}
