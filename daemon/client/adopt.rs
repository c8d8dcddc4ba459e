//! `adopt`: the record of a device is written anew. Nothing else is changed, so the daemon need not take part.

use std::path::Path;

use super::args::Cli;
use super::{out, read};
use crate::engine::{Error, ErrorKind, provision};
use crate::host::linux::unit_files;
use crate::logic::exit::ExitStatus;
use crate::logic::plan::Activation;
use crate::logic::proc::device_number;

/// Runs `adopt`.
pub fn run(cli: &Cli, name: &str) -> Result<ExitStatus, Error> {
    let number = device_number(name)
        .ok_or_else(|| Error::new(ErrorKind::NotFound, format!("{name} is no zram device")))?;
    let loaded = read::readable_config(cli.config.as_ref())?.loaded;
    // Whose units activated it decides who deactivates it.
    let managed = unit_files::is_booted(Path::new("/")) && unit_files::activates(Path::new("/"), number);
    let activation = if managed { Activation::Systemd } else { Activation::Direct };
    out::line(&match provision::adopt(&mut read::host(), &loaded, number, activation)? {
        true => format!("zram{number}: taken over"),
        false => format!("zram{number}: its record is in order, nothing to do"),
    });
    Ok(ExitStatus::Success)
}
