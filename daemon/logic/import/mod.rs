//! The configuration of other programs that set up zram, as configuration of zramd.
//!
//! Text in, text out. What the other program loses or misreads is taken as it was plainly meant, and a [`Warning`]
//! says so; programs that a configuration names are not run here: the caller may do that, and tell what they printed.

mod algorithms;
mod document;
pub mod files;
mod generator;
mod ini;
mod log2ram;
mod pop_zram;
mod refused;
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
    /// log2ram.
    Log2ram,
    /// What Pop!_OS ships.
    PopZram,
}

impl Peer {
    /// Every one.
    pub const ALL: [Peer; 4] = [Peer::ZramGenerator, Peer::ZramTools, Peer::Log2ram, Peer::PopZram];

    /// What it is called on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Peer::ZramGenerator => "zram-generator",
            Peer::ZramTools => "zram-tools",
            Peer::Log2ram => "log2ram",
            Peer::PopZram => "pop-zram",
        }
    }

    /// The one with this name.
    pub fn parse(name: &str) -> Option<Peer> {
        Peer::ALL.into_iter().find(|peer| peer.name() == name)
    }
}

/// What came of an import.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Imported {
    /// A configuration file for zramd, with comments. It loads without problems.
    pub toml: String,
    /// Whether there is no section in it.
    pub is_empty: bool,
    /// What became of each setting.
    pub table: Vec<Row>,
    /// What the owner of the machine should look at.
    pub warnings: Vec<Warning>,
}

/// What became of one setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// As the other program has it.
    pub was: String,
    /// As zramd has it; empty when nothing corresponds.
    pub is: String,
    /// What is different, if anything.
    pub note: String,
}

/// Something to look at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// The file it concerns.
    pub file: PathBuf,
    /// The line, counted from 1.
    pub line: Option<usize>,
    /// What is the matter and what to do: one sentence, lower case, no full stop.
    pub text: String,
}

/// What the caller knows of variables for which the other program would run a program.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Values {
    /// Name and text, as somebody gave them. They count before what a program printed.
    pub given: Vec<(String, String)>,
    /// What the program of each line printed.
    pub printed: Vec<(Program, Result<String, String>)>,
}

/// A program that the other one runs to read its configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// Where the line is.
    pub file: PathBuf,
    /// See `file`; counted from 1.
    pub line: usize,
    /// The variable that gets what it prints.
    pub name: String,
    /// What the shell is given.
    pub command: String,
}

/// The programs that `peer` runs, in the order in which it does.
pub fn programs(peer: Peer, files: &[(PathBuf, String)]) -> Vec<Program> {
    if peer == Peer::ZramGenerator { generator::programs(files) } else { Vec::new() }
}

/// Imports what a program is configured to do. `files` are those of [`files::order`].
pub fn import(peer: Peer, files: &[(PathBuf, String)], values: &Values) -> Imported {
    let draft = match peer {
        Peer::ZramGenerator => generator::import(files, values),
        Peer::ZramTools => zram_tools::import(files),
        Peer::Log2ram => log2ram::import(files),
        Peer::PopZram => pop_zram::import(files),
    };
    let names: Vec<PathBuf> = files.iter().map(|(file, _)| file.clone()).collect();
    draft.finish(peer, &names)
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
