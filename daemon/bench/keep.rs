//! The stored verdict: read while it is valid, written after a run with the configured settings.

use std::path::Path;

use super::run::{Measured, past};
use super::sample::source_now;
use crate::report::Report;
use crate::score::Past;
use engine::Error;
use engine::verdict::{key, stored_now};
use host::Host;
use host::linux::durable;
use host::linux::store::VERDICT;
use logic::config::settings::PageSource;
use logic::verdict::{Profile, SCHEMA_VERSION, Stored, Unusable};

/// The verdict with all its figures, with what is different now on this machine and with this profile.
pub fn stored<H: Host>(host: &H, profile: Profile) -> Result<Stored<Report>, Unusable> {
    stored_now(host, profile)
}

/// Why an automatic run measures again although a verdict is valid; `None` if it need not.
pub fn again<H: Host>(host: &H, stored: &Stored<Report>, sample: PageSource) -> Option<String> {
    if !stored.outdated.is_empty() {
        Some(stored.outdated.clone())
    } else if stored.better_runs > 0 {
        Some("another algorithm was better, which needs two consecutive runs".to_owned())
    } else if let Some(since) = since(stored.profile, stored.report.past, past(host)) {
        Some(since.to_owned())
    } else {
        truer_pages(host, stored, sample)
    }
}

/// Whether only much better figures may replace this verdict: it was measured on this machine, with pages as true as there are now.
pub fn is_protected<H: Host>(host: &H, stored: &Stored<Report>, sample: PageSource) -> bool {
    stored.outdated.is_empty() && truer_pages(host, stored, sample).is_none()
}

/// Why another sample would say more than that of the verdict, if there is one now.
fn truer_pages<H: Host>(host: &H, stored: &Stored<Report>, sample: PageSource) -> Option<String> {
    let sources = ["generator", "calibrated", "processes", "swap"];
    let rank = |source: &str| sources.iter().position(|other| *other == source);
    let (was, now) = (stored.report.data.source.as_str(), source_now(host, sample));
    (rank(now) > rank(was))
        .then(|| format!("it was made with pages from `{was}`, and `{now}` is available now"))
}

/// What the machine has done since a verdict that changes what counts.
fn since(profile: Profile, was: Past, now: Past) -> Option<&'static str> {
    if profile != Profile::Balanced {
        None
    } else if now.swaps_in_constantly && !was.swaps_in_constantly {
        Some("this machine swaps in all the time although swap has room, so time counts now")
    } else if now.short_of_memory && !was.short_of_memory {
        Some("this machine has been short of memory since, so memory counts more now")
    } else {
        None
    }
}

/// Stores a verdict.
pub fn keep<H: Host>(root: &Path, host: &H, measured: &Measured) -> Result<(), Error> {
    let report = &measured.report;
    let stored = Stored {
        schema_version: SCHEMA_VERSION,
        measured_unix: report.measured_unix,
        key: key(host, Some(&measured.offered)),
        profile: report.profile,
        algorithm: measured.chosen.clone(),
        better_runs: measured.better_runs,
        page_in_ns: report.chosen().map_or(0, |row| {
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Nanoseconds, below 2^64.
            let usual = row.read.p50_ns.max(0.0) as u64;
            usual
        }),
        provisional: match report.data.source.as_str() {
            "generator" => "only generated pages were measured".to_owned(),
            _ => String::new(),
        },
        outdated: String::new(),
        report,
    };
    let text = serde_json::to_string_pretty(&stored)
        .map_err(|error| Error::failed(format!("the verdict: write JSON: {error}")))?;
    Ok(durable::replace(root, VERDICT, &text)?)
}
