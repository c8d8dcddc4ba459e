//! Lines of `/etc/fstab` for devices and mount points of zramd.

use std::path::Path;

use super::Ours;
use crate::finding::{Code, Finding, Level};
use crate::origin::Origin;
use crate::proc::{device_number, unescape, zram_number};
use crate::unit_name::normalised;

/// The file.
pub const FSTAB: &str = "/etc/fstab";

/// A line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Counted from 1.
    pub number: u32,
    /// The first field, as written.
    pub source: String,
    /// The mount point, without a slash at its end; anything else for swap.
    pub place: String,
    pub fs_type: String,
    options: Vec<String>,
    text: String,
    /// The zram device, if the source is one.
    pub device: Option<u32>,
}

/// The lines. `link` tells where a symbolic link leads, by which the device of a UUID or label is found.
pub fn lines(text: &str, link: impl Fn(&str) -> Option<String>) -> Vec<Line> {
    let lines = text.lines().zip(1..);
    lines.filter_map(|(line, number)| read(line, number, &link)).collect()
}

fn read(line: &str, number: u32, link: &impl Fn(&str) -> Option<String>) -> Option<Line> {
    let mut fields = line.split_whitespace();
    let source = fields.next().filter(|field| !field.starts_with('#'))?;
    let place = String::from_utf8(unescape(fields.next()?.as_bytes())).ok()?;
    let fs_type = fields.next()?.to_owned();
    let options = fields.next().unwrap_or_default().split(',').map(str::to_owned).collect();
    let device = device(source, link);
    let place = normalised(&place).unwrap_or(place);
    let text = line.trim().to_owned();
    Some(Line { number, source: source.to_owned(), place, fs_type, options, text, device })
}

/// The zram device of the first field: by path, by a link to it, or by the label that zram-generator and zramd give it.
fn device(source: &str, link: &impl Fn(&str) -> Option<String>) -> Option<u32> {
    let (tag, value) = source.split_once('=').unwrap_or(("", source));
    let value = value.trim_matches('"');
    let path = match tag {
        "" if value.starts_with("/dev/") => value.to_owned(),
        "UUID" | "LABEL" | "PARTUUID" | "PARTLABEL" => {
            format!("/dev/disk/by-{}/{value}", tag.to_lowercase())
        }
        _ => return None,
    };
    let labelled = || zram_number(value).filter(|_| tag == "LABEL");
    device_number(&path).or_else(|| device_number(&link(&path)?)).or_else(labelled)
}

/// Findings about lines for what zramd sets up. Both generators would write a unit of the same name, and the second one fails; or
/// `local-fs.target` would wait for a device that only zramd sets up, and the boot would end in emergency mode without it.
pub fn findings(lines: &[Line], ours: &[Ours<'_>]) -> Vec<Finding> {
    let found = lines.iter().filter_map(|line| {
        let same = ours.iter().find(|ours| {
            let is_swap = line.fs_type == "swap";
            let has_place = ours.place.is_some_and(|place| place == line.place) && !is_swap;
            has_place || ours.device.is_some() && ours.device == line.device
        })?;
        Some(finding(line, *same))
    });
    found.collect()
}

fn finding(line: &Line, ours: Ours<'_>) -> Finding {
    let Line { number, source, place, fs_type, .. } = line;
    let is_optional = line.options.iter().any(|option| matches!(option.as_str(), "nofail" | "noauto"));
    let is_swap = fs_type == "swap";
    let name = match (line.device, is_swap) {
        (Some(device), true) => format!("swap on zram{device} ({source})"),
        _ => format!("{place} ({source})"),
    };
    let clashes = if is_swap {
        ours.place.is_none() && device_number(source).is_some()
    } else {
        ours.place == Some(place)
    };
    let (level, why) = if clashes {
        (Level::Error, "systemd's generator fails, because both write a unit of the same name")
    } else if is_swap || is_optional {
        (Level::Warning, "systemd would set it up a second time")
    } else {
        (Level::Error, "the boot waits for it, and ends in emergency mode without it")
    };
    let origin = Origin {
        file: Path::new(FSTAB).to_owned(),
        line: *number,
        column: 1,
        source_line: line.text.as_str().into(),
        width: u32::try_from(line.text.chars().count()).unwrap_or(u32::MAX),
        ..Origin::default()
    };
    Finding {
        place: Some(origin),
        ..Finding::new(
            level,
            Code::FstabLine,
            &format!("{FSTAB}:{number}"),
            format!("this line is for {name}, which zramd sets up: {why}"),
            format!("remove line {number} of {FSTAB}"),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by_uuid(path: &str) -> Option<String> {
        (path == "/dev/disk/by-uuid/1-2").then(|| "/dev/zram7".to_owned())
    }

    #[test]
    fn a_device_is_found_by_path_label_and_link() {
        for (source, expected) in [
            ("/dev/zram3", Some(3)),
            ("LABEL=zram0", Some(0)),
            ("LABEL=\"zram0\"", Some(0)),
            ("UUID=1-2", Some(7)),
            ("/dev/disk/by-uuid/1-2", Some(7)),
            ("UUID=zram0", None),
            ("PARTUUID=1-2", None),
            ("LABEL=root", None),
            ("zram0", None),
            ("tmpfs", None),
            ("server:/zram0", None),
        ] {
            let text = format!("{source} /a\\040b/ ext4 rw,nofail 0 0\n");
            let found = lines(&text, by_uuid);
            assert_eq!((found[0].device, found[0].place.as_str()), (expected, "/a b"), "{source}");
        }
        assert_eq!(lines("# /dev/zram0 none swap\n\n/dev/zram0\nx y\n\u{0}\n", by_uuid), []);
    }

    #[test]
    fn lines_for_what_zramd_sets_up_are_named() {
        let ours = [
            Ours { device: Some(0), place: None },
            Ours { device: Some(1), place: Some("/mnt/x") },
            Ours { device: None, place: Some("/var/log") },
        ];
        for (line, expected) in [
            ("/dev/zram0 none swap defaults", Some((Level::Error, "same name"))),
            ("/dev/zram0 none swap noauto", Some((Level::Error, "same name"))),
            ("LABEL=zram0 none swap sw", Some((Level::Warning, "second time"))),
            ("/dev/zram1 /mnt/x ext4 nofail", Some((Level::Error, "same name"))),
            ("/dev/zram1 /mnt/y ext4 defaults", Some((Level::Error, "emergency mode"))),
            ("/dev/zram1 /mnt/y ext4", Some((Level::Error, "emergency mode"))),
            ("/dev/zram1 /mnt/y ext4 rw,nofail", Some((Level::Warning, "second time"))),
            ("tmpfs /var/log/ tmpfs size=1m", Some((Level::Error, "same name"))),
            ("tmpfs /var/log/nginx tmpfs size=1m", None),
            ("/dev/zram9 none swap", None),
            ("/dev/sda1 /var/log swap", None),
            ("/dev/sda1 / ext4", None),
        ] {
            let text = format!("\n{line}\n");
            let found = findings(&lines(&text, by_uuid), &ours);
            let shown = found.first().map(|found| (found.level, found.sentence()));
            match (&shown, expected) {
                (None, None) => {}
                (Some((level, sentence)), Some((expected, part))) => {
                    assert!(
                        *level == expected
                            && sentence.contains(part)
                            && sentence.starts_with("/etc/fstab:2: "),
                        "{line}: {shown:?}"
                    );
                }
                _ => panic!("{line}: {shown:?}"),
            }
        }
    }

    #[test]
    fn a_line_is_shown_without_the_space_around_it() {
        let ours = [Ours { device: None, place: Some("/mnt/½") }];
        let found = findings(&lines("\n\ttmpfs /mnt/½ tmpfs \n", by_uuid), &ours);
        let expected = Origin {
            file: FSTAB.into(),
            line: 2,
            column: 1,
            source_line: "tmpfs /mnt/½ tmpfs".into(),
            width: 18,
            ..Origin::default()
        };
        assert_eq!(found[0].place.as_ref(), Some(&expected));
    }
}
