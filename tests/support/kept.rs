//! A persistent RAM disk for one test.

use std::fs;
use std::path::PathBuf;

/// A disk with its store and mount point in a temporary directory.
pub struct Kept {
    pub name: &'static str,
    directory: tempfile::TempDir,
}

impl Kept {
    pub fn new(name: &'static str) -> Kept {
        // Not in memory: a store has to be persistent.
        Kept { name, directory: tempfile::tempdir().unwrap() }
    }

    pub fn mount_point(&self) -> PathBuf {
        self.directory.path().join("mounted")
    }

    pub fn store(&self) -> PathBuf {
        self.directory.path().join("store")
    }

    /// Its section, with additional lines.
    pub fn section(&self, lines: &str) -> String {
        format!(
            "[ramdisk.{}]\nmount-point = \"{}\"\nstore = \"{}\"\npersist = \"snapshot\"\n{lines}\n",
            self.name,
            self.mount_point().display(),
            self.store().display()
        )
    }

    /// Type of the mounted file system, if any.
    pub fn fs_type(&self) -> Option<String> {
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
        let at = format!(" {} ", self.mount_point().display());
        mounts.lines().find(|line| line.contains(&at))?.split(' ').nth(2).map(str::to_owned)
    }

    /// All public files of zramd about it.
    pub fn published(&self) -> String {
        let files = [format!("ramdisks/{}", self.name), format!("work/ramdisk-{}", self.name)];
        files.map(|file| fs::read_to_string(format!("/run/zramd/{file}.json")).unwrap()).concat()
    }

    pub fn size(&self) -> u64 {
        let space = rustix::fs::statvfs(self.mount_point()).unwrap();
        space.f_blocks * space.f_frsize
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        for end in ["json", "request", "restore"] {
            fs::remove_file(format!("/run/zramd/ramdisks/{}.{end}", self.name)).ok();
        }
        fs::remove_file(format!("/run/zramd/work/ramdisk-{}.json", self.name)).ok();
    }
}
