//! Parses the section `[zswap]`.

use super::device::algorithms;
use super::key::Key;
use super::keys::zswap as keys;
use super::section::SectionReader;
use super::settings::{SizeExpr, ZswapSettings};
use super::value::Value;
use crate::finding::Finding;
use crate::request::Choice;
use crate::vm::Tunable;

/// Parses the section; `None` if zswap is left as it is.
pub fn zswap(reader: &mut SectionReader<'_>) -> Option<ZswapSettings> {
    let enabled = reader.own(&keys::ENABLED).map(|_| reader.boolean(&keys::ENABLED));
    if enabled != Some(true) {
        for key in keys::KEYS.iter().skip(1) {
            if let Some(assignment) = reader.own(key) {
                let message = format!("`{}` has no effect without enabled = true", key.name);
                let problem = Finding::warning(assignment.key_origin.clone(), message);
                reader.problems.push(problem.remedy("add enabled = true, or leave it out"));
            }
        }
    }
    let compressors = compressors(reader);
    let max_pool = max_pool(reader);
    let mut values = Vec::new();
    let threshold = reader.integer::<u64>(&keys::ACCEPT_THRESHOLD).map(|percent| percent.to_string());
    let shrinker =
        reader.own(&keys::SHRINKER).map(|_| if reader.boolean(&keys::SHRINKER) { "Y" } else { "N" });
    for (key, tunable, value) in [
        (&keys::ACCEPT_THRESHOLD, Tunable::ZswapAcceptThreshold, threshold),
        (&keys::SHRINKER, Tunable::ZswapShrinker, shrinker.map(str::to_owned)),
    ] {
        values.extend(value.map(|value| (tunable, value, reader.origin_of(key))));
    }
    let origin = reader.origin();
    if !enabled? {
        return Some(ZswapSettings::off(origin));
    }
    Some(ZswapSettings { origin, enabled: true, compressors, max_pool, values })
}

/// Compressors by name: zswap takes no parameters.
fn compressors(reader: &mut SectionReader<'_>) -> Vec<Choice> {
    let choices = algorithms(reader, &keys::COMPRESSOR);
    for choice in &choices {
        if let Choice::Named(algorithm) = choice
            && !algorithm.parameters.is_empty()
        {
            let message = format!("zswap takes no parameters for a compressor: `{algorithm}`");
            let problem = Finding::error(reader.origin_of(&keys::COMPRESSOR), message);
            reader.fail(problem.remedy(format!("write \"{}\"", algorithm.name)));
        }
    }
    choices
}

/// A share or an amount; a number alone could be either.
fn max_pool(reader: &mut SectionReader<'_>) -> Option<SizeExpr> {
    let (value, origin) = own(reader, &keys::MAX_POOL)?;
    let number = match &value {
        Value::String(text) => text.trim().parse::<f64>().ok().map(|_| text.trim().to_owned()),
        other => other.toml().ok(),
    };
    if let Some(number) = number {
        let message = format!("`{number}` could be percents or MiB");
        let problem = Finding::error(origin, message);
        let percent = number.parse().ok().filter(|percent| (1..=100).contains(percent)).unwrap_or(40);
        reader.fail(problem.remedy(format!("write max-pool = \"{percent}%\"")));
        return None;
    }
    reader.size(&keys::MAX_POOL)
}

fn own(reader: &mut SectionReader<'_>, key: &Key) -> Option<(Value, crate::origin::Origin)> {
    reader.own(key)?;
    reader.value(key)
}
