//! `set`, `unset` and `edit`: changes of the configuration that last.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use zbus::{OwnedObjectPath, Variant};

use super::args::{Change, Cli, Set};
use super::connect::{self, Bus, answered};
use super::job::Jobs;
use super::options::{Options, value_of};
use super::style::Style;
use super::{changes, out, read};
use engine::reload::Scope;
use engine::{Error, ErrorKind};
use host::HostError;
use host::linux::ramdisk::Calls;
use host::linux::{edit, files, process};
use logic::change::Action;
use logic::config::edit::Edit;
use logic::config::fragment;
use logic::config::lasting::{FILE, HEAD, NAME, Transient, check, keys, left};
use logic::config::schema::SectionKind;
use logic::exit::ExitStatus;
use logic::finding::{Level, has_errors};
use logic::record::Target;
use logic::render;
use logic::text::nearest;

/// Number of mistakes that `edit` shows.
const SHOWN: usize = 5;

fn usage(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidArgument, message)
}

/// The section for a device, a RAM disk or `defaults`.
fn section(name: &str) -> String {
    let name = name.strip_prefix("/dev/").unwrap_or(name);
    if SectionKind::of(name).is_some() { name.to_owned() } else { format!("ramdisk.{name}") }
}

/// The kind of a section, and an error for a key that it does not have, or that cannot be changed here.
fn kind_with(section: &str, key: &str) -> Result<SectionKind, Error> {
    let kind = SectionKind::of(section).unwrap_or(SectionKind::Ramdisk);
    let allowed = keys(section)?;
    if kind.key(key).is_some() || allowed.is_empty() {
        check(section, key)?;
        return Ok(kind);
    }
    let names = || kind.keys().iter().map(|key| key.name);
    let end = format!("-{key}");
    let ending = || names().filter(|name| name.ends_with(&end)).min_by_key(|name| name.len());
    let meant = nearest(key, names()).or_else(ending);
    let meant = meant.map_or_else(
        || format!("there are {}", allowed.join(", ")),
        |meant| format!("did you mean `{meant}`?"),
    );
    Err(usage(format!("unknown key `{key}` of [{section}]; {meant}")))
}

/// `set`.
pub async fn set(ask: bool, words: &Set) -> Result<ExitStatus, Error> {
    let section = section(&words.name);
    let mut keys = Options::new();
    for word in &words.assignments {
        let (key, value) = word
            .split_once('=')
            .ok_or_else(|| usage(format!("`{word}`: write KEY=VALUE, for example swap-priority=50")))?;
        let (key, value) = (key.trim(), value.trim());
        let kind = kind_with(&section, key)?;
        if value.is_empty() {
            let name = &words.name;
            return Err(usage(format!(
                "`{word}` has no value; `zramdctl unset {name} {key}` removes the key"
            )));
        }
        if keys.insert(key.to_owned(), value_of(kind, key, value)).is_some() {
            return Err(usage(format!("`{key}` is given twice")));
        }
    }
    configure(ask, &section, keys, words.change, words.runtime).await
}

/// `unset`; without keys, of all that are assigned.
pub async fn unset(ask: bool, name: &str, keys: &[String], change: Change) -> Result<ExitStatus, Error> {
    let section = section(name);
    let keys = if keys.is_empty() { assigned(&section)? } else { keys.to_vec() };
    let mut removed = Options::new();
    for key in &keys {
        kind_with(&section, key)?;
        removed.insert(key.clone(), String::new().into());
    }
    configure(ask, &section, removed, change, false).await
}

/// The keys of a section in the drop-in.
fn assigned(section: &str) -> Result<Vec<String>, Error> {
    keys(section)?;
    let text = edit::read(Path::new("/"), FILE)?.unwrap_or_default();
    let found = fragment::read(Path::new(FILE), &text, 0).0.sections.remove(section);
    let found: Vec<String> = found.map_or_else(Vec::new, |section| section.keys.into_keys().collect());
    if found.is_empty() {
        let message = format!(
            "{FILE} has no keys of [{section}], so there is nothing to unset; `zramdctl unset --runtime` removes overrides until the next boot"
        );
        return Err(Error::new(ErrorKind::NotFound, message));
    }
    out::note(&format!("Unsetting {} of [{section}].", found.join(", ")));
    Ok(found)
}

async fn configure(
    ask: bool,
    section: &str,
    keys: Options,
    change: Change,
    runtime: bool,
) -> Result<ExitStatus, Error> {
    let bus = Bus::open(ask).await?;
    let mut jobs = Jobs::listen(&bus).await?;
    let mut options = changes::forced(change.force);
    if runtime {
        options.insert("runtime", Variant::from(true));
    }
    let sections = BTreeMap::from([(section, keys)]);
    let job: OwnedObjectPath = bus.manager("Configure", &(sections, options)).await?;
    changes::finish(&mut jobs, &job, change.no_block, &format!("configuring {section}")).await?;
    if !runtime {
        say_if_lost();
    }
    Ok(ExitStatus::Success)
}

/// Says that a change is lost at the next boot, if it is.
fn say_if_lost() {
    if let Some(found @ Transient::InMemory) = edit::transient(Path::new("/")) {
        out::note(&format!("warning: {}: {}", found.message(), found.remedy()));
    }
}

/// `edit`.
pub fn edit(cli: &Cli, change: Change) -> Result<ExitStatus, Error> {
    if let Some(file) = read::daemons_file(cli) {
        let message = format!("with `--config {0}`, {FILE} is not read: edit {0}", file.display());
        return Err(Error::new(ErrorKind::Unsupported, message));
    }
    let root = Path::new("/");
    let before = edit::read(root, FILE)?;
    for left in leftovers(before.as_deref().unwrap_or(HEAD)) {
        out::note(&format!(
            "An earlier `zramdctl edit` has left a text in {}; remove that directory when you do not need it.",
            left.display()
        ));
    }
    let draft = Draft::create(before.as_deref().unwrap_or(HEAD))?;
    let editor = editor()?;
    let edit = loop {
        draft.edit(&editor)?;
        let tried = draft.text().and_then(|text| {
            let edit = Edit { path: FILE.to_owned(), before: before.clone(), after: left(text) };
            if edit.after != before {
                try_out(cli, &edit, change.force)?;
            }
            Ok(edit)
        });
        match tried {
            Ok(edit) if edit.after == before => {
                out::note("Nothing is changed.");
                return Ok(ExitStatus::Success);
            }
            Ok(edit) => break edit,
            Err(error) => {
                out::error(&error.message);
                if !again() {
                    out::note(&format!("Nothing is changed{}.", draft.keep()));
                    return Ok(error.exit_status());
                }
            }
        }
    };
    edit::write(&Calls::new(), root, &edit)
        .map_err(|error| Error::new(error.kind, format!("{}{}", error.message, draft.keep())))?;
    out::note(&format!("{FILE} is changed."));
    say_if_lost();
    Ok(connect::run(async {
        match changes::reload(!cli.no_ask_password, change).await {
            Err(error) if error.kind == ErrorKind::NotRunning => {
                out::note("The daemon is not running; the change is applied when it starts.");
                Ok(ExitStatus::Success)
            }
            done => done,
        }
    }))
}

/// An error if the configuration would have a mistake, or if what the drop-in names cannot be applied.
fn try_out(cli: &Cli, edit: &Edit, forced: bool) -> Result<(), Error> {
    let root = Path::new("/");
    let loaded = files::load(root, files::sources_after(root, None, Some(edit)));
    // What is in use concerns only what is named, below.
    let mut problems = engine::check_elsewhere(&read::host(), &loaded).problems;
    for problem in &mut problems {
        // As for `set`: what is ignored in other files, such as an unknown key, is a mistake in the drop-in.
        let is_own = problem.place.as_ref().is_some_and(|place| place.file.ends_with(&FILE[1..]));
        if is_own && loaded.problems.contains(problem) {
            problem.level = Level::Error;
        }
    }
    problems.sort_by_key(|problem| problem.level);
    let (shown, others) = problems.split_at(problems.len().min(SHOWN));
    if !shown.is_empty() {
        out::note(render::render(shown, Style::stderr(cli.color).has_colour()).trim_end());
    }
    if !others.is_empty() {
        out::note(&format!("\n{} more", others.len()));
    }
    if has_errors(&problems) {
        return Err(Error::new(ErrorKind::Config, "the configuration would have mistakes"));
    }
    let texts = [&edit.before, &edit.after].into_iter().flatten();
    let sections = texts.flat_map(|text| fragment::read(Path::new(FILE), text, 0).0.sections.into_keys());
    let sections: Vec<String> = sections.collect();
    let is_named = |target: &Target| {
        sections.iter().any(|section| section == "defaults" || *section == target.to_string())
    };
    let survey = read::survey(None, &loaded, Scope { forced, ..Scope::default() })?;
    let refused = survey.changes.iter().filter(|change| change.action == Action::Refuse);
    let refused = refused.filter(|change| is_named(&change.target)).map(|change| {
        let text = format!("{}: {}", change.target, change.detail);
        answered(change.kind.unwrap_or(ErrorKind::Unsafe), &text)
    });
    refused.reduce(Error::join).map_or(Ok(()), Err)
}

/// Asks on standard error. The end of standard input is a no.
fn again() -> bool {
    out::question("Edit it again? [Y/n] ");
    let mut answer = String::new();
    let length = io::stdin().read_line(&mut answer).unwrap_or(0);
    length > 0 && !matches!(answer.trim().to_ascii_lowercase().as_str(), "n" | "no")
}

/// The editor with its arguments.
fn editor() -> Result<Vec<String>, Error> {
    let named = ["VISUAL", "EDITOR"].into_iter().filter_map(|name| std::env::var(name).ok());
    let mut named = named.map(|text| text.split_whitespace().map(str::to_owned).collect::<Vec<String>>());
    let installed = || {
        let mut names = ["editor", "nano", "vim", "vi"].into_iter();
        let found = names.find_map(|name| process::find_program(Path::new("/"), name))?;
        Some(vec![found.display().to_string()])
    };
    named.find(|words| !words.is_empty()).or_else(installed).ok_or_else(|| {
        Error::new(ErrorKind::Unsupported, "there is no editor; name one in the environment variable EDITOR")
    })
}

/// The directory of all drafts, and how their names begin; the process ID follows.
const DRAFTS: (&str, &str) = ("/etc/zramd", ".edit-");

/// Removes the drafts of processes that have ended in which nothing was written, and returns those with another text than `text`.
fn leftovers(text: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(DRAFTS.0).into_iter().flatten().flatten();
    let is_over = |entry: &fs::DirEntry| {
        let name = entry.file_name();
        let process = name.to_str().and_then(|name| name.strip_prefix(DRAFTS.1)?.parse::<u32>().ok());
        let is_over = process.is_some_and(|process| !Path::new("/proc").join(process.to_string()).exists());
        is_over && entry.file_type().is_ok_and(|found| found.is_dir())
    };
    let drafts = entries.filter(is_over).map(|entry| entry.path());
    drafts
        .filter(|directory| {
            let draft = directory.join(NAME);
            if fs::read_to_string(&draft).is_ok_and(|found| found == text) {
                fs::remove_file(&draft).ok();
            }
            // Fails if anything else is there, such as what an editor has saved.
            fs::remove_dir(directory).is_err()
        })
        .collect()
}

/// A copy of the drop-in in a directory of its own, so that no file of the editor stays behind.
struct Draft {
    directory: PathBuf,
}

impl Draft {
    fn create(text: &str) -> Result<Draft, Error> {
        // In /etc, so that a read-only one is reported before the work.
        let directory = PathBuf::from(format!("{}/{}{}", DRAFTS.0, DRAFTS.1, std::process::id()));
        let failed = |error: io::Error| edit::explained(HostError::io(FILE, "change", &error));
        fs::create_dir_all(DRAFTS.0).map_err(failed)?;
        fs::DirBuilder::new().mode(0o700).create(&directory).map_err(failed)?;
        let draft = Draft { directory: directory.clone() };
        fs::write(draft.path(), text).map_err(failed)?;
        Ok(draft)
    }

    fn path(&self) -> PathBuf {
        self.directory.join(NAME)
    }

    /// Leaves the directory where it is, and returns the end of a sentence about that; empty without a text.
    fn keep(self) -> String {
        let path = self.path();
        if !path.exists() {
            return String::new();
        }
        std::mem::forget(self);
        format!("; your text is in {}", path.display())
    }

    fn edit(&self, editor: &[String]) -> Result<(), Error> {
        let Some((program, arguments)) = editor.split_first() else { return Ok(()) };
        match Command::new(program).args(arguments).arg(self.path()).status() {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(Error::failed(format!("{program}: {status}; nothing is changed"))),
            Err(error) => {
                let why = HostError::io(program.as_str(), "start", &error);
                let message =
                    format!("the editor cannot be started: {why}; name another one in VISUAL or EDITOR");
                Err(Error::failed(message))
            }
        }
    }

    fn text(&self) -> Result<String, Error> {
        fs::read_to_string(self.path())
            .map_err(|error| Error::from(HostError::io(self.path().display().to_string(), "read", &error)))
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        // One that stays is hidden, and is not read.
        fs::remove_dir_all(&self.directory).ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_sections() {
        for (name, expected) in [
            ("zram0", "zram0"),
            ("/dev/zram0", "zram0"),
            ("logs", "ramdisk.logs"),
            ("ramdisk.logs", "ramdisk.logs"),
            ("defaults", "defaults"),
        ] {
            assert_eq!(section(name), expected);
        }
        let kind = |section, key| kind_with(section, key).map_err(|error| error.kind);
        assert_eq!(kind("zram0", "zram-size"), Ok(SectionKind::Device));
        assert_eq!(kind("zram0", "zram-sise"), Err(ErrorKind::InvalidArgument));
        assert_eq!(kind("ramdisk.logs", "zram-size"), Err(ErrorKind::InvalidArgument));
        // It is a table, whose keys have other names.
        assert_eq!(kind("maintenance", "recompress"), Err(ErrorKind::Unsafe));
    }
}
