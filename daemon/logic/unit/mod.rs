//! Generates the text of systemd units from a plan; the generator writes them.

pub mod ramdisk;

use std::path::PathBuf;
use std::time::Duration;

use super::config::Loaded;
use super::config::locate::{CREDENTIALS, MAIN};
use super::config::settings::{PageSource, When};
use super::duration;
use super::plan::ramdisk::tmpfs_options;
use super::plan::{Decision, Item, Plan};
use super::record::Target;
use super::request::{Choice, DeviceRequest, Purpose, Request, Store};
use super::unit::ramdisk::{place_unit, quoted, ramdisk_files, zram_at_place};
use super::unit_name::escape_path;

/// A file below the output directory of a generator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnitFile {
    /// Path relative to that directory.
    pub path: String,
    pub contents: Contents,
}

/// Contents of a [`UnitFile`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Contents {
    /// A file with this text.
    Text(String),
    /// A symbolic link with this target.
    Link(String),
}

/// All files for the planned items, in a stable order.
pub fn unit_files(plan: &Plan) -> Vec<UnitFile> {
    let mut lower = Vec::new();
    let mut files = Vec::new();
    let is_planned =
        |target: &Target| plan.item(target).is_some_and(|item| item.decision == Decision::Planned);
    let settings = [(Target::Zswap, ZSWAP_UNIT), (Target::Vm, VM_UNIT)];
    let settings: Vec<&str> =
        settings.into_iter().filter(|(target, _)| is_planned(target)).map(|(_, unit)| unit).collect();
    for item in plan.items.iter().filter(|item| item.decision == Decision::Planned) {
        let mut after = lower.clone();
        if matches!(&item.request, Some(Request::Device(request)) if is_measured(request)) {
            after.extend(verdict_mounts(plan).into_iter().map(str::to_owned));
            after.extend((plan.benchmark == When::Boot).then(|| BENCHMARK_BOOT.to_owned()));
        }
        files.extend(item_files(item, &after, &settings));
        if let Target::Device(number) = item.target {
            lower.push(setup_unit(number));
        }
    }
    files.extend(benchmark_files(plan));
    files.extend(plan.maintenance.map(timer_files).into_iter().flatten());
    files.extend(protection_files(plan.protected));
    files.sort_by(|a, b| a.path.cmp(&b.path));
    // All RAM disks share one of the units.
    files.dedup();
    files
}

/// The drop-in that gives the daemon its copies of the credentials.
pub const CREDENTIALS_DROP_IN: &str = "zramd.service.d/zramd-credentials.conf";

/// Drop-ins for all services of zramd if there are credentials for it: those with a mount namespace see only what they import
/// (systemd 254). Not in the units themselves, because importing takes time at boot, and earlier versions of systemd warn about it.
pub fn credential_files(loaded: &Loaded) -> Vec<UnitFile> {
    let is_credential =
        |file: &PathBuf| file.parent().is_some_and(|parent| parent.ends_with(&CREDENTIALS[1..]));
    if !loaded.files.iter().any(is_credential) {
        return Vec::new();
    }
    let text = Unit::bare().section("Service").line("ImportCredential", &format!("{MAIN}*")).finish();
    // The second is for every unit whose name begins with `zramd-` (systemd.unit(5)).
    let paths = [CREDENTIALS_DROP_IN, "zramd-.service.d/zramd-credentials.conf"];
    paths.map(|path| UnitFile { path: path.to_owned(), contents: Contents::Text(text.clone()) }).into()
}

/// Runs the benchmark automatically, if a device uses its verdict.
fn benchmark_files(plan: &Plan) -> Vec<UnitFile> {
    let link = |path: String, unit: &str| UnitFile {
        path,
        contents: Contents::Link(format!("/usr/lib/systemd/system/{unit}")),
    };
    let devices = plan.items.iter().filter_map(|item| match (&item.request, item.decision) {
        (Some(Request::Device(request)), Decision::Planned) if is_measured(request) => Some(request.number),
        _ => None,
    });
    let for_zswap = plan.items.iter().any(|item| {
        item.decision == Decision::Planned
            && matches!(&item.request, Some(Request::Vm(request)) if request.compressors.contains(&Choice::Auto))
    });
    let devices: Vec<u32> = devices.collect();
    let mut files = match plan.benchmark {
        When::Idle if for_zswap || !devices.is_empty() => {
            vec![link(format!("timers.target.wants/{BENCHMARK_TIMER}"), BENCHMARK_TIMER)]
        }
        When::Boot => {
            let wants =
                devices.into_iter().map(|number| format!("{}.wants/{BENCHMARK_BOOT}", setup_unit(number)));
            wants.map(|path| link(path, BENCHMARK_BOOT)).collect()
        }
        _ => Vec::new(),
    };
    if plan.sample == PageSource::Processes {
        files.push(UnitFile {
            path: format!("{BENCHMARK}.d/zramd.conf"),
            // In addition to the capabilities in the unit.
            contents: Contents::Text(
                Unit::bare().section("Service").line("CapabilityBoundingSet", "CAP_SYS_PTRACE").finish(),
            ),
        });
    }
    files
}

/// Whether the benchmark chooses the algorithm of a device.
fn is_measured(request: &DeviceRequest) -> bool {
    request.algorithms.contains(&Choice::Auto)
}

/// Runs the benchmark.
const BENCHMARK: &str = "zramd-benchmark.service";
/// Starts the benchmark some time after boot.
const BENCHMARK_TIMER: &str = "zramd-benchmark.timer";
/// Runs it before devices are set up.
const BENCHMARK_BOOT: &str = "zramd-benchmark-boot.service";
/// Mounts that may contain the stored verdict. For ordering only: units without such a mount do not wait.
const VERDICT_MOUNTS: [(&str, &str); 3] =
    [("/var", "var.mount"), ("/var/lib", "var-lib.mount"), ("/var/lib/zramd", "var-lib-zramd.mount")];

/// The mounts after which a device with an algorithm of the benchmark is set up. Empty if one of them is ours and may
/// need the device.
fn verdict_mounts(plan: &Plan) -> Vec<&'static str> {
    let ours = |path: &str| {
        let mut mounts = plan.items.iter().filter_map(|item| item.request.as_ref()?.mount());
        mounts.any(|mount| mount.mount_point == path)
    };
    if VERDICT_MOUNTS.iter().any(|(path, _)| ours(path)) {
        return Vec::new();
    }
    VERDICT_MOUNTS.iter().map(|(_, unit)| *unit).collect()
}

/// The timer of maintenance. It first elapses one interval after boot, when some pages are old enough.
pub const MAINTENANCE_TIMER: &str = "zramd-maintenance.timer";

fn timer_files(interval: Duration) -> Vec<UnitFile> {
    let every = duration::text(interval);
    let text = Unit::new("Compressed Memory Maintenance")
        .section("Timer")
        .line("OnActiveSec", &every)
        .line("OnUnitActiveSec", &every)
        .line("AccuracySec", "1min")
        .finish();
    wanted_file(MAINTENANCE_TIMER, text, "timers.target")
}

/// Memory that sessions and system services keep. What a slice keeps is limited by the slices that contain it, hence all of them; the
/// drop-in of session.slice in `units` passes it on within a user manager.
fn protection_files(bytes: u64) -> Vec<UnitFile> {
    let parts = [
        ("user.slice", "Slice", bytes),
        ("user-.slice", "Slice", bytes),
        ("user@.service", "Service", bytes),
        ("system.slice", "Slice", bytes / 2),
        ("init.scope", "Scope", bytes / 2),
    ];
    let file = |(unit, section, bytes): (&str, &str, u64)| UnitFile {
        path: format!("{unit}.d/zramd.conf"),
        contents: Contents::Text(
            Unit::bare().section(section).line("MemoryMin", &bytes.to_string()).finish(),
        ),
    };
    parts.into_iter().filter(|_| bytes > 0).map(file).collect()
}

/// The unit that changes the settings of `[vm]`.
pub const VM_UNIT: &str = "zramd-vm.service";
/// The unit that enables or disables zswap.
pub const ZSWAP_UNIT: &str = "zramd-zswap.service";

/// Name of the unit that activates swap on a device.
pub fn swap_unit(number: u32) -> String {
    format!("dev-zram{number}.swap")
}

/// Name of the unit that prepares a device.
pub fn setup_unit(number: u32) -> String {
    format!("zramd-setup@zram{number}.service")
}

fn item_files(item: &Item, lower: &[String], settings: &[&str]) -> Vec<UnitFile> {
    match (&item.target, &item.request) {
        (Target::Device(_), Some(Request::Device(request))) => device_files(request, lower, settings),
        (Target::Ramdisk(_), Some(Request::Ramdisk(request))) => ramdisk_files(request),
        (Target::Zswap, Some(Request::Vm(request))) if request.zswap() == Some(true) => zswap_files(),
        _ => Vec::new(),
    }
}

/// zswap is enabled before any swap is activated, and stays so as long as there may be swap.
fn zswap_files() -> Vec<UnitFile> {
    vec![
        UnitFile {
            path: format!("swap.target.wants/{ZSWAP_UNIT}"),
            contents: Contents::Link(format!("/usr/lib/systemd/system/{ZSWAP_UNIT}")),
        },
        UnitFile {
            path: "swap.d/zramd.conf".to_owned(),
            contents: Contents::Text(Unit::bare().line("After", ZSWAP_UNIT).finish()),
        },
    ]
}

fn device_files(request: &DeviceRequest, lower: &[String], settings: &[&str]) -> Vec<UnitFile> {
    let number = request.number;
    let setup = setup_unit(number);
    let (unit, mut files) = match &request.purpose {
        Purpose::Swap { priority, options } => {
            let unit = swap_unit(number);
            let text = swap_text(request, &setup, *priority, options, settings);
            (Some(unit.clone()), wanted_file(&unit, text, "swap.target"))
        }
        Purpose::Filesystem { fs_type, mount, .. } => {
            let unit = mount_unit(&mount.mount_point);
            if let Some(file) = zram_at_place(request, fs_type, mount) {
                return with_bindings(request, Some(&unit), lower, vec![file]);
            }
            let text = Unit::new(&format!("Compressed RAM disk /dev/zram{number} on {}", mount.mount_point))
                .line("Requires", &setup)
                .line("After", &setup)
                .line("StartLimitIntervalSec", "0")
                .section("Mount")
                .line("What", &format!("/dev/zram{number}"))
                .line("Where", &mount.mount_point)
                .line("Type", fs_type)
                .line("Options", &mount.options)
                .finish();
            (Some(unit.clone()), wanted_file(&unit, text, "local-fs.target"))
        }
        Purpose::Raw { .. } => {
            let link = UnitFile {
                path: format!("multi-user.target.wants/{setup}"),
                contents: Contents::Link("/usr/lib/systemd/system/zramd-setup@.service".to_owned()),
            };
            (None, vec![link])
        }
    };
    if let Some(path) = store_device(request) {
        files.push(UnitFile {
            path: format!("{}.device.d/zramd.conf", escape_path(path)),
            contents: Contents::Text(Unit::bare().line("JobRunningTimeoutSec", "10s").finish()),
        });
    }
    with_bindings(request, unit.as_deref(), lower, files)
}

fn with_bindings(
    request: &DeviceRequest,
    unit: Option<&str>,
    lower: &[String],
    mut files: Vec<UnitFile>,
) -> Vec<UnitFile> {
    files.push(UnitFile {
        path: format!("{}.d/bindings.conf", setup_unit(request.number)),
        contents: Contents::Text(bindings_text(request, unit, lower)),
    });
    files
}

fn store_device(request: &DeviceRequest) -> Option<&String> {
    match &request.writeback.as_ref()?.store {
        Store::Device(path) => Some(path),
        Store::File { .. } => None,
    }
}

/// Binds the set-up of a device to the unit that uses it, and orders it after the set-ups of lower numbers.
///
/// The kernel assigns the lowest free number. If a higher device were created first, lower ones would appear and
/// disappear, and systemd would mark their mount units as failed.
fn bindings_text(request: &DeviceRequest, unit: Option<&str>, lower: &[String]) -> String {
    let mut text = Unit::bare();
    if let Some(unit) = unit {
        text = text.line("BindsTo", unit);
    }
    if !lower.is_empty() {
        text = text.line("After", &lower.join(" "));
    }
    match request.writeback.as_ref().map(|writeback| &writeback.store) {
        Some(Store::File { path, .. }) => {
            // The root file system is not writable before that service.
            let after = "systemd-remount-fs.service modprobe@loop.service";
            text = text
                .line("RequiresMountsFor", &quoted(path))
                .line("Wants", "modprobe@loop.service")
                .line("After", after);
        }
        Some(Store::Device(_)) | None => {}
    }
    if request.writeback.as_ref().is_some_and(|writeback| writeback.encrypted) {
        text = text.line("Wants", "modprobe@dm_crypt.service").line("After", "modprobe@dm_crypt.service");
    }
    if request.writeback.is_some() || unit.is_some_and(|unit| unit.ends_with(".mount")) {
        // The set-up stops after the unit that uses the device. It must also finish before shutdown: PID 1 kills
        // services that are still running at its end.
        text = text.line("Conflicts", "shutdown.target").line("Before", "shutdown.target");
    }
    if let Some(path) = store_device(request) {
        let device = format!("{}.device", escape_path(path));
        text = text.line("Wants", &device).line("After", &device);
    }
    text.finish()
}

fn swap_text(
    request: &DeviceRequest,
    setup: &str,
    priority: i32,
    options: &str,
    settings: &[&str],
) -> String {
    let number = request.number;
    let mut unit = Unit::new(&format!("Compressed swap /dev/zram{number}"))
        .line("DefaultDependencies", "no")
        .line("Requires", setup)
        .line("After", setup)
        // systemd-oomd checks for swap when it starts.
        .line("Before", "swap.target systemd-oomd.service")
        .line("StartLimitIntervalSec", "0");
    if settings.contains(&VM_UNIT) {
        unit = unit.line("Before", VM_UNIT);
    }
    if !settings.is_empty() {
        // These units stop when no active swap wants them any more.
        unit = unit.line("Wants", &settings.join(" "));
    }
    if settings.contains(&ZSWAP_UNIT) {
        unit = unit.line("After", ZSWAP_UNIT);
    }
    if request.writeback.is_some() {
        // Only a backing device must be released before its disk is; all else ends with the kernel.
        unit = unit.line("Conflicts", "shutdown.target").line("Before", "shutdown.target");
    }
    unit = unit.section("Swap").line("What", &format!("/dev/zram{number}"));
    if priority >= 0 {
        unit = unit.line("Priority", &priority.to_string());
    }
    if !options.is_empty() {
        unit = unit.line("Options", options);
    }
    unit.finish()
}

/// A unit file, and the link by which `target` wants it.
fn wanted_file(unit: &str, text: String, target: &str) -> Vec<UnitFile> {
    vec![
        UnitFile { path: unit.to_owned(), contents: Contents::Text(text) },
        UnitFile { path: format!("{target}.wants/{unit}"), contents: Contents::Link(format!("../{unit}")) },
    ]
}

/// Name of the unit that mounts something there (systemd.mount(5)).
pub(crate) fn mount_unit(mount_point: &str) -> String {
    format!("{}.mount", escape_path(mount_point))
}

/// First line of all units written by zramd, by which they are recognised.
pub const HEAD: &str =
    "# Written by zramd-setup; change the configuration (see `zramd-setup plan`), not this file.\n";

/// Name of the unit that activates a request; PID 1 stops and starts it.
pub fn activating_unit(request: &Request) -> String {
    match request {
        Request::Ramdisk(disk) => mount_unit(&disk.mount.mount_point),
        Request::Vm(request) if request.zswap().is_some() => ZSWAP_UNIT.to_owned(),
        Request::Vm(_) => VM_UNIT.to_owned(),
        Request::Device(device) => match &device.purpose {
            Purpose::Swap { .. } => swap_unit(device.number),
            Purpose::Filesystem { mount, .. } => mount_unit(&mount.mount_point),
            Purpose::Raw { .. } => setup_unit(device.number),
        },
    }
}

/// Name of the unit that mounts the file system itself, with the options of the request.
pub fn mounting_unit(request: &Request) -> String {
    match request {
        Request::Ramdisk(disk) if disk.is_layered() => place_unit(&disk.name),
        other => activating_unit(other),
    }
}

/// Mount options of that unit, if there is a mount.
pub fn options_of_mount(request: &Request) -> Option<String> {
    match request {
        Request::Ramdisk(disk) => disk.number.is_none().then(|| tmpfs_options(disk)),
        Request::Vm(_) => None,
        Request::Device(device) => device.purpose.mount().map(|mount| mount.options.clone()),
    }
}

/// Builder for a unit file.
pub(crate) struct Unit {
    text: String,
}

impl Unit {
    pub(crate) fn bare() -> Unit {
        Unit { text: format!("{HEAD}[Unit]\n") }
    }

    pub(crate) fn new(description: &str) -> Unit {
        Unit::bare().line("Description", description)
    }

    pub(crate) fn section(mut self, name: &str) -> Unit {
        self.text.push_str(&format!("\n[{name}]\n"));
        self
    }

    /// Adds an assignment; `%` is doubled because systemd would expand it.
    pub(crate) fn line(mut self, key: &str, value: &str) -> Unit {
        self.text.push_str(&format!("{key}={}\n", value.replace('%', "%%")));
        self
    }

    pub(crate) fn finish(self) -> String {
        self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::{MountRequest, RamdiskRequest, VmRequest};
    use crate::vm::Tunable;

    #[test]
    fn each_kind_of_request_has_its_unit() {
        let settings = |tunable, value: &str| {
            let values = vec![(tunable, value.to_owned())];
            Request::Vm(VmRequest { values, compressors: Vec::new() })
        };
        let disk = |number| {
            let mount = MountRequest {
                mount_point: "/srv/a".to_owned(),
                options: String::new(),
                mode: None,
                uid: None,
                gid: None,
            };
            Request::Ramdisk(RamdiskRequest {
                name: "data".to_owned(),
                size: 1 << 20,
                inodes: None,
                mount,
                huge: None,
                number,
                required: false,
                keep: None,
            })
        };
        for (request, activates, mounts) in [
            (settings(Tunable::Swappiness, "150"), "zramd-vm.service", "zramd-vm.service"),
            (settings(Tunable::Zswap, "Y"), "zramd-zswap.service", "zramd-zswap.service"),
            (settings(Tunable::Zswap, "N"), "zramd-zswap.service", "zramd-zswap.service"),
            (disk(None), "srv-a.mount", "srv-a.mount"),
            // On zram, its options are those of the mount at the private place.
            (disk(Some(3)), "srv-a.mount", "run-zramd-ramdisk-data.mount"),
        ] {
            assert_eq!(
                (activating_unit(&request).as_str(), mounting_unit(&request).as_str()),
                (activates, mounts)
            );
        }
    }
}
