//! The configuration as the daemon reads it: the usual roots, or one file, with the sections of the moment in both cases.

use std::path::{Path, PathBuf};

use crate::host::linux::files;
use crate::logic::config::problem::{Problem, Severity};
use crate::logic::config::{self, Loaded};

/// Where the configuration comes from.
#[derive(Debug, Clone, Default)]
pub struct Source {
    /// `--config`: this file instead of the roots.
    pub file: Option<PathBuf>,
}

impl Source {
    /// Reads it. Never fails: what is wrong is in the problems.
    pub fn load(&self) -> Loaded {
        let root = Path::new("/");
        // An unreadable command line is an empty one: it only ever switches things off.
        let cmdline = files::read_optional(root, "/proc/cmdline").unwrap_or_default();
        let sources = match &self.file {
            Some(file) => {
                let mut paths = vec![file.clone()];
                paths.extend(files::overlays(root));
                files::read_sources(&paths)
            }
            None => files::find_sources(root),
        };
        config::load_sources(sources, &cmdline)
    }

    /// The files that it is made of, lowest precedence first.
    pub fn files(&self) -> Vec<String> {
        let (found, _) = match &self.file {
            Some(file) => files::read_sources(std::slice::from_ref(file)),
            None => files::find_sources(Path::new("/")),
        };
        found.into_iter().map(|(path, _)| path.display().to_string()).collect()
    }
}

/// The errors among the problems, one line each; empty when there is none.
pub fn errors(problems: &[Problem]) -> Vec<String> {
    let errors = problems.iter().filter(|problem| problem.severity == Severity::Error);
    errors.map(crate::logic::config::render::one_line).collect()
}
