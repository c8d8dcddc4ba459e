//! Operations on a RAM disk: loads, saves and verifies persistent RAM disks, and manages their snapshots.

mod fill;
pub mod hooks;
mod snapshots;

use std::path::Path;
use std::time::{Duration, Instant};

use engine::ramdisk;
use engine::work::{Reporter, Stopped};
use engine::{Error, ErrorKind};
use host::linux::ramdisk::Calls;
use host::linux::{clock, interrupt, places, priority, shutdown, unit_files};
use host::out;
use logic::exit::ExitStatus;
use logic::human::human;
use logic::order::{HookKey, Order, RamdiskOrder};
use logic::ramdisk::SaveReason;
use logic::ramdisk::omitted::Omitted;
use logic::ramdisk::status::{RamdiskStatus, SaveResult};
use logic::text::worded;
use logic::unit::ramdisk::place_unit;
use sd_notify::NotifyState;
use store::{self, Progress, Ramdisk, Request, Saved, Store};

use super::{configured, frame};

/// Interval of requests to the service manager to extend the timeout, and the extension.
const EXTEND_EVERY: Duration = Duration::from_secs(2);
const EXTEND_BY: Duration = Duration::from_secs(60);
/// Polling interval while another process publishes its progress.
const LOOK: Duration = Duration::from_millis(100);

/// Runs an operation on a RAM disk. `Err` is wrong usage.
pub fn run(order: Order) -> Result<ExitStatus, String> {
    type Operation = fn(&mut Job, &RamdiskOrder) -> Result<String, Stopped>;
    let verb = order.verb();
    let (run, order): (Operation, RamdiskOrder) = match order {
        Order::Load(order) => (fill::load, order),
        Order::Save(order) => (save, order),
        Order::Verify(order) => (snapshots::verify, order),
        Order::Export(order) => (snapshots::export, order),
        Order::Pin(order) => (snapshots::pin, order),
        Order::Unpin(order) => (snapshots::unpin, order),
        Order::Delete(order) => (snapshots::delete, order),
        Order::PrepareRestore(order) => (snapshots::prepare_restore, order),
        Order::CancelRestore(order) => (snapshots::cancel_restore, order),
        Order::Refresh(order) => (refresh, order),
        _ => return Err(format!("{verb}: no operation on a RAM disk")),
    };
    interrupt::watch();
    let mut job = match Job::begin(&verb, &order) {
        Ok(job) => job,
        Err(error) => return Ok(frame::report(&Err(error))),
    };
    let ended = run(&mut job, &order);
    Ok(frame::end(job.reporter, &ended))
}

/// One operation on one disk.
struct Job {
    disk: Ramdisk,
    calls: Calls,
    /// Held by a save or load from its beginning, including its commands, to its end.
    store: Option<Store>,
    reporter: Reporter,
    deadline: Instant,
    extended: Instant,
    /// Whether PID 1 runs the hooks. The unit of a hook only reads the usual configuration.
    hook_units: bool,
    /// Why the operation has to end early.
    stopped: Option<Stopped>,
}

/// Asks the service manager to extend the timeout; `last` is the time of the previous request.
fn extend(last: &mut Instant) {
    if last.elapsed() >= EXTEND_EVERY {
        *last = Instant::now();
        let micros = u32::try_from(EXTEND_BY.as_micros()).unwrap_or(u32::MAX);
        // There may be no service manager.
        sd_notify::notify(&[NotifyState::ExtendTimeoutUsec(micros)]).ok();
    }
}

impl Job {
    fn begin(verb: &str, order: &RamdiskOrder) -> Result<Job, Error> {
        let name = order.name.as_str();
        let disk = match ramdisk::find(&configured::loaded(order.config.as_ref()), name) {
            // The disk is no longer configured, but its snapshots can be read, and what is in it can be saved.
            Err(error) if error.kind == ErrorKind::NotFound => match verb {
                "verify" | "export" => ramdisk::orphan(name).ok_or(error)?,
                "save" => ramdisk::left_over(name).ok_or(error)?,
                _ => return Err(error),
            },
            found => found?,
        };
        if ["load", "save", "prepare-restore"].contains(&verb) {
            match places::make(Path::new("/")) {
                Err(error) if verb == "load" => return Err(error.into()),
                // A warning only: without a save, more would be lost.
                Err(error) => warn(name, &error.to_string()),
                Ok(()) => {}
            }
        }
        let now = Instant::now();
        let mut job = Job {
            calls: Calls::new(),
            store: None,
            reporter: Reporter::unpublished(name, verb),
            deadline: now + Duration::from_secs(disk.keep.time_limit),
            disk,
            extended: now,
            hook_units: order.config.is_none() && unit_files::is_booted(Path::new("/")),
            stopped: None,
        };
        job.report_as(verb)?;
        Ok(job)
    }

    /// Publishes the progress from now on, after other work on the disk that does so. A save does not wait for that, and no
    /// work but a load, which needs other files there as well, depends on a file that can be written.
    fn report_as(&mut self, verb: &str) -> Result<(), Error> {
        let name = self.disk.name.clone();
        loop {
            match Reporter::begin(Path::new("/"), &format!("ramdisk-{name}"), verb) {
                Ok(reporter) => self.reporter = reporter,
                Err(error) if error.kind == ErrorKind::Busy && verb == "save" => {}
                Err(error) if error.kind == ErrorKind::Busy => {
                    if Instant::now() >= self.deadline || interrupt::is_asked() {
                        return Err(error);
                    }
                    extend(&mut self.extended);
                    std::thread::sleep(LOOK);
                    continue;
                }
                Err(error) if verb == "load" => return Err(error),
                Err(error) => warn(&name, &format!("its progress is not published: {error}")),
            }
            return Ok(());
        }
    }

    /// Claims the store, after a save or load of another process, which is named.
    fn claim(&mut self) -> Result<(), Stopped> {
        let (name, deadline) = (self.disk.name.clone(), self.deadline);
        let mut holder = None;
        let extended = &mut self.extended;
        let store = Store::claim(&self.calls, &self.disk, |found| {
            let found = found.map_or_else(|| "another process".to_owned(), ToString::to_string);
            if holder.as_ref() != Some(&found) {
                warn(&name, &format!("waits for {found}, which saves or loads it"));
                holder = Some(found);
            }
            extend(extended);
            !interrupt::is_asked() && Instant::now() < deadline
        })?;
        if store.is_none() {
            let holder = holder.unwrap_or_default();
            let limit = self.disk.keep.time_limit;
            return Err(if interrupt::is_asked() {
                Stopped::Cancelled(format!("{name}: cancelled while {holder} was saving or loading it"))
            } else {
                let message = format!(
                    "{name}: {holder} saves or loads it, and has not ended within {limit} s (time-limit); end that process, then try again"
                );
                Error::new(ErrorKind::Busy, message).into()
            });
        }
        self.store = store;
        if !self.reporter.is_published()
            && let Ok(reporter) = Reporter::begin(Path::new("/"), &format!("ramdisk-{name}"), "save")
        {
            // The other process published its progress.
            self.reporter = reporter;
        }
        // The time of others does not count.
        self.deadline = Instant::now() + Duration::from_secs(self.disk.keep.time_limit);
        // Read only now: other work on the disk may have changed it.
        self.disk.spared = self.disk.spared.or_else(|| ramdisk::restore_wanted(&name));
        Ok(())
    }

    /// Publishes the progress, and returns false when the operation is cancelled or has exceeded its time limit. Until its
    /// end a save writes an unnamed file, so nothing is left behind.
    fn progress(&mut self, progress: Progress) -> bool {
        let Progress { doing, done_bytes, total_bytes } = progress;
        let share = if total_bytes == 0 { 0.0 } else { done_bytes as f64 / total_bytes as f64 };
        self.reporter.progress(share, doing);
        // Also without new bytes: a tree may have millions of entries without contents. The deadline bounds this.
        extend(&mut self.extended);
        let name = &self.disk.name;
        if interrupt::is_asked() {
            let message = format!("{name}: cancelled while {doing}");
            self.stopped = Some(Stopped::Cancelled(message));
        } else if Instant::now() >= self.deadline {
            let limit = self.disk.keep.time_limit;
            self.stopped = Some(Stopped::from(Error::failed(format!(
                "{name}: aborted while {doing}, after {limit} s (time-limit)"
            ))));
        }
        self.stopped.is_none()
    }

    /// Runs an archive operation with progress.
    fn watched<T>(
        &mut self,
        work: impl FnOnce(&Calls, &Ramdisk, store::Watcher<'_>) -> Result<T, Error>,
    ) -> Result<T, Stopped> {
        let (calls, disk) = (self.calls.clone(), self.disk.clone());
        let done = work(&calls, &disk, &mut |progress| self.progress(progress));
        self.ended(done)
    }

    /// As [`Job::watched`], in the claimed store.
    fn watched_in<T>(
        &mut self,
        work: impl FnOnce(&Calls, &Ramdisk, &Store, store::Watcher<'_>) -> Result<T, Error>,
    ) -> Result<T, Stopped> {
        let Some(store) = self.store.take() else {
            return Err(Error::failed("the store is not claimed").into());
        };
        let done = self.watched(|calls, disk, watcher| work(calls, disk, &store, watcher));
        self.store = Some(store);
        done
    }

    fn ended<T>(&mut self, done: Result<T, Error>) -> Result<T, Stopped> {
        // Work that was complete when its watcher ended it has succeeded.
        let stopped = self.stopped.take();
        done.map_err(|error| match stopped {
            // The error says what has become of the snapshots.
            Some(Stopped::Cancelled(what)) => Stopped::Cancelled(format!("{what}; {error}")),
            Some(Stopped::Failed(what)) => Error::failed(format!("{what}; {error}")).into(),
            Some(Stopped::Postponed(_)) | None => Stopped::Failed(error),
        })
    }

    /// Publishes the status. Without that, the work is the same.
    fn publish(&self, change: impl FnOnce(&mut RamdiskStatus)) {
        if let Err(error) = ramdisk::publish(&self.disk, change) {
            warn(&self.disk.name, &format!("its status is not published: {error}"));
        }
    }
}

/// A number of directory entries.
fn entries(count: u64) -> String {
    let noun = if count == 1 { "entry" } else { "entries" };
    format!("{count} {noun}")
}

/// Message about entries that were left out: here only their number, because every user can read it; the journal has the
/// names.
fn left_out(name: &str, omitted: &Omitted) -> String {
    if omitted.is_empty() {
        return String::new();
    }
    warn(name, &omitted.report());
    format!("; {} left out or incomplete: {}", omitted.count(), omitted.summary())
}

/// Warns about an error that does not make the result useless.
fn warn(name: &str, text: &str) {
    out::warning(&format!("{name}: {text}"));
}

/// Saves it, and after a save of the timer verifies the newest snapshot once a week.
fn save(job: &mut Job, order: &RamdiskOrder) -> Result<String, Stopped> {
    let saved = save_now(job, order)?;
    if order.reason == SaveReason::Timer {
        verify_weekly(job);
    }
    Ok(saved)
}

fn verify_weekly(job: &mut Job) {
    let is_unverified = |job: &Job| {
        store::status(&job.calls, &job.disk).is_ok_and(|found| found.state.is_unverified(clock::unix_usec()))
    };
    // Others can save meanwhile.
    if job.store.take().is_none() || !is_unverified(job) {
        return;
    }
    priority::lowest();
    job.deadline = Instant::now() + Duration::from_secs(job.disk.keep.time_limit);
    if let Err(Stopped::Failed(error)) =
        job.watched(|calls, disk, watcher| store::verify_and_remember(calls, disk, None, watcher))
    {
        warn(&job.disk.name, &format!("the newest snapshot: {}", error.full()));
    }
    job.publish(|_| {});
}

fn save_now(job: &mut Job, order: &RamdiskOrder) -> Result<String, Stopped> {
    let (name, reason) = (order.name.as_str(), order.reason);
    if ramdisk::is_passthrough(name) {
        return Ok(format!("{name}: not in use, nothing to save"));
    }
    let last = reason == SaveReason::Stop;
    match job.claim() {
        Err(Stopped::Failed(error)) => return Err(failed_save(job, error)),
        Err(Stopped::Cancelled(message)) if last => return Err(failed_save(job, Error::failed(message))),
        claimed => claimed?,
    }
    let mut notes = Vec::new();
    match job.hook(HookKey::PreSave, reason.word()) {
        Ok(()) => {}
        // The last save before the disk is removed: without it, all changes would be lost.
        Err(stopped) if last => notes.push(format!("pre-save: {}", sentence(&stopped))),
        Err(Stopped::Failed(error)) => {
            return Err(failed_save(job, Error::failed(format!("{name}: pre-save: {error}"))));
        }
        Err(stopped) => return Err(stopped),
    }
    // Otherwise a refused save leaves the disk as it is, and can be repeated.
    let gives_up = last && shutdown::is_begun(Path::new("/"), &place_unit(name));
    let request = Request { reason, force: false, last, gives_up };
    let saved =
        job.watched_in(|calls, disk, store, watcher| store::save_in(calls, disk, store, request, watcher));
    let (result, mut message, omitted) = match saved {
        Ok(Saved::Unchanged { generation, omitted }) => {
            (SaveResult::Unchanged, format!("nothing has changed since snapshot {generation}"), omitted)
        }
        Ok(Saved::Written { generation, manifest, written_bytes, pruned, warnings }) => {
            notes.extend(warnings);
            let (files, size) = (manifest.contents.files, human(written_bytes));
            let pruned = match pruned.len() {
                0 => String::new(),
                count => format!(", {count} pruned"),
            };
            let noun = if files == 1 { "file" } else { "files" };
            let skipped = match manifest.skipped {
                0 => String::new(),
                count => format!(", without {count} that cannot be saved (sockets, mounts)"),
            };
            let message = format!("snapshot {generation}: {files} {noun}, {size} written{pruned}{skipped}");
            (SaveResult::Ok, message, manifest.omitted)
        }
        Err(Stopped::Cancelled(message)) if last => {
            // Cancelled, and with the disk its contents are lost: this counts as failed.
            return Err(failed_save(job, Error::failed(message)));
        }
        Err(Stopped::Failed(error)) => return Err(failed_save(job, error)),
        Err(stopped) => return Err(stopped),
    };
    for note in &notes {
        warn(name, note);
    }
    message.push_str(&left_out(name, &omitted));
    let text = message.clone();
    job.publish(|status| {
        status.last_save_usec = clock::unix_usec();
        status.last_save_result = result;
        status.last_save_message = worded(text);
        status.last_save_omitted = omitted.counts;
        status.store_problem.clear();
    });
    Ok(format!("{name}: {message}"))
}

fn sentence(stopped: &Stopped) -> String {
    match stopped {
        Stopped::Failed(error) => error.to_string(),
        Stopped::Cancelled(message) | Stopped::Postponed(message) => message.clone(),
    }
}

fn failed_save(job: &Job, error: Error) -> Stopped {
    let text = error.to_string();
    job.publish(|status| {
        status.last_save_usec = clock::unix_usec();
        status.last_save_result = SaveResult::Failed;
        status.last_save_message = worded(text);
    });
    Stopped::Failed(error)
}

fn refresh(job: &mut Job, order: &RamdiskOrder) -> Result<String, Stopped> {
    ramdisk::publish(&job.disk, |_| {})?;
    Ok(format!("{}: snapshots checked", order.name))
}

#[cfg(test)]
mod tests {
    use std::env;
    use std::os::unix::net::UnixDatagram;
    use std::process::Command;

    use logic::ramdisk::{KeepSettings, Mode};

    use super::*;

    /// Set in a child process, because the socket is an environment variable of the whole process.
    const ROOT: &str = "TEST_ROOT";

    fn job(root: &Path) -> Job {
        let keep = KeepSettings {
            mode: Mode::Snapshot,
            store: String::new(),
            generations: 1,
            save_interval: None,
            on_failure: None,
            seed: false,
            pre_save: Vec::new(),
            post_restore: Vec::new(),
            hook_time_limit: 1,
            time_limit: 1,
        };
        let disk = Ramdisk {
            name: "trial".to_owned(),
            place: root.to_owned(),
            mount_point: root.to_owned(),
            keep,
            store_limit: None,
            daily_budget: None,
            notes: None,
            spared: None,
            trial: true,
        };
        let now = Instant::now();
        Job {
            disk,
            calls: Calls::new(),
            store: None,
            reporter: Reporter::begin(root, "trial", "save").unwrap(),
            deadline: now + Duration::from_secs(3600),
            extended: now.checked_sub(EXTEND_EVERY).unwrap(),
            hook_units: false,
            stopped: None,
        }
    }

    #[test]
    fn the_timeout_is_extended_without_progress_in_bytes() {
        if let Some(root) = env::var_os(ROOT) {
            let nothing = Progress { doing: "saving", done_bytes: 0, total_bytes: 0 };
            assert!(job(Path::new(&root)).progress(nothing));
            return;
        }
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("socket");
        let socket = UnixDatagram::bind(&path).unwrap();
        socket.set_nonblocking(true).unwrap();
        let this = "ramdisk::tests::the_timeout_is_extended_without_progress_in_bytes";
        let child = Command::new(env::current_exe().unwrap())
            .args(["--exact", this])
            .env(ROOT, root.path())
            .env("NOTIFY_SOCKET", &path)
            .output()
            .unwrap();
        assert!(child.status.success(), "{child:?}");
        let mut message = [0; 64];
        let length = socket.recv(&mut message).unwrap();
        assert!(message[..length].starts_with(b"EXTEND_TIMEOUT_USEC="), "{message:?}");
    }
}
