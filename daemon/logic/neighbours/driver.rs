//! Options for the zram driver, and what keeps it from being loaded: lines of modprobe.d(5), and words of the kernel command line.
//!
//! A line of modules-load.d(5) only loads the driver earlier than zramd does, and is no finding.

use std::path::Path;

use super::Ours;
use super::programs::Look;
use crate::finding::{Code, Finding, Level};
use crate::origin::Origin;

/// Directories of options, first the one that takes precedence.
const OPTIONS: [&str; 4] =
    ["/etc/modprobe.d", "/run/modprobe.d", "/usr/local/lib/modprobe.d", "/usr/lib/modprobe.d"];
const CMDLINE: &str = "/proc/cmdline";

/// What a line says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Says {
    /// That many devices are added when the driver is loaded.
    Devices(u32),
    /// The driver is not loaded.
    Never,
}

/// A line or word about the driver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    pub file: String,
    /// Counted from 1; 0 for the kernel command line.
    pub number: u32,
    /// The text of the line; empty for the kernel command line.
    pub text: String,
    pub says: Says,
}

/// The lines and words on a machine. Below `/usr`, only files that name zram are read.
pub fn lines(look: &Look, cmdline: &str) -> Vec<Line> {
    let mut found = Vec::new();
    let mut seen: Vec<String> = Vec::new();
    for directory in OPTIONS {
        let mut names = (look.names)(directory);
        let is_read = |name: &String| !directory.starts_with("/usr") || name.contains("zram");
        names.retain(|name| name.ends_with(".conf") && is_read(name));
        for name in names {
            // A file hides those of the same name in later directories.
            if !seen.contains(&name) {
                let file = format!("{directory}/{name}");
                found.extend((look.text)(&file).iter().flat_map(|text| in_file(&file, text)));
                seen.push(name);
            }
        }
    }
    let word = |text: &str| {
        let says = match text.split_once('=')? {
            ("zram.num_devices" | "zram.num-devices", number) => Says::Devices(number.parse().ok()?),
            ("module_blacklist", names) if names.split(',').any(|name| name == "zram") => Says::Never,
            _ => return None,
        };
        Some(Line { file: CMDLINE.to_owned(), number: 0, text: String::new(), says })
    };
    found.extend(cmdline.split_whitespace().filter_map(word));
    found
}

fn in_file<'a>(file: &'a str, text: &'a str) -> impl Iterator<Item = Line> + 'a {
    text.lines().zip(1..).filter_map(move |(line, number)| {
        let mut words = line.split_whitespace();
        let says = match (words.next()?, words.next()?) {
            ("options", "zram") => {
                let number = words.rev().find_map(|word| word.strip_prefix("num_devices=")?.parse().ok());
                Says::Devices(number?)
            }
            ("install", "zram") => {
                let program = words.next()?.rsplit('/').next()?;
                ["true", "false"].contains(&program).then_some(Says::Never)?
            }
            _ => return None,
        };
        Some(Line { file: file.to_owned(), number, text: line.trim().to_owned(), says })
    })
}

/// Findings for a machine on which zramd sets up these zram devices.
pub fn findings(lines: &[Line], ours: &[Ours<'_>]) -> Vec<Finding> {
    let Some(highest) = ours.iter().filter_map(|ours| ours.device).max() else { return Vec::new() };
    lines.iter().filter_map(|line| finding(line, highest)).collect()
}

fn finding(line: &Line, highest: u32) -> Option<Finding> {
    let Line { file, number, text, says } = line;
    let is_word = file == CMDLINE;
    let word = match says {
        Says::Devices(count) => format!("zram.num_devices={count}"),
        Says::Never => "module_blacklist=zram".to_owned(),
    };
    let what = match says {
        _ if is_word => format!("{word} on the kernel command line"),
        Says::Devices(count) => format!("`options zram num_devices={count}`"),
        Says::Never => "`install zram`".to_owned(),
    };
    let (level, message) = match says {
        // The others are those of zramd.
        Says::Devices(count) if *count <= highest.saturating_add(1) => return None,
        Says::Devices(count) => (
            Level::Note,
            format!(
                "{what} adds {count} devices when the zram driver is loaded; zramd adds those that it needs, and the others stay empty"
            ),
        ),
        Says::Never => (
            Level::Warning,
            format!(
                "{what} keeps the zram driver from being loaded; unless it is built into the kernel, no zram device can be set up"
            ),
        ),
    };
    let remedy = if is_word {
        format!("remove {word} from the kernel command line")
    } else {
        format!("remove line {number} of {file}")
    };
    let object = if is_word { file.clone() } else { format!("{file}:{number}") };
    let found = Finding::new(level, Code::DriverOption, &object, message, remedy);
    let origin = Origin {
        file: Path::new(file).to_owned(),
        line: *number,
        column: 1,
        source_line: text.as_str().into(),
        width: u32::try_from(text.chars().count()).unwrap_or(u32::MAX),
        ..Origin::default()
    };
    Some(Finding { place: (!is_word).then_some(origin), ..found })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path_kind::PathKind;

    fn said(files: &[(&str, &str)], cmdline: &str, ours: &[u32]) -> Vec<(Level, String)> {
        let names = |directory: &str| {
            let below = |(path, _): &(&str, &str)| {
                let (above, name) = path.rsplit_once('/').unwrap();
                (above == directory).then(|| name.to_owned())
            };
            files.iter().filter_map(below).collect()
        };
        let text =
            |path: &str| files.iter().find(|(file, _)| *file == path).map(|(_, text)| (*text).to_owned());
        let look = Look { kind: &|_| PathKind::Missing, names: &names, text: &text };
        let ours: Vec<Ours<'_>> =
            ours.iter().map(|number| Ours { device: Some(*number), place: None }).collect();
        let found = findings(&lines(&look, cmdline), &ours);
        found.into_iter().map(|found| (found.level, found.object)).collect()
    }

    #[test]
    fn options_are_found_in_the_files_that_modprobe_reads() {
        let file = "/etc/modprobe.d/zram.conf";
        let note = |place: &str| vec![(Level::Note, place.to_owned())];
        for (text, expected) in [
            ("options zram num_devices=4\n", note("/etc/modprobe.d/zram.conf:1")),
            ("# swap\n\toptions  zram  num_devices=4\n", note("/etc/modprobe.d/zram.conf:2")),
            ("options zram num_devices=1 num_devices=4", note("/etc/modprobe.d/zram.conf:1")),
            ("options zram num_devices=1\n", vec![]),
            ("options zram num_devices=many\n", vec![]),
            ("options zram\n", vec![]),
            ("#options zram num_devices=4\n", vec![]),
            ("options loop num_devices=4\n", vec![]),
            ("install zram /bin/false", vec![(Level::Warning, format!("{file}:1"))]),
            ("install zram /sbin/modprobe --ignore-install zram", vec![]),
            ("blacklist zram", vec![]),
        ] {
            assert_eq!(said(&[(file, text)], "", &[0]), expected, "{text}");
        }
        let text = "options zram num_devices=4";
        assert_eq!(said(&[(file, text)], "", &[3]), [], "all of them are configured");
        assert_eq!(said(&[(file, text)], "", &[]), [], "without a device of ours");
        let vendor = "/usr/lib/modprobe.d/zram.conf";
        assert_eq!(said(&[(vendor, text)], "", &[0]), note("/usr/lib/modprobe.d/zram.conf:1"));
        assert_eq!(said(&[(file, ""), (vendor, text)], "", &[0]), [], "hidden");
        assert_eq!(said(&[("/usr/lib/modprobe.d/a.conf", text)], "", &[0]), []);
        assert_eq!(said(&[("/etc/modprobe.d/zram", text)], "", &[0]), []);
    }

    #[test]
    fn a_line_is_shown_in_full_and_a_word_has_no_place() {
        let line = Line {
            file: "/etc/modprobe.d/zram.conf".to_owned(),
            number: 2,
            text: "options zram num_devices=4 # 4 × 1 GiB".to_owned(),
            says: Says::Devices(4),
        };
        let word = Line { file: CMDLINE.to_owned(), number: 0, text: String::new(), says: Says::Never };
        let found = findings(&[line.clone(), word], &[Ours { device: Some(0), place: None }]);
        let expected = Origin {
            file: line.file.into(),
            line: 2,
            column: 1,
            source_line: line.text.into(),
            width: 38,
            ..Origin::default()
        };
        let places: Vec<_> = found.into_iter().map(|found| (found.object, found.place)).collect();
        assert_eq!(
            places,
            [("/etc/modprobe.d/zram.conf:2".to_owned(), Some(expected)), (CMDLINE.to_owned(), None)]
        );
    }

    #[test]
    fn words_of_the_kernel_command_line_are_found() {
        for (cmdline, expected) in [
            ("quiet zram.num_devices=8", Some(Level::Note)),
            ("zram.num-devices=8 quiet", Some(Level::Note)),
            ("zram.num_devices=1", None),
            ("module_blacklist=loop,zram", Some(Level::Warning)),
            ("module_blacklist=zramx", None),
            ("num_devices=8", None),
        ] {
            let found: Vec<Level> = said(&[], cmdline, &[0]).into_iter().map(|(level, _)| level).collect();
            assert_eq!(found, expected.into_iter().collect::<Vec<_>>(), "{cmdline}");
        }
    }
}
