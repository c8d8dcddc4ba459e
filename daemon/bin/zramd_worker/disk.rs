//! `zramd-worker disk`: loading, saving, checking and exporting what is on RAM disks.

use std::ffi::OsString;
use std::path::PathBuf;

use lexopt::prelude::*;
use zramd::engine::Error;
use zramd::engine::disk::{self, Disk, Loaded, Progress, Request, Saved};
use zramd::host::linux::disk::{Calls, be_idle};
use zramd::logic::disk::manifest::size_text;
use zramd::logic::disk::omitted::Omitted;
use zramd::logic::disk::state::Outcome;
use zramd::logic::disk::{Mode, OnFailure, is_disk_name};
use zramd::logic::disk_status::FOLDER;
use zramd::logic::exit::ExitStatus;

use super::frame;

/// What `--help` says.
pub const HELP: &str = "load|save|verify|export|adopt|pin|unpin|delete|list NAME [--spec FILE] [--store DIR] [--place DIR] [--target DIR] \
    [--mode skeleton|snapshot] [--keep N] [--limit BYTES] [--on-failure empty|passthrough|fail] [--seed DIR] [--trial] \
    [--reason WORD] [--force] [--last] [--snapshot N] [--to DIR]";

struct Words {
    verb: String,
    disk: Disk,
    reason: String,
    force: bool,
    last: bool,
    generation: Option<u64>,
    to: Option<PathBuf>,
}

fn words(words: Vec<OsString>) -> Result<Words, String> {
    parse(words).map_err(|error| error.to_string())
}

fn parse(words: Vec<OsString>) -> Result<Words, lexopt::Error> {
    let mut parser = lexopt::Parser::from_args(words);
    let mut next = |what: &str| match parser.next()? {
        Some(Value(word)) => word.string(),
        _ => Err(format!("{what}?").into()),
    };
    let verb = next("load, save, verify, export, adopt, pin, unpin, delete, list")?;
    let name = next("the name of which disk")?;
    if !is_disk_name(&name) {
        return Err(format!("`{name}` is not the name of a disk").into());
    }
    let mut found = Words {
        verb,
        disk: Disk {
            store: PathBuf::from("/var/lib/zramd/disks").join(&name),
            place: PathBuf::from("/run/zramd/disk").join(&name),
            target: None,
            mode: Mode::Snapshot,
            keep: 2,
            store_limit: None,
            on_failure: OnFailure::Fail,
            seed: None,
            trial: false,
            notes: Some(PathBuf::from(FOLDER)),
            spared: None,
            name,
        },
        reason: "asked".to_owned(),
        force: false,
        last: false,
        generation: None,
        to: None,
    };
    while let Some(argument) = parser.next()? {
        let disk = &mut found.disk;
        match argument {
            Long("spec") => {
                let path = PathBuf::from(parser.value()?);
                let text =
                    std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
                *disk =
                    serde_json::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))?;
            }
            Long("store") => disk.store = parser.value()?.into(),
            Long("place") => disk.place = parser.value()?.into(),
            Long("target") => disk.target = Some(parser.value()?.into()),
            Long("mode") => disk.mode = word(&parser.value()?.string()?)?,
            Long("keep") => disk.keep = parser.value()?.parse()?,
            Long("limit") => disk.store_limit = Some(parser.value()?.parse()?),
            Long("on-failure") => disk.on_failure = word(&parser.value()?.string()?)?,
            Long("seed") => disk.seed = Some(parser.value()?.into()),
            Long("trial") => disk.trial = true,
            Long("reason") => found.reason = parser.value()?.string()?,
            Long("force") => found.force = true,
            Long("last") => found.last = true,
            Long("snapshot") => found.generation = Some(parser.value()?.parse()?),
            Long("to") => found.to = Some(parser.value()?.into()),
            other => return Err(other.unexpected()),
        }
    }
    Ok(found)
}

/// A word of a type that has names in JSON.
fn word<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, String> {
    serde_json::from_value(serde_json::Value::String(text.to_owned())).map_err(|error| error.to_string())
}

/// Does it. `Err` is wrong usage.
pub fn run(arguments: Vec<OsString>) -> Result<ExitStatus, String> {
    let words = words(arguments)?;
    let generation = || words.generation.ok_or("--snapshot N is missing");
    let calls = Calls::new();
    let disk = &words.disk;
    let mut watcher = |_: Progress| true;
    let done: Result<(), Error> = match words.verb.as_str() {
        "load" => disk::load(&calls, disk, &mut watcher).map(|loaded| say_loaded(disk, &loaded)),
        "save" => {
            if words.reason == "timer" {
                be_idle();
            }
            let request = Request { reason: &words.reason, force: words.force, last: words.last };
            disk::save(&calls, disk, request, &mut watcher).map(|saved| say_saved(disk, &saved))
        }
        "verify" => disk::verify(&calls, disk, words.generation, &mut watcher).map(|checked| {
            let size = size_text(checked.found.bytes);
            println!(
                "{}: snapshot {} is good: {} entries, {size}",
                disk.name, checked.generation, checked.found.entries
            );
            say_left_out(disk, &checked.found.omitted);
        }),
        "export" => {
            let to = words.to.as_ref().ok_or("--to DIR is missing")?;
            disk::export(&calls, disk, words.generation, to, &mut watcher).map(|extracted| {
                println!("{}: {} entries, {}", to.display(), extracted.entries, size_text(extracted.bytes));
                say_left_out(disk, &extracted.omitted);
            })
        }
        "adopt" => disk::adopt(&calls, disk),
        "pin" => disk::pin(&calls, disk, generation()?, Some(&words.reason)),
        "unpin" => disk::pin(&calls, disk, generation()?, None),
        "delete" => disk::delete(&calls, disk, generation()?),
        "list" => list(&calls, disk),
        other => return Err(format!("there is no verb `disk {other}`")),
    };
    Ok(match done {
        Ok(()) => ExitStatus::Success,
        Err(error) => {
            frame::fail(&error);
            error.exit_status()
        }
    })
}

fn list(calls: &Calls, disk: &Disk) -> Result<(), Error> {
    let status = disk::status(calls, disk)?;
    for generation in &status.generations {
        let what = match &generation.manifest {
            Ok(manifest) => {
                format!("{} files, {}", manifest.contents.files, size_text(manifest.contents.bytes))
            }
            Err(unusable) => format!("unusable: {unusable:?}"),
        };
        let pinned = generation.pinned.as_ref().map_or(String::new(), |why| format!(" (pinned: {why})"));
        println!("{}  {}  {what}{pinned}", generation.number, size_text(generation.archive_bytes));
    }
    for name in &status.bad {
        println!("{name}  set aside");
    }
    Ok(())
}

fn say_left_out(disk: &Disk, omitted: &Omitted) {
    if !omitted.is_empty() {
        eprintln!("{}: {}", disk.name, omitted.report());
    }
}

fn say_loaded(disk: &Disk, loaded: &Loaded) {
    for (number, why) in &loaded.refused {
        eprintln!("{}: snapshot {number} was not loaded: {why}", disk.name);
    }
    for warning in loaded.warnings.iter().chain(&loaded.store_problem) {
        eprintln!("{}: {warning}", disk.name);
    }
    if loaded.extracted.unsupported > 0 {
        let names = loaded.extracted.unsupported_names.join(", ");
        eprintln!("{}: {} attributes cannot be kept on it: {names}", disk.name, loaded.extracted.unsupported);
    }
    if loaded.unclean {
        eprintln!("{}: the last boot ended without a last save", disk.name);
    }
    let what = match (loaded.outcome, loaded.generation) {
        _ if loaded.already => "was loaded before".to_owned(),
        (Outcome::FirstUse, _) => format!("first use, {} entries", loaded.extracted.entries),
        (_, Some(number)) => {
            let (entries, size) = (loaded.extracted.entries, size_text(loaded.extracted.bytes));
            format!("snapshot {number} loaded: {entries} entries, {size}")
        }
        (Outcome::Passthrough, None) => "not in use".to_owned(),
        (_, None) => "empty".to_owned(),
    };
    println!("{}: {what}", disk.name);
}

fn say_saved(disk: &Disk, saved: &Saved) {
    match saved {
        Saved::Unchanged { generation, omitted } => {
            say_left_out(disk, omitted);
            println!("{}: nothing has changed since snapshot {generation}", disk.name);
        }
        Saved::Written { generation, manifest, pruned, warnings } => {
            for warning in warnings {
                eprintln!("{}: {warning}", disk.name);
            }
            say_left_out(disk, &manifest.omitted);
            let (files, size) = (manifest.contents.files, size_text(manifest.archive_bytes));
            println!(
                "{}: snapshot {generation}: {files} files in {size}, {} pruned",
                disk.name,
                pruned.len()
            );
        }
    }
}
