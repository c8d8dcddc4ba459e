//! Memory is short: reports of the kernel in `/proc/pressure/memory`, and what can be done then without taking memory.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;
use rustix::mm::{MlockAllFlags, mlockall};
use rustix::process::{Resource, getrlimit};
use rustix::thread::{CapabilitySet, capabilities, set_capabilities};

use logic::device::attribute::Attribute;
use logic::device::stat::{BdStat, BlockStat, IoStat, MmStat};
use logic::human::human;
use logic::maintain::taken_in::Totals;
use logic::proc::parse_meminfo;
use logic::vm::Tunable;

pub const FILE: &str = "/proc/pressure/memory";

/// Asks the kernel for reports by this trigger. Before Linux 6.5, and for a fast trigger, the process needs `CAP_SYS_RESOURCE` at this
/// moment.
pub fn reports(trigger: &str) -> Result<OwnedFd, Errno> {
    let file = open(FILE, OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty())?;
    rustix::io::write(&file, format!("{trigger}\0").as_bytes())?;
    Ok(file)
}

/// Gives up `CAP_SYS_RESOURCE`; of the calling thread, so before there are others.
pub fn give_up_capability() -> io::Result<()> {
    let mut sets = capabilities(None)?;
    if sets.permitted.contains(CapabilitySet::SYS_RESOURCE) {
        for set in [&mut sets.effective, &mut sets.permitted, &mut sets.inheritable] {
            set.remove(CapabilitySet::SYS_RESOURCE);
        }
        set_capabilities(None, sets)?;
    }
    Ok(())
}

/// Bytes of addresses that a process may need after [`stay_in_memory`]: each thread takes 2 MiB.
const ROOM: u64 = 128 << 20;

/// Keeps the pages of this process in memory, once they were used: it would otherwise read them from a disk or from swap when memory
/// is short.
///
/// # Errors
///
/// Also where the limit would not stop this call, but a later thread.
pub fn stay_in_memory() -> io::Result<()> {
    let is_exempt = capabilities(None)?.effective.contains(CapabilitySet::IPC_LOCK);
    check_limit(getrlimit(Resource::Memlock).current.filter(|_| !is_exempt))?;
    Ok(mlockall(MlockAllFlags::CURRENT | MlockAllFlags::FUTURE | MlockAllFlags::ONFAULT)?)
}

fn check_limit(limit: Option<u64>) -> io::Result<()> {
    match limit {
        Some(limit) if limit < ROOM => {
            let (limit, room) = (human(limit), human(ROOM));
            Err(io::Error::other(format!("LimitMEMLOCK is {limit}, and should be {room} at least")))
        }
        _ => Ok(()),
    }
}

/// Waits for a report, without a limit if there is no time; whether there was one.
///
/// # Errors
///
/// Also if the kernel does not report any more.
pub fn wait(reports: &OwnedFd, time: Option<Duration>) -> io::Result<bool> {
    let time = time.and_then(|time| Timespec::try_from(time).ok());
    let mut files = [PollFd::new(reports, PollFlags::PRI)];
    match poll(&mut files, time.as_ref()) {
        Ok(_) if files[0].revents().contains(PollFlags::ERR) => Err(io::ErrorKind::BrokenPipe.into()),
        Ok(found) => Ok(found > 0),
        Err(Errno::INTR) => Ok(false),
        Err(errno) => Err(errno.into()),
    }
}

/// Counters of swap devices and `vm.swappiness`, as open files that were read before. To open a file takes memory, and a process that
/// takes memory while it is short swaps out pages itself, for seconds if they do not compress.
#[derive(Debug)]
pub struct Swapping {
    devices: Vec<Counters>,
    /// `/proc/swaps`, and its number of lines.
    swaps: (File, usize),
    /// `/proc/meminfo`.
    meminfo: File,
    swappiness: File,
    page_size: u64,
}

#[derive(Debug)]
struct Counters {
    block: File,
    io: File,
    memory: File,
    /// Where the kernel can write pages to a disk.
    backing: Option<File>,
}

impl Swapping {
    /// Opens and reads the files for these devices.
    pub fn open(numbers: &[u32]) -> io::Result<Swapping> {
        let device = |number: &u32| {
            let open = |attribute: Attribute| {
                File::open(format!("/sys/block/zram{number}/{}", attribute.file_name()))
            };
            Ok(Counters {
                block: open(Attribute::Stat)?,
                io: open(Attribute::IoStat)?,
                memory: open(Attribute::MmStat)?,
                backing: open(Attribute::BdStat).ok(),
            })
        };
        let swaps = File::open("/proc/swaps")?;
        let lines = lines(&swaps)?;
        let swapping = Swapping {
            devices: numbers.iter().map(device).collect::<io::Result<_>>()?,
            swaps: (swaps, lines),
            meminfo: File::open("/proc/meminfo")?,
            swappiness: OpenOptions::new().read(true).write(true).open(Tunable::Swappiness.path())?,
            page_size: rustix::param::page_size() as u64,
        };
        swapping.totals()?;
        swapping.available()?;
        swapping.is_set_to("")?;
        Ok(swapping)
    }

    /// What these devices have taken in since they were set up.
    pub fn totals(&self) -> io::Result<Totals> {
        self.devices.iter().try_fold(Totals::default(), |totals, device| {
            let block = with_text(&device.block, BlockStat::parse)?.unwrap_or_default();
            let io = with_text(&device.io, IoStat::parse)?.unwrap_or_default();
            let memory = with_text(&device.memory, MmStat::parse)?.unwrap_or_default();
            let backing = match &device.backing {
                Some(file) => with_text(file, BdStat::parse)?.unwrap_or_default(),
                None => BdStat::default(),
            };
            Ok(totals.with(&block, &io, &memory, &backing, self.page_size))
        })
    }

    /// Bytes of memory that are available.
    pub fn available(&self) -> io::Result<u64> {
        with_text(&self.meminfo, |text| parse_meminfo(text).available_kib.saturating_mul(1024))
    }

    /// Whether swap was switched on or off since.
    pub fn is_outdated(&self) -> io::Result<bool> {
        Ok(lines(&self.swaps.0)? != self.swaps.1)
    }

    /// Sets `vm.swappiness`, if its value is `from`; whether it was.
    pub fn set(&self, from: &str, to: &str) -> io::Result<bool> {
        let is_from = self.is_set_to(from)?;
        if is_from {
            self.swappiness.write_all_at(to.as_bytes(), 0)?;
        }
        Ok(is_from)
    }

    fn is_set_to(&self, value: &str) -> io::Result<bool> {
        with_text(&self.swappiness, |text| text.trim_end() == value)
    }
}

/// The number of lines; of `/proc/swaps`, of the first ones, which are as many as fit.
fn lines(file: &File) -> io::Result<usize> {
    with_text(file, |text| text.lines().count())
}

/// Reads the beginning of a file: at most 17 numbers, or the first lines of `/proc/meminfo`.
fn with_text<T>(file: &File, parse: impl FnOnce(&str) -> T) -> io::Result<T> {
    let mut bytes = [0; 512];
    let length = file.read_at(&mut bytes, 0)?;
    Ok(parse(str::from_utf8(&bytes[..length]).unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As in a container: `mlockall` succeeds with less, and then no thread can be started.
    #[test]
    fn memory_is_not_locked_where_threads_would_not_fit() {
        let error = check_limit(Some(8 << 20)).unwrap_err().to_string();
        assert_eq!(error, "LimitMEMLOCK is 8.0 MiB, and should be 128.0 MiB at least");
        assert!(check_limit(Some(256 << 20)).is_ok() && check_limit(None).is_ok());
    }
}
