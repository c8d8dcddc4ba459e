//! Commands of the administrator before a save and after a load. The units of the worker are sandboxed, which a command may
//! not expect: with systemd it runs in a unit of its own, with its own limits; otherwise as a child.

use std::ffi::OsStr;
use std::path::Path;
use std::time::Duration;

use engine::ramdisk;
use engine::work::Stopped;
use engine::{Error, ErrorKind};
use host::Host;
use host::linux::{LinuxHost, hook, interrupt, work};
use logic::duration::micros;
use logic::exit::ExitStatus;
use logic::order::{Hook, HookKey, Order};
use logic::unit::ramdisk::hook_unit;
use logic::work::{Ending, Work, ending};
use serde::de::IgnoredAny;
use store::Ramdisk;

use super::super::{configured, frame};
use super::{Job, extend, warn};

/// Time for PID 1 to start the unit and to end remaining processes, in addition to the time limit of the command.
const UNIT: Duration = Duration::from_secs(30);

fn command(hook: HookKey, disk: &Ramdisk) -> &[String] {
    match hook {
        HookKey::PreSave => &disk.keep.pre_save,
        HookKey::PostRestore => &disk.keep.post_restore,
    }
}

/// Runs the command as a child.
fn run_child(
    hook: HookKey,
    disk: &Ramdisk,
    reason: &str,
    proceed: impl FnMut() -> bool,
) -> Result<(), Error> {
    let variables: [(&str, &OsStr); 4] = [
        ("ZRAMD_RAMDISK", disk.name.as_ref()),
        ("ZRAMD_PLACE", disk.place.as_ref()),
        ("ZRAMD_MOUNT_POINT", disk.mount_point.as_ref()),
        ("ZRAMD_REASON", reason.as_ref()),
    ];
    Ok(hook::run(command(hook, disk), &variables, time_limit(disk), proceed)?)
}

/// Runs the command in a unit of PID 1, and waits for its end. If its order cannot be written, it runs as a child: better in
/// the sandbox of the worker than not at all.
fn run_unit(hook: HookKey, disk: &Ramdisk, reason: &str, proceed: impl FnMut() -> bool) -> Result<(), Error> {
    let name = &disk.name;
    let (unit, work) = (hook_unit(name), Hook::work(name));
    let put = |order: Option<&Order>| work::put_order(Path::new("/"), &work, order).map_err(Error::failed);
    let order = Order::Hook(Hook { name: name.clone(), hook, reason: reason.to_owned() });
    if let Err(error) = put(Some(&order)) {
        warn(name, &format!("{} runs without a unit of its own: {error}", hook.key()));
        return run_child(hook, disk, reason, proceed);
    }
    let asked = micros(LinuxHost::new("/").monotonic());
    // PID 1 has a private socket, so this works before the bus is started and after it was stopped.
    let systemctl =
        |verb: &str| ["systemctl", "--no-ask-password", "--quiet", verb, &unit].map(str::to_owned);
    let started = hook::run(&systemctl("start"), &[], time_limit(disk) + UNIT, proceed);
    if let Err(error) = put(None) {
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
        (Ending::Done, _) => Ok(()),
        (_, message) => Err(Error::failed(message)),
    }
}

fn time_limit(disk: &Ramdisk) -> Duration {
    Duration::from_secs(disk.keep.hook_time_limit)
}

impl Job {
    /// Runs a hook of this disk, if it has one; ends it when the work is cancelled.
    pub(super) fn hook(&mut self, hook: HookKey, reason: &str) -> Result<(), Stopped> {
        let (disk, extended) = (&self.disk, &mut self.extended);
        if command(hook, disk).is_empty() {
            return Ok(());
        }
        let proceed = || {
            extend(extended);
            !interrupt::is_asked()
        };
        let done = if self.hook_units {
            run_unit(hook, disk, reason, proceed)
        } else {
            run_child(hook, disk, reason, proceed)
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

/// `hook`: runs a command in its unit.
pub fn run(order: &Hook) -> ExitStatus {
    let Hook { name, hook, reason } = order;
    frame::run(&Hook::work(name), "hook", |_| {
        let key = hook.key();
        let disk = ramdisk::find(&configured::loaded(None), name)?;
        if command(*hook, &disk).is_empty() {
            return Err(Stopped::from(Error::new(ErrorKind::NotFound, format!("{name} has no {key}"))));
        }
        run_child(*hook, &disk, reason, || !interrupt::is_asked())?;
        Ok(format!("{name}: {key} ended"))
    })
}
