//! Loading a disk: from its newest good snapshot, or from a chosen one.

use std::time::Instant;

use engine::Error;
use engine::ramdisk;
use engine::work::Stopped;
use host::linux::clock;
use logic::duration::micros;
use logic::human::human;
use logic::order::HookKey;
use logic::ramdisk::state::Outcome;
use logic::ramdisk::status::{LoadState, RamdiskStatus};
use logic::text::worded;

use super::{Job, RamdiskOrder, entries, left_out, sentence, warn};

pub(super) fn load(job: &mut Job, order: &RamdiskOrder) -> Result<String, Stopped> {
    let name = order.name.as_str();
    let began = Instant::now();
    job.claim()?;
    // Without these files the mount would not be shown, or not be found again: nothing is loaded then.
    ramdisk::remember(&job.disk)?;
    ramdisk::mark_passthrough(name, false)?;
    ramdisk::publish(&job.disk, |status| {
        *status = RamdiskStatus { load_state: LoadState::Loading, ..ramdisk::blank(status) };
    })?;
    let loaded = match ramdisk::restore_wanted(name) {
        Some(generation) => {
            let restored = restore(job, generation);
            // After any result, the next load takes the newest snapshot again, which has the previous contents of the disk.
            ramdisk::want_restore(name, None)?;
            restored
        }
        None => load_newest(job),
    };
    let mut filled = match loaded {
        Ok(filled) => filled,
        Err(stopped) => {
            let text = sentence(&stopped);
            job.publish(|status| {
                status.load_state = LoadState::Failed;
                status.load_message = worded(text);
            });
            // A half-filled disk must not be mounted in place, and only a failure of its unit prevents that.
            return Err(match stopped {
                Stopped::Cancelled(message) | Stopped::Postponed(message) => Error::failed(message).into(),
                failed @ Stopped::Failed(_) => failed,
            });
        }
    };
    if filled.state == LoadState::Passthrough {
        ramdisk::mark_passthrough(name, true)?;
    } else if let Err(stopped) = job.hook(HookKey::PostRestore, "load") {
        let error = sentence(&stopped);
        filled.message.push_str(&format!("; post-restore: {error}"));
        warn(name, &format!("post-restore: {error}"));
    }
    let took = micros(began.elapsed());
    let message = filled.message.clone();
    job.publish(|status| {
        let made = filled.made_usec;
        status.load_state = filled.state;
        status.generation = filled.generation;
        status.made_usec = made;
        status.made_age_usec = if made == 0 { 0 } else { clock::unix_usec().saturating_sub(made) };
        status.unclean = filled.unclean;
        status.load_message = worded(filled.message);
        status.refused = worded(filled.refused);
        status.store_problem = worded(filled.store_problem);
        status.load_took_usec = took;
    });
    Ok(format!("{name}: {message}"))
}

/// Result of a load, in terms of [`RamdiskStatus`].
struct Filled {
    state: LoadState,
    generation: u64,
    made_usec: u64,
    unclean: bool,
    message: String,
    refused: String,
    store_problem: String,
}

fn load_newest(job: &mut Job) -> Result<Filled, Stopped> {
    let name = job.disk.name.clone();
    let loaded = job.watched_in(store::load_from)?;
    for (number, why) in &loaded.refused {
        warn(&name, &format!("snapshot {number} cannot be loaded: {why}"));
    }
    for warning in loaded.warnings.iter().chain(&loaded.store_problem) {
        warn(&name, warning);
    }
    if loaded.extracted.unsupported > 0 {
        let names = loaded.extracted.unsupported_names.join(", ");
        warn(&name, &format!("{} attributes cannot be kept on it: {names}", loaded.extracted.unsupported));
    }
    let number_of_entries = loaded.extracted.entries;
    let entries = entries(number_of_entries);
    let size = human(loaded.extracted.bytes);
    let refused = match loaded.refused.first() {
        Some((_, why)) => why.clone(),
        None if loaded.outcome == Outcome::Empty => "damaged ones were set aside".to_owned(),
        None => String::new(),
    };
    let (state, mut message) = match (loaded.outcome, loaded.generation) {
        (outcome, Some(number)) if loaded.already => {
            let state = if outcome == Outcome::Fallback { LoadState::Fallback } else { LoadState::Loaded };
            (state, format!("snapshot {number} is loaded already"))
        }
        (Outcome::FirstUse, None) if loaded.already => {
            (LoadState::Loaded, "it is in its first use already".to_owned())
        }
        (Outcome::Loaded, None) => (LoadState::Loaded, "it is loaded already".to_owned()),
        (Outcome::Fallback, Some(number)) => (
            LoadState::Fallback,
            format!("snapshot {number} loaded, because newer ones cannot be loaded: {entries}, {size}"),
        ),
        (_, Some(number)) => {
            // The names are in the warnings.
            let left_out = match loaded.extracted.omitted.count() {
                0 => String::new(),
                count => format!("; {count} left out: {}", loaded.extracted.omitted.summary()),
            };
            (LoadState::Loaded, format!("snapshot {number} loaded: {entries}, {size}{left_out}"))
        }
        (Outcome::FirstUse, None) if number_of_entries > 1 => {
            (LoadState::Loaded, format!("first use, filled from the directory below: {entries}, {size}"))
        }
        (Outcome::FirstUse, None) => (LoadState::Empty, "first use, empty".to_owned()),
        (Outcome::Passthrough, None) => (
            LoadState::Passthrough,
            "no snapshot can be loaded: the directory on disk is used instead".to_owned(),
        ),
        (_, None) => (LoadState::Empty, "no snapshot can be loaded: the RAM disk starts empty".to_owned()),
    };
    if loaded.unclean {
        let lost = match loaded.generation {
            Some(_) => "what changed after this snapshot",
            None => "what was in it",
        };
        message.push_str(&format!("; the last boot ended without a final save, so {lost} is lost"));
        warn(&name, "the last boot ended without a final save");
    }
    Ok(Filled {
        state,
        generation: loaded.generation.unwrap_or(0),
        made_usec: loaded.made_at_usec.unwrap_or(0),
        unclean: loaded.unclean,
        message,
        refused,
        store_problem: loaded.store_problem.unwrap_or_default(),
    })
}

/// Loads the disk from a chosen snapshot.
fn restore(job: &mut Job, generation: u64) -> Result<Filled, Stopped> {
    let name = job.disk.name.clone();
    let place = job.disk.place.clone();
    let extracted =
        job.watched(|calls, disk, watcher| store::export(calls, disk, Some(generation), &place, watcher))?;
    job.watched_in(|calls, disk, store, _| store::restored_in(calls, disk, store, generation, &extracted))?;
    let left_out = left_out(&name, &extracted.omitted);
    let (entries, size) = (entries(extracted.entries), human(extracted.bytes));
    let message = format!("snapshot {generation} restored: {entries}, {size}{left_out}");
    let made = ramdisk::status(&name)
        .snapshots
        .iter()
        .find(|line| line.generation == generation)
        .map(|line| line.time_usec);
    Ok(Filled {
        state: LoadState::Loaded,
        generation,
        made_usec: made.unwrap_or(0),
        unclean: false,
        message,
        refused: String::new(),
        store_problem: String::new(),
    })
}
