//! Parses `[zramN]` into [`DeviceSettings`].

use super::hint::{correction, wrong_fs_type};
use super::key::{Key, SECONDARY_ALGORITHMS};
use super::keys::device as keys;
use super::section::{DISCARDS, SectionReader};
use super::settings::{DeviceSettings, MountSettings, SizeRule};
use super::value::Value;
use super::writeback;
use crate::config::tmpfs::{self, Meaning};
use crate::device::algorithm::Algorithm;
use crate::finding::Finding;
use crate::origin::Origin;
use crate::proc::{HIGHEST_DEVICE, zram_number};
use crate::request::{Choice, Purpose};
use crate::text::nearest;

/// Fraction of RAM if only `max-zram-size` is set.
const DEFAULT_FRACTION: f64 = 0.5;

/// Looks for mistakes in `[defaults]`, also where no device takes the value.
pub(super) fn check_defaults(reader: &mut SectionReader<'_>) {
    algorithms(reader, &keys::COMPRESSION_ALGORITHM);
    secondary(reader, &keys::RECOMPRESSION_ALGORITHM);
    size_rule(reader);
    reader.size(&keys::HOST_MEMORY_LIMIT);
    reader.size(&keys::ZRAM_RESIDENT_LIMIT);
    reader.integer::<i32>(&keys::SWAP_PRIORITY);
}

pub(super) fn device(name: &str, reader: &mut SectionReader<'_>) -> Option<DeviceSettings> {
    let number = zram_number(name)?;
    if number > HIGHEST_DEVICE {
        let text = format!("zramd makes no device zram{number}: the kernel would create all lower ones");
        let problem = Finding::error(reader.origin(), text);
        reader.fail(problem.remedy(format!("use a number up to {HIGHEST_DEVICE}")));
        return None;
    }
    let enabled = reader.boolean(&keys::ENABLED);
    let algorithms = algorithms(reader, &keys::COMPRESSION_ALGORITHM);
    let recompression = secondary(reader, &keys::RECOMPRESSION_ALGORITHM);
    let purpose = purpose(reader);
    let device = DeviceSettings {
        number,
        origin: reader.origin(),
        size: size_rule(reader)?,
        host_memory_limit: reader.size(&keys::HOST_MEMORY_LIMIT),
        yields: reader.boolean(&keys::YIELD),
        resident_limit: reader.size(&keys::ZRAM_RESIDENT_LIMIT),
        force_resident_limit: reader.boolean(&keys::FORCE_RESIDENT_LIMIT),
        algorithms,
        algorithms_origin: reader.origin_of(&keys::COMPRESSION_ALGORITHM),
        recompression,
        recompression_origin: reader.origin_of(&keys::RECOMPRESSION_ALGORITHM),
        writeback: writeback::writeback(reader),
        purpose: purpose?,
        label: label(reader),
    };
    enabled.then_some(device)
}

fn label(reader: &mut SectionReader<'_>) -> Option<String> {
    let (text, origin) = reader.text(&keys::LABEL)?;
    if text.is_empty() || text.chars().any(char::is_control) || text.len() > 255 {
        reader.fail(Finding::error(origin, "a label is 1 to 255 printable characters"));
        return None;
    }
    Some(text)
}

/// The size: `zram-size` or `zram-fraction`, whichever was assigned later. Both in one section of a file is an error.
fn size_rule(reader: &mut SectionReader<'_>) -> Option<SizeRule> {
    let max = reader.size(&keys::MAX_ZRAM_SIZE);
    let by_fraction = match (reader.get(&keys::ZRAM_SIZE), reader.get(&keys::ZRAM_FRACTION)) {
        (Some(size), Some(fraction)) => {
            let rank = |key: &Key, file: usize| (reader.own(key).is_some(), file);
            let size_rank = rank(&keys::ZRAM_SIZE, size.file);
            let fraction_rank = rank(&keys::ZRAM_FRACTION, fraction.file);
            if size_rank == fraction_rank {
                let message =
                    format!("zram-fraction and zram-size ({}) both give the size", size.origin.place());
                reader.fail(Finding::error(fraction.key_origin.clone(), message).remedy("keep one of them"));
                return None;
            }
            size_rank < fraction_rank
        }
        (None, None) if reader.get(&keys::MAX_ZRAM_SIZE).is_some() => {
            let origin = reader.origin_of(&keys::MAX_ZRAM_SIZE);
            return Some(SizeRule::Fraction { fraction: DEFAULT_FRACTION, origin, max });
        }
        (_, fraction) => fraction.is_some(),
    };
    Some(if by_fraction {
        SizeRule::Fraction {
            fraction: reader.number(&keys::ZRAM_FRACTION)?,
            origin: reader.origin_of(&keys::ZRAM_FRACTION),
            max,
        }
    } else {
        SizeRule::Expression { size: reader.size(&keys::ZRAM_SIZE)?, max }
    })
}

/// Algorithms in order of preference. An empty list stands for the default, which may be empty.
pub(super) fn algorithms(reader: &mut SectionReader<'_>, key: &Key) -> Vec<Choice> {
    let mut choices = Vec::new();
    let mut words = reader.words(key);
    if words.is_empty()
        && let Some(Value::String(text)) = key.default.value()
    {
        words.push((text, reader.origin()));
    }
    for (text, origin) in words {
        if choices.last() == Some(&Choice::Auto) {
            let problem =
                Finding::warning(origin, format!("`{text}` is never used, because auto is before it"));
            reader.problems.push(problem.remedy("move \"auto\" to the end, or leave it out"));
            continue;
        }
        if key.kind.words().contains(&text.as_str()) {
            choices.push(Choice::Auto);
            continue;
        }
        match Algorithm::parse(&text) {
            Ok(algorithm) if text == "auto" => {
                let problem =
                    Finding::error(origin, format!("{algorithm} is for compression-algorithm only"));
                reader.fail(problem.remedy("write a denser algorithm, such as \"zstd\", or leave it out"));
            }
            Ok(algorithm) => {
                if let Some(meant) = nearest(&algorithm.name, key.kind.words().iter().copied()) {
                    let problem =
                        Finding::warning(origin, format!("Linux has no algorithm `{}`", algorithm.name));
                    reader.problems.push(problem.remedy(format!("did you mean \"{meant}\"?")));
                }
                choices.push(Choice::Named(algorithm));
            }
            Err(error) => {
                let hint = correction(reader.kind, key, key.name, &text).or(error.hint);
                reader.fail(Finding::error(origin, error.message).remedy(hint.unwrap_or_default()));
            }
        }
    }
    choices
}

/// Secondary algorithms: up to the kernel's maximum, each only once.
pub(super) fn secondary(reader: &mut SectionReader<'_>, key: &Key) -> Vec<Algorithm> {
    let named: Vec<Algorithm> = algorithms(reader, key)
        .into_iter()
        .filter_map(|choice| match choice {
            Choice::Named(algorithm) => Some(algorithm),
            Choice::Auto => None,
        })
        .collect();
    if named.len() > SECONDARY_ALGORITHMS {
        let message = format!(
            "the kernel takes at most {SECONDARY_ALGORITHMS} secondary algorithms, not {}",
            named.len()
        );
        reader.fail(Finding::error(reader.origin_of(key), message));
    }
    named
}

/// Swap, a mounted file system, or neither. Keys that belong to another role are errors.
fn purpose(reader: &mut SectionReader<'_>) -> Option<Purpose<MountSettings>> {
    let mount_point = reader.path(&keys::MOUNT_POINT);
    let wants_mount = reader.own(&keys::MOUNT_POINT).is_some();
    let fs_type = reader.text(&keys::FS_TYPE);
    let swap = !wants_mount && fs_type.as_ref().is_none_or(|(name, _)| name == "swap");
    let (what, misplaced, hint): (_, &[&Key], _) = match (swap, wants_mount) {
        (true, _) => (
            "swap",
            &[&keys::MODE, &keys::OWNER, &keys::GROUP, &keys::MKFS_OPTIONS, &keys::FORCE_RESIDENT_LIMIT],
            "add a mount-point to make it a file system, or leave it out",
        ),
        (false, true) => ("a file system", &[&keys::SWAP_PRIORITY], "leave it out"),
        (false, false) => (
            "a device without a mount-point",
            &[&keys::SWAP_PRIORITY, &keys::OPTIONS, &keys::MODE, &keys::OWNER, &keys::GROUP],
            "leave it out",
        ),
    };
    reader.misplaced(misplaced, what, hint);
    if swap {
        let priority = reader.integer(&keys::SWAP_PRIORITY)?;
        return Some(Purpose::Swap { priority, options: swap_options(reader) });
    }
    let fs_type = fs_type.map(|(name, origin)| checked_fs_type(&name, origin, wants_mount, reader));
    let mkfs_options: Vec<String> = reader
        .words(&keys::MKFS_OPTIONS)
        .into_iter()
        .flat_map(|(text, _)| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
        .collect();
    if !wants_mount {
        let fs_type = fs_type.flatten();
        return Some(Purpose::Raw { fs_type: fs_type.filter(|name| name != "none"), mkfs_options });
    }
    let fs_type = fs_type.unwrap_or_else(|| Some("ext4".to_owned()))?;
    let (path, origin) = mount_point?;
    let mount = mount_settings(reader, &fs_type, path, origin, &keys::OPTIONS, &keys::MODE);
    Some(Purpose::Filesystem { fs_type, mount, mkfs_options })
}

fn checked_fs_type(
    name: &str,
    origin: Origin,
    mounted: bool,
    reader: &mut SectionReader<'_>,
) -> Option<String> {
    let lower = name.to_ascii_lowercase();
    if mounted && (lower == "swap" || lower == "none") {
        let problem = Finding::error(origin, format!("fs-type \"{name}\" cannot be mounted"));
        reader
            .fail(problem.remedy("leave mount-point out for swap, or write a file system such as \"ext4\""));
        return None;
    }
    if let Some((message, hint)) = wrong_fs_type(name) {
        reader.fail(Finding::error(origin, message).remedy(hint));
        return None;
    }
    Some(name.to_owned())
}

/// Options for swapon, which takes any value of `discard` for `discard` alone.
fn swap_options(reader: &mut SectionReader<'_>) -> String {
    let text = reader.options(&keys::OPTIONS);
    for option in text.split(',') {
        let (message, hint) = match option.split('=').next().unwrap_or_default() {
            "pri" => {
                (format!("`{option}`: the priority is not one of the options"), "write swap-priority instead")
            }
            "discard" | "nodiscard" if !DISCARDS.contains(&option) => (
                format!("swapon does not know `{option}`"),
                "write discard, discard=once or discard=pages, or options = \"\" for none",
            ),
            _ => continue,
        };
        reader.fail(Finding::error(reader.origin_of(&keys::OPTIONS), message).remedy(hint));
    }
    text
}

/// File systems whose root directory keeps owner and mode, which are no options for that reason.
const OWN_ROOT: [&str; 5] = ["ext2", "ext3", "ext4", "xfs", "btrfs"];
const OF_ROOT: &[&str] = &["mode", "uid", "gid"];
/// Options of a tmpfs for which there are keys.
const OF_TMPFS: &[&str] = &["mode", "uid", "gid", "size", "nr_blocks", "nr_inodes", "huge"];

pub(super) fn mount_settings(
    reader: &mut SectionReader<'_>,
    fs_type: &str,
    mount_point: String,
    origin: Origin,
    options: &Key,
    mode: &Key,
) -> MountSettings {
    let text = reader.options(options);
    let keyed = match fs_type {
        "tmpfs" => OF_TMPFS,
        own if OWN_ROOT.contains(&own) => OF_ROOT,
        _ => &[],
    };
    for option in text.split(',') {
        let origin = reader.origin_of(options);
        if let Meaning::Key(key, value) = tmpfs::mount_option(option) {
            let message =
                format!("`{option}` is carried out by mount(8), which does not run without systemd");
            let problem = Finding::warning(origin, message);
            reader.problems.push(problem.remedy(format!("write {key} = {value} instead")));
        } else if keyed.contains(&option.split('=').next().unwrap_or_default()) {
            let hint = match tmpfs::option(option) {
                Meaning::Key(key, value) => format!("write {key} = {value} instead"),
                _ => "leave it out".to_owned(),
            };
            let message = if fs_type == "tmpfs" {
                format!("`{option}` is not taken from the options")
            } else {
                format!("`{option}` is no mount option of {fs_type}")
            };
            reader.fail(Finding::error(origin, message).remedy(hint));
        }
    }
    // Every program writes there.
    let is_for_all = ["/tmp", "/var/tmp"].contains(&mount_point.as_str()) && reader.get(mode).is_none();
    MountSettings {
        mount_point,
        origin,
        options: text,
        unset: [mode, &keys::OWNER, &keys::GROUP].iter().all(|key| reader.get(key).is_none()),
        mode: if is_for_all { Some(0o1777) } else { reader.mode(mode) },
        owner: reader.principal(&keys::OWNER),
        group: reader.principal(&keys::GROUP),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Loaded, load};

    fn read(text: &str) -> Loaded {
        load(&[("f".into(), text.to_owned())], "")
    }

    #[test]
    fn what_is_too_high_too_long_or_too_much_is_refused() {
        let label = |text: &str| format!("[zram0]\nlabel = \"{text}\"\n");
        let secondary = |list: &str| format!("[zram0]\nrecompression-algorithm = [{list}]\n");
        for (text, good) in [
            ("[zram255]\n".to_owned(), true),
            ("[zram256]\n".to_owned(), false),
            (label(&"a".repeat(255)), true),
            (label(&"a".repeat(256)), false),
            (label(""), false),
            (label("a\\tb"), false),
            (secondary("\"lz4hc\", \"deflate\", \"zstd\""), true),
            (secondary("\"lz4hc\", \"deflate\", \"842\", \"zstd\""), false),
        ] {
            let loaded = read(&text);
            let found = (loaded.settings.devices.len(), loaded.problems.len());
            assert_eq!(found, if good { (1, 0) } else { (0, 1) }, "{text}: {:?}", loaded.problems);
        }
    }

    #[test]
    fn no_algorithm_is_the_default() {
        for none in ["\"\"", "[]"] {
            let loaded = read(&format!(
                "[defaults]\ncompression-algorithm = \"lz4\"\n[zram0]\ncompression-algorithm = {none}\n"
            ));
            assert_eq!(loaded.problems, [], "{none}");
            assert_eq!(
                loaded.settings.devices[0].algorithms,
                read("[zram0]\n").settings.devices[0].algorithms
            );
        }
    }

    #[test]
    fn a_device_without_a_mount_point_has_the_file_system_that_is_named() {
        for (name, expected) in [("ext4", Some("ext4")), ("none", None)] {
            let loaded = read(&format!("[zram0]\nfs-type = \"{name}\"\n"));
            let Purpose::Raw { fs_type, .. } = &loaded.settings.devices[0].purpose else {
                panic!("{loaded:?}")
            };
            assert_eq!(fs_type.as_deref(), expected);
        }
    }
}
