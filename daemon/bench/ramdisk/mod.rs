//! `bench ramdisk`: compares tmpfs, compressed memory and disks, with the same requests and data.

pub mod report;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Instant;

use self::report::{Access, BLOCK, Contents, Pass, Report, Row, SCHEMA_VERSION, size};
use crate::latency::Latency;
use engine::gather;
use engine::scratch::Scratch;
use engine::work::{Reporter, Stopped};
use engine::{Error, ErrorKind};
use fastrand::Rng;
use host::linux::LinuxHost;
use host::linux::bench_file::{BenchFile, Directory, read_file};
use host::linux::pages::Pages;
use host::linux::public_files;
use host::{Errno, Host, HostError, MkfsSpec};
use logic::device::algorithm::{Algorithm, parse_comp_algorithm};
use logic::device::attribute::Attribute;
use logic::human::human;
use logic::order::BenchRamdisk;

/// File system on zram: the default of `[ramdisk]` sections on zram.
const FS_TYPE: &str = "ext4";
/// Maximum bytes of real data; they are repeated to fill larger sizes.
const MOST_DATA: u64 = 32 << 20;
/// Bytes of one random request.
const PAGE: usize = 4096;
/// Maximum number of random requests.
const REQUESTS: usize = 10_000;
/// Time limit for random requests, in seconds.
const PATIENCE: f64 = 1.0;
/// Default source of real data.
const DIRECTORIES: [&str; 3] = ["/usr/bin", "/usr/lib", "/usr/share"];

/// State shared by all measurements.
struct Run<'a> {
    host: &'a mut LinuxHost,
    reporter: &'a mut Reporter,
    size: u64,
    real: Pages,
    zero: Pages,
    buffer: Pages,
    report: Report,
    total: usize,
}

/// Runs the comparison. Device numbers in `configured` are left free.
pub fn run(
    host: &mut LinuxHost,
    reporter: &mut Reporter,
    options: &BenchRamdisk,
    configured: &BTreeSet<u32>,
) -> Result<Report, Stopped> {
    let available = gather::memory(host)?.available_kib * 1024;
    let size = size(options.size, available).map_err(|message| Error::new(ErrorKind::Unsafe, message))?;
    let directories = open_directories(&options.paths, size)?;
    let (real, data) = real_data(options.data.as_deref(), size)?;
    let (zero, buffer) = (pages(BLOCK)?, pages(BLOCK)?);
    let mut scratch = Scratch::create(host, configured)?;
    let report = Report { schema_version: SCHEMA_VERSION, size_bytes: size, data, ..Report::default() };
    let mut run = Run {
        host,
        reporter,
        size,
        real,
        zero,
        buffer,
        report,
        total: 2 * (1 + 3 * options.algorithms.len().max(1) + 2 * directories.len()),
    };
    let done = run.all(&mut scratch, &options.algorithms, &directories);
    let released = scratch.release(run.host);
    done?;
    released?;
    Ok(run.report)
}

/// The algorithm that the kernel selects for a new device.
fn usual(host: &LinuxHost, number: u32) -> Result<Vec<Algorithm>, Error> {
    let (_, selected) = parse_comp_algorithm(&host.read_attribute(number, Attribute::CompAlgorithm)?);
    Ok(selected.into_iter().map(Algorithm::plain).collect())
}

fn pages(bytes: u64) -> Result<Pages, HostError> {
    Pages::new(usize::try_from(bytes).unwrap_or(usize::MAX) / rustix::param::page_size())
}

/// Opens the directories, and checks that the data to be written fits.
fn open_directories(paths: &[PathBuf], size: u64) -> Result<Vec<(String, Directory)>, Error> {
    let mut directories = Vec::new();
    for path in paths {
        let directory = Directory::open(path)?;
        let free = directory.free_bytes()?;
        if free / 2 < size {
            let message = format!(
                "{}: {} are free there, and writing {} leaves too little for others",
                path.display(),
                human(free),
                human(size)
            );
            return Err(Error::new(ErrorKind::Unsafe, message));
        }
        directories.push((format!("{} ({})", path.display(), directory.fs_type()?), directory));
    }
    Ok(directories)
}

/// Data and its description.
pub(super) fn real_data(file: Option<&Path>, size: u64) -> Result<(Pages, String), Error> {
    let wanted = MOST_DATA.min(size);
    let mut data = pages(wanted)?;
    let (filled, source) = match file {
        Some(path) => (read_file(path, data.bytes_mut())?, path.display().to_string()),
        None => {
            let bytes = data.bytes_mut();
            let share = bytes.len() / DIRECTORIES.len();
            let mut filled = 0;
            for (at, directory) in DIRECTORIES.iter().enumerate() {
                let end = if at + 1 == DIRECTORIES.len() { bytes.len() } else { filled + share };
                filled += public_files::read_below(Path::new(directory), &mut bytes[filled..end]);
            }
            (filled, format!("files below {}", DIRECTORIES.join(", ")))
        }
    };
    let block = usize::try_from(BLOCK).unwrap_or(usize::MAX);
    if filled < block {
        return Err(Error::failed(format!("{source}: less than {} of data", human(BLOCK))));
    }
    let page = data.page_size();
    data.truncate(filled / block * block / page);
    let description = format!("{source}, {}", human((filled / block * block) as u64));
    Ok((data, description))
}

impl Run<'_> {
    fn all(
        &mut self,
        scratch: &mut Scratch,
        algorithms: &[Algorithm],
        directories: &[(String, Directory)],
    ) -> Result<(), Stopped> {
        for contents in [Contents::Zero, Contents::Real] {
            // Some space for the metadata of the file system.
            let size = (self.size + (8 << 20)).to_string();
            let directory = Directory::mounted_nowhere("tmpfs", &[("size", &size), ("mode", "0700")])?;
            self.measure("tmpfs", Access::Memory, contents, &directory.file()?)?;
        }
        let usual = if algorithms.is_empty() { usual(self.host, scratch.number())? } else { Vec::new() };
        for algorithm in algorithms.iter().chain(&usual) {
            for contents in [Contents::Zero, Contents::Real] {
                self.zram(scratch, algorithm, contents)?;
            }
        }
        for (name, directory) in directories {
            for contents in [Contents::Zero, Contents::Real] {
                self.directory(name, directory, contents)?;
            }
        }
        Ok(())
    }

    fn zram(
        &mut self,
        scratch: &mut Scratch,
        algorithm: &Algorithm,
        contents: Contents,
    ) -> Result<(), Stopped> {
        let node = PathBuf::from(format!("/dev/zram{}", scratch.number()));
        scratch.configure(self.host, algorithm, self.size)?;
        let name = format!("zram ({algorithm}), raw");
        self.measure(&name, Access::Direct, contents, &BenchFile::device(&node)?)?;
        let memory = scratch.memory(self.host)?;
        if let Some(row) = self.report.results.last_mut().filter(|_| memory.mem_used_total > 0) {
            row.ratio = Some(memory.orig_data_size as f64 / memory.mem_used_total as f64);
        }
        // Space for metadata: a sixteenth, plus the journal.
        scratch.configure(self.host, algorithm, self.size + self.size / 16 + (64 << 20))?;
        let arguments = ["-q", "-m", "0", "-E", "lazy_itable_init=0,nodiscard"].map(str::to_owned).to_vec();
        let spec = MkfsSpec { fs_type: FS_TYPE.to_owned(), arguments };
        if self.host.find_mkfs(FS_TYPE).is_none() {
            let remark = format!("zram with a file system was left out: mkfs.{FS_TYPE} is not installed");
            if !self.report.remarks.contains(&remark) {
                self.report.remarks.push(remark);
            }
            return Ok(());
        }
        self.host.mkfs(scratch.number(), &spec)?;
        scratch.unlock(self.host)?;
        let source = node.display().to_string();
        let directory = Directory::mounted_nowhere(FS_TYPE, &[("source", &source)])?;
        self.directory(&format!("zram ({algorithm}), {FS_TYPE}"), &directory, contents)
    }

    /// Measures with direct I/O, then through the page cache.
    fn directory(&mut self, name: &str, directory: &Directory, contents: Contents) -> Result<(), Stopped> {
        let file = directory.file()?;
        match file.direct()? {
            Some(direct) => self.measure(name, Access::Direct, contents, &direct)?,
            None => self.measure(name, Access::Dropped, contents, &file)?,
        }
        drop(file);
        self.measure(name, Access::Cache, contents, &directory.file()?)
    }

    fn measure(
        &mut self,
        name: &str,
        access: Access,
        contents: Contents,
        medium: &BenchFile,
    ) -> Result<(), Stopped> {
        let done = self.report.results.len() as f64 / self.total as f64;
        self.reporter.progress(done, &format!("{name}, {}", access.label()));
        let (first, first_ns) = self.write(medium, access, contents)?;
        let (again, again_ns) = self.write(medium, access, contents)?;
        if access == Access::Dropped {
            medium.drop_cache()?;
        }
        let (read, read_ns) = self.read(medium, contents)?;
        let random_read = self.random(medium, access, contents)?;
        self.report.results.push(Row {
            medium: name.to_owned(),
            access,
            contents,
            first_write: Pass::of(&first, first_ns),
            second_write: Pass::of(&again, again_ns),
            read: Pass::of(&read, read_ns),
            random_read,
            ratio: None,
        });
        Ok(())
    }

    fn blocks(&self) -> u64 {
        self.size / BLOCK
    }

    /// Writes everything once: the time of each request, and the total.
    fn write(
        &self,
        medium: &BenchFile,
        access: Access,
        contents: Contents,
    ) -> Result<(Vec<u64>, u64), Stopped> {
        let mut times = Vec::new();
        let began = Instant::now();
        for block in 0..self.blocks() {
            self.reporter.check()?;
            let data = self.block(contents, block);
            let began = Instant::now();
            medium.write(block * BLOCK, data)?;
            times.push(nanoseconds(began));
        }
        if access == Access::Dropped {
            medium.sync()?;
        }
        Ok((times, nanoseconds(began)))
    }

    fn read(&mut self, medium: &BenchFile, contents: Contents) -> Result<(Vec<u64>, u64), Stopped> {
        let mut times = Vec::new();
        for block in 0..self.blocks() {
            self.reporter.check()?;
            let began = Instant::now();
            medium.read(block * BLOCK, self.buffer.bytes_mut())?;
            times.push(nanoseconds(began));
            compare(self.buffer.bytes(), self.block(contents, block), block * BLOCK)?;
        }
        let total = times.iter().sum();
        Ok((times, total))
    }

    /// As ioping: one request at a time. With [`Access::Dropped`], the data is dropped from the page cache before each.
    fn random(&mut self, medium: &BenchFile, access: Access, contents: Contents) -> Result<Latency, Stopped> {
        let mut random = Rng::with_seed(self.size);
        let pages = self.size / PAGE as u64;
        let per_block = BLOCK / PAGE as u64;
        let mut times = Vec::with_capacity(REQUESTS);
        let all = Instant::now();
        while times.len() < REQUESTS && all.elapsed().as_secs_f64() < PATIENCE {
            self.reporter.check()?;
            let page = random.u64(..pages);
            if access == Access::Dropped {
                medium.drop_cache()?;
            }
            let began = Instant::now();
            medium.read(page * PAGE as u64, &mut self.buffer.bytes_mut()[..PAGE])?;
            times.push(nanoseconds(began));
            let at = usize::try_from(page % per_block).unwrap_or(0) * PAGE;
            let expected = &self.block(contents, page / per_block)[at..][..PAGE];
            compare(&self.buffer.bytes()[..PAGE], expected, page * PAGE as u64)?;
        }
        Latency::of(&mut times).ok_or_else(|| Error::failed("no request was made").into())
    }

    fn block(&self, contents: Contents, block: u64) -> &[u8] {
        match contents {
            Contents::Zero => self.zero.bytes(),
            Contents::Real => {
                let (data, length) = (self.real.bytes(), usize::try_from(BLOCK).unwrap_or(usize::MAX));
                let at = usize::try_from(block).unwrap_or(0) % (data.len() / length);
                &data[at * length..][..length]
            }
        }
    }
}

fn compare(found: &[u8], written: &[u8], offset: u64) -> Result<(), Stopped> {
    if found == written {
        return Ok(());
    }
    let message = format!("what was written at {offset} reads back differently");
    Err(HostError::text("bench ramdisk", message, Errno::IO.to_string()).into())
}

fn nanoseconds(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX)
}
