//! A simulated machine in memory that follows the kernel's rules.
//!
//! [`SimMachine`] is the machine, [`SimHost`] one process on it. Locks of a process are released when it ends; the
//! machine remains.

mod busy;
pub mod kernel;
mod kill;
mod mounts;
mod process;
pub mod slots;

use std::cell::{Cell, Ref, RefCell, RefMut};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Duration;

pub use busy::Busy;
pub use host::script::{Fault, Script};
use host::{BlockProbe, Errno, Holder, MachineFile, Priority, StateFile, SwapSpec};
use kernel::{Device, KernelConfig};
pub use kill::{Killed, survive};
pub use mounts::Mount;
use mounts::Mounts;
pub use process::SimHost;
use slots::{PAGE, Slots};

use logic::device::swap_header::MOST_SWAPS;
use logic::proc::SwapLine;
use logic::vm::Tunable;
use serde_json::Value;

/// Availability of the driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Module {
    /// Loaded or built in.
    Loaded,
    /// Its module can be loaded.
    Loadable,
    /// Not available.
    Absent,
}

/// One line of `/proc/swaps`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Swap {
    /// N of `zramN`.
    pub number: u32,
    pub priority: i32,
    /// Whether freed pages are discarded.
    pub discard: bool,
    /// In use, in KiB.
    pub used_kib: u64,
}

/// A foreign process that has something open.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Held {
    what: What,
    holder: Holder,
    until: Option<Duration>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum What {
    Device(u32),
    Mount(String),
}

/// State of the machine. The fields are public, to be set before a process starts.
#[derive(Debug, Clone)]
pub struct State {
    /// Build options and version of the kernel.
    pub kernel: KernelConfig,
    /// `MemTotal`.
    pub ram_kib: u64,
    /// `MemAvailable`.
    pub available_kib: u64,
    /// CPUs online.
    pub cpus: u32,
    /// Whether processes are privileged.
    pub privileged: bool,
    /// The kind of container.
    pub container: Option<String>,
    /// Availability of the zram driver.
    pub module: Module,
    /// File system types whose `mkfs` is installed.
    pub mkfs: BTreeSet<String>,
    /// `/etc/passwd`.
    pub passwd: String,
    /// `/etc/group`.
    pub group: String,
    /// `/proc/cmdline`.
    pub cmdline: String,
    /// Text appended to other files of the machine.
    pub further: BTreeMap<MachineFile, Vec<u8>>,
    /// Kernel settings.
    pub tunables: BTreeMap<Tunable, String>,
    /// Whether zswap has not been enabled yet: until then, the kernel does not check the compressor.
    pub zswap_is_new: bool,
    /// `/sys/fs/cgroup/cgroup.controllers`.
    pub controllers: String,
    /// `/var/lib/zramd/benchmark.json`.
    pub verdict: String,
    /// Paths for [`host::Host::probe_block`] and `backing_dev`.
    pub blocks: BTreeMap<String, BlockProbe>,
    /// Whether the kernel has dm-crypt.
    pub dm_crypt: bool,
    /// Backing files on loop devices, by the zram device that they belong to: `/dev/loopN` for zramN.
    pub loops: BTreeMap<u32, (String, u64)>,
    /// Devices below encrypted mappings, by the zram device that they belong to: `/dev/dm-N` for zramN.
    pub mappings: BTreeMap<u32, String>,
    /// Sequence numbers of other block devices.
    pub block_seqs: BTreeMap<String, u64>,
    /// All zram devices.
    pub devices: BTreeMap<u32, Device>,
    /// Active swap.
    pub swaps: Vec<Swap>,
    /// Active swap on disks.
    pub disk_swaps: Vec<SwapLine>,
    /// Swaps that are drained for hibernation.
    pub drained: BTreeSet<u32>,
    /// Record files by name.
    pub records: BTreeMap<String, String>,
    /// The process that holds the lock on a scratch record.
    pub scratch: BTreeMap<String, u32>,
    /// After this number of further reads of attributes, the devices are gone.
    pub reads_left: Cell<Option<usize>>,
    /// Searches for processes that hold something open.
    pub searches: Cell<usize>,
    /// Directories that were listed.
    pub listings: Cell<usize>,
    /// Time since boot.
    pub clock: Duration,
    /// Time of that in suspend.
    pub suspended: Duration,
    /// Time since 1970; `None` unless the clock is synchronised.
    pub synchronised: Option<Duration>,
    /// ID of this boot.
    pub boot_id: String,
    /// Load of the machine.
    pub busy: Busy,
    /// State of maintenance.
    pub states: BTreeMap<StateFile, String>,
    /// Priority of maintenance.
    pub priority: Priority,
    /// Bytes of each block device.
    pub block_bytes: BTreeMap<String, u64>,
    /// Error of reading what a device contains.
    pub head_fails: Option<Errno>,
    /// Error of every write in `/run/zramd`.
    pub run_fails: Option<Errno>,
    /// Arguments of the calls of `zramd-worker`.
    pub worked: Vec<String>,
    /// Fault and transcript of the acting calls.
    pub script: Script,
    mounts: Mounts,
    held: Vec<Held>,
    locks: BTreeMap<u32, u32>,
    run_lock: Option<u32>,
    next_diskseq: u64,
    next_pid: u32,
}

/// The state that tests compare: everything that zramd may change, except for what differs from run to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// Devices; `diskseq` and the time of their creation are 0.
    pub devices: BTreeMap<u32, Device>,
    /// Active swap, by number.
    pub swaps: Vec<Swap>,
    /// Mount point, type, source, options, and the directories below, by mount point.
    pub mounts: Vec<(Mount, Vec<String>)>,
    /// Records, without the values that differ from run to run.
    pub records: BTreeMap<String, String>,
    /// Kernel settings.
    pub tunables: BTreeMap<Tunable, String>,
    /// Files on loop devices.
    pub loops: BTreeMap<u32, (String, u64)>,
    /// Encrypted mappings.
    pub mappings: BTreeMap<u32, String>,
}

/// A machine, shared by all processes on it.
#[derive(Debug, Clone)]
pub struct SimMachine {
    state: Rc<RefCell<State>>,
}

impl SimMachine {
    /// A machine with 4 GiB of RAM, and the driver loaded with one unused device.
    pub fn new(kernel: KernelConfig) -> SimMachine {
        let mut state = State {
            kernel,
            ram_kib: 4 << 20,
            available_kib: 3 << 20,
            cpus: 4,
            privileged: true,
            container: None,
            module: Module::Loaded,
            mkfs: BTreeSet::from(["ext4".to_owned()]),
            passwd: "root:x:0:0::/root:/bin/sh\n".to_owned(),
            group: "root:x:0:\n".to_owned(),
            cmdline: "quiet\n".to_owned(),
            further: BTreeMap::new(),
            tunables: default_tunables(),
            zswap_is_new: false,
            controllers: "cpu io memory pids\n".to_owned(),
            verdict: String::new(),
            blocks: BTreeMap::new(),
            dm_crypt: true,
            loops: BTreeMap::new(),
            mappings: BTreeMap::new(),
            block_seqs: BTreeMap::new(),
            devices: BTreeMap::new(),
            swaps: Vec::new(),
            disk_swaps: Vec::new(),
            drained: BTreeSet::new(),
            records: BTreeMap::new(),
            scratch: BTreeMap::new(),
            reads_left: Cell::new(None),
            searches: Cell::new(0),
            listings: Cell::new(0),
            clock: Duration::from_secs(10),
            suspended: Duration::ZERO,
            synchronised: None,
            boot_id: "boot-1".to_owned(),
            busy: Busy::default(),
            states: BTreeMap::new(),
            priority: Priority::Normal,
            block_bytes: BTreeMap::new(),
            head_fails: None,
            run_fails: None,
            worked: Vec::new(),
            script: Script::default(),
            mounts: Mounts::new(),
            held: Vec::new(),
            locks: BTreeMap::new(),
            run_lock: None,
            next_diskseq: 1,
            next_pid: 100,
        };
        state.add(0);
        SimMachine { state: Rc::new(RefCell::new(state)) }
    }

    /// Starts a process.
    pub fn process(&self) -> SimHost {
        let mut state = self.change();
        state.next_pid += 1;
        SimHost::new(self.clone(), state.next_pid)
    }

    /// Reads the state of the machine.
    pub fn look(&self) -> Ref<'_, State> {
        self.state.borrow()
    }

    /// Changes the machine from outside: settings, faults, actions of other programs.
    pub fn change(&self) -> RefMut<'_, State> {
        self.state.borrow_mut()
    }

    /// Lets a foreign process hold device `number` open for this time, or for ever.
    pub fn hold(&self, number: u32, pid: u32, name: &str, time: Option<Duration>) {
        self.change().hold(What::Device(number), pid, name, time);
    }

    /// Lets a foreign process use the file system mounted at `path`.
    pub fn hold_mount(&self, path: &str, pid: u32, name: &str, time: Option<Duration>) {
        self.change().hold(What::Mount(path.to_owned()), pid, name, time);
    }

    /// Restarts the numbering of calls at 1, with this one fault.
    pub fn script(&self, number: usize, fault: Fault) {
        self.change().script = Script::new(Some((number, fault)));
    }

    /// Call `number` fails with `errno`.
    pub fn fail_at(&self, number: usize, errno: Errno) {
        self.script(number, Fault::Fail(errno));
    }

    /// The process dies instead of making call `number`.
    pub fn kill_before(&self, number: usize) {
        self.script(number, Fault::KillBefore);
    }

    /// The process dies after call `number`.
    pub fn kill_after(&self, number: usize) {
        self.script(number, Fault::KillAfter);
    }

    /// Returns the transcript, and clears it and the fault.
    pub fn take_transcript(&self) -> Vec<String> {
        std::mem::take(&mut self.change().script).transcript
    }

    /// The state that tests compare.
    pub fn snapshot(&self) -> Snapshot {
        let state = self.look();
        let mut devices = state.devices.clone();
        for device in devices.values_mut() {
            device.diskseq = 0;
            device.created = Duration::ZERO;
            device.slots = Slots::default();
            if let Some(filesystem) = &mut device.filesystem {
                filesystem.tree = 0;
            }
        }
        let mut swaps = state.swaps.clone();
        swaps.sort_by_key(|swap| swap.number);
        Snapshot {
            devices,
            swaps,
            mounts: state.mounts.snapshot(),
            records: state.records.iter().map(|(name, text)| (name.clone(), blank(text))).collect(),
            tunables: state.tunables.clone(),
            loops: state.loops.clone(),
            mappings: state.mappings.clone(),
        }
    }
}

/// A record without the values that differ from run to run.
fn blank(text: &str) -> String {
    fn remove(value: &mut Value) {
        match value {
            Value::Object(object) => {
                object.retain(|key, _| !["diskseq", "mounted", "after", "at"].contains(&key.as_str()));
                object.values_mut().for_each(remove);
            }
            Value::Array(values) => values.iter_mut().for_each(remove),
            _ => {}
        }
    }
    let Ok(mut value) = serde_json::from_str(text) else { return text.to_owned() };
    remove(&mut value);
    format!("{value:#}")
}

/// Compressors of zswap; the first one is the default.
const COMPRESSORS: [&str; 4] = ["lzo", "lzo-rle", "lz4", "zstd"];

/// Defaults of Debian's kernel (Documentation/admin-guide/sysctl/vm.rst).
fn default_tunables() -> BTreeMap<Tunable, String> {
    let value = |tunable| match tunable {
        Tunable::Swappiness => "60",
        Tunable::PageCluster => "3",
        Tunable::WatermarkBoostFactor => "15000",
        Tunable::WatermarkScaleFactor => "10",
        Tunable::Zswap | Tunable::ZswapShrinker => "N",
        Tunable::ZswapCompressor => "lzo",
        Tunable::ZswapMaxPool => "20",
        Tunable::ZswapAcceptThreshold => "90",
    };
    Tunable::ALL.into_iter().map(|tunable| (tunable, value(tunable).to_owned())).collect()
}

impl State {
    /// Size of a block device; an encrypted mapping has the size of the device below it.
    pub(crate) fn bytes_of(&self, path: &str) -> Option<u64> {
        let mapped = path.starts_with("/dev/dm-").then(|| self.block_bytes.values().next());
        self.block_bytes.get(path).or(mapped.flatten()).copied()
    }

    /// Whether `path` is a block device that can be opened exclusively.
    fn take_block(&self, path: &str) -> Result<(), Errno> {
        let of = |prefix: &str| path.strip_prefix(prefix).and_then(|number| number.parse::<u32>().ok());
        let is_loop = of("/dev/loop").is_some_and(|number| self.loops.contains_key(&number));
        let is_mapping = of("/dev/dm-").is_some_and(|number| self.mappings.contains_key(&number));
        let mut held = self.is_taken(path);
        if !is_loop && !is_mapping {
            let probe = self.blocks.get(path).ok_or(Errno::NOENT)?;
            probe.device.ok_or(Errno::NOTBLK)?;
            held |= !probe.holders.is_empty();
        }
        if held { Err(Errno::BUSY) } else { Ok(()) }
    }

    fn is_taken(&self, path: &str) -> bool {
        self.mappings.values().any(|store| store == path)
            || self.devices.values().any(|device| device.backing.as_deref() == Some(path))
    }

    /// Changes a setting: the kernel accepts whole numbers within bounds, and shows a switch as `Y` or `N`.
    fn set_tunable(&mut self, tunable: Tunable, value: &str) -> Result<(), Errno> {
        let most = match tunable {
            Tunable::Swappiness => 200,
            Tunable::PageCluster => 31,
            Tunable::WatermarkScaleFactor => 3000,
            _ => i32::MAX,
        };
        if tunable == Tunable::ZswapCompressor && !self.zswap_is_new && !COMPRESSORS.contains(&value) {
            return Err(Errno::NOENT);
        }
        let known = self.tunables.get_mut(&tunable).ok_or(Errno::NOENT)?;
        *known = match (tunable, value) {
            // kstrtobool() looks at the first character.
            (Tunable::ZswapCompressor, _) => value.to_owned(),
            (Tunable::Zswap | Tunable::ZswapShrinker, _) => match value.chars().next() {
                Some('Y' | 'y' | 'T' | 't' | '1') => "Y".to_owned(),
                Some('N' | 'n' | 'F' | 'f' | '0') => "N".to_owned(),
                _ => return Err(Errno::INVAL),
            },
            _ => {
                let number: i32 = value.parse().map_err(|_| Errno::INVAL)?;
                let least = i32::from(tunable == Tunable::WatermarkScaleFactor);
                if !(least..=most).contains(&number) {
                    return Err(Errno::INVAL);
                }
                number.to_string()
            }
        };
        if tunable == Tunable::Zswap && value == "Y" && std::mem::take(&mut self.zswap_is_new) {
            let compressor = self.tunables.entry(Tunable::ZswapCompressor).or_default();
            if !COMPRESSORS.contains(&compressor.as_str()) {
                *compressor = COMPRESSORS[0].to_owned();
            }
        }
        Ok(())
    }

    /// Creates a device, as any process may.
    pub fn add(&mut self, number: u32) {
        let device = Device { created: self.clock, ..Device::new(number, self.next_diskseq, &self.kernel) };
        self.next_diskseq += 1;
        self.devices.insert(number, device);
    }

    /// Gives a block device another sequence number, as the kernel does with a new one.
    pub fn count(&mut self, node: String) {
        self.block_seqs.insert(node, self.next_diskseq);
        self.next_diskseq += 1;
    }

    /// Creates directories, as any process may.
    pub fn add_directories(&mut self, path: &str) {
        for path in logic::plan::diff::ancestors_and_self(path) {
            // An existing one is no error.
            self.mounts.make_directory(&path).ok();
        }
    }

    /// Renames a directory above a mount, as its owner may.
    pub fn move_mount(&mut self, from: &str, to: &str) {
        self.add_directories(to);
        self.mounts.rename(from, to);
    }

    /// Ends all holders.
    pub fn release_all(&mut self) {
        self.held.clear();
    }

    fn lowest_free(&self) -> u32 {
        (0..u32::MAX).find(|number| !self.devices.contains_key(number)).unwrap_or(u32::MAX)
    }

    fn device(&self, number: u32) -> Result<&Device, Errno> {
        self.devices.get(&number).ok_or(Errno::NOENT)
    }

    fn device_mut(&mut self, number: u32) -> Result<&mut Device, Errno> {
        let backing = self.device(number)?.backing.as_ref();
        let capacity = backing.map(|path| self.bytes_of(path).unwrap_or(0) / PAGE);
        let device = self.devices.get_mut(&number).ok_or(Errno::NOENT)?;
        device.slots.clock = self.clock;
        device.slots.capacity = capacity.unwrap_or(device.slots.capacity);
        Ok(device)
    }

    fn hold(&mut self, what: What, pid: u32, name: &str, time: Option<Duration>) {
        let until = time.map(|time| self.clock + time);
        self.held.push(Held { what, holder: Holder { pid, name: name.to_owned() }, until });
    }

    /// Processes other than `pid` that have it open now.
    fn holders(&self, what: &What, pid: u32) -> Vec<Holder> {
        let foreign = self
            .held
            .iter()
            .filter(|held| held.what == *what && held.until.is_none_or(|until| self.clock < until))
            .map(|held| held.holder.clone());
        let locking = match what {
            What::Device(number) => self.locks.get(number).copied().filter(|owner| *owner != pid),
            What::Mount(_) => None,
        };
        foreign.chain(locking.map(|pid| Holder { pid, name: "zramd-setup".to_owned() })).collect()
    }

    fn is_swap(&self, number: u32) -> bool {
        self.swaps.iter().any(|swap| swap.number == number)
    }

    /// Whether any process has the device open.
    fn is_open(&self, number: u32) -> bool {
        self.is_swap(number)
            || self.mounts.has_device(number)
            || self.locks.contains_key(&number)
            || !self.holders(&What::Device(number), 0).is_empty()
    }

    fn meminfo(&self) -> String {
        let swap: u64 = self.swaps.iter().filter_map(|swap| self.swap_kib(swap)).sum();
        let used: u64 = self.swaps.iter().map(|swap| swap.used_kib).sum();
        format!(
            "MemTotal:       {} kB\nMemAvailable:   {} kB\nSwapTotal:      {swap} kB\nSwapFree:       {} kB\n",
            self.ram_kib,
            self.available_kib,
            swap.saturating_sub(used),
        )
    }

    /// The first page is the swap header.
    fn swap_kib(&self, swap: &Swap) -> Option<u64> {
        Some((self.devices.get(&swap.number)?.disk_size.saturating_sub(PAGE)) / 1024)
    }

    fn proc_swaps(&self) -> String {
        let line = |swap: &Swap| {
            let name = format!("/dev/zram{}", swap.number);
            let size = self.swap_kib(swap).unwrap_or(0);
            format!("{name:<40}partition\t{size}\t\t{}\t\t{}\n", swap.used_kib, swap.priority)
        };
        let on_disk = |swap: &SwapLine| {
            let (name, size) = (swap.path.lossy(), swap.size_kib);
            format!("{name:<40}file\t\t{size}\t\t{}\t\t{}\n", swap.used_kib, swap.priority)
        };
        let lines = self.swaps.iter().map(line).chain(self.disk_swaps.iter().map(on_disk));
        let lines: Vec<String> = lines.collect();
        format!("Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n{}", lines.concat())
    }

    fn swap_on(&mut self, number: u32, spec: SwapSpec) -> Result<(), Errno> {
        let device = self.device(number)?;
        if self.is_swap(number) || self.mounts.has_device(number) {
            return Err(Errno::BUSY);
        }
        if !device.has_swap_header() {
            return Err(Errno::INVAL);
        }
        if self.swaps.len() + self.disk_swaps.len() >= MOST_SWAPS {
            return Err(Errno::PERM);
        }
        // Without a priority of its own, each swap gets the next lower one, starting at -2.
        let lowest = self.swaps.iter().map(|swap| swap.priority).min().unwrap_or(0).min(-1);
        let priority = if spec.priority < 0 { lowest - 1 } else { spec.priority };
        self.swaps.push(Swap { number, priority, discard: spec.discard, used_kib: 0 });
        Ok(())
    }

    fn swap_off(&mut self, number: u32) -> Result<(), Errno> {
        self.device(number)?;
        let at = self.swaps.iter().position(|swap| swap.number == number).ok_or(Errno::INVAL)?;
        if self.swaps[at].used_kib > self.available_kib {
            return Err(Errno::NOMEM);
        }
        self.swaps.remove(at);
        Ok(())
    }
}
