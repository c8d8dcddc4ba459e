//! The real machine.
//!
//! All paths are below a root directory, which is `/` except in tests. This is the only module with `unsafe`: loop devices,
//! the device mapper, `swapon`, `swapoff`, `fork`, `mallopt`, `sigaction`, `adjtimex` and two block ioctls, which no crate
//! wraps.

mod battery;
pub mod bench_file;
mod block;
pub mod cancel;
pub mod clock;
mod crypt;
pub mod direct;
pub mod durable;
pub mod edit;
pub mod files;
pub mod heap;
mod holders;
pub mod hook;
pub mod interrupt;
pub mod lock;
pub mod log;
mod loops;
pub mod memory_pressure;
mod mkfs;
mod mount;
pub mod pages;
pub mod paging;
mod patience;
pub mod pid_1;
pub mod places;
pub mod priority;
pub mod process;
pub mod process_memory;
pub mod public_files;
pub mod ramdisk;
pub mod root;
pub mod shutdown;
pub mod store;
mod swap;
pub mod swap_file;
pub mod test_letters;
pub mod unit_files;
pub mod work;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{AtFlags, CWD, FileType, StatxFlags};

use super::{
    BlockProbe, Holder, Host, HostError, MachineFile, MkfsSpec, MountSpec, Priority, RecordFile, RootSpec,
    Space, StateFile, SwapSpec, lossy,
};
use logic::device::attribute::Attribute;
use logic::device::drain;
use logic::error::Error;
use logic::facts::Permissions;
use logic::order::Order;
use logic::path_kind::PathKind;
use logic::proc::{MountLine, parse_device_number, zram_number};
use logic::ramdisk::place::ramdisk_at;
use logic::record::{MountId, SCRATCH, SwapFile, crypt_name};
use logic::vm::Tunable;

/// File with the memory pressure level, for programs that do not use D-Bus.
pub const PRESSURE_LEVEL: &str = "/run/zramd/work/pressure";

/// Bytes per sector in `/sys/dev/block/*/size`, independent of the device.
const SECTOR: u64 = 512;

/// The machine we run on.
#[derive(Debug)]
pub struct LinuxHost {
    root: PathBuf,
    locks: BTreeMap<u32, OwnedFd>,
    scratch: BTreeMap<String, OwnedFd>,
    run_lock: Option<OwnedFd>,
}

impl LinuxHost {
    /// The machine whose `/proc`, `/sys`, `/dev` and `/run` are below `root`.
    pub fn new(root: impl Into<PathBuf>) -> LinuxHost {
        LinuxHost { root: root.into(), locks: BTreeMap::new(), scratch: BTreeMap::new(), run_lock: None }
    }

    fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        files::inside(&self.root, path)
    }

    /// Whether `path` is a mount point.
    pub fn is_mount_point(&self, path: &str) -> bool {
        mount::is_mounted(rustix::fs::CWD, &self.path(path)).unwrap_or(false)
    }

    /// Whether the disk below a mount is rotational, if the kernel says so.
    pub fn rotates(&self, mount: &MountLine) -> Option<bool> {
        block::rotates(&self.root, mount)
    }

    /// Whether a mount is encrypted by dm-crypt, if its device is known.
    pub fn is_encrypted(&self, mount: &MountLine) -> Option<bool> {
        block::is_encrypted(&self.root, mount)
    }

    fn node(&self, number: u32) -> PathBuf {
        self.path(format!("/dev/zram{number}"))
    }

    fn attribute_path(&self, number: u32, attribute: Attribute) -> PathBuf {
        self.path(format!("/sys/block/zram{number}/{}", attribute.file_name()))
    }

    fn read(&self, path: &str) -> Result<String, HostError> {
        let read = files::read_small(&self.path(path)).map_err(|error| HostError::io(path, "read", &error));
        read.map(lossy)
    }
}

/// Writes `value` in one write(2), as sysfs requires, without creating the file.
fn write_existing(path: &Path, value: &str) -> Result<(), std::io::Error> {
    use std::io::Write;
    fs::OpenOptions::new().write(true).open(path)?.write_all(value.as_bytes())
}

/// Why a path cannot be looked at.
fn reason(errno: rustix::io::Errno) -> &'static str {
    use rustix::io::Errno;
    match errno {
        Errno::ACCESS | Errno::PERM => "permission denied",
        Errno::IO => "input/output error",
        Errno::LOOP => "too many levels of symbolic links",
        Errno::NAMETOOLONG => "file name too long",
        Errno::NOTCONN => "the server of its file system has gone",
        Errno::STALE => "stale file handle",
        Errno::TIMEDOUT => "its file system does not answer",
        _ => "its file system returns an error",
    }
}

/// `zramN`, for messages.
fn object(number: u32) -> String {
    format!("zram{number}")
}

impl Host for LinuxHost {
    fn bytes(&self, file: MachineFile) -> Result<Vec<u8>, HostError> {
        let path = match file {
            MachineFile::Meminfo => "/proc/meminfo",
            MachineFile::Swaps => "/proc/swaps",
            MachineFile::Mountinfo => "/proc/self/mountinfo",
            MachineFile::Cmdline => "/proc/cmdline",
            MachineFile::Maintenance => "/run/zramd/work/maintenance.json",
            MachineFile::PressureLevel => PRESSURE_LEVEL,
            MachineFile::Passwd => "/etc/passwd",
            MachineFile::Group => "/etc/group",
            MachineFile::KernelRelease => "/proc/sys/kernel/osrelease",
            MachineFile::Cpuinfo => "/proc/cpuinfo",
            MachineFile::OnlineCpus => "/sys/devices/system/cpu/online",
            MachineFile::FrequencyDriver => "/sys/devices/system/cpu/cpufreq/policy0/scaling_driver",
            MachineFile::FrequencyGovernor => "/sys/devices/system/cpu/cpufreq/policy0/scaling_governor",
            MachineFile::FrequencyLimit => "/sys/devices/system/cpu/cpufreq/policy0/scaling_max_freq",
            MachineFile::FrequencyMaximum => "/sys/devices/system/cpu/cpufreq/policy0/cpuinfo_max_freq",
            MachineFile::MemoryPressure => "/proc/pressure/memory",
            MachineFile::CpuPressure => "/proc/pressure/cpu",
            MachineFile::Loadavg => "/proc/loadavg",
            MachineFile::Vmstat => "/proc/vmstat",
            MachineFile::Diskstats => "/proc/diskstats",
            MachineFile::Zswap(rejection) => rejection.path(),
            MachineFile::Resume => "/sys/power/resume",
            MachineFile::Fstab => "/etc/fstab",
            MachineFile::Controllers => "/sys/fs/cgroup/cgroup.controllers",
            MachineFile::Verdict => store::VERDICT,
            MachineFile::BootId => "/proc/sys/kernel/random/boot_id",
        };
        let read = match file {
            MachineFile::Mountinfo => files::read_mountinfo(&self.root),
            _ => files::read_small(&self.path(path)),
        };
        read.map_err(|error| HostError::io(path, "read", &error))
    }

    fn read_tunable(&self, tunable: Tunable) -> Result<String, HostError> {
        Ok(self.read(tunable.path())?.trim().to_owned())
    }

    fn cpus(&self) -> u32 {
        std::thread::available_parallelism().map_or(1, |count| u32::try_from(count.get()).unwrap_or(u32::MAX))
    }

    fn page_size(&self) -> u64 {
        rustix::param::page_size() as u64
    }

    fn is_privileged(&self) -> bool {
        process::is_privileged()
    }

    fn container(&self) -> Option<String> {
        process::container(&self.root)
    }

    fn has_control(&self) -> bool {
        self.path("/sys/class/zram-control").is_dir()
    }

    fn device_numbers(&self) -> Result<Vec<u32>, HostError> {
        let directory = "/sys/block";
        let entries =
            fs::read_dir(self.path(directory)).map_err(|error| HostError::io(directory, "list", &error))?;
        let mut numbers: Vec<u32> =
            entries.filter_map(|entry| zram_number(entry.ok()?.file_name().to_str()?)).collect();
        numbers.sort_unstable();
        Ok(numbers)
    }

    fn has_attribute(&self, number: u32, attribute: Attribute) -> bool {
        self.attribute_path(number, attribute).exists()
    }

    fn read_attribute(&self, number: u32, attribute: Attribute) -> Result<String, HostError> {
        files::read_attribute(&self.attribute_path(number, attribute))
            .map(lossy)
            .inspect(|text| tracing::trace!("zram{number}: {attribute} is {:?}", text.trim_end()))
            .map_err(|error| HostError::io(object(number), format!("read {attribute}"), &error))
    }

    fn head(&self, number: u32, length: usize) -> Result<Vec<u8>, HostError> {
        let device = self.read_attribute(number, Attribute::Dev)?;
        block::head(&self.node(number), &object(number), parse_device_number(&device), length)
    }

    fn mount_id(&self, path: &str) -> Result<Option<MountId>, HostError> {
        mount::id_at(&self.root, path)
    }

    fn mount_namespace(&self) -> u64 {
        mount::namespace(&self.root)
    }

    fn namespace_user(&self, namespace: u64) -> Option<Holder> {
        mount::namespace_user(&self.root, namespace)
    }

    fn diskseq(&self, node: &str) -> Option<u64> {
        let name = node.strip_prefix("/dev/")?;
        self.read(&format!("/sys/block/{name}/diskseq")).ok()?.trim().parse().ok()
    }

    fn device_age(&self, number: u32) -> Option<Duration> {
        // devtmpfs makes the node; udev changes its owner and mode, but not this time.
        fs::metadata(self.node(number)).ok()?.modified().ok()?.elapsed().ok()
    }

    fn device_inode(&self, number: u32) -> Result<u64, HostError> {
        use std::os::unix::fs::MetadataExt;
        let directory = self.path(format!("/sys/block/zram{number}"));
        let found =
            fs::metadata(directory).map_err(|error| HostError::io(object(number), "look at", &error))?;
        Ok(found.ino())
    }

    fn holders(&self, number: u32) -> Vec<Holder> {
        holders::of_node(&self.root, &self.node(number))
    }

    fn mount_users(&self, path: &str) -> Vec<Holder> {
        holders::of_mount(&self.root, &self.path(path))
    }

    fn on_battery(&self) -> Option<u8> {
        battery::percent(&self.path("/sys/class/power_supply"))
    }

    fn block_bytes(&self, path: &str) -> Result<u64, HostError> {
        let probe = self.probe_block(path)?;
        let (major, minor) = probe
            .and_then(|probe| probe.device)
            .ok_or_else(|| HostError::text(path, "look at its size", "it is no block device"))?;
        let text = self.read(&format!("/sys/dev/block/{major}:{minor}/size"))?;
        let sectors: Result<u64, _> = text.trim().parse();
        sectors
            .map(|sectors| sectors.saturating_mul(SECTOR))
            .map_err(|error| HostError::text(path, "look at its size", error.to_string()))
    }

    fn probe_block(&self, path: &str) -> Result<Option<BlockProbe>, HostError> {
        block::probe(&self.root, &self.path(path), path)
    }

    fn loop_device(&self, number: u32) -> Result<Option<String>, HostError> {
        loops::find(&self.root, &crypt_name(number))
    }

    fn crypt_device(&self, number: u32) -> Result<Option<String>, HostError> {
        crypt::find(&self.root, &crypt_name(number))
    }

    fn find_mkfs(&self, fs_type: &str) -> Option<PathBuf> {
        mkfs::find(&self.root, fs_type)
    }

    fn path_kind(&self, path: &str) -> PathKind {
        // Without asking a server, which may not answer, and without mounting anything.
        let flags = AtFlags::STATX_DONT_SYNC | AtFlags::NO_AUTOMOUNT;
        let full = self.path(path);
        let found = patience::ask(&self.root, &full, || {
            let found = rustix::fs::statx(CWD, &full, flags, StatxFlags::TYPE | StatxFlags::SIZE)?;
            Ok((found.stx_mode, found.stx_size))
        });
        match found.map(|(mode, size)| (FileType::from_raw_mode(mode.into()), size)) {
            Ok((FileType::Directory, _)) => PathKind::Directory,
            Ok((FileType::CharacterDevice, _) | (FileType::RegularFile, 0)) => PathKind::Empty,
            Err(rustix::io::Errno::NOENT) => PathKind::Missing,
            Err(rustix::io::Errno::ACCESS | rustix::io::Errno::PERM) if !self.is_privileged() => {
                PathKind::Hidden
            }
            // A file on the way.
            Ok(_) | Err(rustix::io::Errno::NOTDIR) => PathKind::Other,
            Err(errno) => PathKind::Unreadable(reason(errno)),
        }
    }

    fn permissions(&self, path: &str) -> Option<Permissions> {
        let flags = AtFlags::STATX_DONT_SYNC | AtFlags::NO_AUTOMOUNT;
        let wanted = StatxFlags::MODE | StatxFlags::UID | StatxFlags::GID;
        let full = self.path(path);
        let found = patience::ask(&self.root, &full, || {
            let found = rustix::fs::statx(CWD, &full, flags, wanted)?;
            Ok((u32::from(found.stx_mode) & 0o7777, found.stx_uid, found.stx_gid))
        });
        found.ok().map(|(mode, uid, gid)| Permissions { mode, uid, gid })
    }

    fn link(&self, path: &str) -> Option<String> {
        let full = self.path(path);
        if self.root != Path::new("/") {
            let real = Path::new("/").join(full.strip_prefix(&self.root).unwrap_or(&full));
            return (real != Path::new(path)).then(|| real.display().to_string());
        }
        let look = || {
            // The part that does not exist has no links in it.
            let (real, there) =
                full.ancestors().find_map(|above| Some((above.canonicalize().ok()?, above)))?;
            // Without a slash at the end, if all of it exists.
            let real: PathBuf = real.join(full.strip_prefix(there).ok()?).components().collect();
            (real != Path::new(path)).then(|| real.display().to_string())
        };
        patience::ask(&self.root, &full, || Ok(look())).ok().flatten()
    }

    fn names(&self, directory: &str) -> Vec<String> {
        files::names(&self.path(directory))
    }

    fn other_text(&self, file: &str) -> Option<String> {
        files::other_text(&self.path(file))
    }

    fn space(&self, path: &[u8]) -> Result<Space, HostError> {
        let path = self.path(OsStr::from_bytes(path));
        let found = patience::ask(&self.root, &path, || {
            let space = rustix::fs::statvfs(&path)?;
            let used = space.f_blocks.saturating_sub(space.f_bfree);
            Ok([used * space.f_frsize, space.f_blocks * space.f_frsize, space.f_ffree, space.f_files])
        });
        let [used_bytes, total_bytes, free_inodes, total_inodes] =
            found.map_err(|errno| HostError::new(path.display().to_string(), "statvfs", errno))?;
        Ok(Space { used_bytes, total_bytes, free_inodes, total_inodes })
    }

    fn ramdisk_status(&self, name: &str) -> String {
        self.read(&logic::ramdisk::status::path(name)).unwrap_or_default()
    }

    fn records(&self) -> Result<Vec<RecordFile>, HostError> {
        store::list(&self.root, ".json")
    }

    fn scratch_records(&self) -> Result<Vec<RecordFile>, HostError> {
        store::list(&self.root, SCRATCH)
    }

    fn drained(&self) -> Result<Vec<u32>, HostError> {
        let files = files::overlays(&self.root);
        let names = files.iter().filter_map(|path| path.file_name()?.to_str());
        let mut numbers: Vec<u32> = names.filter_map(drain::number_of).collect();
        numbers.sort_unstable();
        Ok(numbers)
    }

    fn read_state(&self, file: StateFile) -> Result<Option<String>, HostError> {
        match fs::read_to_string(self.path(file.path())) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(HostError::io(file.path(), "read", &error)),
        }
    }

    fn synchronised_clock(&self) -> Option<Duration> {
        clock::synchronised()
    }

    fn now(&self) -> Duration {
        clock::since_boot()
    }

    fn monotonic(&self) -> Duration {
        clock::monotonic()
    }

    fn lock_run(&mut self) -> Result<(), HostError> {
        self.run_lock = Some(store::lock(&self.root)?);
        Ok(())
    }

    fn unlock_run(&mut self) {
        if let Some(lock) = self.run_lock.take() {
            store::unlock(&self.root, lock);
        }
    }

    fn write_record(&mut self, name: &str, text: &str) -> Result<(), HostError> {
        store::write(&self.root, name, text)
    }

    fn remove_record(&mut self, name: &str) -> Result<(), HostError> {
        store::remove(&self.root, name)?;
        if let Some(lock) = self.scratch.remove(name) {
            work::give_up(&self.root, name, lock);
        }
        Ok(())
    }

    fn write_state(&mut self, file: StateFile, text: &str) -> Result<(), HostError> {
        match file {
            StateFile::Boot => files::replace(&self.root, file.path(), Some(text))
                .map_err(|error| HostError::text(file.path(), "write", error)),
            StateFile::Budget => durable::replace(&self.root, file.path(), text),
        }
    }

    fn mark_drained(&mut self, number: u32, drained: bool) -> Result<(), HostError> {
        let (name, text) = (drain::drop_in(number), drained.then(|| drain::text(number)));
        files::write_overlay(&self.root, &name, text.as_deref())
            .map_err(|error| HostError::text(object(number), "write drop-in", error))
    }

    fn own_scratch(&mut self, name: &str) -> Result<bool, HostError> {
        if self.scratch.contains_key(name) {
            return Ok(true);
        }
        let taken = work::take(&self.root, name)?;
        let ours = taken.is_some();
        self.scratch.extend(taken.map(|lock| (name.to_owned(), lock)));
        Ok(ours)
    }

    fn set_priority(&mut self, priority: Priority) {
        match priority {
            Priority::Low => priority::low(),
            Priority::Normal => priority::real_time(false),
            Priority::RealTime => priority::real_time(true),
        }
    }

    fn sleep(&mut self, time: Duration) {
        std::thread::sleep(time);
    }

    fn random(&mut self) -> [u8; 16] {
        let mut bytes = [0; 16];
        // With an initialised pool 16 bytes are never read short; before, the rest of the UUID is zeros.
        if rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::NONBLOCK).is_err() {
            let now = self.now().as_nanos().to_ne_bytes();
            bytes.copy_from_slice(&now);
        }
        bytes
    }

    fn load_module(&mut self) -> Result<(), HostError> {
        process::load_module(&self.root, "zram")
    }

    fn hot_add(&mut self) -> Result<u32, HostError> {
        let path = "/sys/class/zram-control/hot_add";
        let text = self.read(path)?;
        text.trim()
            .parse()
            .map_err(|_| HostError::text(path, "read", format!("unexpected answer `{}`", text.trim())))
    }

    fn hot_remove(&mut self, number: u32) -> Result<(), HostError> {
        self.locks.remove(&number);
        write_existing(&self.path("/sys/class/zram-control/hot_remove"), &number.to_string())
            .map_err(|error| HostError::io(object(number), "hot_remove", &error))
    }

    fn write_attribute(&mut self, number: u32, attribute: Attribute, value: &str) -> Result<(), HostError> {
        tracing::trace!("zram{number}: write {value:?} to {attribute}");
        write_existing(&self.attribute_path(number, attribute), value)
            .map_err(|error| HostError::io(object(number), format!("write `{value}` to {attribute}"), &error))
    }

    fn attach_file(&mut self, number: u32, path: &str, bytes: u64) -> Result<(), HostError> {
        loops::attach(&self.root, &crypt_name(number), path, bytes)
    }

    fn detach_file(&mut self, number: u32) -> Result<(), HostError> {
        loops::detach(&self.root, &crypt_name(number))
    }

    fn open_crypt(&mut self, number: u32, store: &str) -> Result<(), HostError> {
        crypt::open(&self.root, &crypt_name(number), store)
    }

    fn close_crypt(&mut self, number: u32) -> Result<(), HostError> {
        crypt::close(&self.root, &crypt_name(number))
    }

    fn lock_device(&mut self, number: u32) -> Result<(), HostError> {
        if !self.locks.contains_key(&number) {
            let lock = block::lock(&self.node(number), &object(number))?;
            self.locks.insert(number, lock);
        }
        Ok(())
    }

    fn unlock_device(&mut self, number: u32) -> Result<(), HostError> {
        self.locks.remove(&number);
        Ok(())
    }

    fn announce_device(&mut self, number: u32) -> Result<(), HostError> {
        write_existing(&self.root.join(format!("sys/block/zram{number}/uevent")), "change")
            .map_err(|error| HostError::io(object(number), "write `change` to uevent", &error))
    }

    fn write_pages(&mut self, number: u32, offset: u64, data: &[u8]) -> Result<(), HostError> {
        block::write(&self.node(number), &object(number), offset, data)
    }

    fn read_pages(&mut self, number: u32, offset: u64, length: usize) -> Result<Vec<u8>, HostError> {
        block::read(&self.node(number), &object(number), offset, length)
    }

    fn discard(&mut self, number: u32, offset: u64, length: u64) -> Result<(), HostError> {
        block::discard(&self.node(number), &object(number), offset, length)
    }

    fn mkfs(&mut self, number: u32, spec: &MkfsSpec) -> Result<(), HostError> {
        mkfs::run(&self.root, &self.node(number), &object(number), spec)
    }

    fn set_root(&mut self, number: u32, fs_type: &str, root: &RootSpec) -> Result<(), HostError> {
        mount::set_root(&self.node(number), &object(number), fs_type, root)
    }

    fn swap_on(&mut self, number: u32, spec: SwapSpec) -> Result<(), HostError> {
        swap::on(&self.node(number), &object(number), spec)
    }

    fn swap_off(&mut self, number: u32) -> Result<(), HostError> {
        swap::off(&self.node(number), &object(number))
    }

    fn remove_swap_file(&mut self, file: &SwapFile) -> Result<(), HostError> {
        swap_file::remove(file)
    }

    fn mount(&mut self, spec: &MountSpec) -> Result<(), HostError> {
        if ramdisk_at(&spec.mount_point).is_some() {
            places::make(&self.root)?;
        }
        mount::mount(&self.root, spec)
    }

    fn remount(&mut self, spec: &MountSpec) -> Result<(), HostError> {
        mount::remount(&self.root, spec)
    }

    fn bind(&mut self, from: &str, to: &str) -> Result<(), HostError> {
        mount::bind(&self.root, from, to)
    }

    fn run_worker(&mut self, order: &Order) -> Result<(), Error> {
        let words = order.words().map_err(Error::failed)?;
        process::ask::<String>(process::worker().args(words), process::WORKER_LIMIT, |_| {}).map(drop)
    }

    fn unmount(&mut self, path: &[u8], mount: &MountId) -> Result<(), HostError> {
        mount::unmount(&self.root, path, mount)
    }

    fn write_tunable(&mut self, tunable: Tunable, value: &str) -> Result<(), HostError> {
        tracing::trace!("write {value:?} to {}", tunable.path());
        write_existing(&self.path(tunable.path()), value)
            .map_err(|error| HostError::io(tunable.name(), format!("write `{value}`"), &error))
    }

    fn make_directory(&mut self, path: &str) -> Result<(), HostError> {
        mount::make_directory(&self.root, path)
    }

    fn remove_directory(&mut self, path: &str) -> Result<(), HostError> {
        mount::remove_directory(&self.root, path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn state_files_are_replaced_atomically() {
        let root = tempfile::tempdir().unwrap();
        let mut host = LinuxHost::new(root.path());
        for file in [StateFile::Boot, StateFile::Budget] {
            assert_eq!(host.read_state(file).unwrap(), None);
            host.write_state(file, "a").unwrap();
            host.write_state(file, "bc").unwrap();
            assert_eq!(host.read_state(file).unwrap().as_deref(), Some("bc"));
        }
    }
}
