//! Other ways to set up zram, tmpfs and swap, below a directory: each is named by `init`, `check` and `plan`, and makes a device yield.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use engine::gather;
use host::linux::LinuxHost;
use logic::finding::Finding;
use logic::health::{self, Surroundings};
use logic::sample::Snapshot;

use crate::apart::command_for;
use crate::support::{CTL, SETUP, golden, texts};

/// A directory that stands for a machine with this much memory in KiB.
struct Machine(tempfile::TempDir);

impl Machine {
    fn new(ram_kib: u64) -> Machine {
        let machine = Machine(tempfile::tempdir().unwrap());
        machine.write("proc/meminfo", &format!("MemTotal: {ram_kib} kB\nMemAvailable: {ram_kib} kB\n"));
        machine.write("proc/cmdline", "quiet\n");
        machine.write("usr/sbin/mkfs.ext4", "x");
        machine
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.0.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn link(&self, target: &str, path: &str) {
        let path = self.0.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        symlink(target, path).unwrap();
    }

    fn configure(&self, toml: &str) {
        self.write("etc/zramd/zramd.toml", toml);
    }

    /// Standard output and standard error of `zramd-setup VERB`.
    fn setup(&self, verb: &str) -> (String, String) {
        texts(&command_for(SETUP).arg("--root").arg(self.0.path()).arg(verb).output().unwrap())
    }

    fn ctl(&self, words: &[&str]) -> (String, String) {
        texts(&command_for(CTL).args(words).arg("--root").arg(self.0.path()).output().unwrap())
    }

    fn init(&self) -> (String, String) {
        self.ctl(&["init", "--dry-run"])
    }

    fn import(&self, peer: &str) -> (String, String) {
        self.ctl(&["import", peer])
    }
}

fn path(machine: &Machine) -> &Path {
    machine.0.path()
}

const GENERATOR: &str = "usr/lib/systemd/system-generators/zram-generator";

/// Its name, its files, the links of its active unit, and the place that is named.
type Neighbour =
    (&'static str, &'static [(&'static str, &'static str)], &'static [&'static str], &'static str);

/// Each neighbour: what is on the machine when it is configured, when it runs, and the words by which it is named.
const NEIGHBOURS: [Neighbour; 13] = [
    (
        "zram-generator",
        &[(GENERATOR, "x"), ("etc/systemd/zram-generator.conf", "[zram0]\nzram-size = ram\n")],
        &["run/systemd/units/invocation:systemd-zram-setup@zram0.service"],
        "/etc/systemd/zram-generator.conf",
    ),
    (
        "zram-tools",
        &[(WANTS_ZRAMSWAP, "x"), ("etc/default/zramswap", "PERCENT=50\n")],
        &["run/systemd/units/invocation:zramswap.service"],
        "zramswap.service",
    ),
    (
        "zramswap.service",
        &[(WANTS_ZRAMSWAP, "x")],
        &["run/systemd/units/invocation:zramswap.service"],
        "zramswap.service",
    ),
    ("zram-init", &[("etc/runlevels/boot/zram-init", "x")], &["run/openrc/started/zram-init"], "zram-init"),
    (
        "systemd-swap",
        &[("etc/systemd/system/multi-user.target.wants/systemd-swap.service", "x")],
        &["run/systemd/units/invocation:systemd-swap.service"],
        "systemd-swap.service",
    ),
    (
        "zram-swap",
        &[("usr/lib/systemd/system/sysinit.target.requires/zram-swap.service", "x")],
        &["run/systemd/units/invocation:zram-swap.service"],
        "zram-swap.service",
    ),
    (
        "log2ram with ZL2R=true",
        &[
            ("etc/systemd/system/sysinit.target.wants/log2ram.service", "x"),
            ("etc/log2ram.conf", "ZL2R=true\n"),
        ],
        &["run/systemd/units/invocation:log2ram.service"],
        "log2ram.service",
    ),
    // Ubuntu's package.
    (
        "zram-config",
        &[("etc/systemd/system/multi-user.target.wants/zram-config.service", ZRAM_CONFIG)],
        &["run/systemd/units/invocation:zram-config.service"],
        "multi-user.target.wants/zram-config.service",
    ),
    // github.com/ecdye/zram-config.
    (
        "zram-config",
        &[
            ("etc/systemd/system/sysinit.target.wants/zram-config.service", ZRAM_CONFIG),
            ("etc/ztab", "# swap\talg\tmem_limit\tdisk_size\nswap\tlzo-rle\t250M\t750M\t75\t0\t150\n"),
        ],
        &["run/systemd/units/invocation:zram-config.service"],
        "sysinit.target.wants/zram-config.service",
    ),
    // Its unit for systemd.
    (
        "zram-init",
        &[("etc/systemd/system/swap.target.wants/zram_swap.service", "[Service]\nType=oneshot\n")],
        &["run/systemd/units/invocation:zram_swap.service"],
        "zram_swap.service",
    ),
    (
        "armbian-zram-config",
        &[
            (
                "etc/systemd/system/sysinit.target.wants/armbian-zram-config.service",
                "[Service]\nType=oneshot\n",
            ),
            (
                "etc/default/armbian-zram-config",
                "# enable the service?\nENABLED=true\n# ZRAM_PERCENTAGE=50\n",
            ),
        ],
        &["run/systemd/units/invocation:armbian-zram-config.service"],
        "armbian-zram-config.service",
    ),
    ("a udev rule", &[("etc/udev/rules.d/99-zram.rules", RULE)], &[], "/etc/udev/rules.d/99-zram.rules:2"),
    (
        "pop-zram",
        &[("usr/lib/systemd/system/pop-default-settings-zram.service", "x")],
        &[],
        "pop-default-settings-zram.service",
    ),
];
const ZRAM_CONFIG: &str = "[Service]\nType=oneshot\nRemainAfterExit=yes\n";
const WANTS_ZRAMSWAP: &str = "etc/systemd/system/multi-user.target.wants/zramswap.service";
const RULE: &str = "# Swap.\nKERNEL==\"zram0\", ATTR{disksize}=\"4096M\", RUN=\"/usr/bin/mkswap /dev/zram0\", TAG+=\"systemd\"\n";

/// What `doctor` finds on this machine about other programs.
fn doctor(machine: &Machine) -> Vec<Finding> {
    let other_managers = gather::other_managers(&LinuxHost::new(path(machine)));
    let surroundings = Surroundings { other_managers, configured: true, ..Surroundings::default() };
    health::findings(&Snapshot::default(), &surroundings)
}

/// What is said of each neighbour, configured, running, and both.
#[test]
fn every_neighbour_is_named_by_every_command() {
    let mut table = String::new();
    for (name, configured, running, place) in NEIGHBOURS {
        for (is_configured, runs) in [(true, false), (false, true), (true, true)] {
            let machine = Machine::new(8_000_000);
            if runs {
                // What it needs besides is there, but it is not enabled.
                for (path, text) in configured
                    .iter()
                    .filter(|(path, _)| path.starts_with("etc/default/") || path.ends_with("log2ram.conf"))
                {
                    machine.write(path, text);
                }
                for path in running {
                    machine.link("0", path);
                }
            }
            if is_configured {
                for (path, text) in configured {
                    machine.write(path, text);
                }
            } else if running.is_empty() {
                continue;
            }
            let case = format!("{name}, configured {is_configured}, running {runs}");
            let place = if is_configured { place } else { "is active" };
            machine.configure("[zram0]\nzram-size = \"ram / 2\"\n");
            let (verdict, said) = machine.setup("check");
            let sentence = said.lines().find(|line| line.starts_with(&format!("warning: {name} ")));
            let sentence = sentence.unwrap_or_else(|| panic!("{case}: {said}"));
            assert!(sentence.contains(place), "{case}: {sentence}");
            assert!(verdict.starts_with("no mistakes found: 1 zram device"), "{case}: {verdict}");
            let (_, planned) = machine.setup("plan");
            assert!(planned.lines().any(|line| line == sentence), "{case}: {planned}");
            let [found] = &doctor(&machine)[..] else { panic!("{case}: {:?}", doctor(&machine)) };
            assert_eq!(format!("warning: {}", found.message), sentence, "{case}");
            let state = match (is_configured, runs) {
                (true, false) => "configured",
                (false, _) => "running",
                (true, true) => "configured and running",
            };
            table.push_str(&format!(
                "{name}, {state}\n  check, plan, doctor: {sentence}\n  doctor: help: {}\n",
                found.remedy
            ));
            machine.configure("[zram0]\nzram-size = \"ram / 2\"\nyield = true\n");
            let (plan, _) = machine.setup("plan");
            let skipped =
                format!("zram0: skipped: it yields to {name}, which sets up zram on this machine (");
            let line = plan.lines().find(|line| line.starts_with(&skipped) && line.contains(place));
            table.push_str(&format!("  yield: {}\n", line.unwrap_or_else(|| panic!("{case}: {plan}"))));
            fs::remove_file(path(&machine).join("etc/zramd/zramd.toml")).unwrap();
            let (_, said) = machine.init();
            let line = said.lines().find(|line| line.contains(name) && line.ends_with('.'));
            table.push_str(&format!("  init: {}\n", line.unwrap_or_else(|| panic!("{case}: {said}"))));
        }
    }
    golden("tests/golden/neighbours.txt", &table);
}

/// What is in the way of recognition, or no text, is not taken for a neighbour, and stops nothing.
#[test]
fn files_of_neighbours_may_be_anything() {
    for (name, configured, ..) in NEIGHBOURS {
        for (what, make) in BROKEN {
            for broken in 0..configured.len() {
                let machine = Machine::new(8_000_000);
                machine.configure("[zram0]\nzram-size = \"ram / 2\"\n");
                for (index, (file, text)) in configured.iter().enumerate() {
                    machine.write(file, text);
                    if index == broken {
                        make(&path(&machine).join(file));
                    }
                }
                let (verdict, said) = machine.setup("check");
                assert!(
                    verdict.starts_with("no mistakes found: 1 zram device"),
                    "{name}, {what}: {verdict}{said}"
                );
                let (toml, said) = machine.init();
                let is_named = said.contains(configured[broken].0);
                assert!(toml.contains("[zram0]") || is_named, "{name}, {what}: {toml}{said}");
            }
        }
    }
}

type Broken = (&'static str, fn(&Path));
const BROKEN: [Broken; 5] = [
    ("a link to nowhere", |path| {
        fs::remove_file(path).unwrap();
        symlink("/nowhere", path).unwrap();
    }),
    ("a link to itself", |path| {
        fs::remove_file(path).unwrap();
        symlink(path.file_name().unwrap(), path).unwrap();
    }),
    ("a directory", |path| {
        fs::remove_file(path).unwrap();
        fs::create_dir(path).unwrap();
    }),
    ("not UTF-8", |path| {
        fs::write(path, [b"\xff\xfe".as_slice(), &fs::read(path).unwrap()].concat()).unwrap();
    }),
    ("huge", |path| fs::File::options().write(true).open(path).unwrap().set_len(1 << 40).unwrap()),
];

#[test]
fn lines_of_fstab_for_what_zramd_sets_up_are_mistakes() {
    let machine = Machine::new(8_000_000);
    machine.write(
        "etc/fstab",
        "tmpfs /tmp tmpfs defaults,noatime 0 0\ntmpfs /var/log tmpfs size=100m 0 0\n/dev/zram0 none swap pri=100 0 0\nLABEL=zram0 none swap sw 0 0\n/dev/zram1 /mnt ext4 rw 0 0\n",
    );
    let (toml, _) = machine.import("fstab");
    machine.configure(&format!(
        "{toml}\n[zram0]\nzram-size = \"ram / 2\"\n[zram1]\nmount-point = \"/srv/x\"\nzram-size = \"64MiB\"\n"
    ));
    let (verdict, said) = machine.setup("check");
    let found: Vec<&str> = said.lines().filter(|line| line.contains("this line is for")).collect();
    assert_eq!(
        found,
        [
            "error: this line is for /tmp (tmpfs), which zramd sets up: systemd's generator fails, because both write a unit of the same name",
            "error: this line is for /var/log (tmpfs), which zramd sets up: systemd's generator fails, because both write a unit of the same name",
            "error: this line is for swap on zram0 (/dev/zram0), which zramd sets up: systemd's generator fails, because both write a unit of the same name",
            "warning: this line is for swap on zram0 (LABEL=zram0), which zramd sets up: systemd would set it up a second time",
            "error: this line is for /mnt (/dev/zram1), which zramd sets up: the boot waits for it, and ends in emergency mode without it",
        ]
    );
    assert!(verdict.starts_with("still usable: 2 zram devices, 2 RAM disks"), "{verdict}");
    machine.write("etc/fstab", "tmpfs /srv/other tmpfs size=100m 0 0\n/dev/zram7 none swap sw 0 0\n");
    assert!(machine.setup("check").0.starts_with("no mistakes found"));
}

/// Files, and what `check`, `plan` and `init` say about them.
type Said = (&'static [(&'static str, &'static str)], &'static str);

const OPTIONS_OF_DRIVER: [Said; 3] = [
    (
        &[("etc/modprobe.d/zram.conf", "# swap\noptions zram num_devices=4\n")],
        "note: `options zram num_devices=4` adds 4 devices when the zram driver is loaded; zramd adds those that it needs, and the others stay empty",
    ),
    (
        &[("proc/cmdline", "quiet zram.num_devices=4\n")],
        "note: zram.num_devices=4 on the kernel command line adds 4 devices when the zram driver is loaded; zramd adds those that it needs, and the others stay empty",
    ),
    (
        &[("usr/lib/modprobe.d/no-zram.conf", "install zram /bin/false\n")],
        "warning: `install zram` keeps the zram driver from being loaded; unless it is built into the kernel, no zram device can be set up",
    ),
];

/// `zramctl` and scripts around it were set up with several devices.
#[test]
fn options_of_the_driver_are_named_with_file_and_line() {
    for (files, sentence) in OPTIONS_OF_DRIVER {
        let machine = Machine::new(8_000_000);
        for (path, text) in files {
            machine.write(path, text);
        }
        let (_, said) = machine.init();
        assert!(said.lines().any(|line| line == sentence), "{said}");
        machine.configure("[zram0]\nzram-size = \"ram / 2\"\n");
        for verb in ["check", "plan"] {
            let (verdict, said) = machine.setup(verb);
            assert!(said.lines().any(|line| line == sentence), "{verb}: {said}");
            assert!(verb == "plan" || verdict.starts_with("no mistakes found: 1 zram device"), "{verdict}");
        }
    }
    let machine = Machine::new(8_000_000);
    let file = "etc/modprobe.d/zram.conf";
    machine.configure("[zram0]\nzram-size = \"ram / 2\"\n");
    machine.write(file, OPTIONS_OF_DRIVER[0].0[0].1);
    let (_, said) = machine.setup("check");
    assert!(said.contains("--> /etc/modprobe.d/zram.conf:2:1"), "{said}");
    assert!(said.contains("help: remove line 2 of /etc/modprobe.d/zram.conf"), "{said}");
    for (what, make) in BROKEN {
        machine.write(file, "options zram num_devices=4\n");
        make(&path(&machine).join(file));
        let (verdict, said) = machine.setup("check");
        assert!(verdict.starts_with("no mistakes found: 1 zram device"), "{what}: {verdict}{said}");
        let broken = path(&machine).join(file);
        fs::remove_file(&broken).or_else(|_| fs::remove_dir(&broken)).unwrap();
    }
}

/// It takes pages before zram does.
#[test]
fn zswap_on_the_kernel_command_line_is_named() {
    let machine = Machine::new(8_000_000);
    machine.configure("[zram0]\nzram-size = \"ram / 2\"\n");
    let sentence = "zswap is on: it compresses pages before they reach any swap device";
    assert!(!machine.setup("check").1.contains(sentence));
    machine.write("proc/cmdline", "quiet zswap.enabled=1\n");
    for verb in ["check", "plan"] {
        assert!(machine.setup(verb).1.contains(sentence), "{verb}");
    }
    machine.write("proc/cmdline", "zswap.enabled=1 zswap.enabled=0\n");
    assert!(!machine.setup("check").1.contains(sentence));
    // `[vm]` switches it off.
    machine.write("proc/cmdline", "quiet zswap.enabled=1\n");
    machine.configure("[zram0]\nzram-size = \"ram / 2\"\n[vm]\ntune = true\n");
    assert!(!machine.setup("check").1.contains(sentence));
}

/// systemd.unit(5): what is in `/etc` takes precedence over what a generator writes.
#[test]
fn a_unit_of_the_administrator_that_hides_one_of_zramd_is_a_mistake() {
    let machine = Machine::new(8_000_000);
    machine.configure(
        "[zram0]\nzram-size = \"ram / 2\"\n[ramdisk.tmp]\nmount-point = \"/tmp\"\nsize = \"64MiB\"\n",
    );
    machine.write("usr/lib/systemd/system/tmp.mount", "[Mount]\nWhat=tmpfs\n");
    assert!(machine.setup("check").0.starts_with("no mistakes found"));
    machine.link("/dev/null", "etc/systemd/system/tmp.mount");
    machine.write("run/systemd/system/dev-zram0.swap", "[Swap]\nWhat=/dev/zram0\n");
    for verb in ["check", "plan"] {
        let (_, said) = machine.setup(verb);
        for sentence in [
            "error: /etc/systemd/system/tmp.mount masks the unit with which zramd sets up /tmp, so systemd does not start it",
            "error: /run/systemd/system/dev-zram0.swap takes the place of the unit with which zramd sets up swap on zram0",
        ] {
            assert!(said.lines().any(|line| line == sentence), "{verb}: {said}");
        }
        assert!(said.contains("help: run `systemctl unmask tmp.mount`"), "{said}");
    }
    assert!(machine.setup("check").0.starts_with("still usable"));
    for (what, make) in BROKEN {
        let file = path(&machine).join("etc/systemd/system/tmp.mount");
        fs::remove_file(&file).or_else(|_| fs::remove_dir(&file)).unwrap();
        fs::write(&file, "[Mount]\n").unwrap();
        make(&file);
        let (_, said) = machine.setup("check");
        // A directory, and a link that leads nowhere, are no unit.
        let is_unit = ["not UTF-8", "huge"].contains(&what);
        assert_eq!(said.contains("tmp.mount takes the place"), is_unit, "{what}: {said}");
    }
}

/// log2ram#241: with `ZL2R=true`, it takes `/dev/zram0` at boot.
#[test]
fn a_program_that_takes_a_device_at_boot_is_named_by_init() {
    let machine = Machine::new(1_000_000);
    machine.write("etc/systemd/system/log2ram.service", "[Service]\n");
    machine.link("../log2ram.service", "etc/systemd/system/sysinit.target.wants/log2ram.service");
    machine.write("etc/log2ram.conf", "SIZE=40M\nPATH_DISK=\"/var/log\"\nZL2R=true\nCOMP_ALG=lz4\n");
    let (_, said) = machine.init();
    let sentence = "log2ram with ZL2R=true takes zram devices here, too (/etc/systemd/system/sysinit.target.wants/log2ram.service). Until it is disabled, zramd leaves the device to it: set ZL2R=false in /etc/log2ram.conf, or take its settings over with `zramdctl import log2ram` and run `systemctl disable log2ram.service`, then reboot.";
    assert!(said.lines().any(|line| line == sentence), "{said}");
}

/// At each moment, one of both sets the device up at the next boot: a reboot between the steps leaves the machine with swap.
#[test]
fn while_the_other_program_is_set_up_what_was_taken_over_yields_to_it() {
    let machine = Machine::new(8_000_000);
    machine.write(GENERATOR, "x");
    machine.write("etc/systemd/zram-generator.conf", "[zram0]\nzram-size = ram / 2\n");
    let plan = |toml: &str| {
        machine.configure(toml);
        let plan = machine.setup("plan").0;
        fs::remove_file(path(&machine).join("etc/zramd/zramd.toml")).unwrap();
        plan
    };
    // By an import, by init, and by init where the other configuration is that of the distribution.
    let imported = machine.import("zram-generator").0;
    let taken_over = machine.init().0;
    fs::rename(
        path(&machine).join("etc/systemd/zram-generator.conf"),
        path(&machine).join("usr/lib/systemd/zram-generator.conf"),
    )
    .unwrap();
    let measured = machine.init().0;
    for toml in [&imported, &taken_over, &measured] {
        let skipped = plan(toml);
        assert!(skipped.contains("zram0: skipped: it yields to zram-generator"), "{toml}{skipped}");
    }
    fs::remove_file(path(&machine).join(GENERATOR)).unwrap();
    for toml in [&imported, &taken_over, &measured] {
        let planned = plan(toml);
        assert!(planned.contains("GiB of swap") && !planned.contains("zram0: skipped"), "{toml}{planned}");
    }
    // Without another program, nothing yields.
    assert!(!machine.init().0.contains("yield"));
}

/// Where systemd.generator(7) has them, besides that of packages.
#[test]
fn a_generator_of_the_administrator_is_found() {
    for place in ["usr/local/lib/systemd", "etc/systemd", "run/systemd"] {
        let machine = Machine::new(8_000_000);
        machine.configure("[zram0]\nzram-size = \"ram\"\nyield = true\n");
        machine.write("etc/systemd/zram-generator.conf", "[zram0]\nzram-size = ram\n");
        machine.write(&format!("{place}/system-generators/zram-generator"), "x");
        let (plan, _) = machine.setup("plan");
        let skipped = "zram0: skipped: it yields to zram-generator, which sets up zram on this machine (/etc/systemd/zram-generator.conf)";
        assert!(plan.lines().any(|line| line == skipped), "{place}: {plan}");
    }
}

/// openSUSE has a `zramswap.service` of its own, without a file that could be imported (zram-hibernate#5).
#[test]
fn an_import_is_offered_only_where_it_works() {
    let machine = Machine::new(1_000_000);
    machine.configure("[zram0]\nzram-size = \"64MiB\"\n");
    machine.write(WANTS_ZRAMSWAP, "[Service]\nExecStart=/usr/sbin/zramswapon\n");
    let (_, said) = machine.setup("check");
    assert!(said.contains("zramswap.service is configured here too") && !said.contains("import"), "{said}");
    machine.write("etc/default/zramswap", "PERCENT=50\n");
    let (_, said) = machine.setup("check");
    assert!(said.contains("take its settings over with `zramdctl import zram-tools`"), "{said}");
    assert!(machine.import("zram-tools").0.contains("[zram0]"));
}

/// archinstall_zfs#86: links of an image are followed below it.
#[test]
fn absolute_links_of_an_image_are_those_of_the_image() {
    let machine = Machine::new(8_000_000);
    machine.write("usr/lib/systemd/system/zramswap.service", "x");
    machine.link("/usr/lib/systemd/system/zramswap.service", WANTS_ZRAMSWAP);
    machine.write("store/zramd.toml", "[zram0]\nzram-size = \"ram / 2\"\n");
    machine.link("/store/zramd.toml", "etc/zramd/zramd.toml");
    let (plan, _) = machine.setup("plan");
    assert!(plan.starts_with("zram0: 3.8 GiB"), "{plan}");
    assert!(machine.setup("check").1.contains("zramswap.service is configured here too"));
    // One that leads out of the image leads to its root.
    machine.link("/../../../../etc/passwd", "etc/zramd/zramd.toml.d/10-x.conf");
    assert!(!machine.setup("check").1.contains("root:"));
}

/// zram-config#20: a directory with mode 1777 is not replaced by one that only root can write to.
#[test]
fn permissions_of_a_hidden_directory_are_not_lost_silently() {
    let machine = Machine::new(1_000_000);
    for (directory, mode) in [("srv/log", 0o2775), ("srv/plain", 0o755), ("tmp", 0o1777), ("srv/zram", 0o700)]
    {
        let directory = path(&machine).join(directory);
        fs::create_dir_all(&directory).unwrap();
        fs::set_permissions(&directory, fs::Permissions::from_mode(mode)).unwrap();
    }
    let toml = "[ramdisk.tmp]\nmount-point = \"/tmp\"\nsize = \"8MiB\"\n[ramdisk.log]\nmount-point = \"/srv/log\"\nsize = \"8MiB\"\n[ramdisk.plain]\nmount-point = \"/srv/plain\"\nsize = \"8MiB\"\n[zram1]\nmount-point = \"/srv/zram\"\nzram-size = \"8MiB\"\n";
    machine.configure(toml);
    let (_, said) = machine.setup("check");
    let (uid, gid) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    for (place, mode) in [("log", "2775"), ("zram", "0700")] {
        let sentence = format!(
            "/srv/{place} has mode {mode}, owner {uid} and group {gid}, and gets mode 0755, owner 0 and group 0, because none is set"
        );
        assert!(said.contains(&sentence) && said.contains(&format!("write mode = \"{mode}\"")), "{said}");
    }
    if uid == 0 {
        assert!(!said.contains("/srv/plain has") && !said.contains("/tmp has"), "{said}");
    }
    machine.configure(&toml.replace("\nmount-point", "\nmode = \"0755\"\nmount-point"));
    assert!(!machine.setup("check").1.contains("because none is set"));
}

/// linuxrc#294: machines with more than 13 TiB.
#[test]
fn swap_beyond_its_header_is_announced() {
    let machine = Machine::new(32 << 30);
    machine.configure("[zram0]\nzram-size = \"ram\"\n");
    let (_, said) = machine.setup("check");
    let sentence = "warning: zram0.zram-size: the kernel uses the first 16.0 TiB of swap on a device, and this one has 32.0 TiB";
    assert!(said.lines().any(|line| line == sentence), "{said}");
    assert!(machine.init().0.contains("min(3 * ram, 32GiB)"));
}

/// nix-config#280: memory that is reserved as huge pages is neither swapped nor compressed.
#[test]
fn huge_pages_are_not_counted() {
    let machine = Machine::new(8_000_000);
    machine.write("proc/meminfo", "MemTotal: 8000000 kB\nMemAvailable: 450000 kB\nHugetlb: 6144000 kB\n");
    machine.configure(
        "[zram0]\nzram-size = \"3 * ram\"\n[ramdisk.x]\nmount-point = \"/srv/x\"\nsize = \"50%\"\n",
    );
    let (_, said) = machine.setup("check");
    for sentence in [
        "the device can take in 22.9 GiB, more than the 7.1 GiB that this machine's RAM (without 5.9 GiB reserved as huge pages) can hold even if the data compresses well",
        "the RAM disk can hold 3.8 GiB, more than the 1.8 GiB of memory of this machine (without 5.9 GiB reserved as huge pages)",
    ] {
        assert!(said.contains(sentence), "{said}");
    }
    fs::remove_file(path(&machine).join("etc/zramd/zramd.toml")).unwrap();
    let (toml, said) = machine.init();
    assert!(said.contains("5.9 GiB of memory are reserved as huge pages, which are neither swapped nor compressed; the size does not count them."), "{said}");
    machine.configure(&toml);
    let (verdict, said) = machine.setup("check");
    assert!(verdict.starts_with("no mistakes found: 1 zram device"), "{verdict}{said}");
}

/// Figures of a machine are those of the image, or none.
#[test]
fn an_import_for_an_image_states_no_other_memory() {
    let machine = Machine::new(32_768_000);
    machine.write(
        "etc/systemd/zram-generator.conf",
        "[zram1]\nzram-size = min(ram * 0.75, 24576)\nzram-resident-limit = ram * 0.5\nfs-type = ext4\nmount-point = /mnt/zram1\n",
    );
    let (_, said) = machine.import("zram-generator");
    assert!(!said.contains("has no effect"), "{said}");
    fs::remove_file(path(&machine).join("proc/meminfo")).unwrap();
    let (_, said) = machine.import("zram-generator");
    assert!(!said.contains("512.0 GiB") && !said.contains("TiB"), "{said}");
}

/// A public script appends `sudo` to each line.
#[test]
fn stray_words_of_an_import_are_named_and_dropped() {
    let machine = Machine::new(8_013_220);
    machine.write(
        "etc/systemd/zram-generator.conf",
        "[zram0] sudo\nzram-size = ram * 4 sudo\ncompression-algorithm = zstd sudo\n",
    );
    let (toml, said) = machine.import("zram-generator");
    let sentence = "warning: /etc/systemd/zram-generator.conf:3: no kernel has an algorithm named `sudo`; it was left out";
    assert!(said.lines().any(|line| line == sentence), "{said}");
    assert!(
        !toml.contains("recompression-algorithm") && said.contains("zram-generator.conf:2: "),
        "{toml}{said}"
    );
}

/// Public configurations have swap with a limit; when it is reached, the machine hangs (packaging/docs/pressure.md).
#[test]
fn a_limit_on_swap_draws_a_warning() {
    let machine = Machine::new(16_000_000);
    machine.write(
        "etc/systemd/zram-generator.conf",
        "[zram0]\nzram-size = ram\nzram-resident-limit = ram / 2\n",
    );
    let sentence = "when the limit is reached, each page that is swapped out fails, and the machine may hang for minutes";
    let (toml, said) = machine.import("zram-generator");
    assert!(said.contains(sentence), "{said}");
    machine.configure(&toml);
    assert!(machine.setup("check").1.contains(&format!("warning: zram0.zram-resident-limit: {sentence}")));
}
