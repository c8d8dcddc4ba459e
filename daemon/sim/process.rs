//! One process on a simulated machine.

use std::path::PathBuf;
use std::time::Duration;

use super::kernel::Filesystem;
use super::kill::die;
use super::mounts::{Mount, NAMESPACE};
use super::slots::PAGE;
use super::{Module, SimMachine, State, What};
use host::script::Fault;
use host::{
    BlockProbe, Errno, Holder, Host, HostError, MachineFile, MkfsSpec, MountSpec, Priority, RecordFile,
    RootSpec, Space, StateFile, SwapSpec,
};
use logic::device::attribute::Attribute;
use logic::error::Error;
use logic::facts::Permissions;
use logic::order::Order;
use logic::path_kind::PathKind;
use logic::proc::zram_number;
use logic::record::{MountId, SCRATCH, SwapFile};
use logic::vm::Tunable;

/// A process. Its locks are released when it ends or is killed.
#[derive(Debug)]
pub struct SimHost {
    machine: SimMachine,
    pid: u32,
}

impl Drop for SimHost {
    fn drop(&mut self) {
        let mut state = self.machine.change();
        let pid = self.pid;
        state.locks.retain(|_, owner| *owner != pid);
        state.scratch.retain(|_, owner| *owner != pid);
        if state.run_lock == Some(pid) {
            state.run_lock = None;
        }
    }
}

fn zram(number: u32) -> String {
    format!("zram{number}")
}

impl SimHost {
    pub(super) fn new(machine: SimMachine, pid: u32) -> SimHost {
        SimHost { machine, pid }
    }

    /// An acting call: counts it, and applies the faults of the script.
    pub(super) fn act<T>(
        &mut self,
        object: impl Into<String>,
        operation: impl Into<String>,
        verb: impl FnOnce(&mut State, u32) -> Result<T, Errno>,
    ) -> Result<T, HostError> {
        let (object, operation) = (object.into(), operation.into());
        let fault = self.machine.change().script.enter(format!("{object}: {operation}"));
        let result = match fault {
            Some(Fault::KillBefore) => die(),
            Some(Fault::Fail(errno)) => Err(errno),
            _ => verb(&mut self.machine.change(), self.pid),
        };
        if fault == Some(Fault::KillAfter) {
            die();
        }
        result.map_err(|errno| HostError::new(object, operation, errno))
    }
}

impl Host for SimHost {
    fn bytes(&self, file: MachineFile) -> Result<Vec<u8>, HostError> {
        let state = self.machine.look();
        let missing = || HostError::new(format!("{file:?}"), "read", Errno::NOENT);
        let text = match file {
            MachineFile::Meminfo => state.meminfo(),
            MachineFile::Swaps => state.proc_swaps(),
            MachineFile::Mountinfo => state.mounts.text(),
            MachineFile::Cmdline => state.cmdline.clone(),
            MachineFile::Maintenance => {
                return Err(HostError::new("/run/zramd/work", "read", Errno::NOENT));
            }
            MachineFile::Passwd => state.passwd.clone(),
            MachineFile::Group => state.group.clone(),
            // The first release with exact marks, and the last one without.
            MachineFile::KernelRelease => {
                format!("6.12.{}-simulated\n", if state.kernel.exact_marks { 2 } else { 1 })
            }
            MachineFile::Cpuinfo => "model name : simulated\n".to_owned(),
            MachineFile::OnlineCpus => format!("0-{}\n", state.cpus - 1),
            MachineFile::Loadavg => format!("{:.2} 0.00 0.00 1/100 1\n", state.busy.load),
            MachineFile::Vmstat
            | MachineFile::Diskstats
            | MachineFile::Fstab
            | MachineFile::PressureLevel => String::new(),
            MachineFile::Resume => "0:0\n".to_owned(),
            MachineFile::Controllers => state.controllers.clone(),
            MachineFile::BootId => format!("{}\n", state.boot_id),
            MachineFile::Verdict if !state.verdict.is_empty() => state.verdict.clone(),
            MachineFile::MemoryPressure => state.busy.memory_pressure().ok_or_else(missing)?,
            MachineFile::CpuPressure => state.busy.cpu_pressure().ok_or_else(missing)?,
            MachineFile::Verdict
            | MachineFile::FrequencyDriver
            | MachineFile::FrequencyGovernor
            | MachineFile::FrequencyLimit
            | MachineFile::FrequencyMaximum
            | MachineFile::Zswap(_) => return Err(missing()),
        };
        let further = state.further.get(&file).map_or(&[][..], Vec::as_slice);
        Ok([text.as_bytes(), further].concat())
    }

    fn read_tunable(&self, tunable: Tunable) -> Result<String, HostError> {
        let value = self.machine.look().tunables.get(&tunable).cloned();
        value.ok_or_else(|| HostError::new(tunable.name(), "read", Errno::NOENT))
    }

    fn cpus(&self) -> u32 {
        self.machine.look().cpus
    }

    fn page_size(&self) -> u64 {
        PAGE
    }

    fn is_privileged(&self) -> bool {
        self.machine.look().privileged
    }

    fn container(&self) -> Option<String> {
        self.machine.look().container.clone()
    }

    fn has_control(&self) -> bool {
        self.machine.look().module == Module::Loaded
    }

    fn device_numbers(&self) -> Result<Vec<u32>, HostError> {
        Ok(self.machine.look().devices.keys().copied().collect())
    }

    fn has_attribute(&self, number: u32, attribute: Attribute) -> bool {
        let state = self.machine.look();
        state.devices.contains_key(&number) && state.kernel.has(attribute)
    }

    fn read_attribute(&self, number: u32, attribute: Attribute) -> Result<String, HostError> {
        let state = self.machine.look();
        let left = state.reads_left.get();
        state.reads_left.set(left.map(|left| left.saturating_sub(1)));
        let goes = left == Some(0);
        let shown = match state.device(number) {
            Ok(_) if goes => Err(Errno::NODEV),
            device => device.and_then(|device| device.show(attribute, &state.kernel)),
        };
        shown.map_err(|errno| HostError::new(zram(number), format!("read {attribute}"), errno))
    }

    fn head(&self, number: u32, length: usize) -> Result<Vec<u8>, HostError> {
        let state = self.machine.look();
        let device = state.head_fails.map_or_else(|| state.device(number), Err);
        Ok(device.map_err(|errno| HostError::new(zram(number), "read", errno))?.head(length))
    }

    fn mount_id(&self, path: &str) -> Result<Option<MountId>, HostError> {
        Ok(self.machine.look().mounts.id_at(path))
    }

    fn mount_namespace(&self) -> u64 {
        NAMESPACE
    }

    fn holders(&self, number: u32) -> Vec<Holder> {
        let state = self.machine.look();
        state.searches.set(state.searches.get() + 1);
        state.holders(&What::Device(number), self.pid)
    }

    fn mount_users(&self, path: &str) -> Vec<Holder> {
        self.machine.look().holders(&What::Mount(path.to_owned()), self.pid)
    }

    fn on_battery(&self) -> Option<u8> {
        self.machine.look().busy.battery
    }

    fn block_bytes(&self, path: &str) -> Result<u64, HostError> {
        let bytes = self.machine.look().bytes_of(path);
        bytes.ok_or_else(|| HostError::new(path, "look at its size", Errno::NOENT))
    }

    fn probe_block(&self, path: &str) -> Result<Option<BlockProbe>, HostError> {
        Ok(self.machine.look().blocks.get(path).cloned())
    }

    fn loop_device(&self, number: u32) -> Result<Option<String>, HostError> {
        Ok(self.machine.look().loops.contains_key(&number).then(|| format!("/dev/loop{number}")))
    }

    fn crypt_device(&self, number: u32) -> Result<Option<String>, HostError> {
        Ok(self.machine.look().mappings.contains_key(&number).then(|| format!("/dev/dm-{number}")))
    }

    fn find_mkfs(&self, fs_type: &str) -> Option<PathBuf> {
        let found = self.machine.look().mkfs.contains(fs_type);
        found.then(|| PathBuf::from(format!("/usr/sbin/mkfs.{fs_type}")))
    }

    fn path_kind(&self, path: &str) -> PathKind {
        self.machine.look().mounts.path_kind(path)
    }

    fn permissions(&self, _path: &str) -> Option<Permissions> {
        None
    }

    fn link(&self, _path: &str) -> Option<String> {
        None
    }

    fn names(&self, _directory: &str) -> Vec<String> {
        let state = self.machine.look();
        state.listings.set(state.listings.get() + 1);
        Vec::new()
    }

    fn other_text(&self, _file: &str) -> Option<String> {
        None
    }

    fn space(&self, path: &[u8]) -> Result<Space, HostError> {
        let path = String::from_utf8_lossy(path);
        match self.path_kind(&path) {
            PathKind::Missing => Err(HostError::new(path, "statvfs", Errno::NOENT)),
            _ => {
                Ok(Space { used_bytes: 0, total_bytes: 1 << 30, free_inodes: 1 << 16, total_inodes: 1 << 16 })
            }
        }
    }

    fn ramdisk_status(&self, _name: &str) -> String {
        String::new()
    }

    fn namespace_user(&self, _namespace: u64) -> Option<Holder> {
        None
    }

    fn diskseq(&self, node: &str) -> Option<u64> {
        let state = self.machine.look();
        state.block_seqs.get(node).copied().filter(|_| state.kernel.diskseq)
    }

    fn device_age(&self, number: u32) -> Option<Duration> {
        let state = self.machine.look();
        Some(state.clock.saturating_sub(state.devices.get(&number)?.created))
    }

    fn device_inode(&self, number: u32) -> Result<u64, HostError> {
        let state = self.machine.look();
        let device = state.devices.get(&number);
        let device =
            device.ok_or_else(|| HostError::new(format!("zram{number}"), "look at", Errno::NOENT))?;
        Ok(1000 + device.diskseq)
    }

    fn records(&self) -> Result<Vec<RecordFile>, HostError> {
        let all = self.machine.look().records.clone();
        Ok(all
            .into_iter()
            .filter(|(name, _)| !name.ends_with(SCRATCH))
            .map(|(name, text)| (name, Ok(text)))
            .collect())
    }

    fn scratch_records(&self) -> Result<Vec<RecordFile>, HostError> {
        let all = self.machine.look().records.clone();
        Ok(all
            .into_iter()
            .filter(|(name, _)| name.ends_with(SCRATCH))
            .map(|(name, text)| (name, Ok(text)))
            .collect())
    }

    fn drained(&self) -> Result<Vec<u32>, HostError> {
        Ok(self.machine.look().drained.iter().copied().collect())
    }

    fn read_state(&self, file: StateFile) -> Result<Option<String>, HostError> {
        Ok(self.machine.look().states.get(&file).cloned())
    }

    fn synchronised_clock(&self) -> Option<Duration> {
        self.machine.look().synchronised
    }

    fn now(&self) -> Duration {
        self.machine.look().clock
    }

    fn monotonic(&self) -> Duration {
        let state = self.machine.look();
        state.clock.saturating_sub(state.suspended)
    }

    fn lock_run(&mut self) -> Result<(), HostError> {
        let mut state = self.machine.change();
        if let Some(errno) = state.run_fails {
            return Err(HostError::new("/run/zramd/.lock", "open", errno));
        }
        if state.run_lock.is_some_and(|owner| owner != self.pid) {
            // Processes run one after the other here: waiting would never end.
            return Err(HostError::new("/run/zramd", "lock", Errno::BUSY));
        }
        state.run_lock = Some(self.pid);
        Ok(())
    }

    fn unlock_run(&mut self) {
        let mut state = self.machine.change();
        if state.run_lock == Some(self.pid) {
            state.run_lock = None;
        }
    }

    fn write_record(&mut self, name: &str, text: &str) -> Result<(), HostError> {
        self.act(format!("/run/zramd/{name}"), "write", |state, _| {
            state.run_fails.map_or(Ok(()), Err)?;
            state.records.insert(name.to_owned(), text.to_owned());
            Ok(())
        })
    }

    fn remove_record(&mut self, name: &str) -> Result<(), HostError> {
        self.act(format!("/run/zramd/{name}"), "remove", |state, _| {
            // Removing a file takes no space.
            state.run_fails.filter(|errno| *errno != Errno::NOSPC).map_or(Ok(()), Err)?;
            state.records.remove(name);
            Ok(())
        })
    }

    fn write_state(&mut self, file: StateFile, text: &str) -> Result<(), HostError> {
        self.act(file.path(), "write", |state, _| {
            state.states.insert(file, text.to_owned());
            Ok(())
        })
    }

    fn mark_drained(&mut self, number: u32, drained: bool) -> Result<(), HostError> {
        self.act(format!("zram{number}"), "write drop-in", |state, _| {
            if drained {
                state.drained.insert(number);
            } else {
                state.drained.remove(&number);
            }
            Ok(())
        })
    }

    fn own_scratch(&mut self, name: &str) -> Result<bool, HostError> {
        let mut state = self.machine.change();
        let owner = *state.scratch.entry(name.to_owned()).or_insert(self.pid);
        Ok(owner == self.pid)
    }

    fn set_priority(&mut self, priority: Priority) {
        self.machine.change().priority = priority;
    }

    fn sleep(&mut self, time: Duration) {
        self.machine.change().clock += time;
    }

    /// A fixed value, so that two runs can be compared.
    fn random(&mut self) -> [u8; 16] {
        [0x5A; 16]
    }

    fn load_module(&mut self) -> Result<(), HostError> {
        self.act("zram", "load the module", |state, _| match state.module {
            Module::Absent => Err(Errno::NOENT),
            Module::Loaded => Ok(()),
            Module::Loadable => {
                state.module = Module::Loaded;
                state.add(0);
                Ok(())
            }
        })
    }

    fn hot_add(&mut self) -> Result<u32, HostError> {
        self.act("/sys/class/zram-control/hot_add", "read", |state, _| {
            if state.module != Module::Loaded {
                return Err(Errno::NOENT);
            }
            let number = state.lowest_free();
            state.add(number);
            Ok(number)
        })
    }

    fn hot_remove(&mut self, number: u32) -> Result<(), HostError> {
        self.unlock(number);
        self.act(zram(number), "hot_remove", |state, _| {
            state.device(number).map_err(|_| Errno::NODEV)?;
            if state.is_open(number) {
                return Err(Errno::BUSY);
            }
            state.devices.remove(&number);
            Ok(())
        })
    }

    fn write_attribute(&mut self, number: u32, attribute: Attribute, value: &str) -> Result<(), HostError> {
        self.act(zram(number), format!("write `{value}` to {attribute}"), |state, _| {
            state.device(number)?;
            if attribute == Attribute::Reset && state.is_open(number) {
                return Err(Errno::BUSY);
            }
            if attribute == Attribute::BackingDev && state.kernel.has(attribute) {
                state.take_block(value)?;
            }
            let (kernel, ram) = (state.kernel.clone(), state.ram_kib * 1024);
            let device = state.device_mut(number)?;
            let (tried, written) = (device.slots.tried, device.slots.written);
            let done = device.store(attribute, value, &kernel, ram);
            let times =
                |time: Duration, pages: u64| time.saturating_mul(u32::try_from(pages).unwrap_or(u32::MAX));
            let took = times(kernel.recompress_time, device.slots.tried.saturating_sub(tried))
                + times(kernel.write_time, device.slots.written.saturating_sub(written))
                + times(kernel.scan_time, u64::from(attribute == Attribute::Writeback));
            state.clock += took;
            done
        })
    }

    fn attach_file(&mut self, number: u32, path: &str, bytes: u64) -> Result<(), HostError> {
        self.act(zram(number), format!("attach {bytes} bytes at {path}"), |state, _| {
            let directory = path.rsplit_once('/').map_or("", |(directory, _)| directory);
            match (state.mounts.path_kind(path), state.mounts.path_kind(directory)) {
                (PathKind::Missing, PathKind::Missing) => Err(Errno::NOENT),
                (PathKind::Missing, _) => {
                    state.loops.insert(number, (path.to_owned(), bytes));
                    state.count(format!("/dev/loop{number}"));
                    Ok(())
                }
                _ => Err(Errno::EXIST),
            }
        })
    }

    fn detach_file(&mut self, number: u32) -> Result<(), HostError> {
        self.act(zram(number), "detach its file", |state, _| {
            // The real kernel would delay this until the last close, without an error.
            if state.is_taken(&format!("/dev/loop{number}")) {
                return Err(Errno::BUSY);
            }
            state.loops.remove(&number);
            Ok(())
        })
    }

    fn open_crypt(&mut self, number: u32, store: &str) -> Result<(), HostError> {
        self.act(zram(number), format!("encrypt {store}"), |state, _| {
            if !state.dm_crypt {
                return Err(Errno::INVAL);
            }
            if state.mappings.contains_key(&number) {
                return Err(Errno::BUSY);
            }
            state.take_block(store)?;
            state.mappings.insert(number, store.to_owned());
            state.count(format!("/dev/dm-{number}"));
            Ok(())
        })
    }

    fn close_crypt(&mut self, number: u32) -> Result<(), HostError> {
        self.act(zram(number), "remove its mapping", |state, _| {
            if state.is_taken(&format!("/dev/dm-{number}")) {
                return Err(Errno::BUSY);
            }
            state.mappings.remove(&number);
            Ok(())
        })
    }

    fn lock_device(&mut self, number: u32) -> Result<(), HostError> {
        self.act(zram(number), "lock the device node", |state, pid| {
            state.device(number)?;
            if state.locks.get(&number).is_some_and(|owner| *owner != pid) {
                return Err(Errno::BUSY);
            }
            state.locks.insert(number, pid);
            Ok(())
        })
    }

    fn unlock_device(&mut self, number: u32) -> Result<(), HostError> {
        self.act(zram(number), "unlock the device node", |state, pid| {
            state.locks.retain(|locked, owner| *locked != number || *owner != pid);
            Ok(())
        })
    }

    fn announce_device(&mut self, number: u32) -> Result<(), HostError> {
        self.act(zram(number), "write `change` to uevent", |state, _| {
            // What udev drops while the device is locked is not seen again.
            let locked = state.locks.contains_key(&number);
            state.device_mut(number)?.seen |= !locked;
            Ok(())
        })
    }

    fn write_pages(&mut self, number: u32, offset: u64, data: &[u8]) -> Result<(), HostError> {
        self.act(zram(number), format!("write at {offset}"), |state, _| {
            state.device_mut(number)?.write(offset, data)
        })
    }

    fn read_pages(&mut self, number: u32, offset: u64, length: usize) -> Result<Vec<u8>, HostError> {
        self.act(zram(number), format!("read at {offset}"), |state, _| {
            state.device_mut(number)?.read(offset, length)
        })
    }

    fn discard(&mut self, number: u32, offset: u64, length: u64) -> Result<(), HostError> {
        self.act(zram(number), format!("discard at {offset}"), |state, _| {
            state.device_mut(number)?.discard(offset, length)
        })
    }

    fn mkfs(&mut self, number: u32, spec: &MkfsSpec) -> Result<(), HostError> {
        self.act(zram(number), format!("format it as {}", spec.fs_type), |state, _| {
            if !state.mkfs.contains(&spec.fs_type) {
                return Err(Errno::NOENT);
            }
            if state.is_swap(number) || state.mounts.has_device(number) {
                return Err(Errno::BUSY);
            }
            let tree = state.mounts.new_tree();
            let device = state.device_mut(number)?;
            // Magic number, UUID and label of ext4, at the offsets where `signature` looks for them.
            let mut page = vec![0; usize::try_from(PAGE).unwrap_or(0)];
            page[0x438..0x43A].copy_from_slice(&[0x53, 0xEF]);
            let after = |flag: &str| {
                let at = spec.arguments.iter().position(|word| word == flag);
                at.and_then(|at| spec.arguments.get(at + 1)).map(String::as_str).unwrap_or_default()
            };
            let digits = after("-U").replace('-', "");
            for (byte, pair) in page[0x468..0x478].iter_mut().zip(digits.as_bytes().chunks(2)) {
                *byte =
                    str::from_utf8(pair).ok().and_then(|pair| u8::from_str_radix(pair, 16).ok()).unwrap_or(0);
            }
            for (to, from) in page[0x478..0x488].iter_mut().zip(after("-L").bytes()) {
                *to = from;
            }
            device.write(0, &page)?;
            device.filesystem = Some(Filesystem { fs_type: spec.fs_type.clone(), tree });
            Ok(())
        })
    }

    fn set_root(&mut self, number: u32, fs_type: &str, root: &RootSpec) -> Result<(), HostError> {
        let _ = root;
        self.act(zram(number), "set owner and mode of the root directory", |state, _| {
            match &state.device(number)?.filesystem {
                Some(filesystem) if filesystem.fs_type == fs_type => Ok(()),
                _ => Err(Errno::INVAL),
            }
        })
    }

    fn swap_on(&mut self, number: u32, spec: SwapSpec) -> Result<(), HostError> {
        self.act(zram(number), "swapon", |state, _| state.swap_on(number, spec))
    }

    fn swap_off(&mut self, number: u32) -> Result<(), HostError> {
        self.act(zram(number), "swapoff", |state, _| state.swap_off(number))
    }

    fn remove_swap_file(&mut self, file: &SwapFile) -> Result<(), HostError> {
        // Only measurements on the real machine make them, so here it is always gone.
        self.act(&file.path, "remove it", |_, _| Ok(()))
    }

    fn mount(&mut self, spec: &MountSpec) -> Result<(), HostError> {
        self.act(&spec.mount_point, format!("mount {} with `{}`", spec.source, spec.options), |state, _| {
            let number = spec.source.strip_prefix("/dev/").and_then(zram_number);
            let tree = match number {
                None if spec.fs_type == "tmpfs" => None,
                None => return Err(Errno::NOENT),
                Some(number) => {
                    let device = state.device(number)?;
                    if state.is_swap(number) {
                        return Err(Errno::BUSY);
                    }
                    match &device.filesystem {
                        Some(filesystem) if filesystem.fs_type == spec.fs_type => Some(filesystem.tree),
                        _ => return Err(Errno::INVAL),
                    }
                }
            };
            let mount = Mount {
                mount_point: spec.mount_point.clone(),
                fs_type: spec.fs_type.clone(),
                source: spec.source.clone(),
                options: spec.options.clone(),
                number,
            };
            state.mounts.mount(mount, tree)
        })
    }

    fn remount(&mut self, spec: &MountSpec) -> Result<(), HostError> {
        self.act(&spec.mount_point, format!("remount with `{}`", spec.options), |state, _| {
            state.mounts.remount(&spec.mount_point, &spec.options)
        })
    }

    fn bind(&mut self, from: &str, to: &str) -> Result<(), HostError> {
        self.act(to, format!("bind {from}"), |state, _| state.mounts.bind(from, to))
    }

    fn run_worker(&mut self, order: &Order) -> Result<(), Error> {
        let words = order.words().map_err(Error::failed)?;
        let done = self.act("zramd-worker", words.join(" "), |state, _| {
            state.worked.push(words.join(" "));
            Ok(())
        });
        Ok(done?)
    }

    fn unmount(&mut self, path: &[u8], mount: &MountId) -> Result<(), HostError> {
        let path = String::from_utf8_lossy(path).into_owned();
        self.act(&path, "unmount", |state, _| {
            let found = state.mounts.id_at(&path).ok_or(Errno::INVAL)?;
            if !found.is(mount) {
                return Err(Errno::STALE);
            }
            if !state.holders(&What::Mount(path.clone()), 0).is_empty() {
                return Err(Errno::BUSY);
            }
            state.mounts.unmount(&path)
        })
    }

    fn write_tunable(&mut self, tunable: Tunable, value: &str) -> Result<(), HostError> {
        self.act(tunable.name(), format!("write `{value}`"), |state, _| state.set_tunable(tunable, value))
    }

    fn make_directory(&mut self, path: &str) -> Result<(), HostError> {
        self.act(path, "create directory", |state, _| state.mounts.make_directory(path))
    }

    fn remove_directory(&mut self, path: &str) -> Result<(), HostError> {
        self.act(path, "remove directory", |state, _| state.mounts.remove_directory(path))
    }
}

impl SimHost {
    /// Releases the lock on a device, as closing the descriptor does; not an acting call.
    fn unlock(&mut self, number: u32) {
        let pid = self.pid;
        self.machine.change().locks.retain(|locked, owner| *locked != number || *owner != pid);
    }
}
