//! packaging/manifest is the single list of files, and each recipe packages exactly these.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};
use std::process::Command;

use crate::apart::{command_for, outside};
use crate::support::{CTL, has_program, repository, skip, texts, write_program};
use logic::finding::{Code, Finding, Level};
use toml::de::{DeTable, DeValue};

/// A file or link of the package.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Entry {
    /// Source and mode.
    File(String, u32),
    /// Target.
    Link(String),
}

type Files = BTreeMap<String, Entry>;

fn read(path: &str) -> String {
    fs::read_to_string(repository(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn insert(files: &mut Files, destination: &str, entry: Entry) {
    let destination = format!("/{}", destination.trim_start_matches('/'));
    assert!(files.insert(destination.clone(), entry).is_none(), "{destination} is there twice");
}

fn manifest() -> Files {
    listed_in("packaging/manifest")
}

/// Files of the package zramd-defaults.
fn defaults() -> Files {
    listed_in("packaging/manifest-defaults")
}

fn listed_in(manifest: &str) -> Files {
    let mut files = Files::new();
    for line in read(manifest).lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
        let [source, destination, mode] = line.split_whitespace().collect::<Vec<_>>()[..] else {
            panic!("{line}: not three words")
        };
        let entry = match mode {
            "link" => Entry::Link(source.to_owned()),
            mode => Entry::File(source.to_owned(), u32::from_str_radix(mode, 8).unwrap()),
        };
        insert(&mut files, destination, entry);
    }
    files
}

/// The path that a link at `place` leads to.
fn target(place: &str, link: &str) -> String {
    let mut out = PathBuf::new();
    for part in Path::new(place).parent().unwrap().join(link).components() {
        match part {
            Component::ParentDir => assert!(out.pop()),
            part => out.push(part),
        }
    }
    out.to_str().unwrap().to_owned()
}

fn with_cargo_toml<T>(look: impl FnOnce(&DeValue) -> T) -> T {
    let text = read("Cargo.toml");
    look(&DeValue::Table(DeTable::parse(&text).unwrap().into_inner()))
}

fn text<'a>(value: &'a DeValue, key: &str) -> &'a str {
    value[key].get_ref().as_str().unwrap()
}

#[test]
fn sources_exist_and_links_lead_to_what_is_installed() {
    let files = manifest();
    for (destination, entry) in files.iter().chain(&defaults()) {
        match entry {
            Entry::Link(link) => {
                assert!(files.contains_key(&target(destination, link)), "{destination} leads nowhere");
            }
            Entry::File(source, _) => {
                if let Some(program) = source.strip_prefix("target/release/") {
                    let declared = format!("name = \"{program}\"");
                    assert!(read("Cargo.toml").contains(&declared), "{program} is no program");
                } else if !source.starts_with("completions:") {
                    assert!(repository(source).is_file(), "{source} does not exist");
                }
            }
        }
    }
}

#[test]
fn install_follows_the_manifest() {
    let directory = tempfile::tempdir().unwrap();
    let (target, root) = (directory.path().join("target"), directory.path().join("root"));
    let files = manifest();
    for entry in files.values() {
        if let Entry::File(source, _) = entry
            && let Some(built) = source.strip_prefix("target/")
        {
            let built = target.join(built);
            fs::create_dir_all(built.parent().unwrap()).unwrap();
            fs::write(built, source).unwrap();
        }
    }
    let zramdctl = Path::new(CTL);
    let install = |root: &Path, zramdctl: &Path| {
        let mut command = command_for(repository("packaging/install"));
        command.env("CARGO_TARGET_DIR", &target).env("ZRAMDCTL", zramdctl);
        command.arg("--destdir").arg(root).output().unwrap()
    };
    let output = install(&root, zramdctl);
    assert!(output.status.success(), "{output:?}");
    let printed = command_for(zramdctl).args(["completions", "zsh"]).output().unwrap().stdout;
    assert_eq!(fs::read(root.join("usr/share/zsh/site-functions/_zramdctl")).unwrap(), printed);

    assert_eq!(installed(&root), without_sources(files));

    let alone = directory.path().join("defaults");
    let mut command = command_for(repository("packaging/install"));
    let output = command.arg("--destdir").arg(&alone).arg("--defaults").output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(installed(&alone), without_sources(defaults()));

    let other = directory.path().join("other");
    assert!(!install(&other, Path::new("/bin/false")).status.success(), "no completions");
    fs::remove_file(target.join("release/zramd")).unwrap();
    assert!(!install(&other, zramdctl).status.success(), "a program is missing");
}

/// All files below a directory, without their sources.
fn installed(root: &Path) -> Files {
    let mut found = Files::new();
    let mut directories = vec![root.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let destination = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
            if path.is_symlink() {
                let link = fs::read_link(&path).unwrap();
                insert(&mut found, &destination, Entry::Link(link.to_str().unwrap().to_owned()));
            } else if path.is_dir() {
                directories.push(path);
            } else {
                let mode = path.metadata().unwrap().permissions().mode() & 0o7777;
                insert(&mut found, &destination, Entry::File(String::new(), mode));
            }
        }
    }
    found
}

fn without_sources(mut files: Files) -> Files {
    for entry in files.values_mut() {
        if let Entry::File(source, _) = entry {
            source.clear();
        }
    }
    files
}

#[test]
fn the_spec_packages_the_manifest() {
    assert_eq!(files_of_spec("%files"), manifest().into_keys().collect::<Vec<_>>());
    assert_eq!(files_of_spec("%files defaults"), defaults().into_keys().collect::<Vec<_>>());
}

/// Paths in a list of files of the spec.
fn files_of_spec(heading: &str) -> Vec<String> {
    const MACROS: [(&str, &str); 10] = [
        ("%{_bindir}", "/usr/bin"),
        ("%{_datadir}", "/usr/share"),
        ("%{_docdir}", "/usr/share/doc"),
        ("%{_journalcatalogdir}", "/usr/lib/systemd/catalog"),
        ("%{_mandir}", "/usr/share/man"),
        ("%{_prefix}", "/usr"),
        ("%{_presetdir}", "/usr/lib/systemd/system-preset"),
        ("%{_systemdgeneratordir}", "/usr/lib/systemd/system-generators"),
        ("%{_udevrulesdir}", "/usr/lib/udev/rules.d"),
        ("%{_userunitdir}", "/usr/lib/systemd/user"),
    ];
    let spec = read("packaging/fedora/zramd.spec");
    let (_, list) = spec.split_once(&format!("\n{heading}\n")).unwrap();
    let (list, _) = list.split_once("\n\n").unwrap();
    let mut found = Vec::new();
    let is_file =
        |line: &&str| !["%dir ", "%license ", "%if ", "%endif"].iter().any(|word| line.starts_with(word));
    for line in list.lines().filter(is_file) {
        let mut path = line.trim_start_matches("%doc ").replace("%{_unitdir}", "/usr/lib/systemd/system");
        for (name, value) in MACROS {
            path = path.replace(name, value);
        }
        assert!(!path.contains('%'), "{path}: which macro is that?");
        // Manual pages are compressed in different ways.
        found.push(path.strip_suffix('*').map(str::to_owned).unwrap_or(path));
    }
    found.sort();
    found
}

/// The part of a script that detects other programs.
fn tells(script: &str) -> &str {
    let (_, part) = script.split_once("    zramdctl doctor").unwrap();
    part.split_once("\n    done || :\n").unwrap().0
}

#[test]
fn every_package_tells_once_what_doctor_finds_of_other_programs() {
    let scripts =
        ["packaging/debian/postinst", "packaging/arch/zramd-daemon.install", "packaging/fedora/zramd.spec"];
    let scripts = scripts.map(read);
    let say = scripts[0].lines().find(|line| line.starts_with("say()")).unwrap().to_owned();
    let [first, others @ ..] = scripts.each_ref().map(|script| tells(script));
    assert_eq!(others, [first; 2]);
    // With the output of `doctor`, it names the files.
    let directory = tempfile::tempdir().unwrap();
    let finding = |code, object: &str| Finding::new(Level::Warning, code, object, "\"x\"", "");
    let found = [
        finding(Code::ImportOffered, "/a"),
        finding(Code::ZswapActive, "/b"),
        finding(Code::ForeignManager, "/c d"),
    ];
    let printed = serde_json::json!({ "schema_version": 1 }).to_string();
    let printed =
        printed.replace('}', &format!(",\"problems\":{}}}", serde_json::to_string(&found).unwrap()));
    let program = directory.path().join("zramdctl");
    fs::write(directory.path().join("printed"), printed).unwrap();
    write_program(&program, "#!/bin/sh\ncat \"${0%/*}/printed\"\nexit 3\n");
    let run = |shell: &str| {
        let path = format!("{}:{}", directory.path().display(), std::env::var("PATH").unwrap());
        let script = format!("set -e\n{say}\nzramdctl doctor{first}\n    done || :\necho end");
        let output = command_for(shell).arg("-c").arg(script).env("PATH", path).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let told = run("sh");
    let files: Vec<&str> =
        told.lines().filter_map(|line| line.split_once(" belongs to ")).map(|(file, _)| file).collect();
    assert_eq!(files, ["zramd: /a", "zramd: /c d"], "{told}");
    fs::write(directory.path().join("printed"), "").unwrap();
    assert_eq!(run("sh"), "end\n");
}

#[test]
fn recipes_use_the_common_build_and_install_scripts() {
    for recipe in ["debian/rules", "fedora/zramd.spec", "arch/PKGBUILD"] {
        let recipe_text = read(&format!("packaging/{recipe}"));
        for step in [
            "packaging/build\n",
            "packaging/install --destdir ",
            "packaging/install --defaults --destdir ",
            "packaging/cargo test\n",
        ] {
            assert_eq!(recipe_text.matches(step).count(), 1, "{recipe}: {step}");
        }
    }
    for entry in fs::read_dir(repository("packaging/debian")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let installs = ["install", "links", "manpages", "docs", "examples"].iter();
        assert!(!installs.into_iter().any(|kind| name.ends_with(kind)), "{name} installs files of its own");
    }
}

#[test]
fn recipes_agree_about_versions() {
    let [version, rust] = with_cargo_toml(|cargo| {
        ["version", "rust-version"]
            .map(|key| text(cargo["workspace"].get_ref()["package"].get_ref(), key).to_owned())
    });
    for (file, line) in [
        ("debian/changelog", format!("zramd ({version}-1) unstable; urgency=medium\n")),
        ("fedora/zramd.spec", format!("\nVersion:        {version}\n")),
        ("arch/PKGBUILD", format!("\npkgver={version}\n")),
        ("debian/control", format!("cargo (>= {rust})")),
        ("debian/control", format!("rustc (>= {rust})")),
        ("fedora/zramd.spec", format!("cargo >= {rust}\n")),
        ("fedora/zramd.spec", format!("rust >= {rust}\n")),
    ] {
        assert!(read(&format!("packaging/{file}")).contains(&line), "{file}: not {}", line.trim());
    }
}

/// What only the publisher knows is in one file, and derived files return to what they were when it is emptied.
#[test]
fn what_the_publisher_knows_is_in_one_file() {
    if !has_program("python3") {
        return skip("needs python3");
    }
    let tree = tempfile::tempdir().unwrap();
    let root = tree.path();
    let script = "cd \"$1\"; cp -r packaging *.md Cargo.toml \"$2\"; install -D daemon/client/man.rs \"$2/daemon/client/man.rs\"";
    let copy = command_for("sh").args(["-ec", script, "sh"]).arg(repository("")).arg(root).output().unwrap();
    assert!(copy.status.success(), "{copy:?}");
    let derive = |arguments: &[&str]| {
        let output = command_for(root.join("packaging/derive")).args(arguments).output().unwrap();
        let (printed, complained) = texts(&output);
        (output.status.code(), printed, complained)
    };
    let line = |file: &str, line: &str| {
        let text = fs::read_to_string(root.join(file)).unwrap();
        text.lines().any(|found| found == line)
    };
    let filled = [
        ("Cargo.toml", "repository = \"https://forge.example.org/zramd/zramd\""),
        ("packaging/debian/control", "Maintainer: Ada Example <ada@example.org>"),
        ("packaging/debian/control", "Homepage: https://forge.example.org/zramd/zramd"),
        ("packaging/debian/control", "Vcs-Git: https://forge.example.org/zramd/zramd.git"),
        ("packaging/debian/upstream/metadata", "Bug-Database: https://forge.example.org/zramd/zramd/issues"),
        ("packaging/fedora/zramd.spec", "URL:            https://forge.example.org/zramd/zramd"),
        ("packaging/arch/PKGBUILD", "# Maintainer: Ada Example <ada@example.org>"),
        ("packaging/arch/PKGBUILD", "url='https://forge.example.org/zramd/zramd'"),
        ("packaging/man/zramd.8", "Report problems at https://forge.example.org/zramd/zramd/issues."),
    ];

    let here = read("packaging/upstream");
    let names = ["repository", "tracker", "security", "maintainer", "signing-key"];
    let empty: String = names.iter().map(|name| format!("{name} =\n")).collect();
    fs::write(root.join("packaging/upstream"), &empty).unwrap();
    assert_eq!(derive(&["--missing"]).1.lines().collect::<Vec<_>>(), names);
    let released = command_for(root.join("packaging/release")).arg("--check").output().unwrap();
    let (_, missing) = texts(&released);
    for name in names {
        assert!(missing.contains(&format!("packaging/upstream: {name} is missing\n")), "{missing}");
    }
    assert_eq!(released.status.code(), Some(1), "{missing}");
    assert_eq!(derive(&[]).0, Some(0));
    for (file, text) in filled {
        assert!(!line(file, text), "{file} has {text} without packaging/upstream");
    }

    fs::copy(repository("packaging/upstream.sample"), root.join("packaging/upstream")).unwrap();
    assert_eq!(derive(&["--missing"]).1, "");
    let (status, _, stale) = derive(&["--check"]);
    assert!(status == Some(1) && stale.contains("packaging/debian/control is not"), "{stale}");
    assert_eq!(derive(&[]).0, Some(0));
    assert_eq!(derive(&["--check"]).0, Some(0));
    let (_, missing) = texts(&command_for(root.join("packaging/release")).arg("--check").output().unwrap());
    assert!(!missing.contains("packaging/upstream"), "{missing}");
    for (file, text) in filled {
        assert!(line(file, text), "{file} lacks {text}");
    }
    let unknown = format!("{empty}licence = MIT\n");
    fs::write(root.join("packaging/upstream"), unknown).unwrap();
    let (status, _, said) = derive(&[]);
    assert!(status == Some(1) && said.starts_with("packaging/upstream:6: expected"), "{said}");

    fs::write(root.join("packaging/upstream"), here).unwrap();
    assert_eq!(derive(&[]).0, Some(0));
    for (file, _) in filled {
        assert_eq!(fs::read_to_string(root.join(file)).unwrap(), read(file), "{file}: run packaging/derive");
    }
}

#[test]
fn each_direct_crate_has_its_reason_in_architecture() {
    let text = read("ARCHITECTURE.md");
    let (_, section) = text.split_once("\n## Crates\n").unwrap();
    let table = section.lines().take_while(|line| !line.starts_with("## "));
    let mut named: Vec<String> = table
        .filter_map(|line| {
            let (name, reason) = line.strip_prefix("| `")?.split_once("` | ")?;
            assert!(reason.len() > "x |".len(), "{name} has no reason");
            Some(name.to_owned())
        })
        .collect();
    named.sort();
    let mut direct: Vec<String> = with_cargo_toml(|cargo| {
        let table = cargo["workspace"].get_ref()["dependencies"].get_ref().as_table().unwrap();
        table.keys().map(ToString::to_string).collect()
    });
    direct.sort();
    assert_eq!(named, direct);
    let rooms =
        fs::read_dir(repository("daemon")).unwrap().map(|room| room.unwrap().path().join("Cargo.toml"));
    let users: String =
        rooms.filter_map(|file| fs::read_to_string(file).ok()).collect::<String>() + &read("Cargo.toml");
    for name in direct {
        assert!(users.contains(&format!("\n{name}.workspace = true\n")), "{name} is not used");
    }
}

/// Crates in two versions, with the reason.
const DOUBLE: [(&str, &str); 1] =
    [("syn", "while programs are built only: crossterm's and ratatui's macros are not on version 3 yet")];

/// Licences of crates that may be compiled in: they only require attribution.
const LICENCES: [&str; 10] = [
    "MIT",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "ISC",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

fn is_ours(crate_name: &str) -> bool {
    [
        "zramd",
        "zramd-logic",
        "zramd-host",
        "zramd-engine",
        "zramd-bench",
        "zramd-import",
        "zramd-service",
        "zramd-client",
        "zramd-sim",
        "zramd-store",
    ]
    .contains(&crate_name)
}

/// Whether an SPDX expression allows one of these licences. `/` is an old spelling of `OR`.
fn is_allowed(expression: &str) -> bool {
    let every = |all: &str| {
        all.split(" AND ").all(|part| {
            part.trim_matches(['(', ')'])
                .split(" OR ")
                .any(|licence| LICENCES.contains(&licence.trim_matches(['(', ')'])))
        })
    };
    // Deeper nesting does not occur, and is not allowed.
    every(&expression.replace('/', " OR "))
}

#[test]
fn crates_have_one_version_come_from_one_place_and_have_licences_that_allow_it() {
    assert!(is_allowed("MIT/Apache-2.0") && is_allowed("(MIT OR GPL-2.0) AND Unicode-3.0"));
    assert!(!is_allowed("GPL-2.0-only") && !is_allowed("MIT AND GPL-3.0") && !is_allowed(""));
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    if !outside(cargo).arg("--version").output().is_ok_and(|output| output.status.success()) {
        skip("needs cargo, which this user cannot run");
        return;
    }
    let output = outside(repository("packaging/cargo"))
        .args([
            "metadata",
            "--offline",
            "--format-version=1",
            "--filter-platform",
            "x86_64-unknown-linux-gnu",
        ])
        .output()
        .unwrap();
    if String::from_utf8_lossy(&output.stderr).contains("retry without `--offline`") {
        skip("needs the crates, which this user has not fetched");
        return;
    }
    assert!(output.status.success(), "{output:?}");
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    let packages = metadata["packages"].as_array().unwrap();
    assert!(packages.len() > 100, "{}", packages.len());
    let mut names: Vec<String> = packages.iter().map(|package| text(&package["name"])).collect();
    names.sort();
    let double: Vec<&String> =
        names.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| &pair[0]).collect();
    assert_eq!(double, DOUBLE.map(|(name, _)| name), "one version of each, or a reason in DOUBLE");
    for package in packages.iter().filter(|package| !is_ours(&text(&package["name"]))) {
        let (name, licence, source) =
            (text(&package["name"]), text(&package["license"]), text(&package["source"]));
        assert!(is_allowed(&licence), "{name}: {licence}");
        assert!(
            source.starts_with("registry+https://github.com/rust-lang/crates.io-index"),
            "{name}: {source}"
        );
    }
}

#[test]
fn xml_files_are_valid() {
    const POLICY_DTD: &str = "/usr/share/polkit-1/policyconfig-1.dtd";
    if !has_program("xmllint") {
        skip("needs xmllint");
        return;
    }
    let lint = |options: &[&str], file: &str| {
        let output = outside("xmllint")
            .args(["--nonet", "--noout"])
            .args(options)
            .arg(repository(file))
            .output()
            .unwrap();
        assert!(output.status.success() && output.stderr.is_empty(), "{file}: {output:?}");
    };
    lint(&[], "units/org.zramd1.conf");
    if Path::new(POLICY_DTD).exists() {
        lint(&["--dtdvalid", POLICY_DTD], "units/org.zramd1.policy");
    } else {
        skip("needs polkit's DTD");
    }
    for entry in fs::read_dir(repository("packaging/interfaces")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        lint(&[], &format!("packaging/interfaces/{name}"));
    }
}

#[test]
fn every_interface_and_example_is_packaged() {
    let manifest = manifest();
    for (directory, place) in [
        ("packaging/interfaces", "/usr/share/dbus-1/interfaces"),
        ("packaging/examples", "/usr/share/doc/zramd/examples"),
    ] {
        for entry in fs::read_dir(repository(directory)).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            let found = manifest.get(&format!("{place}/{name}"));
            assert_eq!(found, Some(&Entry::File(format!("{directory}/{name}"), 0o644)), "{name}");
        }
    }
}

#[test]
fn the_default_configuration_makes_a_swap_and_takes_precedence_over_the_preset() {
    let loaded = logic::config::load(&[("defaults.toml".into(), read("config/defaults.toml"))], "");
    assert_eq!(loaded.problems, []);
    assert!(loaded.settings.devices.iter().all(|device| device.yields));
    // systemd.preset(5): the first file that names a unit counts.
    assert_eq!(read("units/85-zramd-defaults.preset").lines().last(), Some("enable zramd.service"));
}

#[test]
fn the_preset_of_the_daemon_enables_no_unit() {
    let preset = read("units/90-zramd.preset");
    let disabled: Vec<&str> = preset.lines().filter_map(|line| line.strip_prefix("disable ")).collect();
    let can_be_enabled: Vec<String> = manifest()
        .into_iter()
        .filter_map(|(path, entry)| match entry {
            Entry::File(source, _)
                if source.starts_with("units/") && read(&source).contains("\n[Install]\n") =>
            {
                Some(path.rsplit('/').next().unwrap().to_owned())
            }
            _ => None,
        })
        .collect();
    assert_eq!(
        can_be_enabled,
        ["zramd-drain.service", "zramd-metrics.socket", "zramd-textfile.timer", "zramd.service"]
    );
    for unit in &can_be_enabled {
        assert!(disabled.contains(&unit.as_str()), "{unit}");
    }
    assert_eq!(disabled.len(), can_be_enabled.len());
    assert!(!preset.lines().any(|line| line.starts_with("enable")));
}

/// The daemon has to be enabled by the administrator, and is not bus-activated. The package recipes install what the
/// manifest has.
#[test]
fn the_daemon_is_not_bus_activated() {
    for (path, entry) in manifest() {
        assert!(!path.contains("/dbus-1/system-services/") && !path.contains("/dbus-1/services/"), "{path}");
        let Entry::File(source, _) = entry else { continue };
        // The first is the file for dbus-daemon; the second the unit name for activation through PID 1.
        if source.starts_with("units/") {
            let text = read(&source);
            assert!(!text.contains("[D-BUS Service]") && !text.contains("Alias=dbus-"), "{source}");
        }
    }
}

/// The scripts of a recipe that run before and after a removal, and after a purge.
struct Scripts {
    recipe: &'static str,
    before: String,
    after: String,
    purge: Option<String>,
}

/// A section of the spec, without systemd's macros.
fn scriptlet(spec: &str, from: &str, to: &str) -> String {
    let (_, rest) = spec.split_once(&format!("\n{from}\n")).unwrap();
    let (section, _) = rest.split_once(&format!("\n{to}\n")).unwrap();
    let lines = section.lines().filter(|line| !line.starts_with('%'));
    lines.map(|line| line.replace("%%", "%") + "\n").collect()
}

fn scripts() -> [Scripts; 3] {
    let (spec, arch) = (read("packaging/fedora/zramd.spec"), read("packaging/arch/zramd-daemon.install"));
    let (prerm, postrm) = (read("packaging/debian/prerm"), read("packaging/debian/postrm"));
    let with = |argument: &str, script: &str| format!("set -- {argument}\n{script}");
    [
        Scripts {
            recipe: "debian",
            before: with("remove", &prerm),
            after: with("remove", &postrm),
            purge: Some(with("purge", &postrm)),
        },
        Scripts {
            recipe: "fedora",
            before: with("0", &scriptlet(&spec, "%preun", "%postun")),
            after: with("0", &scriptlet(&spec, "%postun", "%files")),
            purge: None,
        },
        Scripts {
            recipe: "arch",
            before: format!("{arch}\npre_remove"),
            after: format!("{arch}\npost_remove"),
            purge: None,
        },
    ]
}

/// A machine for these scripts, below a directory.
struct Scratch(tempfile::TempDir);

impl Scratch {
    fn new() -> Scratch {
        let scratch = Scratch(tempfile::tempdir().unwrap());
        for (program, text) in [
            ("bin/systemctl", "exit 1"),
            ("bin/deb-systemd-invoke", "exit 1"),
            ("bin/zramdctl", "sleep 60"),
            (
                "usr/lib/zramd/zramd-worker",
                "cat >/dev/null
                 echo \"$*\" >>\"$0.calls\"
                 case $2 in scratch) exit 5 ;; esac
                 echo \"snapshot of $2\" && [ ! -e \"$0.fails\" ]",
            ),
            (
                "usr/lib/zramd/zramd-setup",
                r#"echo '{ "store": "/var/lib/zramd/disks/logs" }, { "store": "/srv/snap shots" }, { "store": "" }'"#,
            ),
        ] {
            let path = scratch.path(program);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            let text = text.replace("/var/lib/zramd", scratch.path("var/lib/zramd").to_str().unwrap());
            write_program(&path, &format!("#!/bin/sh\n{text}\n"));
        }
        // `old` is not mounted, `logs` twice, and something else below it; mount points do not count.
        let places = ["logs", "scratch", "logs/below", "logs", ""];
        let line = |place: &&str| {
            format!(
                "1 2 0:3 / {} rw - tmpfs d rw\n",
                scratch.path(&format!("run/zramd/ramdisk/{place}")).display()
            )
        };
        scratch.write("proc/self/mountinfo", &places.iter().map(line).collect::<String>());
        scratch
    }

    fn path(&self, path: &str) -> PathBuf {
        self.0.path().join(path)
    }

    fn write(&self, path: &str, text: &str) {
        fs::create_dir_all(self.path(path).parent().unwrap()).unwrap();
        fs::write(self.path(path), text).unwrap();
    }

    /// A command that runs a script with the paths of this machine.
    fn command(&self, script: &str) -> Command {
        let mut script = script.to_owned();
        for path in [
            "/etc/zramd",
            "/etc/systemd/",
            "/proc/self/mountinfo",
            "/var/lib/zramd",
            "/run/zramd",
            "/run/systemd/",
            "/usr/lib/zramd",
        ] {
            script = script.replace(path, &format!("{}{path}", self.0.path().display()));
        }
        let programs = format!("{}:/usr/bin:/bin", self.path("bin").display());
        let mut command = command_for("/bin/sh");
        command.args(["-e", "-c", &script]).env("PATH", programs);
        command
    }

    /// Runs a script, and returns what it prints.
    #[track_caller]
    fn run(&self, script: &str) -> String {
        let output = self.command(script).output().unwrap();
        assert!(output.status.success() && output.stderr.is_empty(), "{output:?}\n{script}");
        String::from_utf8(output.stdout).unwrap().replace(self.0.path().to_str().unwrap(), "")
    }

    /// What the worker was called with.
    fn calls(&self) -> String {
        fs::read_to_string(self.path("usr/lib/zramd/zramd-worker.calls")).unwrap_or_default()
    }
}

/// What an administrator made, and snapshots.
const MADE: [&str; 6] = [
    "etc/zramd/zramd.toml.off",
    "etc/zramd/zramd.toml.d/99-zramdctl.toml",
    "var/lib/zramd/disks/logs/gen-1.tar.zst",
    "var/lib/zramd/notes",
    "run/zramd/zramd.toml.d/mine.toml",
    "srv/snapshots/gen-2.tar.zst",
];
/// What a purge removes.
const MEASURED: [&str; 7] = [
    "var/lib/zramd/benchmark.json",
    "var/lib/zramd/.benchmark.json.new",
    "var/lib/zramd/budget.json",
    "run/zramd/operation",
    "run/zramd/zramd.toml.d/zz-runtime-zram0.toml",
    "etc/systemd/system/multi-user.target.wants/zramd.service",
    "etc/systemd/system/sockets.target.wants/zramd-metrics.socket",
];

#[test]
fn a_removal_keeps_what_was_made_and_says_where_it_is() {
    for Scripts { recipe, before, after, purge } in scripts() {
        // With systemd, and without.
        for directory in ["run/systemd/system", "run"] {
            let scratch = Scratch::new();
            fs::create_dir_all(scratch.path(directory)).unwrap();
            for path in MADE.iter().chain(&MEASURED) {
                scratch.write(path, path);
            }
            let store = scratch.path("srv/snapshots");
            let config = format!("[ramdisk]\nother.store='{}' # a disk\n", store.display());
            scratch.write("etc/zramd/zramd.toml", &config);
            scratch.write("run/zramd/ramdisk-logs.json", "{}");
            let said = scratch.run(&before);
            assert!(said.contains("stay in use until the next boot"), "{recipe}: {said}");
            assert!(said.contains("RAM disk logs is saved;"), "{recipe}: {said}");
            assert!(said.contains("(snapshot of logs)") && !said.contains("scratch"), "{recipe}: {said}");
            assert!(said.contains("/srv/snap shots is kept"), "{recipe}: {said}");
            assert_eq!(said.matches("is kept").count(), 1, "{recipe}: {said}");
            assert_eq!(scratch.calls(), "save logs\nsave scratch\n", "{recipe}");
            let said = scratch.run(&after);
            let kept = |said: &str| {
                let lines = said.lines().map(|line| line.split(' ').nth(1).unwrap().to_owned());
                lines.collect::<Vec<String>>()
            };
            let places = ["/etc/zramd", "/var/lib/zramd", "Snapshots"];
            assert_eq!(kept(&said), places, "{recipe}: {said}");
            assert!(MEASURED.iter().all(|path| scratch.path(path).exists()), "{recipe}");
            if let Some(purge) = &purge {
                assert_eq!(kept(&scratch.run(purge)), places, "{recipe}");
                let left: Vec<&&str> = MEASURED.iter().filter(|path| scratch.path(path).exists()).collect();
                assert_eq!(left, [&""; 0], "{recipe}");
            }
            for path in MADE {
                assert_eq!(fs::read_to_string(scratch.path(path)).ok().as_deref(), Some(path), "{recipe}");
            }
            assert_eq!(fs::read_to_string(scratch.path("etc/zramd/zramd.toml")).unwrap(), config);
            assert!(
                scratch.path("run/zramd/ramdisk-logs.json").exists(),
                "a record is needed until the next boot"
            );
        }
    }
}

#[test]
fn a_removal_names_a_disk_that_cannot_be_saved() {
    for Scripts { recipe, before, .. } in scripts() {
        let scratch = Scratch::new();
        scratch.write("usr/lib/zramd/zramd-worker.fails", "");
        let said = scratch.run(&before);
        assert!(
            said.contains(
                "RAM disk logs is not saved: copy its files before the next shutdown (snapshot of logs)"
            ),
            "{recipe}: {said}"
        );
    }
}

#[test]
fn a_purge_follows_a_link_and_removes_empty_directories_only() {
    let [Scripts { purge: Some(purge), .. }, ..] = scripts() else { panic!("Debian's is the first") };
    let scratch = Scratch::new();
    for path in ["etc/zramd/zramd.toml.d", "var/lib/zramd/disks/logs"] {
        fs::create_dir_all(scratch.path(path)).unwrap();
    }
    assert_eq!(scratch.run(&purge), "");
    assert!(!scratch.path("etc/zramd").exists() && !scratch.path("var/lib/zramd").exists());

    scratch.write("elsewhere/disks/logs/gen-1.tar.zst", "1");
    scratch.write("elsewhere/benchmark.json", "{}");
    std::os::unix::fs::symlink(scratch.path("elsewhere"), scratch.path("var/lib/zramd")).unwrap();
    let said = scratch.run(&purge);
    assert!(said.starts_with("zramd: /var/lib/zramd is kept"), "{said}");
    assert!(scratch.path("elsewhere/disks/logs/gen-1.tar.zst").exists());
    assert!(!scratch.path("elsewhere/benchmark.json").exists());
    assert!(scratch.path("var/lib/zramd").is_symlink());
    // Nothing to do, and nothing to fail.
    fs::remove_file(scratch.path("var/lib/zramd")).unwrap();
    scratch.write("var/lib/zramd", "a file");
    assert!(scratch.run(&purge).starts_with("zramd: /var/lib/zramd is kept"));
    assert_eq!(Scratch::new().run(&purge), "");
}

#[test]
fn comments_and_hooks_name_no_directory_of_snapshots() {
    let [Scripts { after, .. }, ..] = scripts();
    for (line, names) in [
        ("# store = \"/srv\"", false),
        ("post-restore = [\"/x\"]", false),
        ("x = \"y\" # the store = here", false),
        ("store= \"/srv\"", true),
        ("\"store\" = '/srv'", true),
        ("ramdisk.a.store = \"/srv\"", true),
        ("a = { size = 1, store = \"/srv\" }", true),
    ] {
        let scratch = Scratch::new();
        scratch.write("etc/zramd/zramd.toml.d/a.toml", line);
        assert_eq!(scratch.run(&after).contains("(store)"), names, "{line}");
    }
}

/// With a full disk, a closed pipe and no descriptor at all, everything is saved and removed.
#[test]
fn nothing_depends_on_what_scripts_print() {
    let outputs: [(&str, &str); 4] = [
        ("full", "exec >/dev/full 2>&1"),
        ("closed", "exec >&- 2>&-"),
        ("no reader", "exec >\"$PIPE\" 2>&1"),
        ("kept", ":"),
    ];
    for (output, redirect) in outputs {
        for Scripts { recipe, before, after, purge } in scripts() {
            let scratch = Scratch::new();
            fs::create_dir_all(scratch.path("run/systemd/system")).unwrap();
            for path in MADE.iter().chain(&MEASURED) {
                scratch.write(path, path);
            }
            scratch.write("run/zramd/ramdisk-logs.json", "{}");
            scratch.write("etc/zramd/zramd.toml", "store = 1");
            for script in [Some(before), Some(after), purge].into_iter().flatten() {
                // A pipe whose reader has gone before the script begins.
                let (reader, writer) = std::io::pipe().unwrap();
                drop(reader);
                let redirect = redirect.replace("\"$PIPE\"", "&0");
                let mut command = scratch.command(&format!("{redirect}\n{script}"));
                let ended = command.stdin(writer).output().unwrap();
                assert!(ended.status.success(), "{recipe}, {output}: {ended:?}");
            }
            assert_eq!(scratch.calls(), "save logs\nsave scratch\n", "{recipe}, {output}");
            if recipe == "debian" {
                let left: Vec<&&str> = MEASURED.iter().filter(|path| scratch.path(path).exists()).collect();
                assert_eq!(left, [&""; 0], "{output}");
            }
        }
    }
}

#[test]
fn a_purge_says_what_it_cannot_remove() {
    let [Scripts { purge: Some(purge), .. }, ..] = scripts() else { panic!("Debian's is the first") };
    let scratch = Scratch::new();
    scratch.write("var/lib/zramd/benchmark.json/mine", "");
    scratch.write("var/lib/zramd/budget.json", "");
    let ended = scratch.command(&purge).output().unwrap();
    let said = String::from_utf8(ended.stdout).unwrap();
    assert!(ended.status.success() && said.contains("/var/lib/zramd is kept"), "{said}");
    assert!(!scratch.path("var/lib/zramd/budget.json").exists());
}

/// `stop` saves before it removes, and each disk also after a failure; its status is that of the removal, or else of the save.
#[test]
fn the_boot_script_saves_before_it_removes() {
    let script = read("packaging/init/zramd-memory");
    let with = |argument: &str| format!("set -- {argument}\n{script}");
    let run = |scratch: &Scratch, argument: &str| {
        let script = with(argument).replace("PATH=/usr/sbin:/usr/bin:/sbin:/bin", "");
        scratch.command(&script).output().unwrap()
    };
    let scratch = Scratch::new();
    let setup = scratch.path("usr/lib/zramd/zramd-setup");
    write_program(&setup, "#!/bin/sh\necho \"$*\" >>\"${0%setup}worker.calls\"\n");
    assert_eq!(run(&scratch, "stop").status.code(), Some(0));
    let saved = "save logs {\"reason\":\"stop\"}\nsave scratch {\"reason\":\"stop\"}\n";
    assert_eq!(scratch.calls(), format!("{saved}revert\n"));
    scratch.write("usr/lib/zramd/zramd-worker.fails", "");
    assert_eq!(run(&scratch, "stop").status.code(), Some(1));
    assert_eq!(scratch.calls(), format!("{saved}revert\n{saved}revert\n"));
    write_program(&setup, "#!/bin/sh\nexit 6\n");
    assert_eq!(run(&scratch, "stop").status.code(), Some(6));
    assert_eq!(run(&scratch, "save").status.code(), Some(1));
    assert!(scratch.calls().ends_with(&saved.replace("stop", "timer")));
}
