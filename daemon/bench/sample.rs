//! Sample pages to compress. They are kept in memory only.

use std::collections::BTreeSet;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::calibrated;
use super::page_buffer::{PageBuffer, Sample};
use super::swap_contents::{FilledSwap, calibrating_swap, fullest_swap};
use crate::{maps as mappings, synthetic};
use engine::Error;
use engine::gather;
use fastrand::Rng;
use host::Host;
use host::linux::clock;
use host::linux::direct::Direct;
use host::linux::interrupt;
use host::linux::pages::Pages;
use host::linux::process_memory::{ProcessMemory, maps, others};
use logic::config::settings::PageSource;
use logic::human::human;

/// Source of the pages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// The source set by `[benchmark] sample`.
    Configured(PageSource),
    /// The memory of these processes.
    Processes(Vec<u32>),
    /// Generated pages only, in the built-in mixture.
    Generator,
    /// Some pages of this file.
    File(PathBuf),
    /// All of this file.
    Whole(PathBuf),
}

impl Source {
    /// The file, if it is one.
    pub fn file(&self) -> Option<&Path> {
        match self {
            Source::File(path) | Source::Whole(path) => Some(path),
            _ => None,
        }
    }
}

impl Default for Source {
    fn default() -> Source {
        Source::Configured(PageSource::default())
    }
}

/// Minimum number of pages; a source with fewer is skipped.
const ENOUGH: usize = 2048;
/// Pages of files larger than this multiple of the wanted size are drawn at random; smaller files are shuffled.
const SPARSE: u64 = 16;
/// Neighbouring pages of a process or of swap that are read together.
const RUN: usize = 16;
/// Processor time for collecting pages: load makes a sample take longer, and not smaller.
const PATIENCE: Duration = Duration::from_millis(350);
/// Time for reading a file, which is named explicitly and may be on a slow disk.
const PATIENCE_WITH_FILE: Duration = Duration::from_secs(3);

/// Collects at most `wanted` pages. Private pages are read only if the source says so. A scratch device does not use
/// one of the `configured` numbers.
pub fn collect<H: Host>(
    host: &mut H,
    source: &Source,
    configured: &BTreeSet<u32>,
    wanted: usize,
) -> Result<Sample, Error> {
    let seed = host.random().first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
    let mut random = Rng::with_seed(seed);
    let private = match source {
        Source::Generator => return generate(wanted),
        Source::File(path) => return file(path, wanted, &mut random),
        Source::Whole(path) => return whole(path, wanted),
        Source::Processes(processes) => {
            let found = processes_pages(processes, wanted, &mut random)?;
            return found.ok_or_else(|| Error::failed("the memory of these processes cannot be read"));
        }
        Source::Configured(PageSource::Public) => None,
        Source::Configured(PageSource::Swap) => swap(host, wanted, &mut random)?,
        Source::Configured(PageSource::Processes) => {
            processes_pages(&others(Path::new("/")), wanted, &mut random)?
                .filter(|sample| sample.pages.count() >= ENOUGH.min(wanted))
        }
    };
    match private {
        Some(sample) => Ok(sample),
        None => public(host, configured, wanted),
    }
}

/// Generated pages, mixed with pages of files by the statistics of the swap in use, if there are any.
fn public<H: Host>(host: &mut H, configured: &BTreeSet<u32>, wanted: usize) -> Result<Sample, Error> {
    if let Some((swap, target)) = calibrating_swap(host)?
        && let Some(sample) = calibrated::collect(host, configured, &swap, &target, wanted)?
    {
        return Ok(sample);
    }
    generate(wanted)
}

fn generate(wanted: usize) -> Result<Sample, Error> {
    let mut page_buffer = PageBuffer::new(wanted)?;
    // A fixed seed: results of two runs differ only in the machine.
    let mut random = Rng::with_seed(1);
    while !page_buffer.is_full() {
        synthetic::fill(page_buffer.free(), &mut random);
        page_buffer.keep();
    }
    Ok(page_buffer.done("generator", "generated pages, like those of a desktop's programs".to_owned()))
}

/// Opens a regular file or block device; returns its size in bytes. Anything else, and a file of less than a page, is
/// an error.
pub fn open(path: &Path) -> Result<(OwnedFd, u64), Error> {
    let failed = |error: std::io::Error| Error::failed(format!("{}: {error}", path.display()));
    // NONBLOCK: do not wait for the writer of a pipe before it is refused.
    let flags = rustix::fs::OFlags::CLOEXEC | rustix::fs::OFlags::NONBLOCK;
    let file =
        rustix::fs::open(path, flags, rustix::fs::Mode::empty()).map_err(|errno| failed(errno.into()))?;
    let kind = rustix::fs::fstat(&file).map_err(|errno| failed(errno.into()))?.st_mode;
    let kind = rustix::fs::FileType::from_raw_mode(kind);
    if kind != rustix::fs::FileType::RegularFile && kind != rustix::fs::FileType::BlockDevice {
        let name = path.display();
        return Err(Error::failed(format!("{name}: it is neither a regular file nor a block device")));
    }
    let size = rustix::fs::seek(&file, rustix::fs::SeekFrom::End(0)).map_err(|errno| failed(errno.into()))?;
    if size < rustix::param::page_size() as u64 {
        return Err(Error::failed(format!("{}: it is too small: {}", path.display(), human(size))));
    }
    Ok((file, size))
}

fn file(path: &Path, wanted: usize, random: &mut Rng) -> Result<Sample, Error> {
    let failed = |error: std::io::Error| Error::failed(format!("{}: {error}", path.display()));
    let (file, size) = open(path)?;
    let mut page_buffer = PageBuffer::new(wanted)?;
    let page = page_buffer.pages.page_size() as u64;
    let count = size / page;
    if count < wanted as u64 * SPARSE {
        let mut numbers: Vec<u64> = (0..count).collect();
        random.shuffle(&mut numbers);
        read_pages(&file, &mut page_buffer, PATIENCE_WITH_FILE, numbers.into_iter()).map_err(failed)?;
    } else {
        // Draw with rejection: duplicates are rare in a file of this size.
        let mut seen = BTreeSet::new();
        let numbers = std::iter::repeat_with(|| random.u64(..count)).filter(|number| seen.insert(*number));
        read_pages(&file, &mut page_buffer, PATIENCE_WITH_FILE, numbers).map_err(failed)?;
    }
    described(page_buffer, path, &format!("pages of {} ({})", path.display(), human(size)))
}

/// All pages of a file, however long it takes to read. A last part of a page is left out.
fn whole(path: &Path, pages: usize) -> Result<Sample, Error> {
    let (file, _) = open(path)?;
    let mut page_buffer = PageBuffer::new(pages)?;
    read_pages(&file, &mut page_buffer, Duration::MAX, 0..pages as u64)
        .map_err(|error| Error::failed(format!("{}: {error}", path.display())))?;
    described(page_buffer, path, &format!("the whole of {}", path.display()))
}

fn described(page_buffer: PageBuffer, path: &Path, description: &str) -> Result<Sample, Error> {
    if page_buffer.kept == 0 {
        let (name, pages) = (path.display(), page_buffer.same_filled);
        return Err(Error::failed(format!(
            "{name}: all {pages} pages of it that were read hold one repeated word, which zram does not compress"
        )));
    }
    Ok(page_buffer.done("file", description.to_owned()))
}

/// Fills the page_buffer with pages of a file, until there are no more, time is up, or the run is cancelled.
fn read_pages(
    file: &OwnedFd,
    page_buffer: &mut PageBuffer,
    patience: Duration,
    numbers: impl Iterator<Item = u64>,
) -> std::io::Result<()> {
    let page = page_buffer.pages.page_size() as u64;
    let begun = Instant::now();
    for number in numbers {
        if page_buffer.is_full() || begun.elapsed() > patience || interrupt::is_asked() {
            break;
        }
        let read = rustix::io::pread(file, page_buffer.free(), number * page)?;
        if read as u64 == page {
            page_buffer.keep();
        }
    }
    Ok(())
}

/// The source of pages at present, as named in a report.
pub fn source_now<H: Host>(host: &H, configured: PageSource) -> &'static str {
    match configured {
        PageSource::Swap => {
            let swapped = fullest_swap(host).ok().flatten();
            if swapped.is_some_and(|swap| swap.compressed() >= 2 * ENOUGH as u64) {
                return "swap";
            }
        }
        PageSource::Processes => {
            let memory = gather::memory(host);
            let anonymous = memory.map_or(0, |memory| memory.anonymous_kib * 1024 / host.page_size());
            if anonymous >= 8 * ENOUGH as u64 {
                return "processes";
            }
        }
        PageSource::Public => {}
    }
    if calibrating_swap(host).is_ok_and(|found| found.is_some()) { "calibrated" } else { "generator" }
}

/// Pages in swap; `None` if there are too few. At most half of them are read, because reading a page marks it as used.
fn swap<H: Host>(host: &H, wanted: usize, random: &mut Rng) -> Result<Option<Sample>, Error> {
    let page = host.page_size();
    let Some(filled) = fullest_swap(host)? else { return Ok(None) };
    let compressed = filled.compressed();
    let FilledSwap { number, used, slots, .. } = filled;
    if compressed < 2 * ENOUGH.min(wanted) as u64 {
        return Ok(None);
    }
    let device = Direct::open(Path::new(&format!("/dev/zram{number}")), false)?;
    let mut page_buffer = PageBuffer::new(wanted.min(usize::try_from(compressed / 2).unwrap_or(wanted)))?;
    let mut run = Pages::new(RUN)?;
    let begun = clock::thread_processor_time();
    // The kernel fills swap from the front: every second try is made there, where the pages are if little swap is in
    // use.
    let front = (used + used / 4).min(slots);
    let (mut tries, mut seen) = (0_u64, BTreeSet::new());
    while !page_buffer.is_full()
        && (!tries.is_multiple_of(8) || clock::thread_processor_time_since(begun) < PATIENCE)
    {
        let among = if tries.is_multiple_of(2) { slots } else { front };
        let first = random.u64(..(among / RUN as u64).max(1));
        tries += 1;
        if !seen.insert(first) || device.read(first * RUN as u64 * page, run.bytes_mut()).is_err() {
            continue;
        }
        // The first page is the swap header. Unused slots read as zeros, and are dropped as same-filled.
        for index in usize::from(first == 0)..RUN {
            if !page_buffer.is_full() {
                page_buffer.free().copy_from_slice(run.page(index));
                page_buffer.keep();
            }
        }
    }
    if page_buffer.kept < ENOUGH.min(wanted) {
        return Ok(None);
    }
    let mut sample = page_buffer
        .done("swap", format!("pages swapped out to zram{number} ({} in use)", human(used * page)));
    // The samples include unused slots; take the exact share from the kernel.
    sample.data.same_filled_share = filled.same_filled_share();
    Ok(Some(sample))
}

/// Pages of processes, each with the same probability; `None` if there are none.
fn processes_pages(processes: &[u32], wanted: usize, random: &mut Rng) -> Result<Option<Sample>, Error> {
    let root = Path::new("/");
    let mut ranges: Vec<(u32, Range<u64>)> = Vec::new();
    for process in processes {
        let text = maps(root, *process).unwrap_or_default();
        ranges.extend(mappings::anonymous(&text).into_iter().map(|range| (*process, range)));
    }
    // Cumulated lengths, to map a random byte to its range.
    let mut total = 0_u64;
    let ends: Vec<u64> = ranges
        .iter()
        .map(|(_, range)| {
            total += range.end - range.start;
            total
        })
        .collect();
    if total == 0 {
        return Ok(None);
    }
    let mut page_buffer = PageBuffer::new(wanted)?;
    let page = page_buffer.pages.page_size() as u64;
    let mut open: Option<(u32, ProcessMemory)> = None;
    let mut seen = BTreeSet::new();
    let begun = clock::thread_processor_time();
    while !page_buffer.is_full() && clock::thread_processor_time_since(begun) < PATIENCE {
        let at = random.u64(..total);
        let index = ends.partition_point(|end| *end <= at);
        let (process, range) = &ranges[index];
        let address = (range.end - (ends[index] - at)) / page * page;
        let count = RUN.min(usize::try_from((range.end - address) / page).unwrap_or(1)).max(1);
        if open.as_ref().is_none_or(|(other, _)| other != process) {
            open = ProcessMemory::open(root, *process).map(|memory| (*process, memory));
        }
        let Some((_, memory)) = &open else { continue };
        let entries = memory.entries(address, count).unwrap_or_default();
        for (index, entry) in (0..).zip(entries) {
            let address = address + index * page;
            let fresh = mappings::is_present_and_anonymous(entry) && seen.insert((*process, address));
            if fresh && !page_buffer.is_full() && memory.read(address, page_buffer.free()) {
                page_buffer.keep();
            }
        }
    }
    if page_buffer.kept == 0 {
        return Ok(None);
    }
    let names = match processes {
        [one] => format!("memory of process {one}"),
        _ => "memory of running programs".to_owned(),
    };
    Ok(Some(page_buffer.done("processes", names)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page_buffer::is_same_filled;
    use host::linux::LinuxHost;

    #[test]
    fn files_are_read_in_whole_pages() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let text: Vec<u8> = (0..40_000_u32).flat_map(u32::to_le_bytes).collect();
        std::fs::write(file.path(), &text).unwrap();
        let mut host = LinuxHost::new("/");
        let sample =
            collect(&mut host, &Source::File(file.path().to_owned()), &BTreeSet::new(), 1000).unwrap();
        assert_eq!(sample.data.pages, text.len() as u64 / sample.data.page_size);
        let missing = collect(&mut host, &Source::File("/nonexistent".into()), &BTreeSet::new(), 10);
        assert!(missing.is_err_and(|error| error.message.contains("/nonexistent")));
    }

    #[test]
    fn what_has_no_pages_is_refused_by_name() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        std::fs::write(path("small"), [1; 1000]).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, path("pipe"), 0o600.into()).unwrap();
        // Larger than could be read, and all zeros.
        std::fs::File::create(path("sparse")).unwrap().set_len(1 << 40).unwrap();
        let mut host = LinuxHost::new("/");
        for (name, expected) in [
            ("", "it is neither a regular file nor a block device"),
            ("pipe", "it is neither a regular file nor a block device"),
            ("small", "it is too small: 1000 B"),
            ("sparse", "hold one repeated word, which zram does not compress"),
        ] {
            let path = path(name);
            let error =
                collect(&mut host, &Source::File(path.clone()), &BTreeSet::new(), 512).unwrap_err().message;
            let name = path.display().to_string();
            assert!(error.starts_with(&name) && error.ends_with(expected), "{error}");
        }
    }

    /// The memory of the parent process is read, if permitted.
    #[test]
    fn memory_of_processes_is_found_where_rights_allow() {
        let mut host = LinuxHost::new("/");
        let parent = std::os::unix::process::parent_id();
        match collect(&mut host, &Source::Processes(vec![parent]), &BTreeSet::new(), 64) {
            Ok(sample) => {
                assert_eq!(sample.data.source, "processes");
                assert!(!is_same_filled(sample.pages.page(0)));
            }
            Err(error) => assert!(!rustix::process::geteuid().is_root(), "{error}"),
        }
    }
}
