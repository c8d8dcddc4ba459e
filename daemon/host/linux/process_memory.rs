//! The memory of other processes. Only resident pages are read, so nothing is swapped in.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::lossy;

/// All processes except this one.
pub fn others(root: &Path) -> Vec<u32> {
    let Ok(entries) = fs::read_dir(root.join("proc")) else { return Vec::new() };
    let ids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let own = std::process::id();
    ids.filter(|id| *id != own).collect()
}

/// The mappings of a process; `None` for kernel threads, ended processes, and those that we may not inspect.
pub fn maps(root: &Path, process: u32) -> Option<String> {
    let bytes = fs::read(directory(root, process).join("maps")).ok()?;
    Some(lossy(bytes)).filter(|text| !text.is_empty())
}

fn directory(root: &Path, process: u32) -> PathBuf {
    root.join(format!("proc/{process}"))
}

#[derive(Debug)]
pub struct ProcessMemory {
    memory: File,
    pagemap: File,
    page: u64,
}

impl ProcessMemory {
    /// Opens a process; `None` if it has ended or we may not inspect it (`PTRACE_MODE_ATTACH`).
    pub fn open(root: &Path, process: u32) -> Option<ProcessMemory> {
        let directory = directory(root, process);
        Some(ProcessMemory {
            memory: File::open(directory.join("mem")).ok()?,
            pagemap: File::open(directory.join("pagemap")).ok()?,
            page: rustix::param::page_size() as u64,
        })
    }

    /// The entries of `pagemap` for `count` pages from `address`.
    pub fn entries(&self, address: u64, count: usize) -> Option<Vec<u64>> {
        let mut bytes = vec![0; count * 8];
        self.pagemap.read_exact_at(&mut bytes, address / self.page * 8).ok()?;
        let (words, _) = bytes.as_chunks::<8>();
        Some(words.iter().map(|word| u64::from_ne_bytes(*word)).collect())
    }

    /// Reads memory; false if it is not mapped.
    pub fn read(&self, address: u64, buffer: &mut [u8]) -> bool {
        self.memory.read_exact_at(buffer, address).is_ok()
    }
}
