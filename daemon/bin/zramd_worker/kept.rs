//! `zramd-worker kept`: what happens to the RAM disks of the configuration that are kept: loaded, saved, checked, and what is
//! done with their snapshots. `disk` is the same without a configuration.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use sd_notify::NotifyState;
use zramd::engine::disk::{self, Progress, Request, Saved};
use zramd::engine::keep::{self, Kept};
use zramd::engine::work::{Reporter, Stopped};
use zramd::engine::{Error, ErrorKind};
use zramd::host::Host;
use zramd::host::linux::disk::{Calls, be_idle};
use zramd::host::linux::{LinuxHost, clock, hook, interrupt};
use zramd::logic::disk::state::Outcome;
use zramd::logic::disk_status::{DiskStatus, LoadState};
use zramd::logic::duration::micros;
use zramd::logic::exit::ExitStatus;
use zramd::logic::units::human;

use super::configured;

/// What `--help` says.
pub const HELP: &str =
    "load|save|verify|export|pin|unpin|delete|prepare-restore|cancel-restore|refresh NAME [WORD]...";

/// How often the service manager is told that work goes on, and how long it is to wait from then on.
const EXTEND_EVERY: Duration = Duration::from_secs(2);
const EXTEND_BY: Duration = Duration::from_secs(60);
/// How often somebody else's work on the same disk is looked at until it ends.
const LOOK: Duration = Duration::from_millis(100);

struct Words {
    verb: String,
    name: String,
    rest: Vec<String>,
    reason: String,
}

fn words(words: Vec<OsString>) -> Result<Words, String> {
    use lexopt::prelude::*;
    let parse = || -> Result<Words, lexopt::Error> {
        let mut parser = lexopt::Parser::from_args(words);
        let mut plain = Vec::new();
        let mut reason = "asked".to_owned();
        while let Some(argument) = parser.next()? {
            match argument {
                Long("reason") => reason = parser.value()?.string()?,
                Value(word) => plain.push(word.string()?),
                other => return Err(other.unexpected()),
            }
        }
        let mut plain = plain.into_iter();
        let verb = plain.next().ok_or("what is to be done?")?;
        let name = plain.next().ok_or("with which disk?")?;
        Ok(Words { verb, name, rest: plain.collect(), reason })
    };
    parse().map_err(|error| error.to_string())
}

/// Does it. `Err` is wrong usage.
pub fn run(arguments: Vec<OsString>) -> Result<ExitStatus, String> {
    let words = words(arguments)?;
    let verb: fn(&mut Job, &Words) -> Result<String, Stopped> = match words.verb.as_str() {
        "load" => load,
        "save" => save,
        "verify" => verify,
        "export" => export,
        "pin" => pin,
        "unpin" => unpin,
        "delete" => delete,
        "prepare-restore" => prepare_restore,
        "cancel-restore" => cancel_restore,
        "refresh" => refresh,
        other => return Err(format!("there is no verb `kept {other}`")),
    };
    interrupt::watch();
    let mut job = match Job::begin(&words.name, &words.verb) {
        Ok(job) => job,
        Err(error) => {
            eprintln!("zramd-worker: {error}");
            return Ok(error.exit_status());
        }
    };
    let ended = verb(&mut job, &words);
    Ok(job.end(&ended))
}

/// One piece of work with one disk.
struct Job {
    kept: Kept,
    calls: Calls,
    reporter: Option<Reporter>,
    deadline: Instant,
    extended: Instant,
    moved: u64,
    /// Why it has to end early.
    stopped: Option<Stopped>,
}

impl Job {
    /// Begins when whoever works with the disk now has ended.
    fn begin(name: &str, verb: &str) -> Result<Job, Error> {
        let kept = keep::find(&configured::loaded(None), name)?;
        let now = Instant::now();
        let deadline = now + Duration::from_secs(kept.keep.time_limit);
        let mut job = Job {
            kept,
            calls: Calls::new(),
            reporter: None,
            deadline,
            extended: now,
            moved: 0,
            stopped: None,
        };
        let work = format!("disk-{name}");
        while job.reporter.is_none() {
            match Reporter::begin(Path::new("/"), &work, verb) {
                Ok(reporter) => job.reporter = Some(reporter),
                Err(error) if Instant::now() >= deadline || interrupt::is_asked() => return Err(error),
                Err(_) => {
                    job.extend();
                    std::thread::sleep(LOOK);
                }
            }
        }
        Ok(job)
    }

    /// Has the service manager wait longer.
    fn extend(&mut self) {
        if self.extended.elapsed() >= EXTEND_EVERY {
            self.extended = Instant::now();
            let micros = u32::try_from(EXTEND_BY.as_micros()).unwrap_or(u32::MAX);
            // Nobody has to listen.
            sd_notify::notify(&[NotifyState::ExtendTimeoutUsec(micros)]).ok();
        }
    }

    /// Tells how far it is. Whether to go on: not when somebody asked for an end, or when it has taken too long. What is
    /// written until then has no name yet, so nothing is left of it.
    fn progress(&mut self, progress: Progress) -> bool {
        let Progress { doing, done_bytes, total_bytes } = progress;
        let share = if total_bytes == 0 { 0.0 } else { done_bytes as f64 / total_bytes as f64 };
        if let Some(reporter) = &mut self.reporter {
            reporter.progress(share, doing);
        }
        if done_bytes != self.moved {
            self.moved = done_bytes;
            self.extend();
        }
        let name = &self.kept.request.name;
        if interrupt::is_asked() {
            let message = format!("{name}: cancelled while {doing}; the snapshots are as they were");
            self.stopped = Some(Stopped::Cancelled(message));
        } else if Instant::now() >= self.deadline {
            let limit = self.kept.keep.time_limit;
            self.stopped = Some(Stopped::from(Error::failed(format!(
                "{name}: given up while {doing}, because it took longer than {limit} s (time-limit); the snapshots are as they were"
            ))));
        }
        self.stopped.is_none()
    }

    fn end(&mut self, ended: &Result<String, Stopped>) -> ExitStatus {
        let status = match ended {
            Ok(message) | Err(Stopped::Cancelled(message) | Stopped::Postponed(message)) => {
                println!("{message}");
                ExitStatus::Success
            }
            Err(Stopped::Failed(error)) => {
                eprintln!("zramd-worker: {error}");
                error.exit_status()
            }
        };
        match self.reporter.take().map(|reporter| reporter.end(ended)) {
            Some(Err(error)) => {
                eprintln!("zramd-worker: {error}");
                error.exit_status()
            }
            _ => status,
        }
    }

    /// Runs something of the archives with progress.
    fn watched<T>(
        &mut self,
        work: impl FnOnce(&Calls, &disk::Disk, disk::Watcher<'_>) -> Result<T, Error>,
    ) -> Result<T, Stopped> {
        let (calls, disk) = (self.calls.clone(), self.kept.disk());
        let done = work(&calls, &disk, &mut |progress| self.progress(progress));
        done.map_err(|error| self.stopped.take().unwrap_or(Stopped::Failed(error)))
    }

    fn hook(&mut self, words: &[String], reason: &str) -> Result<(), Error> {
        let request = self.kept.request.clone();
        let limit = Duration::from_secs(self.kept.keep.hook_time_limit);
        let place = request.place();
        let variables = [
            ("ZRAMD_DISK", request.name.as_str()),
            ("ZRAMD_PLACE", place.as_str()),
            ("ZRAMD_MOUNT_POINT", request.mount.mount_point.as_str()),
            ("ZRAMD_REASON", reason),
        ];
        Ok(hook::run(words, &variables, limit, || self.extend())?)
    }

    fn publish(&self, change: impl FnOnce(&mut DiskStatus)) -> Result<(), Error> {
        keep::publish(&self.kept, change)
    }
}

/// For what goes wrong without making the rest useless.
fn warn(name: &str, text: &str) {
    eprintln!("<4>{name}: {text}");
}

fn load(job: &mut Job, words: &Words) -> Result<String, Stopped> {
    let name = words.name.as_str();
    let began = Instant::now();
    job.kept.remember()?;
    keep::mark_passthrough(name, false)?;
    job.publish(|status| {
        *status = DiskStatus { load_state: LoadState::Loading, ..keep::blank(status) };
    })?;
    let loaded = match keep::restore_wanted(name) {
        Some(generation) => restore(job, generation),
        None => load_newest(job),
    };
    let (state, generation, made_usec, unclean, mut message, refused) = match loaded {
        Ok(loaded) => loaded,
        Err(stopped) => {
            let text = sentence(&stopped);
            job.publish(|status| {
                status.load_state = LoadState::Failed;
                status.load_message = text;
            })?;
            // The disk is not to appear half-filled, and its unit only keeps it back when it fails.
            return Err(match stopped {
                Stopped::Cancelled(message) | Stopped::Postponed(message) => Error::failed(message).into(),
                failed @ Stopped::Failed(_) => failed,
            });
        }
    };
    if state == LoadState::Passthrough {
        keep::mark_passthrough(name, true)?;
    } else {
        let hook = job.kept.keep.post_restore.clone();
        if let Err(error) = job.hook(&hook, "load") {
            message = format!("{message}; post-restore: {error}");
            warn(name, &format!("post-restore: {error}"));
        }
    }
    let took = micros(began.elapsed());
    let text = message.clone();
    job.publish(|status| {
        status.load_state = state;
        status.generation = generation;
        status.made_usec = made_usec;
        status.made_age_usec = if made_usec == 0 { 0 } else { clock::unix_usec().saturating_sub(made_usec) };
        status.unclean = unclean;
        status.load_message = text;
        status.refused = refused;
        status.load_took_usec = took;
    })?;
    Ok(format!("{name}: {message}"))
}

/// How it went, the snapshot, when that was made, whether the boot before was unclean, what to say, why not the newest.
type Filled = (LoadState, u64, u64, bool, String, String);

fn load_newest(job: &mut Job) -> Result<Filled, Stopped> {
    let name = job.kept.request.name.clone();
    let loaded = job.watched(|calls, disk, watcher| disk::load(calls, disk, watcher))?;
    for (number, why) in &loaded.refused {
        warn(&name, &format!("snapshot {number} cannot be loaded: {why}"));
    }
    for warning in &loaded.warnings {
        warn(&name, warning);
    }
    if loaded.extracted.unsupported > 0 {
        let names = loaded.extracted.unsupported_names.join(", ");
        warn(&name, &format!("{} attributes cannot be kept on it: {names}", loaded.extracted.unsupported));
    }
    let entries = loaded.extracted.entries;
    let size = human(loaded.extracted.bytes);
    let refused = loaded.refused.first().map(|(_, why)| why.clone()).unwrap_or_default();
    let before = keep::status(&name);
    let (state, mut message) = match (loaded.outcome, loaded.generation) {
        _ if loaded.already && before.generation > 0 => {
            (LoadState::Loaded, "it is loaded already".to_owned())
        }
        (Outcome::Fallback, Some(number)) => (
            LoadState::Fallback,
            format!("snapshot {number} loaded, because newer ones are broken: {entries} entries, {size}"),
        ),
        (_, Some(number)) => {
            (LoadState::Loaded, format!("snapshot {number} loaded: {entries} entries, {size}"))
        }
        (Outcome::FirstUse, None) if entries > 1 => {
            (LoadState::Loaded, format!("first use, filled from the folder below: {entries} entries, {size}"))
        }
        (Outcome::FirstUse, None) => (LoadState::Empty, "first use, empty".to_owned()),
        (Outcome::Passthrough, None) => (
            LoadState::Passthrough,
            "no snapshot can be loaded: the folder on disk is used instead".to_owned(),
        ),
        (_, None) => (LoadState::Empty, "no snapshot can be loaded: it begins empty".to_owned()),
    };
    if loaded.unclean {
        message.push_str(
            "; the last boot ended without a last save, so what changed after this snapshot is lost",
        );
        warn(&name, "the last boot ended without a last save");
    }
    Ok((
        state,
        loaded.generation.unwrap_or(0),
        loaded.made_at_usec.unwrap_or(0),
        loaded.unclean,
        message,
        refused,
    ))
}

/// Fills the disk from a snapshot that somebody has chosen.
fn restore(job: &mut Job, generation: u64) -> Result<Filled, Stopped> {
    let name = job.kept.request.name.clone();
    let place = PathBuf::from(job.kept.request.place());
    let extracted =
        job.watched(|calls, disk, watcher| disk::export(calls, disk, Some(generation), &place, watcher))?;
    disk::adopt(&job.calls, &job.kept.disk())?;
    keep::want_restore(&name, None)?;
    disk::pin(&job.calls, &job.kept.disk(), generation, None)?;
    let message =
        format!("snapshot {generation} restored: {} entries, {}", extracted.entries, human(extracted.bytes));
    let made = keep::status(&name)
        .snapshots
        .iter()
        .find(|line| line.generation == generation)
        .map(|line| line.time_usec);
    Ok((LoadState::Loaded, generation, made.unwrap_or(0), false, message, String::new()))
}

fn save(job: &mut Job, words: &Words) -> Result<String, Stopped> {
    let (name, reason) = (words.name.as_str(), words.reason.as_str());
    if keep::is_passthrough(name) {
        return Ok(format!("{name}: not in use, nothing to save"));
    }
    let last = reason == "stop";
    if reason == "timer" {
        be_idle();
    }
    let hook = job.kept.keep.pre_save.clone();
    let mut notes = Vec::new();
    if let Err(error) = job.hook(&hook, reason) {
        // What is not saved at the end is lost, whatever state it is in.
        if !last {
            let error = Error::failed(format!("{name}: pre-save: {error}"));
            return Err(failed_save(job, error.into()));
        }
        notes.push(format!("pre-save: {error}"));
    }
    let request = Request { reason, force: false, last };
    let saved = job.watched(|calls, disk, watcher| disk::save(calls, disk, request, watcher));
    let (result, message) = match saved {
        Ok(Saved::Unchanged(number)) => ("unchanged", format!("nothing has changed since snapshot {number}")),
        Ok(Saved::Written { generation, manifest, pruned, warnings }) => {
            notes.extend(warnings);
            let (files, size) = (manifest.contents.files, human(manifest.archive_bytes));
            let pruned = match pruned.len() {
                0 => String::new(),
                count => format!(", {count} pruned"),
            };
            ("ok", format!("snapshot {generation}: {files} files in {size}{pruned}"))
        }
        Err(Stopped::Cancelled(message)) if last => {
            // Whoever asked for an early end, what is in the disk is lost with it.
            return Err(failed_save(job, Error::failed(message).into()));
        }
        Err(stopped) => return Err(failed_save(job, stopped)),
    };
    for note in &notes {
        warn(name, note);
    }
    let text = message.clone();
    job.publish(|status| {
        status.last_save_usec = clock::unix_usec();
        status.last_save_result = result.to_owned();
        status.last_save_message = text;
    })?;
    Ok(format!("{name}: {message}"))
}

fn sentence(stopped: &Stopped) -> String {
    match stopped {
        Stopped::Failed(error) => error.to_string(),
        Stopped::Cancelled(message) | Stopped::Postponed(message) => message.clone(),
    }
}

fn failed_save(job: &Job, stopped: Stopped) -> Stopped {
    let text = sentence(&stopped);
    let noted = job.publish(|status| {
        status.last_save_usec = clock::unix_usec();
        status.last_save_result = "failed".to_owned();
        status.last_save_message = text;
    });
    match (stopped, noted) {
        (Stopped::Failed(error), Err(other)) => Stopped::Failed(error.join(other)),
        (stopped, _) => stopped,
    }
}

/// The snapshot that a word names; none is the newest.
fn generation(words: &Words, at: usize) -> Result<Option<u64>, Error> {
    let Some(word) = words.rest.get(at).filter(|word| *word != "newest") else { return Ok(None) };
    let number = word.parse().ok().filter(|number| *number > 0);
    number
        .map(Some)
        .ok_or_else(|| Error::new(ErrorKind::NotFound, format!("`{word}` is no number of a snapshot")))
}

fn named(words: &Words) -> Result<u64, Error> {
    generation(words, 0)?
        .ok_or_else(|| Error::new(ErrorKind::NotFound, format!("{}: which snapshot?", words.name)))
}

fn verify(job: &mut Job, words: &Words) -> Result<String, Stopped> {
    let number = generation(words, 0)?;
    let checked = job.watched(|calls, disk, watcher| disk::verify(calls, disk, number, watcher))?;
    let (entries, size) = (checked.entries, human(checked.bytes));
    Ok(format!("{}: snapshot {} is good: {entries} entries, {size}", words.name, checked.generation))
}

fn export(job: &mut Job, words: &Words) -> Result<String, Stopped> {
    let to = words.rest.first().ok_or_else(|| Error::failed("into which folder?"))?;
    let number = generation(words, 1)?;
    let to = PathBuf::from(to);
    let extracted = job.watched(|calls, disk, watcher| disk::export(calls, disk, number, &to, watcher))?;
    let size = human(extracted.bytes);
    Ok(format!("{}: {} entries, {size} in {}", words.name, extracted.entries, to.display()))
}

fn pin(job: &mut Job, words: &Words) -> Result<String, Stopped> {
    let number = named(words)?;
    let why = words.rest.get(1).map_or("asked for", String::as_str);
    disk::pin(&job.calls, &job.kept.disk(), number, Some(why))?;
    job.publish(|_| {})?;
    Ok(format!("{}: snapshot {number} is kept until it is unpinned", words.name))
}

fn unpin(job: &mut Job, words: &Words) -> Result<String, Stopped> {
    let number = named(words)?;
    disk::pin(&job.calls, &job.kept.disk(), number, None)?;
    job.publish(|_| {})?;
    Ok(format!("{}: snapshot {number} goes when it is its turn", words.name))
}

fn delete(job: &mut Job, words: &Words) -> Result<String, Stopped> {
    let number = named(words)?;
    let status = disk::status(&job.calls, &job.kept.disk())?;
    let good = status.generations.iter().filter(|generation| generation.manifest.is_ok());
    if good.map(|generation| generation.number).collect::<Vec<_>>() == [number] {
        let message =
            format!("{}: snapshot {number} is the only good one; save first, then delete it", words.name);
        return Err(Error::new(ErrorKind::Unsafe, message).into());
    }
    disk::delete(&job.calls, &job.kept.disk(), number)?;
    job.publish(|_| {})?;
    Ok(format!("{}: snapshot {number} is deleted", words.name))
}

/// Makes sure that the snapshot is good and what is in the disk now is saved; the next load then takes the snapshot.
fn prepare_restore(job: &mut Job, words: &Words) -> Result<String, Stopped> {
    let name = words.name.as_str();
    let number = generation(words, 0)?;
    let checked = job.watched(|calls, disk, watcher| disk::verify(calls, disk, number, watcher))?;
    disk::pin(&job.calls, &job.kept.disk(), checked.generation, Some("being restored"))?;
    let saved = save(
        job,
        &Words {
            verb: "save".to_owned(),
            name: name.to_owned(),
            rest: Vec::new(),
            reason: "restore".to_owned(),
        },
    );
    match saved {
        Ok(_) => keep::want_restore(name, Some(checked.generation))?,
        Err(error) => {
            disk::pin(&job.calls, &job.kept.disk(), checked.generation, None)?;
            return Err(error);
        }
    }
    Ok(format!("{name}: snapshot {} is loaded next", checked.generation))
}

fn cancel_restore(job: &mut Job, words: &Words) -> Result<String, Stopped> {
    if let Some(number) = keep::restore_wanted(&words.name) {
        keep::want_restore(&words.name, None)?;
        disk::pin(&job.calls, &job.kept.disk(), number, None)?;
    }
    job.publish(|_| {})?;
    let (host, place) = (LinuxHost::new("/"), job.kept.request.place());
    let is_mounted = disk::is_mounted(&job.calls, Path::new(&place));
    let users = if is_mounted { host.mount_users(&place) } else { Vec::new() };
    if !users.is_empty() {
        let names: Vec<String> =
            users.iter().map(|user| format!("{} (pid {})", user.name, user.pid)).collect();
        let mount_point = &job.kept.request.mount.mount_point;
        let message = format!(
            "{}: it stays as it is, because {mount_point} is in use by {}",
            words.name,
            names.join(", ")
        );
        return Err(Error::new(ErrorKind::InUse, message).into());
    }
    Ok(format!("{}: the newest snapshot is loaded next", words.name))
}

fn refresh(job: &mut Job, words: &Words) -> Result<String, Stopped> {
    job.publish(|_| {})?;
    Ok(format!("{}: looked at its snapshots", words.name))
}
