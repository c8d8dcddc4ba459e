//! `zramdctl ramdisk`: persistent RAM disks and their snapshots.
//!
//! Reading needs neither privileges nor the daemon. Changes go through the daemon; without one, root runs `zramd-worker`
//! directly, as the units do.

use std::collections::HashMap;
use std::path::Path;
use std::process::Stdio;

use serde::Serialize;
use zbus::{OwnedObjectPath, Variant};

use super::amount::amount;
use super::args::{Cli, Json, Ramdisk};
use super::changes::finish;
use super::clock::moment;
use super::connect::{self, Bus};
use super::job::Jobs;
use super::status::written;
use super::worker::absolute;
use super::{out, read};
use engine::sample::Detail;
use engine::{Error, ErrorKind};
use host::Host;
use host::linux::{LinuxHost, process};
use logic::exit::ExitStatus;
use logic::human::{human, short};
use logic::order::{self, Order};
use logic::ramdisk::hold::Hold;
use logic::ramdisk::is_ramdisk_name;
use logic::ramdisk::place::STORES;
use logic::ramdisk::status::{LoadState, SaveResult};
use logic::sample::{RamdiskView, SCHEMA_VERSION, Snapshot};
use logic::table;
use logic::text::shown;

const INTERFACE: &str = "org.zramd1.RamDisk";

type Result<T> = std::result::Result<T, Error>;

/// The JSON form.
#[derive(Debug, Serialize)]
struct Document<'a, T: Serialize> {
    schema_version: u32,
    #[serde(flatten)]
    content: HashMap<&'static str, &'a T>,
}

pub fn run(cli: &Cli, command: &Ramdisk) -> std::result::Result<ExitStatus, Error> {
    let ask = !cli.no_ask_password;
    match command {
        Ramdisk::List(form) => {
            let snapshot = read::figures(cli.config.as_ref(), Detail::Full)?;
            print(form.json, "ramdisks", &snapshot.ramdisks, || list(&snapshot))
        }
        Ramdisk::Status { names, form } => {
            let snapshot = read::figures(cli.config.as_ref(), Detail::Full)?;
            let disks = chosen(&snapshot, names)?;
            print(form.json, "ramdisks", &disks, || {
                let texts = disks.iter().map(|disk| status(disk, connect::next_save(disk)));
                texts.collect::<Vec<_>>().join("\n")
            })
        }
        Ramdisk::Snapshots { name, form } => {
            let snapshot = read::figures(cli.config.as_ref(), Detail::Full)?;
            let disk = one(&snapshot, name)?;
            print(form.json, "snapshots", &disk.status.snapshots, || snapshots(disk))
        }
        Ramdisk::Export { name, directory, generation } => export(cli, name, directory, *generation),
        _ => Ok(connect::run(change(ask, command))),
    }
}

fn print<T: Serialize>(
    json: Json,
    what: &'static str,
    content: &T,
    text: impl FnOnce() -> String,
) -> std::result::Result<ExitStatus, Error> {
    let document = Document { schema_version: SCHEMA_VERSION, content: HashMap::from([(what, content)]) };
    out::result(json, &document, text)?;
    Ok(ExitStatus::Success)
}

fn one<'a>(snapshot: &'a Snapshot, name: &str) -> std::result::Result<&'a RamdiskView, Error> {
    let name = bare(name);
    snapshot.ramdisk(name).ok_or_else(|| {
        let left = if is_ramdisk_name(name) && Path::new(STORES).join(name).is_dir() {
            format!("; `zramdctl ramdisk export {name} DIRECTORY` still copies its newest snapshot")
        } else {
            String::new()
        };
        Error::new(
            ErrorKind::NotFound,
            format!("there is no RAM disk {name:?}; `zramdctl ramdisk list` lists them{left}"),
        )
    })
}

fn chosen<'a>(snapshot: &'a Snapshot, names: &[String]) -> std::result::Result<Vec<&'a RamdiskView>, Error> {
    if names.is_empty() {
        return Ok(snapshot.ramdisks.iter().collect());
    }
    names.iter().map(|name| one(snapshot, name)).collect()
}

/// `logs` for `ramdisk.logs`, as in messages.
fn bare(name: &str) -> &str {
    name.strip_prefix("ramdisk.").unwrap_or(name)
}

pub(super) fn list(snapshot: &Snapshot) -> String {
    let heading =
        ["NAME", "BACKEND", "SIZE", "USED", "KEPT", "STATE", "SNAPSHOTS", "LAST SAVE", "MOUNTPOINT"];
    let row = |disk: &RamdiskView| {
        let kept = disk.is_kept();
        let state = match (kept, disk.mounted) {
            (true, _) => disk.status.load_state.word(),
            (false, true) => "mounted",
            (false, false) => "gone",
        };
        vec![
            disk.name.clone(),
            disk.backend().to_owned(),
            short(disk.size_bytes),
            short(disk.used_bytes),
            disk.persistence.word().to_owned(),
            state.to_owned(),
            if kept { disk.status.snapshots.len().to_string() } else { String::new() },
            if kept { moment(disk.status.last_save_usec) } else { String::new() },
            out::escaped(&disk.mount_point, false),
        ]
    };
    if snapshot.ramdisks.is_empty() {
        return "There is no RAM disk of zramd.\n".to_owned();
    }
    let mut text =
        table::render(&heading, &[2, 3, 6], &snapshot.ramdisks.iter().map(row).collect::<Vec<_>>());
    for disk in &snapshot.ramdisks {
        for (number, hold) in disk.status.held() {
            text.push_str(&format!("{}: {}\n", disk.name, held(disk, number, hold)));
        }
    }
    text
}

/// A snapshot that was not loaded, with the reason and what to do.
fn held(disk: &RamdiskView, number: u64, hold: &Hold) -> String {
    let (why, remedy) = hold.report(&disk.name, disk.room(), number);
    format!("snapshot {number} is pinned, because {why}; {remedy}")
}

pub(super) fn status(disk: &RamdiskView, next_save_usec: u64) -> String {
    let mut lines = vec![format!(
        "{}: {} on {}, {}",
        shown(disk.name.as_str()),
        disk.backend(),
        shown(disk.mount_point.as_str()),
        if disk.mounted { "mounted" } else { "not mounted" }
    )];
    let mut line = |what: &str, text: String| lines.push(format!("{what:>12}: {}", shown(text)));
    if disk.mounted {
        line(
            "Used",
            format!(
                "{} of {}, {} free",
                human(disk.used_bytes),
                human(disk.size_bytes),
                human(disk.free_bytes)
            ),
        );
        match disk.files_left() {
            None => {}
            Some(0) => line("Files", "no more fit: all inodes are in use".to_owned()),
            Some(left) => line("Files", format!("{left} more fit")),
        }
    }
    if !disk.is_kept() {
        line("Kept", "nothing: its contents are lost at a reboot".to_owned());
        return lines.join("\n") + "\n";
    }
    let status = &disk.status;
    line("Kept", disk.persistence.word().to_owned());
    let loaded = match status.load_state {
        LoadState::Loading => "not yet, it is being loaded".to_owned(),
        LoadState::Failed => format!("no: {}", or_nothing(&status.load_message)),
        // The message includes the result.
        _ => or_nothing(&status.load_message).to_owned(),
    };
    line("Loaded", loaded);
    if status.unclean {
        line("Before", "the last boot ended without saving it".to_owned());
    }
    let saved = match status.last_save_result {
        SaveResult::None => "not in this boot".to_owned(),
        SaveResult::Failed => {
            format!("{}: failed: {}", moment(status.last_save_usec), status.last_save_message)
        }
        _ => format!("{}: {}", moment(status.last_save_usec), status.last_save_message),
    };
    line("Saved", saved);
    if next_save_usec > 0 {
        line("Next", moment(next_save_usec));
    }
    let newest = status
        .snapshots
        .first()
        .map_or_else(String::new, |line| format!(", the newest of {}", moment(line.time_usec)));
    line("Snapshots", format!("{}{newest}, {} in all", status.snapshots.len(), human(status.store_bytes)));
    line("Saves", written(status.written_day_bytes, status.daily_budget_bytes, status.written_total_bytes));
    for (number, hold) in status.held() {
        line("Not loaded", held(disk, number, hold));
    }
    if !status.set_aside.is_empty() {
        line("Set aside", status.set_aside.join(", "));
    }
    lines.join("\n") + "\n"
}

fn or_nothing(text: &str) -> &str {
    if text.is_empty() { "nothing is known" } else { text }
}

pub(super) fn snapshots(disk: &RamdiskView) -> String {
    let heading = ["SNAPSHOT", "MADE", "ENTRIES", "CONTENTS", "STORED", "REASON", "STATE"];
    let rows = disk.status.snapshots.iter().map(|line| {
        let mut state = vec![if line.good { "good" } else { "broken" }.to_owned()];
        if line.fuzzy {
            state.push("changed while it was read".to_owned());
        }
        if line.generation == disk.status.generation {
            state.push("loaded".to_owned());
        }
        if !line.pinned.is_empty() {
            state.push(format!("pinned: {}", line.pinned));
        }
        vec![
            line.generation.to_string(),
            moment(line.time_usec),
            line.entries.to_string(),
            short(line.raw_bytes),
            short(line.stored_bytes),
            line.reason.word().to_owned(),
            state.join(", "),
        ]
    });
    let rows: Vec<_> = rows.collect();
    if rows.is_empty() {
        return format!("There is no snapshot of {} yet.\n", shown(disk.name.as_str()));
    }
    table::render(&heading, &[0, 2, 3, 4], &rows)
}

/// Exports a snapshot with the privileges of the caller, who chooses the destination.
fn export(
    cli: &Cli,
    name: &str,
    directory: &Path,
    generation: Option<u64>,
) -> std::result::Result<ExitStatus, Error> {
    let to = Some(absolute(directory)?);
    // Also that of the daemon, which determines the configured RAM disks.
    let config = read::used_file(cli).map(|file| absolute(&file)).transpose()?;
    worker(&Order::Export(order::RamdiskOrder {
        snapshot: generation,
        to,
        config,
        ..order::RamdiskOrder::named(bare(name))
    }))?;
    Ok(ExitStatus::Success)
}

/// Runs `zramd-worker`; needs root.
fn worker(order: &Order) -> std::result::Result<(), Error> {
    if !LinuxHost::new("/").is_privileged() {
        let message = "the store of a RAM disk is for root only; run it with sudo";
        return Err(Error::new(ErrorKind::NotPermitted, message));
    }
    // In our process group, so that Ctrl-C ends it as well.
    let mut command = process::worker();
    command.args(order.words().map_err(Error::failed)?).stdin(Stdio::null()).stderr(Stdio::inherit());
    let output = command.output().map_err(|error| Error::failed(format!("run zramd-worker: {error}")))?;
    let reply: String = process::reply("zramd-worker", &output)?;
    out::done(&reply);
    Ok(())
}

/// A method of a RAM disk, with the order for `zramd-worker` for the same operation, if there is one.
struct Wish<'a> {
    name: &'a str,
    method: &'static str,
    order: Option<Order>,
    doing: String,
    no_block: bool,
}

async fn change(ask: bool, command: &Ramdisk) -> Result<ExitStatus> {
    let nothing: HashMap<&str, Variant<'_>> = HashMap::new();
    match command {
        Ramdisk::Save { names, change } => {
            let mut status = ExitStatus::Success;
            for name in names {
                let order = Some(Order::Save(of(name, None)));
                let doing = format!("saving {}", bare(name));
                let wish = Wish { name, method: "Save", order, doing, no_block: change.no_block };
                if let Err(failure) = carry_out(ask, &wish, &(&nothing,)).await {
                    if names.len() == 1 {
                        return Err(failure);
                    }
                    out::error(&failure.message);
                    status = ExitStatus::Partly;
                }
            }
            return Ok(status);
        }
        Ramdisk::Verify { name, generation, change } => {
            let order = Some(Order::Verify(of(name, *generation)));
            let doing = format!("reading a snapshot of {}", bare(name));
            let wish = Wish { name, method: "Verify", order, doing, no_block: change.no_block };
            carry_out(ask, &wish, &(generation.unwrap_or(0), &nothing)).await?;
        }
        Ramdisk::Restore { name, generation, change } => {
            let doing = format!("restoring {}", bare(name));
            let wish = Wish { name, method: "Restore", order: None, doing, no_block: change.no_block };
            carry_out(ask, &wish, &(generation.unwrap_or(0), &nothing)).await?;
        }
        Ramdisk::Pin { name, generation, off } => {
            let disk = of(name, Some(*generation));
            let order = Some(if *off { Order::Unpin(disk) } else { Order::Pin(disk) });
            let wish = Wish { name, method: "Pin", order, doing: "pinning".to_owned(), no_block: false };
            carry_out(ask, &wish, &(*generation, !*off, &nothing)).await?;
        }
        Ramdisk::Delete { name, generation } => {
            let order = Some(Order::Delete(of(name, Some(*generation))));
            let wish =
                Wish { name, method: "DeleteSnapshot", order, doing: "deleting".to_owned(), no_block: false };
            carry_out(ask, &wish, &(*generation, &nothing)).await?;
        }
        Ramdisk::Resize { name, size, change } => {
            let bytes = amount(size)?;
            let doing = format!("resizing {} to {}", bare(name), human(bytes));
            let wish = Wish { name, method: "Resize", order: None, doing, no_block: change.no_block };
            carry_out(ask, &wish, &(bytes, &nothing)).await?;
        }
        Ramdisk::List(_) | Ramdisk::Status { .. } | Ramdisk::Snapshots { .. } | Ramdisk::Export { .. } => {}
    }
    Ok(ExitStatus::Success)
}

fn of(name: &str, snapshot: Option<u64>) -> order::RamdiskOrder {
    order::RamdiskOrder {
        snapshot: snapshot.filter(|number| *number > 0),
        ..order::RamdiskOrder::named(bare(name))
    }
}

/// Calls the daemon; without one, runs the worker as root.
async fn carry_out<B: Serialize + zbus::DynamicType + Sync>(
    ask: bool,
    wish: &Wish<'_>,
    body: &B,
) -> Result<()> {
    let name = bare(wish.name);
    let asked = async {
        let bus = Bus::open(ask).await?;
        let path: OwnedObjectPath = bus.manager("GetRamDisk", &name).await?;
        let mut jobs = Jobs::listen(&bus).await?;
        let job: OwnedObjectPath = bus.call(path.as_str(), INTERFACE, wish.method, body).await?;
        finish(&mut jobs, &job, wish.no_block, &wish.doing).await
    };
    match asked.await {
        Err(failure) if failure.kind == ErrorKind::NotRunning && LinuxHost::new("/").is_privileged() => {
            let Some(order) = &wish.order else { return Err(failure) };
            worker(order)
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use crate::ramdisk::*;
    use logic::ramdisk::status::{RamdiskStatus, SnapshotLine};
    use logic::ramdisk::{Persist, SaveReason};

    fn disk() -> RamdiskView {
        let line = |generation, pinned: &str| SnapshotLine {
            generation,
            raw_bytes: 3 << 20,
            stored_bytes: 1 << 20,
            entries: 12,
            reason: SaveReason::Stop,
            good: generation != 2,
            fuzzy: generation == 3,
            pinned: pinned.to_owned(),
            ..SnapshotLine::default()
        };
        let status = RamdiskStatus {
            schema_version: 1,
            load_state: LoadState::Loaded,
            generation: 3,
            load_message: "snapshot 3 loaded: 12 entries, 3.0 MiB".to_owned(),
            unclean: true,
            store_bytes: 3 << 20,
            written_day_bytes: 9 << 20,
            written_total_bytes: 2 << 30,
            daily_budget_bytes: 500 << 20,
            snapshots: vec![line(3, ""), line(2, ""), line(1, "asked for")],
            set_aside: vec!["gen-2.bad".to_owned()],
            ..RamdiskStatus::default()
        };
        RamdiskView {
            name: "logs".to_owned(),
            mount_point: "/var/log".to_owned(),
            mounted: true,
            size_bytes: 64 << 20,
            used_bytes: 5 << 20,
            free_bytes: 59 << 20,
            persistence: Persist::Snapshot,
            status,
            ..RamdiskView::default()
        }
    }

    #[test]
    fn snapshots_have_their_state() {
        let text = snapshots(&disk());
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[1].ends_with("good, changed while it was read, loaded"), "{text}");
        assert!(lines[2].ends_with("broken") && lines[3].ends_with("good, pinned: asked for"), "{text}");
        let none = RamdiskView { status: RamdiskStatus::default(), ..disk() };
        assert_eq!(snapshots(&none), "There is no snapshot of logs yet.\n");
    }

    #[test]
    fn a_status_has_the_last_save_and_load() {
        let text = status(&disk(), 1_700_000_000_000_000);
        for part in [
            "logs: tmpfs on /var/log, mounted",
            "5.0 MiB of 64.0 MiB",
            "Loaded: snapshot 3 loaded",
            "without saving",
            "not in this boot",
            "Next: 2023-11-1",
            "3, the newest of never, 3.0 MiB",
            "Saves: 9.0 MiB written in 24 hours (budget 500.0 MiB), 2.0 GiB in all",
            "gen-2.bad",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        let files = |fs_type: &str, free_inodes| {
            let text = status(&RamdiskView { fs_type: fs_type.to_owned(), free_inodes, ..disk() }, 0);
            text.lines().find_map(|line| line.trim_start().strip_prefix("Files: ")).map(str::to_owned)
        };
        assert_eq!(files("tmpfs", 7).as_deref(), Some("7 more fit"));
        assert_eq!(files("tmpfs", 0).as_deref(), Some("no more fit: all inodes are in use"));
        assert_eq!(files("btrfs", 0), None, "it makes them as it needs them");
        let lost = RamdiskView { persistence: Persist::None, ..disk() };
        assert!(status(&lost, 0).contains("lost at a reboot"));
    }

    #[test]
    fn a_list_has_a_line_for_each() {
        let snapshot = Snapshot { ramdisks: vec![disk()], ..Snapshot::default() };
        let text = list(&snapshot);
        assert!(
            text.lines().nth(1).is_some_and(|line| line.starts_with("logs") && line.ends_with("/var/log")),
            "{text}"
        );
        assert!(list(&Snapshot::default()).contains("no RAM disk"));
    }
}
