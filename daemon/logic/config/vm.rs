//! The section `[vm]`.

use super::fragment::Value;
use super::problem::Problem;
use super::schema::SectionKind;
use super::section::SectionReader;
use super::settings::{Level, VmSettings};
use crate::logic::vm::Tunable;

/// Key, setting, default, bounds, and whether there is an `"auto"`.
type VmKey = (&'static str, Tunable, Level, (i64, i64), bool);

const VM_KEYS: [VmKey; 4] = [
    ("swappiness", Tunable::Swappiness, Level::Auto, (0, 200), true),
    ("page-cluster", Tunable::PageCluster, Level::Value(0), (0, 10), false),
    ("watermark-boost-factor", Tunable::WatermarkBoostFactor, Level::Keep, (0, 100_000), false),
    ("watermark-scale-factor", Tunable::WatermarkScaleFactor, Level::Keep, (1, 3000), true),
];

/// Reads it.
pub fn vm(reader: &mut SectionReader<'_>) -> VmSettings {
    reader.unknown_keys(SectionKind::Vm);
    let tune = reader.boolean("tune", false);
    let mut levels = Vec::new();
    for (key, tunable, default, bounds, has_auto) in VM_KEYS {
        let level = level(reader, key, bounds, has_auto).unwrap_or(default);
        levels.push((tunable, if tune { level } else { Level::Keep }));
        if let Some(assignment) = reader.own(key).filter(|_| !tune && level != Level::Keep) {
            let problem = Problem::warning(
                assignment.key_origin.clone(),
                format!("`{key}` has no effect without tune = true"),
            );
            reader.problems.push(problem.hint("add tune = true, or leave it out"));
        }
    }
    let zswap_off = match reader.text("zswap") {
        None => tune,
        Some((word, _)) if word == "auto" => tune,
        Some((word, _)) if word == "off" => true,
        Some((word, _)) if word == "keep" => false,
        Some((word, origin)) => {
            let problem = Problem::error(origin, format!("`{word}` is nothing that zswap can be"));
            reader.fail(problem.hint("write \"auto\", \"off\" or \"keep\""));
            false
        }
    };
    VmSettings { origin: reader.origin(), levels, zswap_off }
}

fn level(reader: &mut SectionReader<'_>, key: &str, bounds: (i64, i64), has_auto: bool) -> Option<Level> {
    let assignment = reader.own(key)?;
    if !matches!(assignment.value, Value::String(_)) {
        let number = reader.integer(key, bounds.0, bounds.1, "0")?;
        return u64::try_from(number).ok().map(Level::Value);
    }
    let (word, origin) = reader.text(key)?;
    match word.as_str() {
        "keep" => Some(Level::Keep),
        "auto" if has_auto => Some(Level::Auto),
        _ => {
            let words = if has_auto { "\"auto\" or \"keep\"" } else { "\"keep\"" };
            let problem =
                Problem::error(origin, format!("`{key}` takes a number or {words}, not \"{word}\""));
            reader.fail(problem.hint(format!("write for example {key} = {}", bounds.0)));
            None
        }
    }
}
