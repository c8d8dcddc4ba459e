//! A RAM disk for tests: plain directories as the disk and its store.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use engine::Error;
use host::Errno;
use host::linux::ramdisk::Calls;
use host::script::Fault;
use logic::ramdisk::omitted::Omitted;
use logic::ramdisk::{KeepSettings, Mode, OnFailure, SaveReason};
use store::{self, Loaded, Ramdisk, Request, Saved};

/// A disk in a temporary directory.
pub struct Trial {
    pub disk: Ramdisk,
    directory: tempfile::TempDir,
}

pub const ASKED: Request = Request { reason: SaveReason::Asked, force: false, last: false, gives_up: false };
pub const FORCED: Request = Request { force: true, ..ASKED };

/// The result of a save without changes or omissions.
pub fn unchanged(generation: u64) -> Saved {
    Saved::Unchanged { generation, omitted: Omitted::default() }
}

/// Kinds of faults of a call.
pub const FAULTS: [Fault; 8] = [
    Fault::Fail(Errno::NOSPC),
    Fault::Fail(Errno::IO),
    Fault::Fail(Errno::AGAIN),
    Fault::Fail(Errno::NOMEM),
    Fault::Fail(Errno(libc::E2BIG)),
    Fault::Short,
    Fault::KillBefore,
    Fault::KillAfter,
];

/// Numbers of the calls at which this fault differs from all others.
pub fn calls_for(fault: Fault, transcript: &[String]) -> Vec<usize> {
    let is_one_of = |number: &usize, verbs: &[&str]| {
        let call = &transcript[number - 1];
        verbs.iter().any(|verb| call.split(' ').next() == Some(verb))
    };
    let differs = |number: &usize| match fault {
        Fault::Short => is_one_of(number, &["read", "pread", "write", "pwrite"]),
        // These see the kill (`Calls::leave`). At others it equals a kill before the next call.
        Fault::KillAfter => is_one_of(number, &["fsync", "linkat", "renameat", "unlinkat"]),
        _ => true,
    };
    (1..=transcript.len()).filter(differs).collect()
}

/// Runs `walk` for each fault at the same time, because saves wait for the clock of file time stamps, and adds up what it counts.
pub fn for_each_fault<const N: usize>(walk: impl Fn(Fault) -> [usize; N] + Sync) -> [usize; N] {
    let walk = &walk;
    std::thread::scope(|scope| {
        let walks = FAULTS.map(|fault| scope.spawn(move || walk(fault)));
        let counts = walks.into_iter().map(|walk| walk.join().unwrap());
        counts.fold([0; N], |sum, counts| std::array::from_fn(|index| sum[index] + counts[index]))
    })
}

/// Whether the process is dead after this fault, so that it cannot clean up.
pub fn is_kill(fault: Fault) -> bool {
    matches!(fault, Fault::KillBefore | Fault::KillAfter)
}

/// Copies a directory of files to `to`.
pub fn copy(from: &Path, to: &Path) {
    if to.exists() {
        fs::remove_dir_all(to).unwrap();
    }
    fs::create_dir(to).unwrap();
    fs::set_permissions(to, fs::metadata(from).unwrap().permissions()).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

/// In memory if possible, for tests that do not need a slow fsync.
pub fn directory() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

impl Trial {
    pub fn new() -> Trial {
        let directory = directory();
        let disk = Ramdisk {
            name: "trial".to_owned(),
            place: directory.path().join("place"),
            mount_point: directory.path().join("mount point"),
            keep: KeepSettings {
                mode: Mode::Snapshot,
                store: directory.path().join("store").into_os_string().into_string().unwrap(),
                generations: 2,
                save_interval: None,
                on_failure: Some(OnFailure::Fail),
                seed: false,
                pre_save: Vec::new(),
                post_restore: Vec::new(),
                hook_time_limit: 30,
                time_limit: 300,
            },
            store_limit: None,
            daily_budget: None,
            notes: None,
            spared: None,
            trial: true,
        };
        fs::create_dir(&disk.place).unwrap();
        Trial { disk, directory }
    }

    /// A disk after its first load, with `tree` in it.
    pub fn with(tree: fn(&Path)) -> Trial {
        let trial = Trial::new();
        trial.load().unwrap();
        tree(&trial.disk.place);
        trial
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub fn place(&self) -> &Path {
        &self.disk.place
    }

    pub fn set_store(&mut self, store: PathBuf) {
        self.disk.keep.store = store.into_os_string().into_string().unwrap();
    }

    /// Fills the first use from this directory.
    pub fn seed(&mut self, directory: PathBuf) {
        self.disk.mount_point = directory;
        self.disk.keep.seed = true;
    }

    pub fn load(&self) -> Result<Loaded, Error> {
        store::load(&Calls::new(), &self.disk, &mut |_| true)
    }

    pub fn save(&self) -> Result<Saved, Error> {
        self.save_as(FORCED)
    }

    pub fn save_as(&self, request: Request) -> Result<Saved, Error> {
        store::save(&Calls::new(), &self.disk, request, &mut |_| true)
    }

    /// As after a reboot: the disk is empty, and another directory.
    pub fn reboot(&self) {
        fs::remove_dir_all(&self.disk.place).unwrap();
        // It must not get the inode number of the old one.
        let between = self.path("between");
        fs::create_dir(&between).unwrap();
        fs::create_dir(&self.disk.place).unwrap();
        fs::remove_dir(between).unwrap();
    }

    /// File names in the store, sorted.
    pub fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.disk.store()).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// Generation numbers, newest first.
    pub fn generations(&self) -> Vec<u64> {
        let status = store::status(&Calls::new(), &self.disk).unwrap();
        status.generations.iter().map(|generation| generation.number).collect()
    }

    pub fn verify(&self, generation: u64) -> Result<store::Checked, Error> {
        store::verify(&Calls::new(), &self.disk, Some(generation), &mut |_| true)
    }
}

/// Paths with everything that has to be restored: mode, owner, time, links, contents or target.
pub type Picture = BTreeMap<PathBuf, String>;

/// The contents of a tree.
pub fn picture(root: &Path) -> Picture {
    let mut picture = Picture::new();
    let mut pending = vec![root.to_owned()];
    while let Some(path) = pending.pop() {
        let meta = fs::symlink_metadata(&path).unwrap();
        let kind = meta.file_type();
        let contents = if kind.is_symlink() {
            format!("-> {}", fs::read_link(&path).unwrap().display())
        } else if kind.is_file() {
            contents(&fs::read(&path).unwrap())
        } else {
            format!("{kind:?}")
        };
        // Metadata of the root depends on the test.
        let about = if path == root {
            String::new()
        } else {
            let links = if kind.is_dir() { 0 } else { meta.nlink() };
            let (mode, seconds, nanoseconds) = (meta.mode(), meta.mtime(), meta.mtime_nsec());
            format!("{mode:o} {}:{} {seconds}.{nanoseconds} {links} {contents}", meta.uid(), meta.gid())
        };
        picture.insert(path.strip_prefix(root).unwrap().to_owned(), about);
        if kind.is_dir() {
            pending.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        }
    }
    picture
}

/// Short text as it is, long contents as a digest.
fn contents(bytes: &[u8]) -> String {
    if bytes.len() <= 1000 {
        return format!("{:?}", String::from_utf8_lossy(bytes));
    }
    format!("{} bytes {}", bytes.len(), blake3::hash(bytes))
}

/// A small tree with one file of each type that an unprivileged user can make.
pub fn small(root: &Path) {
    fs::create_dir_all(root.join("a/b")).unwrap();
    fs::write(root.join("a/one"), "first").unwrap();
    fs::write(root.join("empty"), "").unwrap();
    fs::hard_link(root.join("a/one"), root.join("a/b/same")).unwrap();
    symlink("../one", root.join("a/b/link")).unwrap();
    let holes = fs::File::create(root.join("holes")).unwrap();
    holes.write_all_at(b"begin", 0).unwrap();
    holes.write_all_at(b"data", 100_000).unwrap();
    holes.set_len(200_000).unwrap();
    fs::write(root.join("big"), noise(300_000)).unwrap();
    fs::set_permissions(root.join("a/b"), fs::Permissions::from_mode(0o2750)).unwrap();
}

/// Changes that tree.
pub fn change(root: &Path) {
    fs::write(root.join("a/one"), "second").unwrap();
    fs::write(root.join("a/new"), "new").unwrap();
    fs::remove_file(root.join("empty")).unwrap();
}

/// Reproducible letters that do not compress well.
pub fn noise(length: usize) -> Vec<u8> {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        b'0' + u8::try_from(state >> 32 & 63).unwrap()
    };
    (0..length).map(|_| next()).collect()
}
