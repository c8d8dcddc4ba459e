//! RAM disks that are kept over reboots, between the configuration and their snapshots (`store`): their
//! requests, their public status, and the flag files that units check.

use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use crate::error::{Error, ErrorKind};
use crate::gather;
use host::Host;
use host::linux::ramdisk::Calls;
use host::linux::{LinuxHost, files};
use logic::config::Loaded;
use logic::finding::Level;
use logic::path_kind::PathKind;
use logic::plan::wanted::wanted;
use logic::proc::top;
use logic::ramdisk::place::{STORES, passthrough, place};
use logic::ramdisk::status::{DIRECTORY, RamdiskStatus, SCHEMA_VERSION, SnapshotLine, path};
use logic::ramdisk::{KeepSettings, Mode, OnFailure};
use logic::record::Target;
use logic::request::{KeepRequest, RamdiskRequest, Request};
use logic::unit::UnitFile;
use logic::unit::ramdisk::saving_files;
use store::{Ramdisk, Status};

/// Suffix of the file with the settings in force.
const REQUEST: &str = ".request";

fn in_force(name: &str) -> String {
    format!("{DIRECTORY}/{name}{REQUEST}")
}

fn root() -> &'static Path {
    Path::new("/")
}

/// RAM disk `name`: from the record if we mounted it, else from the configuration, else as it was when loaded. A RAM disk is
/// saved even if its section was removed or has become invalid.
pub fn find(loaded: &Loaded, name: &str) -> Result<Ramdisk, Error> {
    // A record that cannot be read prevents no save: the configuration is likely the same.
    let records = gather::records(&LinuxHost::new("/")).unwrap_or_default();
    let recorded = records.into_values().find(|record| record.target == Target::Ramdisk(name.to_owned()));
    if let Some(Request::Ramdisk(request)) = recorded.map(|record| record.request)
        && let Some(disk) = kept(&request)
    {
        return Ok(disk);
    }
    let configured = configured(loaded, name);
    if let Some(disk) = configured.as_ref().and_then(kept) {
        return Ok(disk);
    }
    let text = files::read_optional(root(), &in_force(name)).unwrap_or_default();
    if let Ok(disk) = serde_json::from_str(&text) {
        return Ok(disk);
    }
    let section = format!("ramdisk.{name}");
    let own = |key: &str| key == section || key.starts_with(&format!("{section}."));
    let mistake = loaded.problems.iter().find(|problem| problem.level == Level::Error && own(problem.key()));
    Err(match (mistake, configured) {
        (Some(problem), _) => Error::new(ErrorKind::Config, problem.one_line()),
        (None, Some(_)) => Error::new(
            ErrorKind::Unsupported,
            format!("{name}: its contents are not kept; write persist = \"snapshot\" in [{section}]"),
        ),
        (None, None) => {
            let left = if orphan(name).is_some() { ", but its snapshots are still there" } else { "" };
            let message = format!("there is no RAM disk `{name}` in the configuration{left}");
            Error::new(ErrorKind::NotFound, message)
        }
    })
}

/// A RAM disk without a section, whose snapshots are in the default directory: they are readable.
pub fn orphan(name: &str) -> Option<Ramdisk> {
    let store = format!("{STORES}/{name}");
    (logic::ramdisk::is_ramdisk_name(name) && Path::new(&store).is_dir()).then(|| unconfigured(name))
}

/// A RAM disk about which nothing is left but its mark: it is saved into the default directory.
pub fn left_over(name: &str) -> Option<Ramdisk> {
    if !logic::ramdisk::is_ramdisk_name(name) {
        return None;
    }
    let disk = unconfigured(name);
    let calls = Calls::new();
    let opened = calls.open_directory(&disk.place).ok()?;
    let is_mounted = calls.is_mount_point(opened.as_fd()).unwrap_or(false);
    (is_mounted && calls.mark(opened.as_fd()).is_ok_and(|(_, is_loaded)| is_loaded)).then_some(disk)
}

/// With settings that delete nothing.
fn unconfigured(name: &str) -> Ramdisk {
    let keep = KeepSettings {
        mode: Mode::Snapshot,
        store: format!("{STORES}/{name}"),
        generations: u32::MAX,
        save_interval: None,
        on_failure: Some(OnFailure::Fail),
        seed: false,
        pre_save: Vec::new(),
        post_restore: Vec::new(),
        hook_time_limit: 0,
        time_limit: u64::from(u32::MAX),
    };
    disk(name, &place(name), KeepRequest { settings: keep, store_limit: None, daily_budget: None })
}

/// The RAM disk of a request, if its contents are kept.
fn kept(request: &RamdiskRequest) -> Option<Ramdisk> {
    Some(disk(&request.name, &request.mount.mount_point, request.keep.clone()?))
}

fn disk(name: &str, mount_point: &str, keep: KeepRequest) -> Ramdisk {
    Ramdisk {
        name: name.to_owned(),
        place: PathBuf::from(place(name)),
        mount_point: PathBuf::from(mount_point),
        keep: keep.settings,
        store_limit: keep.store_limit,
        daily_budget: keep.daily_budget,
        notes: Some(PathBuf::from(DIRECTORY)),
        spared: None,
        trial: false,
    }
}

fn configured(loaded: &Loaded, name: &str) -> Option<RamdiskRequest> {
    let host = LinuxHost::new("/");
    let mut settings = loaded.settings.clone();
    settings.ramdisks.retain(|disk| disk.name == name);
    settings.devices.clear();
    settings.vm = None;
    let mut facts = gather::machine(&host);
    gather::accounts(&host, &settings, &mut facts);
    let (items, _) = wanted(&settings, &facts);
    items.into_iter().find_map(|item| match item.request {
        Some(Request::Ramdisk(request)) => Some(request),
        _ => None,
    })
}

/// Names of all RAM disks in the configuration that are kept.
pub fn names(loaded: &Loaded) -> Vec<String> {
    loaded.settings.ramdisks.iter().filter(|disk| disk.keep.is_some()).map(|disk| disk.name.clone()).collect()
}

/// Stores the settings until the next boot.
pub fn remember(disk: &Ramdisk) -> Result<(), Error> {
    let text = serde_json::to_string(disk).map_err(|error| Error::failed(format!("write JSON: {error}")))?;
    files::replace(root(), &in_force(&disk.name), Some(&text)).map_err(Error::failed)
}

/// What those that are mounted need to be saved, whatever their sections say now. `root`: where `/run` and `/proc` are.
pub fn saving(root: &Path) -> Vec<UnitFile> {
    let files = files::names(&root.join(DIRECTORY.trim_start_matches('/')));
    let loaded: Vec<&str> = files.iter().filter_map(|file| file.strip_suffix(REQUEST)).collect();
    if loaded.is_empty() {
        return Vec::new();
    }
    let mounts = gather::mounts(&LinuxHost::new(root)).unwrap_or_default();
    let mut units = Vec::new();
    for name in loaded.into_iter().filter(|name| top(&mounts, &place(name)).is_some()) {
        let text = files::read_optional(root, &in_force(name)).unwrap_or_default();
        let disk: Option<Ramdisk> = serde_json::from_str(&text).ok();
        units.extend(disk.into_iter().flat_map(|disk| saving_files(name, &disk.keep)));
    }
    units
}

/// Creates or removes the flag file that tells units to use the directory on disk instead of the RAM disk.
pub fn mark_passthrough(name: &str, set: bool) -> Result<(), Error> {
    files::replace(root(), &passthrough(name), set.then_some("")).map_err(Error::failed)
}

/// Whether that flag file exists.
pub fn is_passthrough(name: &str) -> bool {
    LinuxHost::new("/").path_kind(&passthrough(name)) != PathKind::Missing
}

fn restore_path(name: &str) -> String {
    format!("{DIRECTORY}/{name}.restore")
}

/// The snapshot selected for the next load instead of the newest one.
pub fn restore_wanted(name: &str) -> Option<u64> {
    files::read_optional(root(), &restore_path(name)).ok()?.trim().parse().ok()
}

/// Selects a snapshot, until the next boot or load; `None` cancels that.
pub fn want_restore(name: &str, generation: Option<u64>) -> Result<(), Error> {
    let text = generation.map(|number| number.to_string());
    files::replace(root(), &restore_path(name), text.as_deref()).map_err(Error::failed)
}

/// The status of a RAM disk about to be loaded: only the snapshots and the last save of this boot are kept.
pub fn blank(status: &RamdiskStatus) -> RamdiskStatus {
    RamdiskStatus {
        schema_version: SCHEMA_VERSION,
        store_bytes: status.store_bytes,
        snapshots: status.snapshots.clone(),
        set_aside: status.set_aside.clone(),
        old_snapshots: status.old_snapshots.clone(),
        written_day_bytes: status.written_day_bytes,
        written_total_bytes: status.written_total_bytes,
        daily_budget_bytes: status.daily_budget_bytes,
        last_verify_usec: status.last_verify_usec,
        damage: status.damage.clone(),
        last_save_usec: status.last_save_usec,
        last_save_result: status.last_save_result,
        last_save_message: status.last_save_message.clone(),
        last_save_omitted: status.last_save_omitted.clone(),
        ..RamdiskStatus::default()
    }
}

/// The status of a RAM disk; the default if none was written.
pub fn status(name: &str) -> RamdiskStatus {
    let text = files::read_optional(root(), &path(name)).unwrap_or_default();
    serde_json::from_str(&text).unwrap_or_default()
}

/// Updates the public status, including the list of snapshots.
pub fn publish(disk: &Ramdisk, change: impl FnOnce(&mut RamdiskStatus)) -> Result<(), Error> {
    let name = &disk.name;
    let mut status = status(name);
    status.schema_version = SCHEMA_VERSION;
    let calls = Calls::new();
    let (found, room) = store::status_and_room(&calls, disk)?;
    status.store_bytes = found.bytes;
    let writes = found.state.writes_at(calls.clocks());
    (status.written_day_bytes, status.written_total_bytes) = (writes.spent(), writes.total());
    status.daily_budget_bytes = disk.daily_budget.unwrap_or(0);
    status.last_verify_usec = found.state.verified_usec;
    status.damage = found.state.damage.clone().unwrap_or_default();
    status.snapshots = lines(&found);
    status.set_aside = found.bad;
    status.old_snapshots = store::old_text(disk, &found.old).unwrap_or_default();
    (status.next_save_bytes, status.next_spare_bytes, status.store_free_bytes) =
        room.map_or((0, 0, 0), |room| (room.needed_bytes, room.spare_bytes, room.free_bytes));
    change(&mut status);
    let text =
        serde_json::to_string(&status).map_err(|error| Error::failed(format!("write JSON: {error}")))?;
    files::replace(root(), &path(name), Some(&text)).map_err(Error::failed)
}

/// The snapshots of a store.
pub fn lines(status: &Status) -> Vec<SnapshotLine> {
    let line = |generation: &store::Generation| {
        let line = SnapshotLine {
            generation: generation.number,
            stored_bytes: generation.stored_bytes,
            pinned: generation.kept_because().unwrap_or_default(),
            held: generation.held.clone(),
            ..SnapshotLine::default()
        };
        match &generation.manifest {
            Err(_) => line,
            Ok(manifest) => SnapshotLine {
                time_usec: manifest.finished_at_usec,
                raw_bytes: manifest.contents.bytes,
                occupied_bytes: manifest.contents.occupied_bytes,
                inodes: manifest.contents.inodes(),
                entries: manifest.contents.entries(),
                reason: manifest.reason,
                fuzzy: manifest.consistency == logic::ramdisk::manifest::Consistency::Fuzzy,
                good: generation.is_whole(),
                ..line
            },
        }
    };
    status.generations.iter().map(line).collect()
}
