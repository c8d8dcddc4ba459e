//! Reading configuration and machine: without the daemon, without rights, and without changing anything.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::args::Cli;
use super::{connect, out};
use engine::Error;
use engine::maintain::state::State;
use engine::reload::{self, Scope, Survey};
use engine::sample::{self, Detail};
use host::linux::{LinuxHost, files, unit_files};
use logic::config::problem::Problem;
use logic::config::{self, Loaded, locate};
use logic::maintain::report::Total;
use logic::plan::Activation;
use logic::sample::Snapshot;
use logic::view::View;

/// Directory below which the machine is.
const ROOT: &str = "/";

/// The configuration.
#[derive(Debug, Clone, Default)]
pub struct Configuration {
    /// What it says, and what is wrong with it.
    pub loaded: Loaded,
    /// The files that it is made of, lowest precedence first.
    pub files: Vec<PathBuf>,
}

impl Configuration {
    /// What of it is shown.
    pub fn view(&self) -> View {
        View::of(&self.loaded, self.files.iter().map(|path| path.display().to_string()).collect())
    }
}

/// Reads the configuration, one file instead of the usual ones if it is named. What is wrong is in the problems.
pub fn config(file: Option<&PathBuf>) -> Configuration {
    // An unreadable command line is an empty one: it only ever switches things on or off.
    let cmdline = files::read_optional(Path::new(ROOT), "/proc/cmdline").unwrap_or_default();
    let sources = files::sources(Path::new(ROOT), file);
    let files = sources.0.iter().map(|(path, _)| path.clone()).collect();
    Configuration { loaded: config::load_sources(sources, &cmdline), files }
}

/// As [`config`], but a file that was named and cannot be read is an error: whoever names one wants to know that, more
/// than what there is without it.
pub fn readable_config(file: Option<&PathBuf>) -> Result<Configuration, Error> {
    let configuration = config(file);
    let unreadable = |problem: &&Problem| problem.origin.line == 0 && Some(&problem.origin.file) == file;
    match configuration.loaded.problems.iter().find(unreadable) {
        Some(problem) => {
            Err(Error::failed(format!("{}: {}", problem.origin.file.display(), problem.message)))
        }
        None => Ok(configuration),
    }
}

/// The file that is read instead of the usual ones: the one that is named, otherwise the one that the daemon was started
/// with, because a reload goes by it.
pub fn daemons_file(cli: &Cli) -> Option<PathBuf> {
    cli.config.clone().or_else(|| {
        let file = connect::file_of_daemon()?;
        let usual = locate::ROOTS.iter().any(|directory| file.starts_with(directory));
        (!usual && readable_config(Some(&file)).is_ok()).then_some(file)
    })
}

/// As [`daemons_file`], and says so when it is the daemon's.
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

/// What a reload would change. PID 1 only counts for the configuration that it would use.
pub fn survey(file: Option<&PathBuf>, loaded: &Loaded, forced: bool) -> Result<Survey, Error> {
    let root = Path::new(ROOT);
    let (activation, disks) = if file.is_none() && unit_files::is_booted(root) {
        (Activation::Managed, unit_files::disks(root).into_iter().map(|(disk, _)| disk).collect())
    } else {
        (Activation::Direct, Vec::new())
    };
    reload::survey(&host(), loaded, activation, &Scope { only: None, forced, disks })
}

/// Devices and disks at this moment, without what takes longer: problems, and what the kernel can do.
pub fn figures(file: Option<&PathBuf>, detail: Detail) -> Result<Snapshot, Error> {
    sample::figures(&host(), &readable_config(file)?.view(), detail)
}

/// Everything there is to know at this moment, and the configuration that it was compared with.
pub fn snapshot(file: Option<&PathBuf>) -> Result<(Snapshot, Configuration), Error> {
    let configuration = readable_config(file)?;
    Ok((sample::snapshot(&host(), &configuration.view())?, configuration))
}

/// What the policies of maintenance have done since boot, by their names.
pub type Policies = BTreeMap<String, Total>;

/// Reads that; nothing when maintenance has not run.
pub fn policies() -> Policies {
    State::read(&host()).totals
}
