//! Trees made by a hostile user: everything that can be saved is restored, the rest is named, and no other file is affected.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::support::kept::Kept;
use crate::support::mounted::Mounted;
use crate::support::ramdisk::{ASKED, Trial, picture, small};
use crate::support::{PYTHON, alone, has_program, may_mount, repository, skip};
use host::linux::ramdisk::Calls;
use logic::ramdisk::limits;
use logic::ramdisk::manifest::Manifest;
use logic::ramdisk::omitted::Reason;
use logic::ramdisk::place;
use logic::ramdisk::state::Outcome;
use proptest::prelude::*;
use rustix::fs::{AtFlags, CWD, Gid, IFlags, Mode, OFlags, Timespec, Timestamps, Uid, XattrFlags};
use store::{self, Saved};

const OPTIONS: &str = "nr_inodes=0";

/// A disk on a tmpfs after its first load.
fn on_tmpfs() -> Option<(Trial, Mounted)> {
    if !may_mount() {
        return None;
    }
    let trial = Trial::new();
    let mounted = Mounted::tmpfs(trial.place(), OPTIONS);
    trial.load().unwrap();
    Some((trial, mounted))
}

fn saved(trial: &Trial) -> Box<Manifest> {
    let Saved::Written { manifest, .. } = trial.save().unwrap() else { panic!("nothing was written") };
    manifest
}

fn stamp(path: &Path, seconds: i64, nanoseconds: i64) {
    let time = Timespec { tv_sec: seconds, tv_nsec: nanoseconds as _ };
    let times = Timestamps { last_access: time, last_modification: time };
    rustix::fs::utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW).unwrap();
}

/// The newest generation, loaded into a new tmpfs.
fn reloaded(trial: &Trial, mounted: Mounted) -> (store::Loaded, Mounted) {
    drop(mounted);
    let mounted = Mounted::tmpfs(trial.place(), OPTIONS);
    (trial.load().unwrap(), mounted)
}

#[test]
fn trees_that_could_not_be_loaded_once_are_restored() {
    let Some((trial, mounted)) = on_tmpfs() else { return };
    let place = trial.place().to_owned();
    fs::write(place.join("early"), "x").unwrap();
    stamp(&place.join("early"), i64::MIN, 0);
    File::create(place.join("large")).unwrap().set_len(i64::MAX as u64).unwrap();
    let holes = File::create(place.join("holes")).unwrap();
    holes.set_len(1 << 61).unwrap();
    holes.write_all_at(b"end", (1 << 61) - 3).unwrap();
    drop(holes);
    let times = |name: &str| {
        let meta = fs::symlink_metadata(place.join(name)).unwrap();
        (std::os::unix::fs::MetadataExt::mtime(&meta), meta.len())
    };
    let before = ["early", "large", "holes"].map(times);
    let manifest = saved(&trial);
    assert!(manifest.omitted.is_empty(), "{:?}", manifest.omitted);
    assert!(fs::metadata(trial.disk.store().join("gen-1")).unwrap().len() < 10_000);
    assert_eq!(trial.verify(1).unwrap().entries, manifest.contents.entries());
    let (loaded, _mounted) = reloaded(&trial, mounted);
    assert_eq!((loaded.outcome, loaded.extracted.omitted.count()), (Outcome::Loaded, 0));
    assert_eq!(["early", "large", "holes"].map(times), before);
    let mut end = [0; 3];
    File::open(place.join("holes")).unwrap().read_exact_at(&mut end, (1 << 61) - 3).unwrap();
    assert_eq!(&end, b"end");
}

#[test]
fn too_many_attributes_do_not_affect_others() {
    let Some((trial, mounted)) = on_tmpfs() else { return };
    let place = trial.place().to_owned();
    let set =
        |path: &Path, name: &str, value: &[u8]| rustix::fs::setxattr(path, name, value, XattrFlags::empty());
    small(&place);
    fs::write(place.join("many"), "kept").unwrap();
    fs::write(place.join("long"), "kept").unwrap();
    if set(&place.join("many"), "user.x", b"").is_err() {
        return skip("a tmpfs of this kernel has no user attributes");
    }
    // The kernel cannot list this number of attributes, and their total size is too large; also on a directory.
    for number in 0..300 {
        set(&place.join("long"), &format!("user.{number:0240}"), b"").unwrap();
        set(&place.join("a"), &format!("user.{number:0240}"), b"").unwrap();
    }
    for number in 0..=limits::ATTRIBUTES >> 16 {
        set(&place.join("many"), &format!("user.{number}"), &vec![b'v'; 64 << 10]).unwrap();
    }
    set(&place.join("many"), "trusted.kept", b"1").unwrap();
    let before = picture(&place);
    let manifest = saved(&trial);
    let mut named: Vec<_> =
        manifest.omitted.named.iter().map(|named| (named.path.as_str(), named.reason)).collect();
    named.sort();
    assert_eq!(
        named,
        [("a", Reason::Attributes), ("long", Reason::Attributes), ("many", Reason::Attributes)]
    );
    let (loaded, _mounted) = reloaded(&trial, mounted);
    assert!(loaded.extracted.omitted.is_empty(), "{:?}", loaded.extracted);
    assert!(picture(&place) == before);
    let mut value = [0; 8];
    assert_eq!(rustix::fs::getxattr(place.join("many"), "trusted.kept", &mut value), Ok(1));
}

/// A snapshot has no place for the flags of chattr(1).
#[test]
fn files_with_flags_are_kept_without_them_and_named() {
    let Some((trial, mounted)) = on_tmpfs() else { return };
    let place = trial.place().to_owned();
    small(&place);
    let flags = [("frozen", IFlags::IMMUTABLE), ("log", IFlags::APPEND), ("a", IFlags::IMMUTABLE)];
    let set = |name: &str, flags| rustix::fs::ioctl_setflags(File::open(place.join(name)).unwrap(), flags);
    for (name, flag) in flags {
        if name != "a" {
            fs::write(place.join(name), name).unwrap();
        }
        if set(name, flag).is_err() {
            return skip("a tmpfs of this kernel has no flags");
        }
    }
    let before = picture(&place);
    let manifest = saved(&trial);
    let mut named: Vec<_> =
        manifest.omitted.named.iter().map(|named| (named.path.as_str(), named.reason)).collect();
    named.sort();
    assert_eq!(named, [("a", Reason::Flags), ("frozen", Reason::Flags), ("log", Reason::Flags)]);
    let Saved::Unchanged { omitted, .. } = trial.save_as(ASKED).unwrap() else { panic!("saved again") };
    assert_eq!(omitted.counts, [(Reason::Flags, 3)].into());
    let (loaded, _mounted) = reloaded(&trial, mounted);
    assert!(loaded.extracted.omitted.is_empty(), "{:?}", loaded.extracted);
    assert!(picture(&place) == before);
    fs::write(place.join("frozen"), "changed").unwrap();
    assert!(saved(&trial).omitted.is_empty());
}

/// A process that holds a lease on the file.
fn hold(file: &Path) -> Child {
    let mut holder = Command::new(PYTHON)
        .arg(repository("tests/support/lease.py"))
        .arg(file)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut ready = [0; 6];
    std::io::Read::read_exact(holder.stdout.as_mut().unwrap(), &mut ready).unwrap();
    holder
}

fn release(mut holder: Child) {
    drop(holder.stdin.take());
    holder.wait().unwrap();
}

#[test]
fn a_lease_of_a_user_affects_that_file_only() {
    if !has_program(PYTHON) {
        return skip("needs python3");
    }
    let Some((trial, _mounted)) = on_tmpfs() else { return };
    small(trial.place());
    let leased = trial.place().join("leased");
    fs::write(&leased, "x").unwrap();
    // Before the lease: to open the file would wait for it.
    let entries = picture(trial.place()).len() as u64;
    let holder = hold(&leased);
    let manifest = saved(&trial);
    assert_eq!(manifest.omitted.counts, [(Reason::Lease, 1)].into(), "{:?}", manifest.omitted);
    assert_eq!(manifest.omitted.named[0].path, "leased");
    assert_eq!(trial.verify(1).unwrap().entries, entries - 1);
    // When the lease is released, the next save includes the file, although it is unchanged.
    release(holder);
    let Saved::Written { manifest, .. } = trial.save_as(ASKED).unwrap() else { panic!("not saved again") };
    assert!(manifest.omitted.is_empty(), "{:?}", manifest.omitted);
}

/// On file systems where changes are only found by walking: the end of a lease is not visible to a walk.
#[test]
fn a_save_without_changes_keeps_the_count_of_omissions() {
    if !has_program(PYTHON) {
        return skip("needs python3");
    }
    // Not in memory, if possible.
    let directory = tempfile::tempdir().unwrap();
    let mut trial = Trial::new();
    trial.disk.place = directory.path().to_owned();
    trial.load().unwrap();
    small(trial.place());
    let leased = trial.place().join("leased");
    fs::write(&leased, "x").unwrap();
    Calls::new().wait_for_tick();
    let holder = hold(&leased);
    assert_eq!(saved(&trial).omitted.counts, [(Reason::Lease, 1)].into());
    for _ in 0..2 {
        let Saved::Unchanged { generation, omitted } = trial.save_as(ASKED).unwrap() else {
            panic!("saved again")
        };
        assert_eq!((generation, omitted.counts), (1, [(Reason::Lease, 1)].into()));
    }
    release(holder);
    let Saved::Written { manifest, .. } = trial.save_as(ASKED).unwrap() else { panic!("not saved again") };
    assert!(manifest.omitted.is_empty(), "{:?}", manifest.omitted);
}

#[test]
fn a_file_with_a_hundred_thousand_holes_is_kept_in_little_space() {
    let Some((trial, mounted)) = on_tmpfs() else { return };
    let path = trial.place().join("comb");
    let comb = File::create(&path).unwrap();
    let count = 100_000;
    // Holes as far apart as possible: the file has 195 TiB.
    let far = File::create(trial.place().join("far")).unwrap();
    for number in 0..count {
        comb.write_all_at(b"x", number * 8192).unwrap();
        far.write_all_at(b"x", number << 31).unwrap();
    }
    comb.set_len(count * 8192).unwrap();
    drop((comb, far));
    let occupied = || std::os::unix::fs::MetadataExt::blocks(&fs::metadata(&path).unwrap());
    let (length, before) = (fs::metadata(&path).unwrap().len(), occupied());
    let manifest = saved(&trial);
    assert!(manifest.omitted.is_empty(), "{:?}", manifest.omitted);
    assert!(fs::metadata(trial.disk.store().join("gen-1")).unwrap().len() < 1 << 20);
    let (loaded, _mounted) = reloaded(&trial, mounted);
    assert!(loaded.extracted.omitted.is_empty());
    // It needs no more space than before.
    assert_eq!((fs::metadata(&path).unwrap().len(), occupied()), (length, before));
    let mut tooth = [0; 8192];
    tooth[0] = b'x';
    assert!(fs::read(&path).unwrap().chunks(tooth.len()).all(|read| read == tooth));
    let (mut last, far) = ([0], File::open(trial.place().join("far")).unwrap());
    far.read_exact_at(&mut last, (count - 1) << 31).unwrap();
    assert_eq!(&last, b"x");
}

/// Makes nested directories, with a second one beside each, and files in the innermost.
fn chain(root: &Path, depth: usize, name: &[u8], files: usize) -> OwnedFd {
    let open = |at: &OwnedFd, name: &[u8]| {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        rustix::fs::openat(at, name, flags, Mode::empty()).unwrap()
    };
    let mut at: OwnedFd = File::open(root).unwrap().into();
    for _ in 0..depth {
        rustix::fs::mkdirat(&at, name, Mode::from_raw_mode(0o755)).unwrap();
        rustix::fs::mkdirat(&at, "z", Mode::from_raw_mode(0o755)).unwrap();
        at = open(&at, name);
    }
    for number in 0..files {
        let flags = OFlags::CREATE | OFlags::WRONLY | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&at, format!("f{number}"), flags, Mode::from_raw_mode(0o644)).unwrap();
        File::from(file).write_all(b"x").unwrap();
    }
    at
}

/// A directory that is removed when dropped.
struct Place(PathBuf);

impl Drop for Place {
    fn drop(&mut self) {
        fs::remove_dir(&self.0).ok();
    }
}

/// Runs the worker on a configured disk, as its units do, with at most 96 MiB of memory.
fn within(config: &Path, verb: &str, name: &str) {
    let limit = format!("ulimit -d {}; exec \"$@\"", 96 << 10);
    let output = Command::new("sh")
        .args(["-c", &limit, "sh", env!("CARGO_BIN_EXE_zramd-worker"), verb, name])
        .arg(format!("{{\"config\":\"{}\"}}", config.display()))
        .output()
        .unwrap();
    assert!(output.status.success(), "{verb}: {output:?}");
}

/// Saves, verifies and loads with memory far below the square of the depth.
fn deep(depth: usize, name: &[u8]) -> Option<Box<Manifest>> {
    let _alone = alone()?;
    let kept = Kept::new("test-deep");
    let config = kept.store().with_file_name("zramd.toml");
    fs::write(&config, kept.section("size = \"1GiB\"")).unwrap();
    let place = Place(PathBuf::from(place::place(kept.name)));
    fs::create_dir_all(&place.0).unwrap();
    let mounted = Mounted::tmpfs(&place.0, OPTIONS);
    within(&config, "load", kept.name);
    drop(chain(&place.0, depth, name, 10));
    within(&config, "save", kept.name);
    within(&config, "verify", kept.name);
    drop(mounted);
    let _mounted = Mounted::tmpfs(&place.0, OPTIONS);
    within(&config, "load", kept.name);
    let mut trial = Trial::new();
    trial.set_store(kept.store());
    let status = store::status(&Calls::new(), &trial.disk).unwrap();
    let manifest = status.newest().map(|(_, manifest)| Box::new(manifest.clone()));
    assert_eq!(status.state.load.unwrap().outcome, Outcome::Loaded);
    manifest
}

#[test]
fn a_tree_of_10_000_levels_is_kept_in_little_memory() {
    let Some(manifest) = deep(10_000, b"d") else { return };
    assert_eq!((manifest.contents.directories, manifest.contents.files), (20_001, 10));
    assert!(manifest.omitted.is_empty(), "{:?}", manifest.omitted);
}

#[test]
fn what_is_below_too_long_a_path_is_left_out_and_named() {
    let Some(manifest) = deep(2000, &[b'd'; 250]) else { return };
    let levels = limits::PATH as u64 / 251;
    assert_eq!(manifest.omitted.counts.keys().collect::<Vec<_>>(), [&Reason::Path]);
    assert!(manifest.contents.directories >= 2 * levels, "{:?}", manifest.contents);
    assert!(manifest.text().len() < 20_000);
}

#[test]
fn large_attributes_of_one_user_leave_room_for_the_files_of_others() {
    let Some((trial, mounted)) = on_tmpfs() else { return };
    let place = trial.place().to_owned();
    fs::create_dir(place.join("a")).unwrap();
    fs::write(place.join("z"), "kept").unwrap();
    let value = vec![b'v'; 64 << 10];
    for number in 0..20 {
        let path = place.join(format!("a/{number:02}"));
        fs::write(&path, number.to_string()).unwrap();
        for name in 0..60 {
            let set = rustix::fs::setxattr(&path, format!("user.{name}"), &value, XattrFlags::empty());
            if set.is_err() {
                return skip("a tmpfs of this kernel has no user attributes");
            }
        }
    }
    let manifest = saved(&trial);
    assert_eq!(manifest.omitted.counts.keys().collect::<Vec<_>>(), [&Reason::Attributes]);
    assert!((5..20).contains(&manifest.omitted.count()), "{:?}", manifest.omitted.counts);
    let before = picture(&place);
    let (loaded, _mounted) = reloaded(&trial, mounted);
    assert!(loaded.extracted.omitted.is_empty(), "{:?}", loaded.extracted);
    assert!(picture(&place) == before, "all files have their contents");
}

#[test]
fn the_format_of_the_first_release_is_loaded() {
    let Some((mut trial, mounted)) = on_tmpfs() else { return };
    if !has_program(PYTHON) {
        return skip("needs python3");
    }
    let golden = repository("tests/golden/snapshot");
    let tree = |place: &Path| {
        let output =
            Command::new(PYTHON).arg(repository("tests/support/tree.py")).arg(place).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        small(trial.place());
        saved(&trial);
        fs::copy(trial.disk.store().join("gen-1"), golden.join("gen-1")).unwrap();
        fs::write(golden.join("tree.txt"), tree(trial.place())).unwrap();
    }
    trial.set_store(trial.path("golden"));
    fs::create_dir(trial.disk.store()).unwrap();
    fs::copy(golden.join("gen-1"), trial.disk.store().join("gen-1")).unwrap();
    trial.verify(1).unwrap();
    let (loaded, _mounted) = reloaded(&trial, mounted);
    assert_eq!((loaded.generation, loaded.extracted.omitted.count()), (Some(1), 0));
    assert_eq!(tree(trial.place()), fs::read_to_string(golden.join("tree.txt")).unwrap());
}

/// A file or directory of a random tree.
#[derive(Debug, Clone)]
struct Made {
    name: Vec<u8>,
    kind: u8,
    mode: u32,
    owner: (u32, u32),
    time: (i64, i64),
    size: u64,
    data: Vec<(u64, Vec<u8>)>,
    attributes: BTreeMap<Vec<u8>, Vec<u8>>,
}

fn made() -> impl Strategy<Value = Made> {
    let byte = prop_oneof![3 => 1_u8.., 1 => Just(b'%'), 1 => Just(b'='), 1 => Just(b'\n')];
    let byte = byte.prop_map(|byte| if byte == b'/' { b'|' } else { byte });
    let length = prop_oneof![4 => 1_usize..4, 1 => proptest::sample::select(vec![99_usize, 100, 101, 255])];
    let name = length.prop_flat_map(move |length| proptest::collection::vec(byte.clone(), length));
    let name = name.prop_filter("a name", |name| !matches!(name.as_slice(), b"." | b".."));
    let seconds = prop_oneof![
        proptest::sample::select(vec![i64::MIN, i64::MIN + 1, -1, 0, 1, 1 << 33, (1 << 33) - 1, i64::MAX]),
        any::<i64>()
    ];
    let time = (seconds, proptest::sample::select(vec![0_i64, 1, 999_999_999]));
    let id = || proptest::sample::select(vec![0_u32, 1, 0o7_777_777, 0o10_000_000, u32::MAX - 1]);
    let sizes =
        vec![0, 1, 511, 512, 513, 4095, 4096, 4097, 1 << 33, 1 << 62, i64::MAX as u64 - 1, i64::MAX as u64];
    let size = prop_oneof![proptest::sample::select(sizes), 0_u64..100_000];
    let data = proptest::collection::vec((0_u64..40, proptest::collection::vec(any::<u8>(), 0..5000)), 0..4);
    let value =
        prop_oneof![4 => proptest::collection::vec(any::<u8>(), 0..50), 1 => Just(vec![b'='; 64 << 10])];
    let key = "user\\.[a-z=%]{1,5}".prop_map(String::into_bytes);
    let attributes = proptest::collection::btree_map(key, value, 0..3);
    let rest = (0_u8..7, 0_u32..0o10000, (id(), id()), time, size, data, attributes);
    (name, rest).prop_map(|(name, (kind, mode, owner, time, size, data, attributes))| Made {
        name,
        kind,
        mode,
        owner,
        time,
        size,
        data: data.into_iter().map(|(page, bytes)| (page * 4096, bytes)).collect(),
        attributes,
    })
}

/// Makes it as far as the kernel allows; the resulting tree is compared.
fn make(root: &Path, things: &[Made]) {
    let mut directories = vec![root.to_owned()];
    let mut files: Vec<PathBuf> = Vec::new();
    for (number, made) in things.iter().enumerate() {
        let path = directories[number % directories.len()].join(OsStr::from_bytes(&made.name));
        if fs::symlink_metadata(&path).is_ok() {
            continue;
        }
        match made.kind {
            0 | 1 => {
                fs::create_dir(&path).unwrap();
                directories.push(path.clone());
            }
            2 => std::os::unix::fs::symlink(OsStr::from_bytes(&made.name), &path).unwrap(),
            3 if !files.is_empty() => {
                fs::hard_link(&files[number % files.len()], &path).unwrap();
                continue;
            }
            4 => rustix::fs::mknodat(CWD, &path, rustix::fs::FileType::Fifo, Mode::empty(), 0).unwrap(),
            _ => {
                let file = File::create(&path).unwrap();
                for (offset, bytes) in &made.data {
                    file.write_all_at(bytes, *offset).unwrap();
                }
                file.set_len(made.size).unwrap();
                files.push(path.clone());
            }
        }
        let (uid, gid) = (Uid::from_raw(made.owner.0), Gid::from_raw(made.owner.1));
        rustix::fs::chownat(CWD, &path, Some(uid), Some(gid), AtFlags::SYMLINK_NOFOLLOW).unwrap();
        if made.kind != 2 {
            rustix::fs::chmodat(CWD, &path, Mode::from_raw_mode(made.mode), AtFlags::empty()).unwrap();
            for (name, value) in &made.attributes {
                // Not supported by every kernel on a tmpfs, or on other file types.
                rustix::fs::setxattr(&path, name.as_slice(), value, XattrFlags::empty()).ok();
            }
        }
    }
    for (number, made) in things.iter().enumerate().rev() {
        let Some(directory) = directories.get(number % directories.len()) else { continue };
        let path = directory.join(OsStr::from_bytes(&made.name));
        if fs::symlink_metadata(&path).is_ok() {
            stamp(&path, made.time.0, made.time.1);
        }
    }
}

/// All metadata by path, with the contents of data ranges only, since files may have 8 EiB.
fn look(root: &Path) -> BTreeMap<PathBuf, String> {
    let mut all = BTreeMap::new();
    let mut pending = vec![root.to_owned()];
    let calls = Calls::new();
    while let Some(directory) = pending.pop() {
        let opened = calls.open_directory(&directory).unwrap();
        for name in calls.list(opened.as_fd()).unwrap() {
            let path = directory.join(OsStr::from_bytes(&name));
            let meta = calls.look(opened.as_fd(), &name).unwrap();
            let subject = host::linux::ramdisk::Subject::Named(opened.as_fd(), &name);
            let attributes = calls.attributes(subject).unwrap();
            let mut contents = blake3::Hasher::new();
            if meta.kind == logic::ramdisk::entry::Kind::File {
                let file = File::open(&path).unwrap();
                let mut at = 0;
                while let Ok(Some((start, end))) = calls.next_data(file.as_fd(), at) {
                    for page in (start / 4096..end.min(meta.size).div_ceil(4096)).map(|page| page * 4096) {
                        let mut bytes = [0; 4096];
                        let length = file.read_at(&mut bytes, page).unwrap();
                        if bytes[..length].iter().any(|byte| *byte != 0) {
                            contents.update(&page.to_le_bytes());
                            contents.update(&bytes[..length]);
                        }
                    }
                    at = end;
                }
            }
            let is_directory = meta.kind == logic::ramdisk::entry::Kind::Directory;
            let (size, links) = if is_directory { (0, 0) } else { (meta.size, meta.links) };
            let (mode, uid, gid, time) = (meta.mode, meta.uid, meta.gid, meta.mtime);
            let contents = contents.finalize();
            let text = format!(
                "{:?} {mode:o} {uid} {gid} {time:?} {size} {links} {attributes:?} {contents}",
                meta.kind
            );
            if is_directory {
                pending.push(path.clone());
            }
            all.insert(path, text);
        }
    }
    all
}

/// `PROPTEST_CASES` changes the number of cases.
fn config() -> ProptestConfig {
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|text| text.parse().ok());
    ProptestConfig { max_shrink_iters: 200, ..ProptestConfig::with_cases(cases.unwrap_or(500)) }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn every_tree_of_a_user_is_restored(things in proptest::collection::vec(made(), 1..12)) {
        let Some((trial, mounted)) = on_tmpfs() else { return Ok(()) };
        make(trial.place(), &things);
        let before = look(trial.place());
        let manifest = saved(&trial);
        prop_assert!(manifest.omitted.is_empty(), "{:?}", manifest.omitted);
        prop_assert_eq!(trial.verify(1).unwrap().entries, before.len() as u64 + 1);
        // Into a tmpfs with one page more than the tree occupies.
        let place = Calls::new().open_directory(trial.place()).unwrap();
        let used = Calls::new().file_system(place.as_fd()).unwrap().space.used_bytes;
        drop((place, mounted));
        let _mounted = Mounted::tmpfs(trial.place(), &format!("{OPTIONS},size={}", used + 4096));
        let loaded = trial.load().unwrap();
        prop_assert!(loaded.extracted.omitted.is_empty(), "{:?}", loaded.extracted.omitted);
        prop_assert_eq!(look(trial.place()), before);
    }
}
