//! Stops swapping while what is swapped out does not compress. In a thread of its own, which calls on the bus cannot delay, and
//! which sleeps until the kernel reports that tasks wait for memory.

use std::fs::File;
use std::sync::Arc;

use super::core::Core;
use super::journal;
use super::lock::lock;
use engine::Error;
use engine::incompressible::{resume, stop, swap_numbers, totals};
use host::Host;
use host::linux::{LinuxHost, stalls};
use logic::maintain::incompressible::{CALM, Decision, INTERVAL, TRIGGER, Watch};

/// Starts the thread, once, if the configuration asks for it. Without the file of the kernel, which was opened at start, the
/// journal has the reason.
pub fn follow(core: &Arc<Core>) {
    if !core.view().stops_swapping {
        return;
    }
    let Some(file) = lock(&core.stalls).take() else { return };
    let core = Arc::clone(core);
    let begun = std::thread::Builder::new().name("incompressible".to_owned()).spawn(move || {
        if let Err(error) = file.and_then(|file| wait_and_watch(&core, &file)) {
            let file = stalls::FILE;
            log::info!("swapping does not stop for what does not compress: {file}: {error}");
        }
    });
    if let Err(error) = begun {
        log::warn!("cannot start a thread: {error}");
    }
}

/// Resumes swapping, also after a daemon that was killed.
pub fn end() {
    journal_resumed(resume(&mut LinuxHost::new("/")));
}

fn wait_and_watch(core: &Core, file: &File) -> std::io::Result<()> {
    stalls::arm(file, TRIGGER)?;
    loop {
        if stalls::wait(file, None)? && core.view().stops_swapping {
            watch(core, file)?;
        }
    }
}

/// Until memory is no longer short.
fn watch(core: &Core, file: &File) -> std::io::Result<()> {
    let mut host = LinuxHost::new("/");
    let memory = core.latest().memory.total_bytes;
    let numbers = swap_numbers(&host).unwrap_or_else(|error| {
        log::warn!("{error}");
        None
    });
    let Some(numbers) = numbers.filter(|numbers| !numbers.is_empty()) else { return Ok(()) };
    let (mut watch, mut reported) = (Watch::default(), host.monotonic());
    loop {
        let now = host.monotonic();
        let decision = match totals(&host, &numbers) {
            Ok(totals) => watch.look(now, totals, memory),
            // A device was removed.
            Err(_) => break,
        };
        match decision {
            Some(Decision::Stop(arrived)) if !core.is_stopping() => match stop(&mut host) {
                Ok(true) => journal::swapping_stopped(arrived),
                Ok(false) => {}
                Err(error) => log::warn!("cannot stop swapping: {error}"),
            },
            Some(Decision::Resume) => journal_resumed(resume(&mut host)),
            Some(Decision::Stop(_)) | None => {}
        }
        if stalls::wait(file, Some(INTERVAL))? {
            reported = host.monotonic();
        } else if now.saturating_sub(reported) >= CALM {
            break;
        }
    }
    journal_resumed(resume(&mut host));
    Ok(())
}

fn journal_resumed(result: Result<bool, Error>) {
    match result {
        Ok(true) => journal::swapping_resumed(),
        Ok(false) => {}
        Err(error) => log::warn!("cannot resume swapping: {error}"),
    }
}
