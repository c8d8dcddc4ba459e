//! Translates the configuration of other programs that set up zram.
//!
//! Text in, text out. Settings that the other program loses or misreads are taken as intended, with a [`Warning`].
//! Programs named in a configuration are not run here: the caller may run them, and pass their output.

mod document;
pub mod files;
mod fstab;
mod generator;
mod ini;
mod log2ram;
mod pop_zram;
mod refused;
mod rpi_swap;
mod shell;
mod zram_tools;

use std::path::{Path, PathBuf};

/// A program whose configuration can be imported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Peer {
    /// systemd's zram-generator.
    ZramGenerator,
    /// Debian's zram-tools.
    ZramTools,
    Log2ram,
    /// The zram script of Pop!_OS.
    PopZram,
    /// rpi-swap of Raspberry Pi OS.
    RpiSwap,
    /// `/etc/fstab`.
    Fstab,
}

impl Peer {
    /// All programs.
    pub const ALL: [Peer; 6] =
        [Peer::ZramGenerator, Peer::ZramTools, Peer::Log2ram, Peer::PopZram, Peer::RpiSwap, Peer::Fstab];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Peer::ZramGenerator => "zram-generator",
            Peer::ZramTools => "zram-tools",
            Peer::Log2ram => "log2ram",
            Peer::PopZram => "pop-zram",
            Peer::RpiSwap => "rpi-swap",
            Peer::Fstab => "fstab",
        }
    }

    pub fn parse(name: &str) -> Option<Peer> {
        Peer::ALL.into_iter().find(|peer| peer.name() == name)
    }
}

/// Result of an import.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Imported {
    /// A configuration file for zramd, with comments. It loads without problems.
    pub toml: String,
    /// Whether it has no section.
    pub is_empty: bool,
    /// Names of the sections that became comments, because zramd does not take them.
    pub rejected: Vec<String>,
    /// One row per setting.
    pub table: Vec<Row>,
    /// What the administrator should check.
    pub warnings: Vec<Warning>,
}

/// The translation of one setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// In the other program.
    pub was: String,
    /// In zramd; empty if there is no equivalent.
    pub is: String,
    /// Differences, if any.
    pub note: String,
}

/// Something to check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// The file concerned.
    pub file: PathBuf,
    /// The line, counted from 1.
    pub line: Option<usize>,
    /// The problem and what to do: one sentence, lower case, no full stop.
    pub text: String,
}

/// Values of variables for which the other program would run a program.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Values {
    /// Names and texts given by the user. They take precedence over the output of a program.
    pub given: Vec<(String, String)>,
    /// The output of the program of each line.
    pub printed: Vec<(Program, Result<String, String>)>,
    /// RAM of the machine that is configured, in KiB; `None` if it is another one.
    pub ram_kib: Option<u64>,
}

/// A program that the other program runs to read its configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// The file of the line.
    pub file: PathBuf,
    /// The line, counted from 1.
    pub line: usize,
    /// The variable that receives the output.
    pub name: String,
    /// The shell command.
    pub command: String,
}

/// The programs that `peer` runs, in order.
pub fn programs(peer: Peer, files: &[(PathBuf, String)]) -> Vec<Program> {
    if peer == Peer::ZramGenerator { generator::programs(files) } else { Vec::new() }
}

/// Imports a program's configuration. `files` are those of [`files::order`].
pub fn import(peer: Peer, files: &[(PathBuf, String)], values: &Values) -> Imported {
    let draft = match peer {
        Peer::ZramGenerator => generator::import(files, values),
        Peer::ZramTools => zram_tools::import(files),
        Peer::Log2ram => log2ram::import(files),
        Peer::PopZram => pop_zram::import(files),
        Peer::RpiSwap => rpi_swap::import(files),
        Peer::Fstab => fstab::import(files),
    };
    let names: Vec<PathBuf> = files.iter().map(|(file, _)| file.clone()).collect();
    draft.finish(peer, &names, values.ram_kib)
}

impl Warning {
    fn of_file(file: &Path, text: impl Into<String>) -> Warning {
        Warning { file: file.to_owned(), line: None, text: text.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_understood() {
        for peer in Peer::ALL {
            assert_eq!(Peer::parse(peer.name()), Some(peer));
        }
        assert_eq!(Peer::parse("ztab"), None);
    }
}
