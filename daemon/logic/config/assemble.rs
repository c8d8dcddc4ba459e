//! Merged sections → [`Settings`]: validated and typed, with every problem of every section.

use super::maintenance;
use super::merge::Merged;
use super::problem::{Origin, Problem};
use super::ramdisk;
use super::schema::SectionKind;
use super::section::{SectionReader, nearest, unknown_keys};
use super::settings::{
    AlgorithmChoice, BenchmarkSettings, DeviceSettings, MountSettings, PageSource, Role, Settings, SizeExpr,
    SizeRule, When,
};
use super::vm;
use super::writeback;
use crate::logic::algorithm::Algorithm;
use crate::logic::benchmark::score::Profile;
use crate::logic::expr::Expr;
use crate::logic::proc::{HIGHEST_DEVICE, zram_number};

/// What zram-generator makes of a section that says nothing about its size.
const DEFAULT_SIZE: &str = "min(ram / 2, 4GiB)";
/// Share of RAM when only `max-zram-size` is given.
const DEFAULT_FRACTION: f64 = 0.5;
/// The kernel has priorities 1 to 3 for secondary algorithms (`ZRAM_MAX_COMPS` in drivers/block/zram/zram_drv.h).
const SECONDARY_ALGORITHMS: usize = 3;

/// Builds the settings.
pub fn assemble(merged: &Merged) -> (Settings, Vec<Problem>) {
    let mut settings = Settings::default();
    let mut problems = Vec::new();
    let mut disks = Vec::new();
    let mut asked = None;
    let defaults = merged.sections.get("defaults");
    if let Some(defaults) = defaults {
        problems.extend(unknown_keys(defaults, SectionKind::Defaults));
    }
    for (name, section) in &merged.sections {
        if name == "defaults" {
            continue;
        }
        if name == "benchmark" {
            let mut reader = SectionReader::new(section, None);
            settings.benchmark = benchmark(&mut reader);
            problems.append(&mut reader.problems);
        } else if name == "maintenance" {
            let mut reader = SectionReader::new(section, None);
            let built = maintenance::read(&mut reader);
            asked = built.filter(|_| !reader.failed);
            problems.append(&mut reader.problems);
        } else if let Some(disk) = name.strip_prefix("ramdisk.") {
            let mut reader = SectionReader::new(section, None);
            let built = ramdisk::ramdisk(disk, &mut reader, defaults);
            disks.extend(built.filter(|_| !reader.failed));
            problems.append(&mut reader.problems);
        } else if name == "vm" {
            let mut reader = SectionReader::new(section, None);
            let built = vm::vm(&mut reader);
            settings.vm = Some(built).filter(|_| !reader.failed);
            problems.append(&mut reader.problems);
        } else if let Some(number) = zram_number(name).filter(|number| *number > HIGHEST_DEVICE) {
            problems.push(too_high(number, &section.origin));
        } else if let Some(number) = zram_number(name) {
            let mut reader = SectionReader::new(section, defaults);
            let built = device(number, &mut reader);
            settings.devices.extend(built.filter(|_| !reader.failed));
            problems.append(&mut reader.problems);
        } else {
            problems.push(unknown_section(name, &section.origin));
        }
    }
    ramdisk::number_devices(disks, merged, &mut settings, &mut problems);
    settings.devices.sort_by_key(|device| device.number);
    if let Some(asked) = asked {
        settings.maintenance = Some(asked.apply(&mut settings.devices, &mut problems));
    }
    (settings, problems)
}

/// A word that is wrong leaves the rest of the section as it is, and counts as not written.
fn benchmark(reader: &mut SectionReader<'_>) -> BenchmarkSettings {
    reader.unknown_keys(SectionKind::Benchmark);
    let when = [("idle", When::Idle), ("boot", When::Boot), ("never", When::Never)];
    let profiles = Profile::ALL.map(|profile| (profile.word(), profile));
    let samples =
        [("public", PageSource::Public), ("swap", PageSource::Swap), ("processes", PageSource::Processes)];
    BenchmarkSettings {
        when: one_of(reader, "when", &when).unwrap_or_default(),
        profile: one_of(reader, "profile", &profiles).unwrap_or_default(),
        sample: one_of(reader, "sample", &samples).unwrap_or_default(),
    }
}

fn one_of<T: Copy>(reader: &mut SectionReader<'_>, key: &str, words: &[(&str, T)]) -> Option<T> {
    let (text, origin) = reader.text(key)?;
    let found = words.iter().find(|(word, _)| *word == text).map(|(_, value)| *value);
    if found.is_none() {
        let names: Vec<String> = words.iter().map(|(word, _)| format!("\"{word}\"")).collect();
        let problem = Problem::error(origin, format!("`{key}` cannot be \"{text}\""));
        reader.fail(problem.hint(format!("write {}", names.join(", "))));
    }
    found
}

fn too_high(number: u32, origin: &Origin) -> Problem {
    let text =
        format!("zramd makes no device zram{number}: the kernel would create every lower one on the way");
    Problem::error(origin.clone(), text).hint(format!("take a number up to {HIGHEST_DEVICE}"))
}

fn unknown_section(name: &str, origin: &Origin) -> Problem {
    let problem = Problem::error(origin.clone(), format!("there is no section [{name}]"));
    let lower = name.trim().to_ascii_lowercase();
    if let Some(rest) = lower.strip_prefix("zram") {
        let digits = rest.trim_start_matches(['+', '0', ' ', '-', '_']);
        let hint = match digits.parse::<u32>() {
            Ok(number) => format!("write [zram{number}]"),
            Err(_) if rest.chars().all(|c| "+0 -_".contains(c)) => "write [zram0]".to_owned(),
            Err(_) => "a device is [zram0], [zram1] and so on".to_owned(),
        };
        return problem.hint(hint);
    }
    match nearest(&lower, ["benchmark", "defaults", "ramdisk", "vm", "maintenance"].into_iter()) {
        Some("ramdisk") => problem.hint("write [ramdisk.NAME]"),
        Some(meant) => problem.hint(format!("write [{meant}]")),
        None => problem
            .hint("sections are [defaults], [zramN], [ramdisk.NAME], [benchmark], [vm] and [maintenance]"),
    }
}

fn device(number: u32, reader: &mut SectionReader<'_>) -> Option<DeviceSettings> {
    reader.unknown_keys(SectionKind::Device);
    let enabled = reader.boolean("enabled", true);
    let algorithms = algorithms(reader, "compression-algorithm", true);
    let recompression = secondary(reader, "recompression-algorithm");
    let role = role(reader);
    let device = DeviceSettings {
        number,
        origin: reader.origin(),
        size: size_rule(reader)?,
        host_memory_limit: reader.size("host-memory-limit", true),
        resident_limit: reader.size("zram-resident-limit", true),
        force_resident_limit: reader.boolean("force-resident-limit", false),
        algorithms: if algorithms.is_empty() { vec![AlgorithmChoice::Auto] } else { algorithms },
        algorithms_origin: origin_of(reader, "compression-algorithm"),
        recompression,
        recompression_origin: origin_of(reader, "recompression-algorithm"),
        writeback: writeback::writeback(reader),
        role: role?,
        label: label(reader),
    };
    enabled.then_some(device)
}

pub(super) fn origin_of(reader: &SectionReader<'_>, key: &str) -> Origin {
    reader.get(key).map_or_else(|| reader.origin(), |assignment| assignment.origin.clone())
}

fn label(reader: &mut SectionReader<'_>) -> Option<String> {
    let (text, origin) = reader.text("label")?;
    if text.is_empty() || text.chars().any(char::is_control) || text.len() > 255 {
        reader.fail(Problem::error(origin, "a label is 1 to 255 printable characters"));
        return None;
    }
    Some(text)
}

/// The size: `zram-size` or `zram-fraction`, whichever was written later; both in one place cannot be meant.
fn size_rule(reader: &mut SectionReader<'_>) -> Option<SizeRule> {
    let max = reader.size("max-zram-size", true);
    let (size, fraction) = (reader.get("zram-size"), reader.get("zram-fraction"));
    if let (Some(size), Some(fraction)) = (size, fraction) {
        let rank = |key: &str, file: usize| (reader.own(key).is_some(), file);
        let (size_rank, fraction_rank) = (rank("zram-size", size.file), rank("zram-fraction", fraction.file));
        if size_rank == fraction_rank {
            let message =
                format!("zram-fraction and zram-size (line {}) both give the size", size.origin.line);
            reader.fail(Problem::error(fraction.key_origin.clone(), message).hint("keep one of them"));
            return None;
        }
        if size_rank < fraction_rank {
            return Some(SizeRule::Fraction { fraction: reader.fraction("zram-fraction")?, max });
        }
    } else if fraction.is_some() {
        return Some(SizeRule::Fraction { fraction: reader.fraction("zram-fraction")?, max });
    } else if size.is_none() && reader.get("max-zram-size").is_some() {
        return Some(SizeRule::Fraction { fraction: DEFAULT_FRACTION, max });
    }
    let size = match size {
        Some(size) => reader.size_of(size, false)?,
        None => built_in(DEFAULT_SIZE, reader)?,
    };
    Some(SizeRule::Expression { size, max })
}

/// A default of ours, at the place of the section.
pub(super) fn built_in(text: &str, reader: &mut SectionReader<'_>) -> Option<SizeExpr> {
    match Expr::parse(text) {
        Ok(expr) => Some(SizeExpr { expr, text: text.to_owned(), origin: reader.origin() }),
        Err(error) => {
            reader.fail(Problem::error(reader.origin(), error.message));
            None
        }
    }
}

pub(super) fn algorithms(
    reader: &mut SectionReader<'_>,
    key: &str,
    auto_allowed: bool,
) -> Vec<AlgorithmChoice> {
    let mut choices = Vec::new();
    for (text, origin) in reader.words(key, "\"zstd(level=3)\"").unwrap_or_default() {
        if text == "auto" && auto_allowed {
            choices.push(AlgorithmChoice::Auto);
            continue;
        }
        match Algorithm::parse(&text) {
            Ok(algorithm) => choices.push(AlgorithmChoice::Named(algorithm)),
            Err(error) if text.contains(' ') && !text.contains('(') => {
                let words: Vec<String> = text.split_whitespace().map(|word| format!("\"{word}\"")).collect();
                let hint = format!("write a list: {key} = [{}]", words.join(", "));
                reader.fail(Problem::error(origin, error.message).hint(hint));
            }
            Err(error) => {
                let problem = Problem::error(origin, error.message);
                reader.fail(Problem { hint: error.hint, ..problem });
            }
        }
    }
    choices
}

/// Secondary algorithms: as many as the kernel takes, each by its name.
pub(super) fn secondary(reader: &mut SectionReader<'_>, key: &str) -> Vec<Algorithm> {
    let named: Vec<Algorithm> = algorithms(reader, key, false)
        .into_iter()
        .filter_map(|choice| match choice {
            AlgorithmChoice::Named(algorithm) => Some(algorithm),
            AlgorithmChoice::Auto => None,
        })
        .collect();
    if named.len() > SECONDARY_ALGORITHMS {
        let message = format!(
            "the kernel takes at most {SECONDARY_ALGORITHMS} secondary algorithms, not {}",
            named.len()
        );
        reader.fail(Problem::error(origin_of(reader, key), message));
    }
    named
}

/// Swap, a mounted file system, or neither; and no key that belongs to another of the three.
fn role(reader: &mut SectionReader<'_>) -> Option<Role> {
    let mount_point = reader.path("mount-point");
    let wants_mount = reader.own("mount-point").is_some();
    let fs_type = reader.text("fs-type");
    let swap = !wants_mount && fs_type.as_ref().is_none_or(|(name, _)| name == "swap");
    let kind = if swap {
        "swap"
    } else if wants_mount {
        "a file system"
    } else {
        "a device without a mount-point"
    };
    let misplaced: &[&str] = match (swap, wants_mount) {
        (true, _) => &["mode", "owner", "group", "mkfs-options", "force-resident-limit"],
        (false, true) => &["swap-priority"],
        (false, false) => &["swap-priority", "options", "mode", "owner", "group"],
    };
    for key in misplaced {
        if let Some(assignment) = reader.own(key) {
            let problem =
                Problem::error(assignment.key_origin.clone(), format!("`{key}` means nothing for {kind}"));
            let hint = if swap {
                "add a mount-point to make it a file system, or leave it out"
            } else {
                "leave it out"
            };
            reader.fail(problem.hint(hint));
        }
    }
    if swap {
        let priority = reader.integer("swap-priority", -1, 32767, "100").unwrap_or(100);
        let priority = i32::try_from(priority).unwrap_or(100);
        return Some(Role::Swap { priority, options: reader.options("options", "discard") });
    }
    let fs_type = fs_type.map(|(name, origin)| checked_fs_type(&name, origin, wants_mount, reader));
    let mkfs_options: Vec<String> = reader
        .words("mkfs-options", "[\"-N\", \"1000\"]")
        .unwrap_or_default()
        .into_iter()
        .flat_map(|(text, _)| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
        .collect();
    if !wants_mount {
        let fs_type = fs_type.flatten();
        return Some(Role::Raw { fs_type: fs_type.filter(|name| name != "none"), mkfs_options });
    }
    let fs_type = fs_type.unwrap_or_else(|| Some("ext4".to_owned()))?;
    let (path, origin) = mount_point?;
    let mount = mount_settings(reader, path, origin, "discard", None);
    Some(Role::Filesystem { fs_type, mount, mkfs_options })
}

fn checked_fs_type(
    name: &str,
    origin: Origin,
    mounted: bool,
    reader: &mut SectionReader<'_>,
) -> Option<String> {
    let lower = name.to_ascii_lowercase();
    if mounted && (lower == "swap" || lower == "none") {
        let problem = Problem::error(origin, format!("fs-type \"{name}\" cannot be mounted"));
        reader.fail(problem.hint("leave mount-point out for swap, or write a file system such as \"ext4\""));
        return None;
    }
    let plain = !name.is_empty()
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_');
    if !plain {
        let problem = Problem::error(origin, format!("`{name}` is no file system type"));
        reader.fail(problem.hint(format!("did you mean \"{lower}\"?")));
        return None;
    }
    Some(name.to_owned())
}

pub(super) fn mount_settings(
    reader: &mut SectionReader<'_>,
    mount_point: String,
    origin: Origin,
    options: &str,
    mode: Option<u32>,
) -> MountSettings {
    MountSettings {
        mount_point,
        origin,
        options: reader.options("options", options),
        mode: reader.mode("mode").or(mode),
        owner: reader.principal("owner"),
        group: reader.principal("group"),
    }
}
