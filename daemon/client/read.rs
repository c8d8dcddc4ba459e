//! Reads configuration and machine, without daemon, privileges or changes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::args::Cli;
use super::{connect, out};
use engine::Error;
use engine::maintain::state::State;
use engine::reload::{self, Scope, Survey};
use engine::sample::{self, Detail};
use host::linux::{LinuxHost, files, unit_files};
use logic::config::{Loaded, locate};
use logic::finding::Finding;
use logic::maintain_report::Total;
use logic::plan::{Activation, Plan};
use logic::sample::Snapshot;
use logic::view::View;

/// Root of the machine's files.
const ROOT: &str = "/";

/// Reads the configuration; a named file replaces the usual ones. Errors are among the problems.
pub fn config(file: Option<&PathBuf>) -> Loaded {
    files::load(Path::new(ROOT), files::sources(Path::new(ROOT), file))
}

/// As [`config`], but fails if the named file cannot be read.
pub fn readable_config(file: Option<&PathBuf>) -> Result<Loaded, Error> {
    let loaded = config(file);
    let unreadable = |problem: &&Finding| {
        problem.place.as_ref().is_some_and(|place| place.line == 0 && Some(&place.file) == file)
    };
    match loaded.problems.iter().find(unreadable) {
        Some(problem) => Err(Error::failed(problem.sentence())),
        None => Ok(loaded),
    }
}

/// The file that replaces the usual ones: the named one, otherwise the one with which the daemon was started, because a
/// reload reads that.
pub fn daemons_file(cli: &Cli) -> Option<PathBuf> {
    cli.config.clone().or_else(|| {
        let file = connect::file_of_daemon()?;
        let usual = locate::ROOTS.iter().any(|directory| file.starts_with(directory));
        (!usual && readable_config(Some(&file)).is_ok()).then_some(file)
    })
}

/// As [`daemons_file`], with a note if it is that of the daemon.
pub fn used_file(cli: &Cli) -> Option<PathBuf> {
    let file = daemons_file(cli)?;
    if cli.config.is_none() {
        out::note(&format!("zramd runs with `--config {0}`, so {0} is used here.", file.display()));
    }
    Some(file)
}

/// The machine.
pub fn host() -> LinuxHost {
    LinuxHost::new(ROOT)
}

/// Checks a configuration for this machine.
pub fn check(loaded: &Loaded) -> Plan {
    engine::check(&host(), loaded, unit_files::disks(Path::new(ROOT)))
}

/// The changes that a reload would make. PID 1 is considered only for the configuration that it would use.
pub fn survey(file: Option<&PathBuf>, loaded: &Loaded, scope: Scope) -> Result<Survey, Error> {
    let root = Path::new(ROOT);
    let (activation, ramdisks) = if file.is_none() && unit_files::is_booted(root) {
        (Activation::Managed, unit_files::disks(root))
    } else {
        (Activation::Direct, Vec::new())
    };
    reload::survey(&host(), loaded, activation, &Scope { ramdisks, ..scope })
}

/// Devices and RAM disks, without what takes longer to read: problems and kernel features.
pub fn figures(file: Option<&PathBuf>, detail: Detail) -> Result<Snapshot, Error> {
    sample::figures(&host(), &View::of(&readable_config(file)?), detail)
}

/// Devices, RAM disks, problems and kernel features, with the configuration.
pub fn snapshot(file: Option<&PathBuf>) -> Result<(Snapshot, Loaded), Error> {
    let loaded = readable_config(file)?;
    Ok((sample::snapshot(&host(), &View::of(&loaded))?, loaded))
}

/// Totals of the maintenance policies since boot, by name.
pub type Policies = BTreeMap<String, Total>;

/// Reads those totals; empty if maintenance has not run.
pub fn policies() -> Policies {
    State::read(&host()).totals
}
