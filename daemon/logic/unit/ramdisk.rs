//! The units of RAM disks. A RAM disk that is kept, or that is on zram, has several:
//!
//! * `zramd-ramdisk-places.service`, shared by all, which creates the directory of the private places;
//! * `run-zramd-ramdisk-NAME.mount`, the file system itself at a private place;
//! * `zramd-ramdisk@NAME.service`, packaged, which loads it there on start and saves it on stop;
//! * the mount unit of the mount point, a bind mount: the path is not visible before the RAM disk is filled, units that
//!   use the path stop before it is saved, and a process that keeps the path busy does not block the save;
//! * a timer that saves it, a link in `sleep.target.wants`, and for the journal a service that makes journald release it
//!   in time.

use super::{Contents, Unit, UnitFile, mount_unit, setup_unit};
use crate::duration;
use crate::plan::ramdisk::tmpfs_options;
use crate::ramdisk::place::{is_at_or_below, passthrough, place, ramdisk_at};
use crate::ramdisk::{KeepSettings, Persist, UnitRamdisk};
use crate::request::{DeviceRequest, KeepRequest, MountRequest, RamdiskRequest};

/// Directory of the persistent journal.
const JOURNAL: &str = "/var/log/journal";
/// Packaged units that the generator links to.
const PACKAGED: &str = "/usr/lib/systemd/system";
/// The unit that creates the directory of the private places: PID 1 itself would use mode 0755.
const PLACES_UNIT: &str = "zramd-ramdisk-places.service";
/// Prefix of descriptions.
const DISK: &str = "RAM disk ";
/// A section of units for our own data (systemd.unit(5): `X-` is ignored).
const NOTES: &str = "X-Zramd";

/// Name of the unit that mounts a layered RAM disk at its private place.
pub fn place_unit(name: &str) -> String {
    mount_unit(&place(name))
}

/// Name of the unit that loads and saves a RAM disk.
pub fn keeping_unit(name: &str) -> String {
    format!("zramd-ramdisk@{name}.service")
}

/// Name of the timer that saves a RAM disk.
pub fn saving_timer(name: &str) -> String {
    format!("zramd-ramdisk-save@{name}.timer")
}

/// Name of the unit that this timer starts.
pub fn saving_unit(name: &str) -> String {
    format!("zramd-ramdisk-save@{name}.service")
}

/// Name of the unit for operations on request.
pub fn doing_unit(name: &str) -> String {
    format!("zramd-ramdisk-do@{name}.service")
}

/// Name of the unit that runs its hooks.
pub fn hook_unit(name: &str) -> String {
    format!("zramd-hook@{name}.service")
}

fn file(path: impl Into<String>, unit: Unit) -> UnitFile {
    UnitFile { path: path.into(), contents: Contents::Text(unit.finish()) }
}

fn link(path: String, target: String) -> UnitFile {
    UnitFile { path, contents: Contents::Link(target) }
}

/// A path as one word in a list (systemd.syntax(7), "Quoting").
pub(crate) fn quoted(path: &str) -> String {
    if path.contains([' ', '"', '\'', '\\']) {
        format!("\"{}\"", path.replace('\\', "\\\\").replace('"', "\\\""))
    } else {
        path.to_owned()
    }
}

/// All files for one RAM disk.
pub(crate) fn ramdisk_files(request: &RamdiskRequest) -> Vec<UnitFile> {
    let mount = &request.mount;
    let unit = mount_unit(&mount.mount_point);
    let wanted = if request.required { "requires" } else { "wants" };
    let mut files = vec![link(format!("local-fs.target.{wanted}/{unit}"), format!("../{unit}"))];
    let text = Unit::new(&description(request));
    if !request.is_layered() {
        let text = text
            .line("StartLimitIntervalSec", "0")
            .section("Mount")
            .line("What", "tmpfs")
            .line("Where", &mount.mount_point)
            .line("Type", "tmpfs")
            .line("Options", &tmpfs_options(request));
        files.push(file(unit, text));
        return files;
    }
    files.push(places());
    let place_unit = place_unit(&request.name);
    let before = if request.keep.is_some() { keeping_unit(&request.name) } else { place_unit.clone() };
    let mut text = text.line("Requires", &before).line("After", &before).line("StartLimitIntervalSec", "0");
    if request.keep.is_some() {
        text = text.line("ConditionPathExists", &format!("!{}", passthrough(&request.name)));
    }
    let store = request.keep.as_ref().map_or("", |keep| keep.settings.store.as_str());
    let text = text
        .section("Mount")
        .line("What", &request.place())
        .line("Where", &mount.mount_point)
        .line("Type", "none")
        .line("Options", "bind")
        .section(NOTES)
        .line("Persist", request.persist().word())
        .line("Store", store);
    files.push(file(unit.clone(), text));
    if request.number.is_none() {
        files.push(file(place_unit.clone(), tmpfs_at_place(request)));
    }
    if request.keep.is_some() {
        files.extend(keeping_files(request, &unit));
    }
    files
}

fn description(request: &RamdiskRequest) -> String {
    format!("{DISK}{} on {}", request.name, request.mount.mount_point)
}

fn at_place(name: &str) -> Unit {
    Unit::new(&format!("File system of {DISK}{name}"))
        .line("DefaultDependencies", "no")
        .line("Requires", PLACES_UNIT)
        .line("After", PLACES_UNIT)
        .line("Conflicts", "umount.target")
        .line("Before", "umount.target")
        .line("StartLimitIntervalSec", "0")
}

/// Needs no capabilities: it changes only files of root.
fn places() -> UnitFile {
    let text = Unit::new("Private Directory of RAM Disks")
        .line("DefaultDependencies", "no")
        .line("StartLimitIntervalSec", "0")
        .section("Service")
        .line("Type", "oneshot")
        .line("ExecStart", "/usr/lib/zramd/zramd-worker places")
        .line("TimeoutStartSec", "90s")
        .line("CapabilityBoundingSet", "")
        .line("IPAddressDeny", "any")
        .line("LockPersonality", "yes")
        .line("MemoryDenyWriteExecute", "yes")
        .line("MemoryMax", "64M")
        .line("NoNewPrivileges", "yes")
        .line("RestrictAddressFamilies", "AF_UNIX")
        .line("RestrictNamespaces", "yes")
        .line("RestrictRealtime", "yes")
        .line("SystemCallArchitectures", "native")
        .line("SystemCallFilter", "@system-service")
        .line("UMask", "0077");
    file(PLACES_UNIT, text)
}

fn tmpfs_at_place(request: &RamdiskRequest) -> Unit {
    at_place(&request.name)
        .section("Mount")
        .line("What", "tmpfs")
        .line("Where", &request.place())
        .line("Type", "tmpfs")
        .line("Options", &tmpfs_options(request))
}

/// The mount unit of a zram device with a RAM disk on it; `None` for other devices.
pub(crate) fn zram_at_place(
    request: &DeviceRequest,
    fs_type: &str,
    mount: &MountRequest,
) -> Option<UnitFile> {
    let setup = setup_unit(request.number);
    let text = at_place(ramdisk_at(&mount.mount_point)?)
        .line("Requires", &setup)
        .line("After", &setup)
        .section("Mount")
        .line("What", &format!("/dev/zram{}", request.number))
        .line("Where", &mount.mount_point)
        .line("Type", fs_type)
        .line("Options", &mount.options);
    Some(file(mount_unit(&mount.mount_point), text))
}

/// What a RAM disk that is in use needs to be saved: the dependencies of the unit that loads and saves it, and its timer.
pub fn saving_files(name: &str, keep: &KeepSettings) -> Vec<UnitFile> {
    let (service, place_unit) = (keeping_unit(name), place_unit(name));
    let binding = Unit::bare()
        .line("BindsTo", &place_unit)
        .line("After", &place_unit)
        .line("RequiresMountsFor", &quoted(&keep.store));
    let mut files = vec![file(format!("{service}.d/ramdisk.conf"), binding)];
    if let Some(interval) = keep.save_interval {
        let span = |seconds: u64| duration::text(std::time::Duration::from_secs(seconds.max(1)));
        let timer = saving_timer(name);
        let text = Unit::new(&format!("Save RAM disk {name}"))
            .line("BindsTo", &service)
            .line("After", &service)
            .section("Timer")
            .line("OnActiveSec", &span(interval))
            .line("OnUnitInactiveSec", &span(interval))
            .line("RandomizedDelaySec", &span(interval / 10))
            .line("AccuracySec", &span((interval / 10).min(60)));
        files.push(file(timer.clone(), text));
        files.push(link(format!("{service}.wants/{timer}"), format!("../{timer}")));
    }
    files
}

/// The unit that loads and saves a RAM disk, and its triggers.
fn keeping_files(request: &RamdiskRequest, unit: &str) -> Vec<UnitFile> {
    let Some(KeepRequest { settings: keep, .. }) = &request.keep else { return Vec::new() };
    let name = &request.name;
    let sleep = format!("zramd-ramdisk-sleep@{name}.service");
    let mut files = saving_files(name, keep);
    files.push(link(
        format!("sleep.target.wants/{sleep}"),
        format!("{PACKAGED}/zramd-ramdisk-sleep@.service"),
    ));
    if is_at_or_below(JOURNAL, &request.mount.mount_point) {
        let journal = format!("zramd-ramdisk-journal@{name}.service");
        let text = Unit::bare().line("Requires", unit).line("After", unit);
        files.push(file(format!("{journal}.d/ramdisk.conf"), text));
        files.push(link(
            format!("{unit}.wants/{journal}"),
            format!("{PACKAGED}/zramd-ramdisk-journal@.service"),
        ));
    }
    files
}

/// The RAM disk of one of our mount units; `None` for other units.
pub fn ramdisk_of_unit(text: &str) -> Option<UnitRamdisk> {
    let value = |key: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
        line.map(|value| value.replace("%%", "%"))
    };
    let mount_point = value("Where")?;
    let name =
        value("Description")?.strip_prefix(DISK)?.strip_suffix(&format!(" on {mount_point}"))?.to_owned();
    let persist = value("Persist").and_then(|word| Persist::of_word(&word)).unwrap_or_default();
    let store = value("Store").unwrap_or_default();
    Some(UnitRamdisk { name, mount_point, persist, store, watch: false })
}

#[cfg(test)]
mod tests {
    use crate::ramdisk::Mode;
    use crate::unit::ramdisk::*;

    #[test]
    fn the_disk_of_a_unit_is_the_one_it_was_written_for() {
        let mount = MountRequest {
            mount_point: "/srv/100% a".to_owned(),
            options: String::new(),
            mode: None,
            uid: None,
            gid: None,
        };
        let request = RamdiskRequest {
            name: "my-disk".to_owned(),
            size: 1 << 20,
            inodes: None,
            mount,
            huge: None,
            number: Some(3),
            required: false,
            keep: None,
        };
        for number in [None, Some(3)] {
            let files = ramdisk_files(&RamdiskRequest { number, ..request.clone() });
            let disks = files.iter().filter_map(|file| match &file.contents {
                Contents::Text(text) => ramdisk_of_unit(text),
                Contents::Link(_) => None,
            });
            let expected = UnitRamdisk {
                name: "my-disk".to_owned(),
                mount_point: "/srv/100% a".to_owned(),
                ..UnitRamdisk::default()
            };
            assert_eq!(disks.collect::<Vec<_>>(), [expected]);
        }
    }

    #[test]
    fn paths_are_quoted_as_systemd_does_it() {
        assert_eq!(quoted("/a"), "/a");
        assert_eq!(quoted("/a b\"c\\"), r#""/a b\"c\\""#);
    }

    #[test]
    fn a_save_may_be_late_by_a_tenth_of_its_interval() {
        for (seconds, delay, accuracy) in
            [(5, "1s", "1s"), (60, "6s", "6s"), (600, "1min", "1min"), (7200, "12min", "1min")]
        {
            let keep = KeepSettings {
                mode: Mode::Snapshot,
                store: "/srv/a".to_owned(),
                generations: 3,
                save_interval: Some(seconds),
                on_failure: None,
                seed: false,
                pre_save: Vec::new(),
                post_restore: Vec::new(),
                hook_time_limit: 60,
                time_limit: 600,
            };
            let files = saving_files("data", &keep);
            let timer = files.iter().find(|file| file.path == saving_timer("data")).unwrap();
            let Contents::Text(text) = &timer.contents else { panic!("{timer:?}") };
            let expected = format!("RandomizedDelaySec={delay}\nAccuracySec={accuracy}\n");
            assert!(text.ends_with(&expected), "{seconds}: {text}");
        }
    }
}
