//! Other ways to set up zram devices, or directories in memory: how each is recognised, and what to do about it.
//!
//! A row is a program. It is recognised where it is enabled for the next boot, and by its unit while that is active.

use crate::path_kind::PathKind;

/// What the recognition asks of a machine.
pub struct Look<'a> {
    /// What is at a path; links are followed.
    pub kind: &'a dyn Fn(&str) -> PathKind,
    /// The names in a directory; none if it cannot be read.
    pub names: &'a dyn Fn(&str) -> Vec<String>,
    /// The text of a file; `None` if it is missing, or cannot be read.
    pub text: &'a dyn Fn(&str) -> Option<String>,
}

/// What a program sets up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Does {
    /// Zram devices.
    Devices,
    /// Directories in memory.
    Directories,
}

impl Does {
    /// The verb for a sentence about the program.
    pub fn verb(self) -> &'static str {
        match self {
            Does::Devices => "sets up zram",
            Does::Directories => "keeps directories in memory",
        }
    }

    /// The kind of object that two programs may both set up.
    pub fn claim(self) -> &'static str {
        match self {
            Does::Devices => "device",
            Does::Directories => "directory",
        }
    }
}

/// Another program that sets up zram or directories in memory, as found on a machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtherManager {
    /// Its name.
    pub name: &'static str,
    /// What it sets up, which may conflict with zramd.
    pub does: Does,
    /// What tells that it is in use: a file, with the line where it has several (`/etc/udev/rules.d/99-zram.rules:1`), or an active unit.
    pub file: String,
    /// Its name for `zramdctl import`, if its configuration can be imported here.
    pub import: Option<&'static str>,
    /// Whether it starts at the next boot. Otherwise it was started by hand, or was disabled while it ran.
    pub enabled: bool,
    /// How to disable it, or to stop it if it is not enabled: an imperative, lower case, no full stop.
    pub off: String,
}

impl OtherManager {
    /// What to do beside zramd.
    pub fn remedy(&self) -> String {
        match self.import {
            Some(name) => {
                format!("take its settings over with `zramdctl import {name}`, then {}", self.off)
            }
            None => self.off.clone(),
        }
    }
}

/// How a program is enabled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Enabled {
    /// As a service: by a link in a directory `*.wants` or `*.requires` of systemd, or in a runlevel of OpenRC.
    Service(&'static str),
    /// By a unit that its package installs, unless that is masked.
    Shipped(&'static str),
    /// As a generator of systemd.
    Generator(&'static str),
    /// By a rules file of udev, unless that is masked.
    Rules(&'static str),
    /// By a program.
    Program(&'static str),
}

/// What a program needs besides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Needs {
    Nothing,
    /// This file or directory.
    File(&'static str),
    /// This line of a file of variables, with the spaces and quotes that a shell allows.
    Line(&'static str, &'static str),
    /// A section in this file, which is below one of [`PLACES`], or in a file of its directory of drop-ins.
    Section(&'static str),
}

/// A program.
#[derive(Debug)]
struct Known {
    name: &'static str,
    does: Does,
    enabled: Enabled,
    needs: Needs,
    /// Its name for `zramdctl import`, if supported.
    import: Option<&'static str>,
    /// How to disable it, if not by its unit, generator or rules.
    off: &'static str,
}

/// Directories of configuration below which systemd's programs look, first the one that takes precedence.
const PLACES: [&str; 4] = ["/run/systemd", "/etc/systemd", "/usr/local/lib/systemd", "/usr/lib/systemd"];
/// Directories of generators (systemd.generator(7)), first the one that takes precedence.
const GENERATORS: [&str; 4] = [
    "/run/systemd/system-generators",
    "/etc/systemd/system-generators",
    "/usr/local/lib/systemd/system-generators",
    "/usr/lib/systemd/system-generators",
];
/// Directories of units (systemd.unit(5)).
const UNITS: [&str; 4] = [
    "/etc/systemd/system",
    "/run/systemd/system",
    "/usr/local/lib/systemd/system",
    "/usr/lib/systemd/system",
];
/// Directories of rules (udev(7)), first the one that takes precedence.
const RULES: [&str; 4] =
    ["/etc/udev/rules.d", "/run/udev/rules.d", "/usr/local/lib/udev/rules.d", "/usr/lib/udev/rules.d"];
/// PID 1 has a link here for each active unit.
const ACTIVE: &str = "/run/systemd/units";
const RUNLEVELS: &str = "/etc/runlevels";
/// OpenRC has a link here for each started service.
const STARTED: &str = "/run/openrc/started";

const fn service(name: &'static str, does: Does, unit: &'static str, import: Option<&'static str>) -> Known {
    Known { name, does, enabled: Enabled::Service(unit), needs: Needs::Nothing, import, off: "" }
}

/// All programs known to zramd. Of rows with the same unit, the first that applies counts.
const KNOWN: [Known; 23] = [
    Known {
        name: "zram-generator",
        does: Does::Devices,
        enabled: Enabled::Generator("zram-generator"),
        needs: Needs::Section("zram-generator.conf"),
        import: Some("zram-generator"),
        off: "",
    },
    Known {
        needs: Needs::File("/etc/default/zramswap"),
        ..service("zram-tools", Does::Devices, "zramswap.service", Some("zram-tools"))
    },
    // openSUSE's systemd-zram-service, and others of the same name, without a file that could be imported.
    service("zramswap.service", Does::Devices, "zramswap.service", None),
    // Ubuntu's, and the script with `/etc/ztab`.
    service("zram-config", Does::Devices, "zram-config.service", None),
    // The service of OpenRC, and its units for systemd.
    service("zram-init", Does::Devices, "zram-init.service", None),
    service("zram-init", Does::Devices, "zram_swap.service", None),
    service("zram-init", Does::Devices, "zram_tmp.service", None),
    service("zram-init", Does::Devices, "zram_var_tmp.service", None),
    service("zram-init", Does::Devices, "zram_btrfs.service", None),
    service("zram-swap", Does::Devices, "zram-swap.service", None),
    service("zram.service", Does::Devices, "zram.service", None),
    service("zramen", Does::Devices, "zramen.service", None),
    service("systemd-swap", Does::Devices, "systemd-swap.service", None),
    // Armbian enables both services, and switches them by this line.
    Known {
        needs: Needs::Line("/etc/default/armbian-zram-config", "ENABLED=true"),
        ..service("armbian-zram-config", Does::Devices, "armbian-zram-config.service", None)
    },
    Known {
        needs: Needs::Line("/etc/default/armbian-ramlog", "ENABLED=true"),
        ..service("armbian-ramlog", Does::Directories, "armbian-ramlog.service", None)
    },
    service("dietpi-ramlog", Does::Directories, "dietpi-ramlog.service", None),
    service("folder2ram", Does::Directories, "folder2ram_startup.service", None),
    Known {
        needs: Needs::Line("/etc/log2ram.conf", "ZL2R=true"),
        off: "set ZL2R=false in /etc/log2ram.conf, or take its settings over with `zramdctl import log2ram` and run `systemctl disable log2ram.service`",
        ..service("log2ram with ZL2R=true", Does::Devices, "log2ram.service", None)
    },
    service("log2ram", Does::Directories, "log2ram.service", Some("log2ram")),
    Known {
        enabled: Enabled::Shipped("pop-default-settings-zram.service"),
        ..service("pop-zram", Does::Devices, "", Some("pop-zram"))
    },
    Known {
        enabled: Enabled::Generator("rpi-swap-generator"),
        needs: Needs::File("/etc/rpi/swap.conf"),
        ..service("rpi-swap", Does::Devices, "", Some("rpi-swap"))
    },
    Known {
        enabled: Enabled::Rules("90-udisks2-zram.rules"),
        needs: Needs::File("/usr/lib/zram.conf.d"),
        ..service("udisks", Does::Devices, "", None)
    },
    Known {
        enabled: Enabled::Program("/usr/bin/zramd"),
        needs: Needs::File("/etc/default/zramd"),
        off: "remove its package and /etc/default/zramd",
        ..service("the unrelated older zramd", Does::Devices, "", None)
    },
];

/// All programs in use on a machine.
pub fn at_work(look: &Look) -> Vec<OtherManager> {
    let services = Services::read(look);
    let mut found: Vec<(&Known, OtherManager)> = Vec::new();
    for known in &KNOWN {
        if found.iter().any(|(other, _)| other.enabled == known.enabled) {
            continue;
        }
        let configured = known.enabled.place(look, &services);
        let configured = configured.and_then(|place| Some((place, known.needs.place(look)?)));
        let runs = || services.generated(known.enabled).map(|place| (place, String::new()));
        let Some((place, needed)) = configured.or_else(runs) else { continue };
        let Place { mut file, enabled, mut off } = place;
        // Of a service, the link says that it is enabled; its configuration is there in any case.
        if !matches!(known.enabled, Enabled::Service(_)) && !needed.is_empty() {
            file = needed;
        }
        if enabled && !known.off.is_empty() {
            known.off.clone_into(&mut off);
        }
        let (name, does, import) = (known.name, known.does, known.import);
        found.push((known, OtherManager { name, does, file, import, enabled, off }));
    }
    let mut found: Vec<OtherManager> = found.into_iter().map(|(_, other)| other).collect();
    found.extend(rules(look));
    found
}

/// Where a program is in use; see [`OtherManager`].
struct Place {
    file: String,
    enabled: bool,
    off: String,
}

impl Place {
    /// Where it is enabled.
    fn enabled(file: String, off: String) -> Place {
        Place { file, enabled: true, off }
    }

    /// A service that is active, and not enabled.
    fn active(service: &str, stop: &str) -> Place {
        let off = format!("run `{stop}`, or reboot (it is active, but not enabled)");
        Place { file: format!("{service}, which is active"), enabled: false, off }
    }
}

impl Enabled {
    /// Where it is enabled, or that its service is active.
    fn place(self, look: &Look, services: &Services) -> Option<Place> {
        // Debian has no /etc/systemd/system-generators.
        let masked = |directory: &str, name: &str| {
            format!("remove its package, or run `mkdir -p {directory} && ln -s /dev/null {directory}/{name}`")
        };
        let (file, off) = match self {
            Enabled::Service(unit) => return services.place(look, unit),
            Enabled::Shipped(unit) => (first(&UNITS, unit, look)?, format!("run `systemctl mask {unit}`")),
            Enabled::Generator(name) => (first(&GENERATORS, name, look)?, masked(GENERATORS[1], name)),
            Enabled::Rules(name) => (first(&RULES, name, look)?, masked(RULES[0], name)),
            Enabled::Program(path) => (path.to_owned(), String::new()),
        };
        ((look.kind)(&file) == PathKind::Other).then(|| Place::enabled(file, off))
    }
}

impl Needs {
    /// The file that it needs; empty if it needs none.
    fn place(self, look: &Look) -> Option<String> {
        match self {
            Needs::Nothing => Some(String::new()),
            Needs::File(path) => {
                matches!((look.kind)(path), PathKind::Other | PathKind::Directory).then(|| path.to_owned())
            }
            Needs::Line(path, line) => {
                let plain = |found: &str| found.trim().replace(['"', '\''], "") == line;
                (look.text)(path)?.lines().any(plain).then(|| path.to_owned())
            }
            Needs::Section(name) => {
                let main = first(&PLACES, name, look).filter(|file| has_section(look, file));
                let directories = PLACES.iter().map(|place| format!("{place}/{name}.d"));
                main.or_else(|| drop_in_with_section(look, directories, ".conf"))
            }
        }
    }
}

/// The first of these directories that has the file.
fn first(directories: &[&str], name: &str, look: &Look) -> Option<String> {
    let mut paths = directories.iter().map(|directory| format!("{directory}/{name}"));
    paths.find(|path| (look.kind)(path) != PathKind::Missing)
}

/// The first drop-in in these directories that has a section.
pub fn drop_in_with_section(
    look: &Look,
    directories: impl IntoIterator<Item = String>,
    suffix: &str,
) -> Option<String> {
    directories.into_iter().find_map(|directory| {
        let names = (look.names)(&directory).into_iter();
        let names = names.filter(|name| name.ends_with(suffix) && !name.starts_with('.'));
        names.map(|name| format!("{directory}/{name}")).find(|file| has_section(look, file))
    })
}

/// Whether a line of the file begins with `[`.
fn has_section(look: &Look, file: &str) -> bool {
    (look.text)(file).is_some_and(|text| text.lines().any(|line| line.trim_start().starts_with('[')))
}

/// The services that are enabled, and those that are active.
struct Services {
    /// Paths of links to units, in directories of dependencies or runlevels.
    links: Vec<String>,
    /// Names of active units.
    active: Vec<String>,
    /// Names of services that OpenRC has started.
    started: Vec<String>,
}

impl Services {
    fn read(look: &Look) -> Services {
        let inside = |directory: String| {
            (look.names)(&directory).into_iter().map(move |name| format!("{directory}/{name}"))
        };
        let of_systemd = UNITS.iter().flat_map(|units| {
            let directories = (look.names)(units).into_iter();
            let wants = |name: &String| name.ends_with(".wants") || name.ends_with(".requires");
            directories.filter(wants).map(move |name| format!("{units}/{name}"))
        });
        let of_openrc = (look.names)(RUNLEVELS).into_iter().map(|level| format!("{RUNLEVELS}/{level}"));
        let active = (look.names)(ACTIVE).into_iter();
        let active = active.filter_map(|name| name.strip_prefix("invocation:").map(str::to_owned));
        Services {
            links: of_systemd.chain(of_openrc).flat_map(inside).collect(),
            active: active.collect(),
            started: (look.names)(STARTED),
        }
    }

    /// Where a service is enabled, or that it is active.
    fn place(&self, look: &Look, unit: &str) -> Option<Place> {
        let bare = unit.strip_suffix(".service").unwrap_or(unit);
        let is_masked =
            || UNITS[..2].iter().any(|at| (look.kind)(&format!("{at}/{unit}")) == PathKind::Empty);
        let is_link = |link: &&String| {
            let (directory, name) = link.rsplit_once('/').unwrap_or_default();
            let is_it = if directory.starts_with(RUNLEVELS) { name == bare } else { name == unit };
            is_it && matches!((look.kind)(link), PathKind::Other)
        };
        if let Some(link) = self.links.iter().find(is_link)
            && !is_masked()
        {
            let off = match link.strip_prefix(RUNLEVELS).and_then(|rest| rest[1..].split_once('/')) {
                Some((level, _)) => format!("run `rc-update del {bare} {level}`"),
                None => format!("run `systemctl disable {unit}`"),
            };
            return Some(Place::enabled(link.clone(), off));
        }
        if self.started.iter().any(|started| started == bare) {
            return Some(Place::active(bare, &format!("rc-service {bare} stop")));
        }
        self.active.iter().find(|active| *active == unit).map(|unit| active_unit(unit))
    }

    /// An active unit of a generator that is no longer configured.
    fn generated(&self, enabled: Enabled) -> Option<Place> {
        let is_it = |unit: &&String| {
            enabled == Enabled::Generator("zram-generator") && unit.starts_with("systemd-zram-setup@")
        };
        self.active.iter().find(is_it).map(|unit| active_unit(unit))
    }
}

fn active_unit(unit: &str) -> Place {
    Place::active(unit, &format!("systemctl stop {unit}"))
}

/// Rules of udev that set the size of a zram device. Below `/usr/lib`, only files that name zram are read.
fn rules(look: &Look) -> Vec<OtherManager> {
    let mut found = Vec::new();
    // Those of known programs are above.
    let of_known = KNOWN.iter().filter_map(|known| match known.enabled {
        Enabled::Rules(name) => Some(name.to_owned()),
        _ => None,
    });
    let mut seen: Vec<String> = of_known.collect();
    for directory in RULES {
        let mut names = (look.names)(directory);
        names.retain(|name| name.ends_with(".rules") && (directory != RULES[3] || name.contains("zram")));
        for name in names {
            // A file hides those of the same name in later directories.
            if seen.contains(&name) {
                continue;
            }
            let file = format!("{directory}/{name}");
            let line = (look.text)(&file).and_then(|text| sets_size(&text));
            seen.push(name);
            if let Some(line) = line {
                found.push(OtherManager {
                    name: "a udev rule",
                    does: Does::Devices,
                    file: format!("{file}:{line}"),
                    import: None,
                    enabled: true,
                    off: format!("remove that line of {file}"),
                });
            }
        }
    }
    found
}

/// The first line that sets the size of a zram device.
fn sets_size(rules: &str) -> Option<usize> {
    let mut start = None;
    let mut rule = String::new();
    for (index, line) in rules.lines().enumerate() {
        if line.trim_start().starts_with('#') {
            continue;
        }
        // A backslash continues the line.
        let (part, goes_on) = line.strip_suffix('\\').map_or((line, false), |part| (part, true));
        rule.push_str(part);
        let began = *start.get_or_insert(index + 1);
        if !goes_on {
            let rule = std::mem::take(&mut rule).replace([' ', '\t'], "");
            if rule.contains("ATTR{disksize}=\"") && rule.contains("zram") {
                return Some(began);
            }
            start = None;
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// A machine that has only these files. A text that is empty is an empty file, or `/dev/null`.
    fn found_in(files: &[(&str, &str)]) -> Vec<OtherManager> {
        let files: BTreeMap<&str, &str> = files.iter().copied().collect();
        let below = |path: &str| format!("{}/", path.trim_end_matches('/'));
        let kind = |path: &str| match files.get(path) {
            Some(&"") => PathKind::Empty,
            Some(_) => PathKind::Other,
            None if files.keys().any(|file| file.starts_with(&below(path))) => PathKind::Directory,
            None => PathKind::Missing,
        };
        let names = |path: &str| {
            let inside = files.keys().filter_map(|file| file.strip_prefix(&below(path)));
            let mut names: Vec<String> =
                inside.filter_map(|rest| Some(rest.split('/').next()?.to_owned())).collect();
            names.dedup();
            names
        };
        let text = |path: &str| files.get(path).map(|&text| text.to_owned());
        at_work(&Look { kind: &kind, names: &names, text: &text })
    }

    fn places(files: &[(&str, &str)]) -> Vec<String> {
        found_in(files).into_iter().map(|other| other.file).collect()
    }

    /// The files with which a program is in use, and one that masks it.
    fn set_up(known: &Known) -> (Vec<(String, &'static str)>, Option<String>) {
        let (enabled, mask) = match known.enabled {
            Enabled::Service(unit) => (
                format!("/etc/systemd/system/multi-user.target.wants/{unit}"),
                Some(format!("/run/systemd/system/{unit}")),
            ),
            Enabled::Shipped(unit) => {
                (format!("/usr/lib/systemd/system/{unit}"), Some(format!("/etc/systemd/system/{unit}")))
            }
            Enabled::Generator(name) => (
                format!("/usr/lib/systemd/system-generators/{name}"),
                Some(format!("/etc/systemd/system-generators/{name}")),
            ),
            Enabled::Rules(name) => {
                (format!("/usr/lib/udev/rules.d/{name}"), Some(format!("/etc/udev/rules.d/{name}")))
            }
            Enabled::Program(path) => (path.to_owned(), None),
        };
        let needed = match known.needs {
            Needs::Nothing => None,
            Needs::File(path) => Some((path.to_owned(), "x")),
            Needs::Line(path, line) => Some((path.to_owned(), line)),
            Needs::Section(name) => Some((format!("/usr/lib/systemd/{name}"), "# a\n [zram0]\n")),
        };
        (std::iter::once((enabled, "x")).chain(needed).collect(), mask)
    }

    #[test]
    fn each_program_is_found_where_it_is_enabled_and_not_where_it_is_masked() {
        for known in &KNOWN {
            let (files, mask) = set_up(known);
            let mut files: Vec<(&str, &str)> =
                files.iter().map(|(path, text)| (path.as_str(), *text)).collect();
            let found = found_in(&files);
            let names: Vec<&str> = found.iter().map(|other| other.name).collect();
            assert_eq!(names, [known.name], "{known:?}");
            let other = &found[0];
            assert!(!other.off.is_empty() && files.iter().any(|(path, _)| *path == other.file), "{other:?}");
            if files.len() > 1 && !matches!(known.enabled, Enabled::Service(_)) {
                assert_eq!(found_in(&files[..1]), [], "{known:?} without its configuration");
                assert_eq!(found_in(&files[1..]), [], "{known:?} without itself");
            }
            let Some(mask) = mask else { continue };
            files.push((&mask, ""));
            assert_eq!(found_in(&files), [], "{mask} masks {known:?}");
            let replaced = [files.as_slice(), &[(mask.as_str(), "[Service]")]].concat();
            assert!(!found_in(&replaced).is_empty(), "{mask} replaces {known:?}");
        }
    }

    #[test]
    fn a_generator_and_its_configuration_are_found_in_all_directories() {
        for generators in GENERATORS {
            let program = format!("{generators}/zram-generator");
            for place in PLACES {
                for name in ["zram-generator.conf", "zram-generator.conf.d/a.conf"] {
                    let file = format!("{place}/{name}");
                    assert_eq!(places(&[(&program, "x"), (&file, "[zram0]")]), [file.as_str()], "{program}");
                    assert_eq!(places(&[(&program, "x"), (&file, "# zram0")]), [""; 0], "{file}");
                }
            }
        }
        for name in ["a.conf.orig", ".a.conf"] {
            let file = format!("/etc/systemd/zram-generator.conf.d/{name}");
            let files =
                [("/usr/lib/systemd/system-generators/zram-generator", "x"), (file.as_str(), "[zram0]")];
            assert_eq!(places(&files), [""; 0], "{name} is no drop-in");
        }
        // One that takes precedence is the configuration, even if it has no section.
        let files = [
            ("/usr/lib/systemd/system-generators/zram-generator", "x"),
            ("/usr/lib/systemd/zram-generator.conf", "[zram0]"),
            ("/etc/systemd/zram-generator.conf", "#"),
        ];
        assert_eq!(places(&files), [""; 0]);
        assert_eq!(places(&files[..2]).len(), 1);
    }

    #[test]
    fn a_service_is_found_in_any_target_and_in_runlevels_and_while_it_is_active() {
        for link in [
            "/etc/systemd/system/sysinit.target.wants/zram-init.service",
            "/usr/lib/systemd/system/swap.target.requires/zram-init.service",
            "/usr/local/lib/systemd/system/my.target.wants/zram-init.service",
            "/etc/runlevels/boot/zram-init",
        ] {
            assert_eq!(places(&[(link, "x")]), [link]);
        }
        for link in
            ["/etc/systemd/system/a.target/zram-init.service", "/etc/runlevels/boot/zram-init.service"]
        {
            assert_eq!(places(&[(link, "x")]), [""; 0]);
        }
        for (active, place, off) in [
            (
                "/run/systemd/units/invocation:zram_swap.service",
                "zram_swap.service, which is active",
                "run `systemctl stop zram_swap.service`, or reboot (it is active, but not enabled)",
            ),
            (
                "/run/openrc/started/zram-init",
                "zram-init, which is active",
                "run `rc-service zram-init stop`, or reboot (it is active, but not enabled)",
            ),
        ] {
            let found = &found_in(&[(active, "x")])[0];
            assert_eq!((found.name, found.enabled), ("zram-init", false));
            assert_eq!((found.file.as_str(), found.off.as_str()), (place, off));
        }
        let openrc = &found_in(&[("/etc/runlevels/boot/zram-init", "x")])[0];
        assert_eq!(openrc.remedy(), "run `rc-update del zram-init boot`");
    }

    #[test]
    fn a_service_that_its_configuration_switches_off_is_not_in_use() {
        let link = ("/etc/systemd/system/sysinit.target.wants/armbian-zram-config.service", "x");
        let file = "/etc/default/armbian-zram-config";
        let found = |text| !found_in(&[link, (file, text)]).is_empty();
        let text = "# enable the service?\nENABLED=true\n# ZRAM_PERCENTAGE=50\n";
        assert!(found(text) && !found(&text.replace("true", "false")));
        // Without the file, the service sets nothing up.
        assert_eq!(found_in(&[link]), []);
    }

    #[test]
    fn of_services_with_one_name_that_with_its_configuration_is_told_apart() {
        let link = ("/etc/systemd/system/multi-user.target.wants/zramswap.service", "x");
        let tools = &found_in(&[link, ("/etc/default/zramswap", "PERCENT=50")])[0];
        assert_eq!((tools.name, tools.import), ("zram-tools", Some("zram-tools")));
        let other = &found_in(&[link])[0];
        assert_eq!((other.name, other.import), ("zramswap.service", None));
        let link = ("/etc/systemd/system/sysinit.target.wants/log2ram.service", "x");
        for (text, does) in [
            ("ZL2R=true\n", Does::Devices),
            ("  ZL2R=\"true\"\n", Does::Devices),
            ("#ZL2R=true\nZL2R=false\n", Does::Directories),
            ("", Does::Directories),
        ] {
            assert_eq!(found_in(&[link, ("/etc/log2ram.conf", text)])[0].does, does, "{text}");
        }
    }

    #[test]
    fn a_rule_that_sets_the_size_is_named_with_its_line() {
        let rule = "KERNEL==\"zram0\", ATTR{disksize}=\"4G\", RUN=\"/sbin/mkswap /dev/%k\"\n";
        let continued =
            "# zram\nKERNEL==\"zram0\", \\\n  ATTR{comp_algorithm}=\"zstd\", \\\n  ATTR{disksize} = \"4G\"\n";
        for (file, text, expected) in [
            ("/etc/udev/rules.d/99-zram.rules", rule, Some(1)),
            ("/run/udev/rules.d/99-local.rules", continued, Some(2)),
            ("/usr/lib/udev/rules.d/99-zram.rules", rule, Some(1)),
            // No time for all rules of a distribution.
            ("/usr/lib/udev/rules.d/50-default.rules", rule, None),
            // That of udisks sets up nothing without its configuration.
            ("/usr/lib/udev/rules.d/90-udisks2-zram.rules", rule, None),
            ("/etc/udev/rules.d/99-zram.conf", rule, None),
            ("/etc/udev/rules.d/99-zram.rules", "#KERNEL==\"zram0\", ATTR{disksize}=\"4G\"\n", None),
            ("/etc/udev/rules.d/99-zram.rules", "KERNEL==\"zram0\", ATTR{disksize}==\"4G\"\n", None),
        ] {
            let expected: Vec<String> = expected.into_iter().map(|line| format!("{file}:{line}")).collect();
            assert_eq!(places(&[(file, text)]), expected, "{text}");
        }
        let masked = [("/etc/udev/rules.d/9-zram.rules", ""), ("/usr/lib/udev/rules.d/9-zram.rules", rule)];
        assert_eq!(places(&masked), [""; 0]);
    }
}
