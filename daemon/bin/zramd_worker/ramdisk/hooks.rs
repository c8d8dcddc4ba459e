//! Commands of the administrator before a save and after a load. The units of the worker are sandboxed, which a command may
//! not expect: with systemd it runs in a unit of its own, with its own limits; otherwise as a child.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::time::Duration;

use engine::ramdisk::{Disk, keep};
use engine::work::Stopped;
use engine::{Error, ErrorKind};
use host::Host;
use host::linux::{LinuxHost, hook, interrupt, work};
use logic::duration::micros;
use logic::exit::ExitStatus;
use logic::unit::ramdisk::hook_unit;
use logic::work::{Outcome, Work, ending};
use serde::de::IgnoredAny;

use super::super::{configured, frame};
use super::{Job, extend, warn};

/// Output of `--help`.
pub const HELP: &str = "pre-save|post-restore NAME REASON: the command of a RAM disk";

/// Time for PID 1 to start the unit and to end remaining processes, in addition to the time limit of the command.
const UNIT: Duration = Duration::from_secs(30);

/// A hook of a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hook {
    PreSave,
    PostRestore,
}

impl Hook {
    /// Its key in the configuration.
    const fn key(self) -> &'static str {
        match self {
            Hook::PreSave => "pre-save",
            Hook::PostRestore => "post-restore",
        }
    }

    fn words(self, disk: &Disk) -> &[String] {
        match self {
            Hook::PreSave => &disk.keep.pre_save,
            Hook::PostRestore => &disk.keep.post_restore,
        }
    }

    /// Runs the command as a child.
    fn run(self, disk: &Disk, reason: &str, proceed: impl FnMut() -> bool) -> Result<(), Error> {
        let variables: [(&str, &OsStr); 4] = [
            ("ZRAMD_DISK", disk.name.as_ref()),
            ("ZRAMD_PLACE", disk.place.as_ref()),
            ("ZRAMD_MOUNT_POINT", disk.mount_point.as_ref()),
            ("ZRAMD_REASON", reason.as_ref()),
        ];
        Ok(hook::run(self.words(disk), &variables, time_limit(disk), proceed)?)
    }

    /// Runs the command in a unit of PID 1, and waits for its end. If its words cannot be written there, it runs as a child:
    /// better in the sandbox of the worker than not at all.
    fn run_unit(self, disk: &Disk, reason: &str, proceed: impl FnMut() -> bool) -> Result<(), Error> {
        let name = &disk.name;
        let (unit, work) = (hook_unit(name), work_name(name));
        let ask = |words: Option<&[String]>| work::ask(Path::new("/"), &work, words).map_err(Error::failed);
        if let Err(error) = ask(Some(&[self.key(), name, reason].map(str::to_owned))) {
            warn(name, &format!("{} runs without a unit of its own: {error}", self.key()));
            return self.run(disk, reason, proceed);
        }
        let asked = micros(LinuxHost::new("/").monotonic());
        // PID 1 has a private socket, so this works before the bus is started and after it was stopped.
        let systemctl =
            |verb: &str| ["systemctl", "--no-ask-password", "--quiet", verb, &unit].map(str::to_owned);
        let started = hook::run(&systemctl("start"), &[], time_limit(disk) + UNIT, proceed);
        if let Err(error) = ask(None) {
            warn(name, &error.to_string());
        }
        if started.is_err() {
            // The unit would run until its own time limit.
            hook::run(&systemctl("stop"), &[], UNIT, || true).ok();
        }
        started?;
        let file = work::read(Path::new("/"), &work);
        let file: Option<Work<IgnoredAny>> = file.and_then(|text| serde_json::from_str(&text).ok());
        match ending(file.as_ref(), asked) {
            (Outcome::Done, _) => Ok(()),
            (_, message) => Err(Error::failed(message)),
        }
    }
}

fn time_limit(disk: &Disk) -> Duration {
    Duration::from_secs(disk.keep.hook_time_limit)
}

fn work_name(name: &str) -> String {
    format!("hook-{name}")
}

impl Job {
    /// Runs a hook of this disk, if it has one; ends it when the work is cancelled.
    pub(super) fn hook(&mut self, hook: Hook, reason: &str) -> Result<(), Stopped> {
        let (disk, extended) = (&self.disk, &mut self.extended);
        if hook.words(disk).is_empty() {
            return Ok(());
        }
        let proceed = || {
            extend(extended);
            !interrupt::is_asked()
        };
        let done = if self.hook_units {
            hook.run_unit(disk, reason, proceed)
        } else {
            hook.run(disk, reason, proceed)
        };
        done.map_err(|error| {
            if interrupt::is_asked() {
                Stopped::Cancelled(format!("{}: cancelled during {}", disk.name, hook.key()))
            } else {
                error.into()
            }
        })
    }
}

/// `zramd-worker hook`: runs a hook in its unit. `Err` is wrong usage.
pub fn run(words: Vec<OsString>) -> Result<ExitStatus, String> {
    let words: Vec<String> = words.into_iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let [key, name, reason] = words.as_slice() else { return Err("which hook?".to_owned()) };
    let hook = [Hook::PreSave, Hook::PostRestore].into_iter().find(|hook| hook.key() == key);
    let hook = hook.ok_or_else(|| format!("there is no hook `{key}`"))?;
    Ok(frame::run(&work_name(name), "hook", |_| {
        let disk = keep::find(&configured::loaded(None), name)?;
        if hook.words(&disk).is_empty() {
            return Err(Stopped::from(Error::new(ErrorKind::NotFound, format!("{name} has no {key}"))));
        }
        hook.run(&disk, reason, || !interrupt::is_asked())?;
        Ok(format!("{name}: {key} ended"))
    }))
}
