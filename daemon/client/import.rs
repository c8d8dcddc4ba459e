//! `import`: translates the configuration of another program.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use super::args::{Cli, Import};
use super::out;
use engine::{Error, ErrorKind, gather};
use host::linux::LinuxHost;
use host::linux::files::{describe, read_sources};
use host::linux::process;
use host::linux::root::Root;
use import::files;
use import::peer::files::Ordered;
use import::peer::{self, Imported, Peer, Program, Values, Warning};
use logic::exit::ExitStatus;
use logic::table;

/// The file that is written.
pub(super) const DESTINATION: &str = "etc/zramd/zramd.toml";
/// Headings of the table of settings.
const HEADING: [&str; 3] = ["WAS", "IS", "NOTE"];
/// Width of a terminal. A wider table is printed row by row.
const WIDTH: usize = 80;
/// Time limit for a program of the other configuration.
const PROGRAM_LIMIT: Duration = Duration::from_secs(60);
/// Documentation of the next steps.
const SWITCHING: &str = "/usr/share/doc/zramd/switching.md";

/// Runs `import`: TOML to standard output or the destination; warnings, and with `--write` the table, to standard error.
pub fn run(cli: &Cli, words: &Import) -> Result<ExitStatus, Error> {
    let peer = words.peer.peer();
    let given: Vec<(String, String)> =
        words.set.iter().map(|word| assignment(word)).collect::<Result<_, _>>()?;
    if cli.config.is_some() {
        out::note("warning: --config has no effect: an import reads the files of the other program");
    }
    let directory = words.root.clone().unwrap_or_else(|| PathBuf::from("/"));
    let root = open(&directory)?;
    let ordered = match &words.file {
        Some(file) => alone(file)?,
        None => ordered(peer, &root)?,
    };
    let programs = peer::programs(peer, &ordered.files);
    for (name, _) in &given {
        if !programs.iter().any(|program| program.name == *name) {
            out::note(&format!("warning: --set {name}: {} has no line set!{name} here", peer.name()));
        }
    }
    let ram_kib = gather::machine(&LinuxHost::new(&directory)).memory.total_kib;
    let mut values = Values { given, ram_kib: Some(ram_kib).filter(|kib| *kib > 0), ..Values::default() };
    if words.run_programs {
        if programs.is_empty() {
            out::note(&format!("warning: --run-programs: {} runs no programs here", peer.name()));
        }
        let asked = |program: &Program| !values.given.iter().any(|(name, _)| *name == program.name);
        let programs: Vec<Program> = programs.into_iter().filter(asked).collect();
        values.printed = programs.into_iter().map(|program| ran(program, PROGRAM_LIMIT)).collect();
    }
    let imported = peer::import(peer, &ordered.files, &values);
    warn(ordered.warnings.iter().chain(&imported.warnings));
    if imported.is_empty {
        let names: Vec<String> = ordered.files.iter().map(|(file, _)| file.display().to_string()).collect();
        let place = if names.is_empty() { "what was found".to_owned() } else { names.join(", ") };
        if !imported.table.is_empty() {
            out::note(rows(&imported).trim_end());
        }
        let message = format!("no zram device or tmpfs to import in {place}");
        return Err(Error::new(ErrorKind::NotFound, message));
    }
    if words.write {
        let file = directory.join(DESTINATION);
        write(&root, &file, &imported.toml)?;
        out::note(rows(&imported).trim_end());
        out::note(&format!(
            "Written to {}. Look at it, run `zramdctl check`, then disable {} as in {SWITCHING}.",
            file.display(),
            peer.name()
        ));
    } else {
        out::data(&imported.toml);
        out::note(rows(&imported).trim_end());
    }
    Ok(ExitStatus::Success)
}

/// Opens a directory that is treated as `/`.
pub(super) fn open(directory: &Path) -> Result<Root, Error> {
    Root::open(directory)
        .map_err(|error| Error::failed(format!("{}: {}", directory.display(), describe(&error))))
}

/// The files of a program. It is an error if one cannot be read, or if there are none.
pub(super) fn ordered(peer: Peer, root: &Root) -> Result<Ordered, Error> {
    let ordered = files::read(peer, root);
    if let [others @ .., last] = ordered.unreadable.as_slice() {
        for other in others {
            out::note(&format!("error: {}", place(other)));
        }
        return Err(Error::failed(place(last)));
    }
    if ordered.files.is_empty() && ordered.warnings.is_empty() {
        let message = match peer.sources().mains {
            [one] => format!("{} is not configured here: there is no {one}", peer.name()),
            many => format!("{} is not configured here: there is none of {}", peer.name(), many.join(", ")),
        };
        return Err(Error::new(ErrorKind::NotFound, message));
    }
    Ok(ordered)
}

/// The one file that the user named.
fn alone(file: &Path) -> Result<Ordered, Error> {
    let (files, problems) = read_sources(&[file.to_owned()]);
    if let ([], [problem, ..]) = (files.as_slice(), problems.as_slice()) {
        return Err(Error::failed(format!("{}: {}", file.display(), problem.message)));
    }
    Ok(Ordered { files, ..Ordered::default() })
}

/// Prints warnings.
pub(super) fn warn<'a>(warnings: impl Iterator<Item = &'a Warning>) {
    for warning in warnings {
        out::note(&format!("warning: {}", place(warning)));
    }
}

/// Runs a program as zram-generator does, but with a time limit, and returns its output.
fn ran(program: Program, limit: Duration) -> (Program, Result<String, String>) {
    let mut command = Command::new("/bin/sh");
    command
        .arg("-c")
        .arg(&program.command)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let printed = match process::output(&mut command, "/bin/sh", limit, |_| {}) {
        Err(error) => Err(error.to_string()),
        Ok(output) => {
            out::forward(&output.stderr);
            if !output.status.success() {
                let place = format!("{}:{}", program.file.display(), program.line);
                // As in zram-generator: the output is used despite the exit status.
                out::note(&format!("warning: {place}: `{}`: {}", program.command, output.status));
            }
            String::from_utf8(output.stdout).map_err(|_| "printed text that is not UTF-8".to_owned())
        }
    };
    let printed = printed.map(|text| text.trim().to_owned());
    let printed =
        printed.and_then(|text| if text.is_empty() { Err("printed nothing".to_owned()) } else { Ok(text) });
    out::note(&match &printed {
        Ok(text) => format!("{} -> {text}", program.name),
        Err(why) => format!("{} -> {why}", program.name),
    });
    (program, printed)
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

/// `was → is` for each setting.
fn rows(imported: &Imported) -> String {
    let rows: Vec<Vec<String>> = imported
        .table
        .iter()
        .map(|row| {
            let is = if row.is.is_empty() { "-".to_owned() } else { row.is.clone() };
            vec![row.was.clone(), is, row.note.clone()]
        })
        .collect();
    let text = table::render(&HEADING, &[], &rows);
    if text.lines().all(|line| line.chars().count() <= WIDTH) {
        text
    } else {
        rows.iter().map(|row| block(row)).collect()
    }
}

/// One row, with a line for each cell that is not empty.
fn block(row: &[String]) -> String {
    let cells = HEADING.iter().zip(row).filter(|(_, cell)| !cell.is_empty());
    let lines: Vec<String> = cells.map(|(name, cell)| format!("{name:4} {cell}\n")).collect();
    lines.concat() + "\n"
}

/// Writes the file; an existing one is never overwritten.
pub(super) fn write(root: &Root, file: &Path, toml: &str) -> Result<(), Error> {
    let file = file.display();
    root.create(Path::new(DESTINATION), toml).map_err(|error| {
        let message = match error.kind() {
            io::ErrorKind::AlreadyExists => {
                format!(
                    "{file} is there already; move it away, or merge by hand what is printed without writing"
                )
            }
            _ => format!("cannot write {file}: {}", describe(&error)),
        };
        Error::failed(message)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_does_not_end_prints_nothing() {
        let program = Program {
            name: "x".to_owned(),
            command: "echo 4; sleep 600".to_owned(),
            file: PathBuf::from("/etc/systemd/zram-generator.conf"),
            line: 1,
        };
        assert!(ran(program, Duration::from_millis(50)).1.is_err());
    }
}
