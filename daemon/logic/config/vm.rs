//! Parses the section `[vm]`.

use super::key::Key;
use super::keys::vm as keys;
use super::section::SectionReader;
use super::settings::{Level, VmSettings};
use super::value::Value;
use crate::finding::Finding;
use crate::vm::Tunable;

const LEVELS: [(&Key, Tunable); 4] = [
    (&keys::SWAPPINESS, Tunable::Swappiness),
    (&keys::PAGE_CLUSTER, Tunable::PageCluster),
    (&keys::WATERMARK_BOOST_FACTOR, Tunable::WatermarkBoostFactor),
    (&keys::WATERMARK_SCALE_FACTOR, Tunable::WatermarkScaleFactor),
];

/// Parses the section.
pub fn vm(reader: &mut SectionReader<'_>) -> VmSettings {
    let tune = reader.boolean(&keys::TUNE);
    let mut levels = Vec::new();
    for (key, tunable) in LEVELS {
        let level = level(reader, key);
        levels.push((tunable, if tune { level } else { Level::Keep }));
        if let Some(assignment) = reader.own(key).filter(|_| !tune && level != Level::Keep) {
            let problem = Finding::warning(
                assignment.key_origin.clone(),
                format!("`{}` has no effect without tune = true", key.name),
            );
            reader.problems.push(problem.remedy("add tune = true, or leave it out"));
        }
    }
    let sets_swappiness = !levels.contains(&(Tunable::Swappiness, Level::Keep));
    let is_stop = |value: &Value| matches!(value, Value::String(word) if word == "stop");
    let stops = reader.value(&keys::INCOMPRESSIBLE).is_some_and(|(value, _)| is_stop(&value));
    let asked = reader.own(&keys::INCOMPRESSIBLE).filter(|assignment| is_stop(&assignment.value));
    if let Some(assignment) = asked.filter(|_| !sets_swappiness) {
        let message = "`incompressible` has no effect unless vm.swappiness is set";
        let problem = Finding::warning(assignment.key_origin.clone(), message);
        reader
            .problems
            .push(problem.remedy("add tune = true, without swappiness = \"keep\", or leave it out"));
    }
    let protected = reader.size(&keys::PROTECT_SESSIONS);
    VmSettings {
        origin: reader.origin(),
        levels,
        tune,
        stops_incompressible: stops && sets_swappiness,
        protected,
    }
}

fn level(reader: &mut SectionReader<'_>, key: &Key) -> Level {
    match reader.value(key) {
        Some((Value::Integer(number, _), _)) => u64::try_from(number).map_or(Level::Keep, Level::Value),
        Some((Value::String(word), _)) if word == "auto" => Level::Auto,
        _ => Level::Keep,
    }
}
