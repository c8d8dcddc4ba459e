//! `import`: the configuration of another program as one of zramd.

use std::path::{Path, PathBuf};

use super::args::Import;
use super::out;
use crate::engine::Error;
use crate::host::linux::peer_files;
use crate::logic::exit::ExitStatus;
use crate::logic::import::{self, Imported, Warning, files};
use crate::logic::table;

/// Where `--write` puts the result.
const DESTINATION: &str = "etc/zramd/zramd.toml";

/// Runs `import`: TOML to standard output, or into place; warnings, and with `--write` the table, to standard error.
pub fn run(words: &Import) -> Result<ExitStatus, Error> {
    let root = words.root.clone().unwrap_or_else(|| PathBuf::from("/"));
    let peer = words.peer.peer();
    let values: Vec<(String, String)> =
        words.set.iter().map(|word| assignment(word)).collect::<Result<_, _>>()?;
    let sources = peer.sources();
    let mains = peer_files::mains(&root, sources.mains);
    let drop_ins = peer_files::drop_ins(&root, sources.drop_ins);
    let (found, mut warnings) = files::order(peer, mains, drop_ins);
    if found.is_empty() && warnings.is_empty() {
        let message = match sources.mains {
            [one] => format!("{} is not configured here: there is no {one}", peer.name()),
            many => format!("{} is not configured here: there is none of {}", peer.name(), many.join(", ")),
        };
        return Err(Error::new(crate::engine::ErrorKind::NotFound, message));
    }
    let imported = import::import(peer, &found, &values);
    warnings.extend(imported.warnings.iter().cloned());
    for warning in &warnings {
        out::note(&format!("warning: {}", place(warning)));
    }
    if words.write {
        write(&root, &imported)?;
        out::note(rows(&imported).trim_end());
        out::note(&format!(
            "Written to /{DESTINATION}. Look at it, run `zramdctl check`, then see README on how to swap over from {}.",
            peer.name()
        ));
    } else {
        out::print(&imported.toml)?;
        out::note(rows(&imported).trim_end());
    }
    Ok(ExitStatus::Success)
}

fn assignment(word: &str) -> Result<(String, String), Error> {
    let (name, value) = word
        .split_once('=')
        .ok_or_else(|| Error::failed(format!("--set {word}: write NAME=VALUE, for example --set cpus=4")))?;
    Ok((name.to_owned(), value.to_owned()))
}

fn place(warning: &Warning) -> String {
    let file = warning.file.display();
    match warning.line {
        Some(line) => format!("{file}:{line}: {}", warning.text),
        None => format!("{file}: {}", warning.text),
    }
}

/// `was → is`, for people who compare.
fn rows(imported: &Imported) -> String {
    if imported.table.is_empty() {
        return "nothing was found to import".to_owned();
    }
    let rows: Vec<Vec<String>> = imported
        .table
        .iter()
        .map(|row| {
            let is = if row.is.is_empty() { "-".to_owned() } else { row.is.clone() };
            vec![row.was.clone(), is, row.note.clone()]
        })
        .collect();
    table::render(&["WAS", "IS", "NOTE"], &[], &rows)
}

/// Never over a file that is there: whoever wrote it meant it.
fn write(root: &Path, imported: &Imported) -> Result<(), Error> {
    peer_files::create(&root.join(DESTINATION), &imported.toml).map_err(|error| {
        let message = match error.kind() {
            std::io::ErrorKind::AlreadyExists => {
                format!("/{DESTINATION} is there already; move it away, or import without --write and merge by hand")
            }
            _ => format!("cannot write /{DESTINATION}: {error}"),
        };
        Error::failed(message)
    })
}
