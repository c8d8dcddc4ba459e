//! Stops swapping while what is swapped out does not compress. In a thread of its own, which calls on the bus cannot delay, and
//! which sleeps until the kernel reports that tasks wait for memory.

use std::fmt::Display;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use super::core::Core;
use super::journal;
use super::lock::lock;
use engine::Error;
use engine::incompressible::{prepare, swap_numbers};
use host::linux::LinuxHost;
use host::linux::memory_pressure::{self, Swapping};
use host::{Host, HostError};
use logic::maintain::incompressible::{CALM, Decision, INTERVAL, NEVER, Watch};

/// Starts the thread, once, if the configuration asks for it. If the kernel refused reports at start, the journal has the reason.
pub fn follow(core: &Arc<Core>) {
    if !core.view().stops_swapping {
        return;
    }
    let Some(reports) = lock(&core.pressure.prompt).take() else { return };
    if let Err(error) = memory_pressure::stay_in_memory() {
        tracing::warn!("cannot lock memory, so swapping may stop late: {error}");
    }
    let core = Arc::clone(core);
    let begun = std::thread::Builder::new().name("incompressible".to_owned()).spawn(move || {
        let ended = reports.map_err(Into::into).and_then(|reports| wait_and_watch(&core, &reports));
        if let Err(error) = ended {
            let file = memory_pressure::FILE;
            tracing::info!("swapping does not stop for what does not compress: {file}: {error}");
        }
    });
    if let Err(error) = begun {
        tracing::warn!("cannot start a thread: {error}");
    }
}

/// Resumes swapping, also after a daemon that was killed.
pub fn end() {
    finish(true);
}

/// Removes the note in the record, and resumes swapping if it may be stopped.
fn finish(may_be_stopped: bool) {
    report(engine::incompressible::end(&mut LinuxHost::new("/"), may_be_stopped));
}

/// Reports whether swapping was resumed.
fn report(resumed: Result<bool, impl Display>) {
    match resumed {
        Ok(true) => journal::swapping_resumed(),
        Ok(false) => {}
        Err(error) => tracing::warn!("cannot resume swapping: {error}"),
    }
}

fn wait_and_watch(core: &Core, reports: &OwnedFd) -> std::io::Result<()> {
    loop {
        if memory_pressure::wait(reports, None)? && core.view().stops_swapping {
            let mut is_stopped = false;
            let watched = match begin() {
                Ok(Some((value, swapping))) => {
                    let watched = watch(core, reports, &value, &swapping, &mut is_stopped);
                    if is_stopped {
                        // Whatever has happened to the record meanwhile.
                        report(swapping.set(NEVER, &value));
                    }
                    watched
                }
                Ok(None) => continue,
                Err(error) => {
                    tracing::warn!("cannot stop swapping: {error}");
                    Ok(())
                }
            };
            finish(is_stopped);
            watched?;
        }
    }
}

/// The configured `vm.swappiness`, and what is needed to stop swapping; nothing if it is not to be stopped here.
fn begin() -> Result<Option<(String, Swapping)>, Error> {
    let mut host = LinuxHost::new("/");
    let Some(numbers) = swap_numbers(&host)?.filter(|numbers| !numbers.is_empty()) else { return Ok(None) };
    let Some(value) = prepare(&mut host)? else { return Ok(None) };
    let swapping =
        Swapping::open(&numbers).map_err(|error| HostError::io("vm.swappiness", "prepare", &error))?;
    Ok(Some((value, swapping)))
}

/// Until memory is no longer short; `is_stopped` then says whether swapping still has to be resumed. Without taking memory, unless there
/// is something for the journal.
fn watch(
    core: &Core,
    reports: &OwnedFd,
    value: &str,
    swapping: &Swapping,
    is_stopped: &mut bool,
) -> std::io::Result<()> {
    let host = LinuxHost::new("/");
    let maintenance = core.view().maintenance;
    let writes_back = maintenance.writeback && maintenance.pressure.is_some();
    let mut watch = Watch::new(core.latest().memory.total_bytes, writes_back);
    let mut reported = host.monotonic();
    loop {
        let now = host.monotonic();
        // A device that was removed ends it, and so does other swap.
        let Ok(totals) = swapping.totals() else { return Ok(()) };
        if swapping.is_outdated()? || !core.view().stops_swapping {
            return Ok(());
        }
        match watch.look(now, totals, || swapping.available().unwrap_or(u64::MAX)) {
            Some(Decision::Stop(arrived)) => {
                let is_set = core.unless_stopping(|| swapping.set(value, NEVER));
                *is_stopped = is_set.transpose()?.unwrap_or_default();
                if *is_stopped {
                    journal::swapping_stopped(arrived);
                }
            }
            Some(Decision::Resume) if *is_stopped => {
                if swapping.set(NEVER, value)? {
                    journal::swapping_resumed();
                }
                *is_stopped = false;
            }
            Some(Decision::Resume) | None => {}
        }
        if memory_pressure::wait(reports, Some(INTERVAL))? {
            reported = host.monotonic();
        } else if now.saturating_sub(reported) >= CALM {
            return Ok(());
        }
    }
}
