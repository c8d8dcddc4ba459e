//! Common mistakes: the hint says what to write, and that is not the next mistake.

use crate::config::{context, keys, load};
use crate::support::{golden, mistake};
use logic::finding::Level;

/// A text with one mistake, and its hint.
type Case = (&'static str, &'static str);

/// Each is one problem with this hint.
fn check(name: &str, cases: &[Case]) {
    let mut told = String::new();
    for (text, hint) in cases {
        let loaded = load(&[text]);
        assert_eq!(loaded.problems.len(), 1, "{text}: {:#?}", loaded.problems);
        assert_eq!(loaded.problems[0].remedy, *hint, "{text}");
        told += &mistake(text, &loaded.problems);
    }
    golden(&format!("tests/golden/diagnostics/{name}.txt"), &told);
}

#[test]
fn values_are_corrected() {
    check(
        "corrected",
        &[
            ("[zram0]\nzram-size = 1 GiB", "write zram-size = \"1GiB\""),
            ("[zram0]\nzram-size = 50 %", "write zram-size = \"50%\""),
            ("[zram0]\nzram-size = 1,5 GB", "write zram-size = \"1.5GiB\""),
            ("[zram0]\nzram-size = ram / 2; comment", "write zram-size = \"ram / 2\""),
            ("[zram0]\nzram-size = ram / 2 # comment", "write zram-size = \"ram / 2\""),
            ("[zram0]\nzram-size = min(ram / 2; 4 GiB)", "write zram-size = \"min(ram / 2; 4GiB)\""),
            ("[zram0]\nzram-size = “ram / 2”", "write zram-size = \"ram / 2\""),
            ("[zram0]\nzram-size = \"ram\" / 2", "write zram-size = \"ram / 2\""),
            ("[zram0]\nzram-size = half", "write for example zram-size = \"min(ram / 2, 4GiB)\""),
            ("[zram0]\nzram-size = -1", "write for example zram-size = \"min(ram / 2, 4GiB)\""),
            ("[zram0]\nmax-zram-size = none", "write max-zram-size = \"none\""),
            ("[zram0]\nenabled = Yes", "write enabled = true"),
            (
                "[ramdisk.a]\nmount-point = \"/a\"\npersist = \"snapshot\"\npre-save = /usr/bin/a",
                "write pre-save = \"/usr/bin/a\"",
            ),
            (
                "[ramdisk.a]\nmount-point = \"/a\"\npersist = \"snapshot\"\npre-save = /usr/bin/a --all",
                "write pre-save = [\"/usr/bin/a\", \"--all\"]",
            ),
            (
                "[ramdisk.a]\nmount-point = \"/a\"\npersist = \"snapshot\"\npre-save = [/usr/bin/a,--all]",
                "write pre-save = [\"/usr/bin/a\", \"--all\"]",
            ),
            ("[zram1]\nmount-point = /a\noptions = \"noatime,nodev\"", "write mount-point = \"/a\""),
            ("[zram1]\nmount-point = \"/a\"\noptions = noatime nodev", "write options = \"noatime,nodev\""),
            (
                "[zram1]\nmount-point = \"/a\"\noptions = \"discard,noatime nodev\"",
                "write options = \"discard,noatime,nodev\"",
            ),
            (
                "[zram1]\nmount-point = \"/a\"\noptions = [noatime, nodev]",
                "write options = \"noatime,nodev\"",
            ),
            (
                "[zram0]\ncompression-algorithm = zstd, lz4",
                "write compression-algorithm = [\"zstd\", \"lz4\"]",
            ),
            (
                "[zram0]\ncompression-algorithm = \"zstd, lz4\"",
                "write compression-algorithm = [\"zstd\", \"lz4\"]",
            ),
            (
                "[zram0]\ncompression-algorithm = [zstd, lz4]",
                "write compression-algorithm = [\"zstd\", \"lz4\"]",
            ),
            (
                "[zram0]\ncompression-algorithm = zstd(level=3), lz4, auto",
                "write compression-algorithm = [\"zstd(level=3)\", \"lz4\", \"auto\"]",
            ),
            (
                "[zram0]\ncompression-algorithm = zstd lz4 (type=huge)",
                "write compression-algorithm = \"zstd\", recompression-algorithm = \"lz4\", and in [maintenance] recompress = true",
            ),
            (
                "[ramdisk.a]\nmount-point = \"/a\"\nbackend = \"zram\"\ncompression-algorithm = \"zstd lz4 (type=huge)\"",
                "write compression-algorithm = \"zstd\"",
            ),
            (
                "[zram0]\nrecompression-algorithm = \"zstd (type=huge)\"",
                "write recompression-algorithm = \"zstd\"",
            ),
            ("[zram0]\ncompression-algorithm = \"zstd(levl=3)\"", "did you mean `level`?"),
            ("[zram0]\n[maintenance]\nrecompress = \"yes\"", "write recompress = true"),
            ("[zram0]\n[maintenance]\nrecompress.enabled = \"yes\"", "write recompress.enabled = true"),
            ("[zram0]\n[maintenance.recompress]\nenabled = \"yes\"", "write enabled = true"),
            (
                "[zram0]\n[maintenance]\nrecompress = { threshold = 64, enabled = yes }",
                "write enabled = true",
            ),
            ("[zram1]\nmount-point = \"mnt/x\"", "write \"/mnt/x\""),
            ("[zram1]\nmount-point = \"none\"", "leave this key out"),
            ("[zram1]\nmount-point = \"~/x\"", "write the whole path, from / on"),
            ("[zram1]\nmount-point = \"$HOME/x\"", "write the whole path, from / on"),
            ("[zram1]\nmount-point = \"\"", "write the whole path, from / on"),
            ("[zram1]\nmount-point = \"a/../b\"", "write the whole path, from / on"),
            ("[zram1]\nmount-point = ~/x", "write for example mount-point = \"/var/cache/build\""),
            (
                "[zram1]\nmount-point = \"/a\"\nfs-type = \"tmpfs\"",
                "write a section [ramdisk.NAME] with mount-point and size instead",
            ),
        ],
    );
}

#[test]
fn sections_of_keys_are_named() {
    let vm = "it belongs in [vm], with tune = true";
    check(
        "sections",
        &[
            ("zram-size = 5", "put it below a header such as [zram0]"),
            ("swappiness = 5", "put it below [vm]"),
            ("tune = true\nswappiness = 5", "put them below [vm]"),
            (
                "size = 5\npersist = \"snapshot\"\nmount-point = \"/a\"",
                "put them below a header such as [ramdisk.NAME]",
            ),
            (
                "zram-size = 5\nswappiness = 5\nrecompress = true",
                "put `zram-size` below [zram0], `swappiness` below [vm], `recompress` below [maintenance]",
            ),
            ("zram-size = ram / 2", "put it below a header such as [zram0]; write zram-size = \"ram / 2\""),
            (
                "ALGO = \"zstd\"\nPERCENT = 50",
                "`zramdctl import zram-tools FILE` translates a file of zram-tools",
            ),
            ("[ramdisk]\nmount-point = \"/a\"\nsize = 5", "give the RAM disk a name: [ramdisk.NAME]"),
            ("zram0 = 5", "write [zram0], and its keys below it"),
            ("[vm]\nzram-size = 5", "it belongs in [zramN]"),
            ("[maintenance]\nzram-size = 5", "it belongs in [zramN]"),
            ("[benchmark]\nzram-size = 5", "it belongs in [zramN]"),
            ("[ramdisk.a]\nmount-point = \"/a\"\nzram-size = 5", "did you mean `size`?"),
            ("[zram0]\nsize = 5", "did you mean `zram-size`?"),
            ("[zram0]\npercent = 50", "write a size with a percent sign, such as \"50%\""),
            ("[zram0]\nswappiness = 5", vm),
            ("[zram0]\nvm.swappiness = 5", vm),
            ("[zram0]\ntune = true", "it belongs in [vm]"),
            ("[zram0]\nswappines = 5", "did you mean `swappiness`? it belongs in [vm]"),
            ("[zram0]\nalgo = \"zstd\"", "did you mean `compression-algorithm`?"),
            ("[zram0]\nrecompress = true", "it belongs in [maintenance]"),
            ("[zram0]\nwriteback = true", "it belongs in [maintenance]"),
            (
                "[zram0]\nidle-age = 5",
                "it belongs in [maintenance], as `recompress.idle-age` or `writeback.idle-age`",
            ),
            ("[zram0]\nfoo = 5", "zramd.toml(5) lists all keys"),
            ("[maintenance]\nidle-age = 5", "did you mean `recompress.idle-age` or `writeback.idle-age`?"),
            (
                "[zram0]\nwriteback-device = \"/a\"\n[maintenance]\nwriteback = { idle = \"1d\" }",
                "did you mean `idle-age`?",
            ),
            ("[vm]\ntune = true\nvm.swappiness = 5", "write swappiness"),
            ("[vm]\ntune = true\nvm.watermark_scale_factor = 5", "write watermark-scale-factor"),
            ("[defaults]\nmount-point = \"/a\"", "it belongs in [zramN] or [ramdisk.NAME]"),
        ],
    );
}

#[test]
fn what_was_meant_is_named() {
    check(
        "meant",
        &[
            ("[zram0]\nenabled = 1", "write enabled = true"),
            ("[zram0]\nyield = 0", "write yield = false"),
            ("[zram0]\nwriteback-device = \"UUID=1234-5678\"", "write \"/dev/disk/by-uuid/1234-5678\""),
            ("[zram0]\nwriteback-device = \"sda3\"", "write \"/dev/sda3\""),
            (
                "[zram1]\nmount-point = \"/a\"\noptions = \"noatime;nodev\"",
                "write options = \"noatime,nodev\"",
            ),
            ("[zram1]\nmount-point = \"/a\"\noptions = \"-o noatime\"", "write options = \"noatime\""),
            ("[zram0]\ncompression-algorithm = [\"lzo\", \"atuo\"]", "did you mean \"auto\"?"),
            (
                "[zram0]\ncompression-algorithm = [\"auto\", \"zstd\"]",
                "move \"auto\" to the end, or leave it out",
            ),
            (
                "[zram0]\nrecompression-algorithm = \"auto\"",
                "write a denser algorithm, such as \"zstd\", or leave it out",
            ),
            // Once for both devices, and without any.
            ("[defaults]\nswap-priority = true\n[zram0]\n[zram1]", "write for example swap-priority = 100"),
            ("[defaults]\nzram-size = \"1 Gib\"", "did you mean 1GiB? units are B, KiB, MiB, GiB, TiB"),
            ("[[ramdisk]]\nname = \"x\"", "write [ramdisk.NAME], with single brackets"),
            ("[maintenance.recompres]\nenabled = true", "did you mean `recompress`?"),
            ("[zram0]\n[maintenance.writeback]\ndaily_budget = \"1GiB\"", "did you mean `daily-budget`?"),
            (
                "[zram0]\nzram-size = \"1GiB\"; swap-priority = 5",
                "write it into the next line: swap-priority = 5",
            ),
            (
                "[zram0]\nzram-size = \"1GiB\" swap-priority = 5",
                "write it into the next line: swap-priority = 5",
            ),
            ("[zram0]\nzram-size\u{a0}= \"1GiB\"", "write an ordinary blank"),
            ("[zram0-3]", "device sections are named [zram0], [zram1] and so on"),
            ("[recompress]\nenabled = true", "write [maintenance.recompress]"),
            ("[bench]", "write [benchmark]"),
            ("[swap]", "write [zram0]"),
            ("[tmpfs.a]", "write [ramdisk.NAME]"),
            ("[\"/dev/zram0\"]", "write [zram0]"),
        ],
    );
}

#[test]
fn two_ram_disks_do_not_share_a_store() {
    let disk = |name: &str, store: &str| {
        format!(
            "[ramdisk.{name}]\nmount-point = \"/srv/{name}\"\nsize = \"1GiB\"\npersist = \"snapshot\"\nstore = \"{store}\"\n"
        )
    };
    let refused = |stores: [&str; 2]| {
        let loaded = load(&[&(disk("a", stores[0]) + &disk("b", stores[1]))]);
        let left: Vec<String> = loaded.settings.ramdisks.iter().map(|disk| disk.name.clone()).collect();
        (loaded.problems.iter().map(|problem| problem.key().to_owned()).collect::<Vec<_>>(), left)
    };
    let only_a = (vec!["ramdisk.b.store".to_owned()], vec!["a".to_owned()]);
    assert_eq!(refused(["/var/s", "/var/s"]), only_a);
    assert_eq!(refused(["/var/s", "/srv/a/s"]), only_a);
    assert_eq!(refused(["/var/s", "/var/s/b"]).0, [""; 0]);
    let text = format!("[zram0]\nmount-point = \"/var/cache\"\n{}", disk("b", "/var/cache/b"));
    assert_eq!(load(&[&text]).problems.len(), 1, "the store is on a zram device");
}

#[test]
fn options_with_another_effect_or_a_key_are_named() {
    const DISCARD: &str = "write discard, discard=once or discard=pages, or options = \"\" for none";
    check(
        "options",
        &[
            ("[zram0]\noptions = \"discard=never\"", DISCARD),
            ("[zram0]\noptions = \"nodiscard\"", DISCARD),
            ("[zram0]\noptions = \"discard,pri=5\"", "write swap-priority instead"),
            (
                "[zram1]\nmount-point = \"/a\"\noptions = \"noatime,uid=1000\"",
                "write owner = \"1000\" instead",
            ),
            (
                "[ramdisk.a]\nmount-point = \"/a\"\nsize = \"1GiB\"\noptions = \"size=2G\"",
                "write size = \"2G\" instead",
            ),
            (
                "[ramdisk.a]\nmount-point = \"/a\"\nsize = \"1GiB\"\noptions = \"nr_inodes=many\"",
                "leave it out",
            ),
            (
                "[ramdisk.a]\nmount-point = \"/a\"\nsize = \"1GiB\"\nbackend = \"zram\"\noptions = \"mode=700\"",
                "write mode = \"0700\" instead",
            ),
        ],
    );
    for text in [
        "[zram0]\noptions = \"discard=pages,noatime,x-systemd.device-timeout=9\"",
        "[zram0]\noptions = \"\"",
        "[zram1]\nmount-point = \"/a\"\nfs-type = \"vfat\"\noptions = \"uid=1000\"",
        "[ramdisk.a]\nmount-point = \"/a\"\nsize = \"1GiB\"\nbackend = \"zram\"\noptions = \"nodev\"",
    ] {
        assert_eq!(load(&[text]).problems, [], "{text}");
    }
}

#[test]
fn mistakes_of_syntax_are_in_our_own_words() {
    let both = "write zram-size = \"ram / 2\"; `zramdctl import zram-generator 0.toml` translates a file of zram-generator";
    check(
        "lines",
        &[
            ("[zram0]\nzram-size: \"ram / 2\"", "write zram-size = \"ram / 2\""),
            ("[zram0]\nzram-size = \"ram / 2", "write zram-size = \"ram / 2\""),
            ("[zram0]\nzram-size = 'ram / 2", "write zram-size = \"ram / 2\""),
            ("[zram0]\nzram-size = \"1 GiB\" ; comment", "write # comment"),
            ("[zram0]\nzram-size", "write for example zram-size = \"min(ram / 2, 4GiB)\""),
            ("[zram0]\nzram-size = # comment", "write for example zram-size = \"min(ram / 2, 4GiB)\""),
            ("[zram0]\nzram size = 5", "did you mean `zram-size`?"),
            ("[zram0]\nswap-priority = 5\nswap-priority = 6", "keep one of them, here or in line 2"),
            (
                "[maintenance]\nrecompress = true\n[maintenance.recompress]",
                "keep one of them, here or in line 2",
            ),
            (
                "[maintenance]\nrecompress = true\nrecompress.idle-age = \"1h\"",
                "write recompress.enabled = true there",
            ),
            ("[zram0]\n[zram1]\n[zram0]\nzram-size = 5", "move its keys below the [zram0] in line 1"),
            ("[zram0\nzram-size = 5", "write [zram0]"),
            ("[zram0] zram-size = 5", "write it into the next line"),
            ("[zram0] ; swap", "write # swap"),
            ("[zram+1]", "write [zram1]"),
            ("[ramdisk.]", "write [ramdisk.NAME]"),
            ("; comment\n[zram0]", "write # comment"),
            (
                "{\"zram0\": {}}",
                "write a header such as [zram0], and below it assignments such as zram-size = \"ram / 2\"; the whole file is ignored until this is fixed",
            ),
            ("[zram0]\nhost-memory-limit = none", "write host-memory-limit = \"none\""),
            ("[zram0]\nzram-size = min(ram / 2, 4096)", "write zram-size = \"min(ram / 2, 4096)\""),
        ],
    );
    let pasted = load(&["[zram0]\nzram-size = ram / 2\ncompression-algorithm = zstd\n"]);
    let hints: Vec<_> = pasted
        .problems
        .iter()
        .map(|problem| problem.remedy.as_str())
        .filter(|text| !text.is_empty())
        .collect();
    assert_eq!(hints, [both, "write compression-algorithm = \"zstd\""]);
}

/// A mistake hides no other, and causes no other.
#[test]
fn mistakes_are_reported_at_once() {
    let error = |sentence| (Level::Error, sentence);
    let warning = |sentence| (Level::Warning, sentence);
    for (text, expected) in [
        (
            "[zram0]\nzram-size = \"ram / 2\nswap-priorty = 100\nswap-priority = 40000\n[zram1]\nlabel = 5\n",
            &[
                error("0.toml:2: zram0.zram-size: the closing \" is missing"),
                warning("0.toml:3: zram0.swap-priorty: unknown key `swap-priorty`"),
                error("0.toml:4: zram0.swap-priority: expected -1 to 32767, not 40000"),
                error("0.toml:6: zram1.label: expected text, not 5"),
            ][..],
        ),
        (
            "[ramdisk.a]\nmount-point = \"/srv/a\"\nsize \"8MiB\"\n[ramdisk.a]\nmode = 755\n[zram0]\nzram-size = \"ram /\"\n",
            &[
                error("0.toml:3: ramdisk.a: `size` is without ="),
                error("0.toml:4: [ramdisk.a] is repeated"),
                error("0.toml:7: zram0.zram-size: the expression ends too early"),
            ],
        ),
        (
            "[zram0]\ncompression-algorithm = [\"zstd\", \"lz4\"\nswap-priority = 5\nzram-sze = 5\n[maintenance]\ninterval = 5\n",
            &[
                error("0.toml:2: zram0.compression-algorithm: the closing ] is missing"),
                warning("0.toml:4: zram0.zram-sze: unknown key `zram-sze`"),
                error("0.toml:6: maintenance.interval: expected span of time of at least 1min, not 5"),
            ],
        ),
        (
            "[zram0\nzram-size = 5\n[zram1]\nswap-priority = \"x\"\n",
            &[
                error("0.toml:1: the header has no closing ]"),
                error("0.toml:4: zram1.swap-priority: expected -1 to 32767, not \"x\""),
            ],
        ),
        (
            "[zram0]\nzram-size = \"\"\"ram / 2\nswap-priorty = 5\n[zram1]\nlabel = 5\n",
            &[
                error("0.toml:2: zram0.zram-size: the closing \"\"\" is missing"),
                warning("0.toml:3: zram0.swap-priorty: unknown key `swap-priorty`"),
                error("0.toml:5: zram1.label: expected text, not 5"),
            ],
        ),
        (
            "[maintenance]\npressure = { moderate = 30 } 5\n[zram0]\nlabel = 5\n",
            &[
                error("0.toml:2: maintenance.pressure: `5` after the value is not expected"),
                error("0.toml:4: zram0.label: expected text, not 5"),
            ],
        ),
        (
            "[maintenance]\npressure = { moderate = \"30 }\n[zram0]\nlabel = 5\n",
            &[
                error("0.toml:2: maintenance.pressure: the closing \" is missing"),
                error("0.toml:4: zram0.label: expected text, not 5"),
            ],
        ),
        (
            "[ramdisk.x]\nmount_point = \"/srv/x\"\nsize = \"8MiB\"\n",
            &[error("0.toml:2: ramdisk.x.mount_point: unknown key `mount_point`")],
        ),
    ] {
        let loaded = load(&[text]);
        let found: Vec<(Level, String)> =
            loaded.problems.iter().map(|found| (found.level, found.sentence())).collect();
        let found: Vec<(Level, &str)> =
            found.iter().map(|(level, sentence)| (*level, sentence.as_str())).collect();
        assert_eq!(found, expected, "{text}");
        assert_eq!(loaded.settings.devices, [], "{text}");
    }
}

/// Text, and what is not TOML, for every key.
const WRITTEN: [&str; 24] = [
    "1 GiB",
    "50 %",
    "1,5GB",
    "ram / 2; x",
    "“ram / 2”",
    "half",
    "none",
    "-1",
    "180",
    "755",
    "yes",
    "True",
    "a b",
    "a, b",
    "[a, b]",
    "zstd lz4",
    "zstd, lz4",
    "zstd lz4 (type=huge)",
    "zstd(levl=3)",
    "~/x",
    "x/y",
    "Ext4",
    "tmpfs",
    "/bin/x y",
];

/// If a hint has a value, the parser of the key accepts it.
#[test]
fn no_hint_is_the_next_mistake() {
    let mut followed = 0;
    for (kind, key) in keys() {
        let before = context(kind, key.name);
        let line = u32::try_from(before.lines().count()).unwrap() + 1;
        for written in WRITTEN.iter().flat_map(|text| [(*text).to_owned(), format!("\"{text}\"")]) {
            let text = format!("{before}{} = {written}\n", key.name);
            for problem in load(&[&text]).problems.iter().filter(|problem| problem.line() == line) {
                let hint = &problem.remedy;
                if hint.is_empty() {
                    continue;
                }
                let meant = hint.strip_prefix("write for example ").or(hint.strip_prefix("write "));
                let Some(meant) = meant.filter(|meant| meant.starts_with(key.name)) else { continue };
                let two = meant.replace(", recompression-algorithm", "\nrecompression-algorithm");
                let two = two.replace(", and in [maintenance] ", "\n[maintenance]\n");
                let problems = load(&[&format!("{before}{two}\n")]).problems;
                let next = problems.iter().find(|problem| problem.level == Level::Error);
                assert_eq!(next, None, "{text}: {hint}");
                followed += 1;
            }
        }
    }
    assert!(followed > 500, "{followed}");
}
