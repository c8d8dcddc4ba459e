//! Units of the administrator that take the place of those of zramd.

use std::collections::BTreeMap;

use super::Ours;
use crate::finding::{Code, Finding, Level};
use crate::path_kind::PathKind;
use crate::unit_name::escape_path;

/// Directories of units with precedence over those of generators (systemd.unit(5)).
const ABOVE: [&str; 2] = ["/etc/systemd/system", "/run/systemd/system"];

/// The paths of such units.
pub fn paths(ours: Ours<'_>) -> impl Iterator<Item = String> {
    let unit = match (ours.place, ours.device) {
        (Some(place), _) => Some(format!("{}.mount", escape_path(place))),
        (None, Some(device)) => Some(format!("dev-zram{device}.swap")),
        (None, None) => None,
    };
    unit.into_iter().flat_map(|unit| ABOVE.map(|directory| format!("{directory}/{unit}")))
}

/// Findings about those that exist, by path. A mask hides the unit of zramd as well.
pub fn findings(units: &BTreeMap<String, PathKind>, ours: &[Ours<'_>]) -> Vec<Finding> {
    let found = ours.iter().filter_map(|ours| {
        let (path, kind) = paths(*ours).find_map(|path| units.get_key_value(&path))?;
        Some(finding(path, *kind, *ours))
    });
    found.collect()
}

fn finding(path: &str, kind: PathKind, ours: Ours<'_>) -> Finding {
    let what = match (ours.place, ours.device) {
        (Some(place), _) => place.to_owned(),
        (None, device) => format!("swap on zram{}", device.unwrap_or_default()),
    };
    let unit = path.rsplit('/').next().unwrap_or(path);
    let (message, remedy) = if kind == PathKind::Empty {
        let runtime = if path.starts_with("/run") { "--runtime " } else { "" };
        (
            format!("{path} masks the unit with which zramd sets up {what}, so systemd does not start it"),
            format!("run `systemctl unmask {runtime}{unit}`"),
        )
    } else {
        (
            format!("{path} takes the place of the unit with which zramd sets up {what}"),
            format!("remove {path}, or the section from the configuration of zramd"),
        )
    };
    Finding::new(Level::Error, Code::UnitHidden, path, message, remedy)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_unit_with_precedence_is_named() {
        let tmp = Ours { device: None, place: Some("/tmp") };
        let mounted = Ours { device: Some(1), place: Some("/srv/a-b") };
        let swap = Ours { device: Some(0), place: None };
        let found = |files: &[(&str, PathKind)]| {
            let units = files.iter().map(|(path, kind)| ((*path).to_owned(), *kind)).collect();
            let found = findings(&units, &[tmp, mounted, swap]);
            found.into_iter().map(|found| found.text()).collect::<Vec<_>>()
        };
        assert_eq!(found(&[("/usr/lib/systemd/system/tmp.mount", PathKind::Other)]), [""; 0]);
        assert_eq!(
            found(&[
                ("/etc/systemd/system/tmp.mount", PathKind::Empty),
                ("/run/systemd/system/tmp.mount", PathKind::Other),
                ("/etc/systemd/system/srv-a\\x2db.mount", PathKind::Other),
                ("/run/systemd/system/dev-zram0.swap", PathKind::Empty),
            ]),
            [
                "/etc/systemd/system/tmp.mount masks the unit with which zramd sets up /tmp, so systemd does not start it (run `systemctl unmask tmp.mount`)",
                "/etc/systemd/system/srv-a\\x2db.mount takes the place of the unit with which zramd sets up /srv/a-b (remove /etc/systemd/system/srv-a\\x2db.mount, or the section from the configuration of zramd)",
                "/run/systemd/system/dev-zram0.swap masks the unit with which zramd sets up swap on zram0, so systemd does not start it (run `systemctl unmask --runtime dev-zram0.swap`)",
            ]
        );
    }
}
