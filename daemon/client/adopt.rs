//! `adopt`: rewrites the record of a device. Nothing else changes, so the daemon is not involved.

use std::path::Path;

use super::args::Cli;
use super::{out, read};
use engine::{Error, ErrorKind, provision};
use host::linux::unit_files;
use logic::exit::ExitStatus;
use logic::plan::Activation;
use logic::proc::device_number;

pub fn run(cli: &Cli, name: &str) -> Result<ExitStatus, Error> {
    let number = device_number(name)
        .ok_or_else(|| Error::new(ErrorKind::NotFound, format!("{name} is no zram device")))?;
    let loaded = read::readable_config(cli.config.as_ref())?;
    // PID 1 deactivates a device that it has activated.
    let managed = unit_files::is_booted(Path::new("/")) && unit_files::activates(Path::new("/"), number);
    let activation = if managed { Activation::Systemd } else { Activation::Direct };
    let adopted = provision::adopt(&mut read::host(), &loaded, number, activation)?;
    let end = if adopted { "adopted" } else { "its record is in order, nothing to do" };
    out::done(&format!("zram{number}: {end}"));
    Ok(ExitStatus::Success)
}
