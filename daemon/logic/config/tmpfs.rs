//! Options of a tmpfs or another mount, in the form of fstab: those that are keys in zramd.

use crate::overlay::quoted;
use std::collections::BTreeSet;

/// Options that zramd's mounts have anyway, or that only matter to mount(8) and systemd's generator for fstab.
const WITHOUT_EFFECT: [&str; 5] = ["defaults", "rw", "auto", "nofail", "_netdev"];

/// An option in zramd.
#[derive(Debug, PartialEq, Eq)]
pub enum Meaning {
    /// This key with this value in TOML.
    Key(&'static str, String),
    /// The section is disabled.
    Disabled,
    /// The same option.
    Option,
    /// Nothing, because zramd does the same without it.
    Nothing,
    /// It is left out, for this reason.
    LeftOut(String),
}

/// An option of a tmpfs.
pub fn option(option: &str) -> Meaning {
    let (name, value) = option.split_once('=').unwrap_or((option, ""));
    let found = match name {
        "size" => size(value).map(|size| Meaning::Key("size", quoted(&size))),
        "nr_inodes" => inodes(value).map(|inodes| Meaning::Key("inodes", inodes.to_string())),
        "mode" => mode(value),
        "uid" => Some(Meaning::Key("owner", quoted(value))),
        "gid" => Some(Meaning::Key("group", quoted(value))),
        "huge" => Some(Meaning::Key("huge-pages", quoted(value))),
        "noauto" => Some(Meaning::Disabled),
        "nr_blocks" => Some(Meaning::LeftOut("zramd takes no number of blocks: write size".to_owned())),
        _ if WITHOUT_EFFECT.contains(&option) => Some(Meaning::Nothing),
        _ if name.starts_with("x-") => Some(Meaning::LeftOut("only for systemd's generator".to_owned())),
        _ => Some(mount_option(option)),
    };
    found.unwrap_or_else(|| Meaning::LeftOut(format!("`{value}` is not a value of {name}")))
}

/// An option of any mount: mount(8) carries `X-mount` out after mounting, the kernel does not know it.
pub fn mount_option(option: &str) -> Meaning {
    let (name, value) = option.split_once('=').unwrap_or((option, ""));
    match name {
        "X-mount.mode" => {
            mode(value).unwrap_or_else(|| Meaning::LeftOut(format!("`{value}` is not a mode in octal")))
        }
        "X-mount.owner" => Meaning::Key("owner", quoted(value)),
        "X-mount.group" => Meaning::Key("group", quoted(value)),
        "X-mount.mkdir" => Meaning::Nothing,
        _ => Meaning::Option,
    }
}

fn mode(text: &str) -> Option<Meaning> {
    let is_octal = (1..=5).contains(&text.len()) && text.bytes().all(|digit| (b'0'..b'8').contains(&digit));
    is_octal.then(|| Meaning::Key("mode", quoted(&format!("{:0>4}", text.trim_start_matches('0')))))
}

/// A size of a tmpfs in zramd: bytes, a number with a suffix, or a share of RAM.
pub fn size(text: &str) -> Option<String> {
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let suffix = match &text[digits.len()..] {
        "" => "B",
        "k" | "K" => "K",
        "m" | "M" => "M",
        "g" | "G" => "G",
        "t" | "T" => "T",
        "%" => "%",
        _ => return None,
    };
    digits.parse::<u64>().ok().map(|number| format!("{number}{suffix}"))
}

/// A number of inodes. 0 is no limit, which zramd has no key for.
fn inodes(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let shift = match &text[digits.len()..] {
        "" => 0,
        "k" | "K" => 10,
        "m" | "M" => 20,
        "g" | "G" => 30,
        _ => return None,
    };
    digits.parse::<u32>().ok().filter(|number| *number > 0).map(|number| u64::from(number) << shift)
}

/// The name of a RAM disk: `/var/log` becomes `var-log`, or another name if that is taken.
pub fn free_name(path: &str, names: &mut BTreeSet<String>) -> String {
    let letter = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let plain: String = path.chars().map(letter).collect();
    let plain = plain.trim_matches('-');
    let plain = if plain.is_empty() { "root" } else { plain };
    let mut name = plain.to_owned();
    let mut number = 2;
    while !names.insert(name.clone()) {
        name = format!("{plain}-{number}");
        number += 1;
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_become_keys() {
        let key = |name, value: &str| Meaning::Key(name, value.to_owned());
        for (text, expected) in [
            ("size=2G", key("size", "\"2G\"")),
            ("size=4096", key("size", "\"4096B\"")),
            ("size=8k", key("size", "\"8K\"")),
            ("size=8M", key("size", "\"8M\"")),
            ("size=1t", key("size", "\"1T\"")),
            ("size=50%", key("size", "\"50%\"")),
            ("nr_inodes=1", key("inodes", "1")),
            ("nr_inodes=10k", key("inodes", "10240")),
            ("nr_inodes=1M", key("inodes", "1048576")),
            ("nr_inodes=1g", key("inodes", "1073741824")),
            ("mode=1777", key("mode", "\"1777\"")),
            ("mode=01777", key("mode", "\"1777\"")),
            ("mode=755", key("mode", "\"0755\"")),
            ("X-mount.mode=1777", key("mode", "\"1777\"")),
            ("uid=1000", key("owner", "\"1000\"")),
            ("gid=100", key("group", "\"100\"")),
            ("X-mount.owner=build", key("owner", "\"build\"")),
            ("X-mount.group=build", key("group", "\"build\"")),
            ("X-mount.mkdir", Meaning::Nothing),
            ("huge=within_size", key("huge-pages", "\"within_size\"")),
            ("noauto", Meaning::Disabled),
            ("nofail", Meaning::Nothing),
            ("noexec", Meaning::Option),
            ("mpol=bind:0", Meaning::Option),
        ] {
            assert_eq!(option(text), expected, "{text}");
        }
        for text in [
            "size=",
            "size=2X",
            "size=-1",
            "nr_inodes=0",
            "nr_inodes=4294967296",
            "mode=8",
            "mode=",
            "nr_blocks=1",
            "x-systemd.automount",
            "X-mount.mode=u+s",
        ] {
            assert!(matches!(option(text), Meaning::LeftOut(_)), "{text}");
        }
        assert_eq!(mount_option("mode=1777"), Meaning::Option);
    }

    #[test]
    fn each_mount_point_has_a_name_of_its_own() {
        let mut names = BTreeSet::new();
        let places = ["/var/log", "/var/log/", "/Var/Log", "/", "/srv/a b"];
        let named = places.map(|place| free_name(place, &mut names));
        assert_eq!(named, ["var-log", "var-log-2", "var-log-3", "root", "srv-a-b"]);
    }
}
