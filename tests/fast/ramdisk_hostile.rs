//! Damaged and forged stores: a forged snapshot is not loaded, damage costs no more than what it hit, and nothing is written
//! outside of the disk.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::support::ramdisk::{ASKED, Picture, Trial, change, noise, picture, small, unchanged};
use crate::support::{repository, skip};
use engine::ErrorKind;
use host::linux::ramdisk::Calls;
use logic::ramdisk::entry::Time;
use logic::ramdisk::generation_name;
use logic::ramdisk::omitted::Reason;
use logic::ramdisk::state::Outcome;
use store::Saved;
use store::format::tree::{Body, Entry, Runs};
use store::format::{self, FOOTER, Footer, Head, START, Section};

fn entry(name: &[u8], body: Body) -> Entry {
    Entry {
        name: name.to_vec(),
        mode: 0o777,
        uid: rustix::process::geteuid().as_raw(),
        gid: rustix::process::getegid().as_raw(),
        mtime: Time { seconds: 1, nanoseconds: 0 },
        attributes: Vec::new(),
        is_shared: false,
        body,
    }
}

/// A tree and its contents under construction.
#[derive(Default)]
struct Forged {
    tree: Vec<u8>,
    raw: Vec<u8>,
    contents: Vec<format::Content>,
}

impl Forged {
    /// One with a valid beginning.
    fn new() -> Forged {
        Forged::default().add(&entry(b"", Body::Directory(0)))
    }

    fn add(mut self, entry: &Entry) -> Forged {
        entry.put(&mut self.tree);
        self
    }

    fn file(mut self, name: &[u8]) -> Forged {
        let data = [b"evil ", name].concat();
        let hash = format::hash(&data);
        self = self.sized(name, data.len() as u64);
        let mut runs = Runs::default();
        runs.content(&mut self.tree, &hash);
        runs.end(&mut self.tree);
        self.contents.push((hash, u32::try_from(data.len()).unwrap()));
        self.raw.extend(data);
        self
    }

    fn sized(self, name: &[u8], size: u64) -> Forged {
        self.add(&entry(name, Body::File { size, has_holes: false }))
    }

    fn directory(self, name: &[u8], up: usize) -> Forged {
        self.add(&entry(name, Body::Directory(up)))
    }

    fn symlink(self, name: &[u8], target: &[u8]) -> Forged {
        self.add(&entry(name, Body::Symlink(target.to_vec())))
    }

    fn bytes(mut self, bytes: &[u8]) -> Forged {
        self.tree.extend(bytes);
        self
    }

    /// The file of a snapshot with this number, manifest and version.
    fn end(&self, number: u64, manifest: &[u8]) -> Vec<u8> {
        let mut file = START.to_vec();
        let mut index = Vec::new();
        if !self.contents.is_empty() {
            let stored = zstd::bulk::compress(&self.raw, 1).unwrap();
            let head = Head {
                raw: u32::try_from(self.raw.len()).unwrap(),
                stored: u32::try_from(stored.len()).unwrap(),
                hash: format::hash(&stored),
                contents: self.contents.clone(),
            };
            format::index(file.len() as u64, &head, &mut index);
            head.put(&mut file);
            file.extend(stored);
        }
        let mut section = |data: &[u8]| {
            let section =
                Section { offset: file.len() as u64, length: data.len() as u64, hash: format::hash(data) };
            file.extend(data);
            section
        };
        let tree = zstd::bulk::compress(&self.tree, 1).unwrap();
        let footer = Footer {
            number,
            tree: section(&tree),
            index: section(&index),
            manifest: section(manifest),
            again: section(&tree),
            tree_bytes: self.tree.len() as u64,
            tree_hash: format::hash(&self.tree),
            ..Footer::default()
        };
        file.extend(footer.bytes());
        file.extend(footer.bytes());
        file
    }
}

/// As `small`, with a tree that is large enough for a base.
fn many(root: &Path) {
    small(root);
    for number in 0..500 {
        fs::write(root.join(format!("a/{number}")), number.to_string()).unwrap();
    }
}

/// Two generations, their contents, and the surroundings of the disk.
struct Scene {
    trial: Trial,
    old: Picture,
    new: Picture,
    outside: Picture,
}

fn footer(file: &[u8]) -> Footer {
    Footer::parse(file.last_chunk().unwrap(), file.len() as u64).unwrap()
}

fn range(section: Section) -> std::ops::Range<usize> {
    let start = usize::try_from(section.offset).unwrap();
    start..start + usize::try_from(section.length).unwrap()
}

impl Scene {
    fn new() -> Scene {
        Scene::of(small)
    }

    fn of(tree: fn(&Path)) -> Scene {
        let trial = Trial::with(tree);
        trial.save().unwrap();
        let old = picture(trial.place());
        change(trial.place());
        trial.save().unwrap();
        let new = picture(trial.place());
        let outside = trial.path("outside");
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("secret"), "secret").unwrap();
        let outside = picture(&outside);
        Scene { trial, old, new, outside }
    }

    fn file(&self, number: u64) -> PathBuf {
        self.trial.disk.store().join(generation_name(number))
    }

    /// Replaces the newest generation; everything but its entries is right.
    fn forge(&self, forged: &Forged) {
        let good = fs::read(self.file(2)).unwrap();
        let manifest = &good[range(footer(&good).manifest)];
        fs::write(self.file(2), forged.end(2, manifest)).unwrap();
    }

    /// Flips bits of a file, at these places.
    fn damage(&self, number: u64, places: impl IntoIterator<Item = usize>) {
        let mut bytes = fs::read(self.file(number)).unwrap();
        places.into_iter().for_each(|at| bytes[at] ^= 1 << (at % 8));
        fs::write(self.file(number), bytes).unwrap();
    }

    /// Loads: the newest generation has to be refused, the older one loaded, and nothing written elsewhere.
    #[track_caller]
    fn falls_back(&self, what: &str) -> String {
        self.trial.reboot();
        let loaded = self.trial.load().unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!((loaded.outcome, loaded.generation), (Outcome::Fallback, Some(1)), "{what}");
        assert!(picture(self.trial.place()) == self.old, "{what}");
        self.nothing_outside(what);
        let [(2, why)] = loaded.refused.as_slice() else { panic!("{what}: {:?}", loaded.refused) };
        why.clone()
    }

    #[track_caller]
    fn nothing_outside(&self, what: &str) {
        assert!(picture(&self.trial.path("outside")) == self.outside, "{what}");
        let around: Vec<_> =
            fs::read_dir(self.trial.path("")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(around.len(), 3, "{what}: {around:?}");
    }

    /// It is kept, and not pruned.
    #[track_caller]
    fn is_held(&self, what: &str) {
        let names = self.trial.names();
        assert!(names.contains(&"gen-2.held".to_owned()), "{what}: {names:?}");
        assert!(names.contains(&"gen-2".to_owned()), "{what}: {names:?}");
    }

    #[track_caller]
    fn is_set_aside(&self, what: &str) {
        let names = self.trial.names();
        assert!(names.contains(&"gen-2.bad".to_owned()), "{what}: {names:?}");
        assert!(!names.contains(&"gen-2".to_owned()), "{what}: {names:?}");
    }
}

#[test]
fn the_forger_can_make_good_snapshots() {
    let scene = Scene::new();
    let shared = Entry { is_shared: true, ..entry(b"f", Body::Fifo) };
    let forged = Forged::new().file(b"g").add(&shared).add(&entry(b"h", Body::HardLink(0)));
    scene.forge(&forged.symlink(b"s", b"/etc").directory(b"d", 0).file(b"g"));
    scene.trial.reboot();
    let loaded = scene.trial.load().unwrap();
    assert_eq!((loaded.outcome, loaded.extracted.entries), (Outcome::Loaded, 7), "{:?}", loaded.refused);
    assert_eq!(fs::read(scene.trial.place().join("d/g")).unwrap(), b"evil g");
}

/// The fuzzer starts from this. `UPDATE_GOLDEN=1` writes it again.
#[test]
fn the_seed_of_the_fuzzer_is_a_snapshot() {
    let mut forged = Forged { tree: b"a tree".to_vec(), ..Forged::default() };
    forged.contents.push((format::hash(b"abc"), 3));
    forged.raw.extend(b"abc");
    let seed = forged.end(1, b"{}");
    let path = repository("tests/fast/fuzz/seeds/ramdisk_frames/snapshot");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&path, &seed).unwrap();
    }
    assert!(fs::read(&path).unwrap() == seed);
}

#[test]
fn forged_entries_are_not_loaded() {
    let new = Forged::new;
    let name = |name: &[u8]| new().add(&entry(name, Body::Fifo));
    let outside = b"/tmp/evil".as_slice();
    let mut cut = new().file(b"f");
    cut.tree.pop();
    // A directory, and its name again as something through which to write elsewhere.
    let trees = [
        ("parent", name(b"..")),
        ("dot", name(b".")),
        ("nothing", name(b"")),
        ("a path", name(b"../outside/evil")),
        ("absolute", name(outside)),
        ("a zero byte", name(b"a\0b")),
        ("a long name", name(&[b'n'; 256])),
        ("a directory outside", new().directory(b"d", 0).directory(b"e", 2)),
        ("no root", Forged::default().file(b"f")),
        ("the root twice", new().directory(b"", 1)),
        ("nothing at all", Forged::default()),
        ("a hard link to nothing", new().add(&entry(b"h", Body::HardLink(0)))),
        ("a link to nothing", new().symlink(b"l", b"")),
        ("a file without contents", new().sized(b"f", 5)),
        ("contents that are not there", new().sized(b"f", 5).bytes(&[3]).bytes(&[7; 32])),
        ("a file that is too large", new().sized(b"f", u64::MAX)),
        ("more contents than its size", new().sized(b"f", 1).bytes(&[0xff; 9]).bytes(&[1])),
        ("an unknown kind", new().bytes(&[9, 0])),
        ("unknown flags", new().bytes(&[2 | 64, 0, 1, b'h'])),
        ("a tree that is cut off", cut),
    ];
    for (what, forged) in trees {
        let scene = Scene::new();
        scene.forge(&forged);
        assert_eq!(scene.trial.verify(2).unwrap_err().kind, ErrorKind::SnapshotCorrupt, "{what}");
        scene.falls_back(what);
        // Its hashes are right, so it may be of a program that knows more.
        scene.is_held(what);
        let to = scene.trial.path("to");
        store::export(&Calls::new(), &scene.trial.disk, Some(2), &to, &mut |_| true).ok();
        fs::remove_dir_all(to).ok();
        scene.nothing_outside(what);
    }
}

#[test]
fn a_name_that_is_there_twice_leads_nowhere() {
    let trees = [
        ("a file twice", Forged::new().file(b"f").file(b"f")),
        ("a directory twice", Forged::new().directory(b"d", 0).directory(b"d", 1).file(b"f")),
        (
            "a symbolic link, then a directory",
            Forged::new().symlink(b"d", b"../outside").directory(b"d", 0).file(b"evil"),
        ),
        ("a symbolic link, then a file", Forged::new().symlink(b"d", b"../outside/evil").file(b"d")),
    ];
    for (what, forged) in trees {
        let scene = Scene::new();
        scene.forge(&forged);
        scene.trial.reboot();
        let loaded = scene.trial.load().unwrap();
        assert_eq!(
            loaded.outcome,
            if loaded.refused.is_empty() { Outcome::Loaded } else { Outcome::Fallback }
        );
        assert!(!loaded.refused.is_empty() || loaded.extracted.omitted.count() > 0, "{what}");
        scene.nothing_outside(what);
    }
}

#[test]
fn a_snapshot_that_ends_too_early_is_refused() {
    for share in [0, 1, 10, 50, 90, 99] {
        let scene = Scene::new();
        let good = fs::read(scene.file(2)).unwrap();
        fs::write(scene.file(2), &good[..(good.len() * share / 100).min(good.len() - 2 * FOOTER)]).unwrap();
        let what = format!("{share} %");
        scene.falls_back(&what);
        scene.is_set_aside(&what);
    }
}

#[test]
fn a_flipped_bit_is_noticed_wherever_it_is_and_costs_no_more_than_what_it_hit() {
    let mut seen = [0; 4];
    for step in 0..260 {
        let scene = Scene::new();
        let good = fs::read(scene.file(2)).unwrap();
        let (end, size) = (footer(&good), good.len());
        let first = range(end.tree).start;
        // Everywhere, and more often at the end.
        let at = if step < 220 { step * size / 220 } else { size - 1 - (step - 220) * 16 };
        scene.damage(2, [at]);
        let what = format!("byte {at} of {size}");
        let verified = scene.trial.verify(2);
        // The start and heads are repeated by the footer and the index, the index by the heads, the footer by its copy.
        if verified.is_err() && at >= first && !range(end.manifest).contains(&at) {
            scene.falls_back(&what);
            scene.is_set_aside(&what);
            seen[0] += 1;
            continue;
        }
        if verified.is_err() && at < first {
            // Only files that changed are in this file.
            scene.falls_back(&what);
            scene.is_held(&what);
            seen[1] += 1;
            continue;
        }
        seen[if verified.is_err() { 2 } else { 3 }] += 1;
        scene.trial.reboot();
        assert_eq!(scene.trial.load().unwrap().outcome, Outcome::Loaded, "{what}");
        assert!(picture(scene.trial.place()) == scene.new, "{what}");
    }
    assert!(seen[1..].iter().all(|count| *count > 0), "{seen:?}");
}

#[test]
fn damage_to_both_copies_of_what_is_there_twice_is_noticed() {
    for what in ["tree", "footer"] {
        let scene = Scene::of(many);
        let good = fs::read(scene.file(1)).unwrap();
        let end = footer(&good);
        assert_eq!(end.base, None, "the first snapshot has a whole tree");
        assert_eq!(footer(&fs::read(scene.file(2)).unwrap()).base, Some(end.tree_hash));
        let copies = match what {
            "tree" => [range(end.tree).start, range(end.again).start],
            _ => [good.len() - 1, good.len() - FOOTER - 1],
        };
        scene.damage(1, [copies[0]]);
        scene.trial.verify(1).unwrap();
        scene.trial.verify(2).unwrap();
        scene.damage(1, [copies[1]]);
        scene.trial.verify(1).unwrap_err();
        // The second one has its own end, but needs the tree of the first.
        scene.trial.verify(2).unwrap_err();
        scene.trial.reboot();
        assert!(scene.trial.load().is_err(), "{what}");
        assert_eq!(scene.trial.generations(), [0_u64; 0], "{what}");
        assert!(scene.trial.names().contains(&"gen-1.bad".to_owned()), "{what}: {:?}", scene.trial.names());
    }
}

/// A disk with two generations that share the contents of its larger files.
fn sharing() -> Trial {
    let trial = Trial::new();
    trial.load().unwrap();
    for number in 0..6_u8 {
        let file: Vec<u8> = noise(300_000).iter().map(|byte| byte ^ number).collect();
        fs::write(trial.place().join(format!("large-{number}")), file).unwrap();
    }
    fs::write(trial.place().join("small"), "first").unwrap();
    trial.save().unwrap();
    fs::write(trial.place().join("small"), "second").unwrap();
    trial.save().unwrap();
    trial
}

/// Damages contents in the first file of the store.
fn damage_frame(trial: &Trial) {
    let first = trial.disk.store().join(generation_name(1));
    let good = fs::read(&first).unwrap();
    let frames = format::parse_index(&good[range(footer(&good).index)], good.len() as u64).unwrap();
    assert!(frames.len() > 5, "{}", frames.len());
    let (offset, head) = &frames[2];
    let at = offset + head.length() as u64 + 5;
    fs::OpenOptions::new().write(true).open(&first).unwrap().write_all_at(b"?damage?", at).unwrap();
}

#[test]
fn what_verification_finds_is_remembered_until_the_next_save_writes_it_again() {
    let trial = sharing();
    let calls = Calls::new();
    let state = || store::status(&calls, &trial.disk).unwrap().state;
    let verify = |number| store::verify_and_remember(&calls, &trial.disk, number, &mut |_| true);
    verify(None).unwrap();
    damage_frame(&trial);
    assert_eq!((state().damage, trial.save_as(ASKED)), (None, Ok(unchanged(2))), "not known yet");
    let error = verify(None).unwrap_err();
    let found = state();
    assert_eq!(found.damage, Some(error.message));
    assert_eq!(found.damaged.len(), 1, "{found:?}");
    let saved = trial.save_as(ASKED).unwrap();
    assert!(matches!(saved, Saved::Written { generation: 3, .. }), "{saved:?}");
    assert_eq!(state().damage, None);
    verify(None).unwrap();
    assert_eq!(trial.save_as(ASKED), Ok(unchanged(3)));
}

#[test]
fn a_damaged_frame_costs_the_files_in_it_and_is_written_again_by_the_next_save() {
    let trial = sharing();
    let whole = picture(trial.place());
    damage_frame(&trial);
    let error = trial.verify(2).unwrap_err();
    assert!(error.message.contains("damaged contents") && !error.message.contains("large"), "{error}");
    assert!(error.full().contains("large-"), "only root reads names: {}", error.full());

    // While the disk is there, a save writes them again.
    trial.reboot();
    let loaded = trial.load().unwrap();
    assert_eq!((loaded.outcome, loaded.generation), (Outcome::Loaded, Some(2)), "{:?}", loaded.refused);
    let lost = loaded.extracted.omitted;
    assert!((1..=2).contains(&lost.count()), "{lost:?}");
    assert!(lost.counts.keys().all(|reason| *reason == Reason::Contents), "{lost:?}");
    let mut found = picture(trial.place());
    for named in &lost.named {
        found.insert(PathBuf::from(&named.path), whole[&PathBuf::from(&named.path)].clone());
    }
    assert!(found == whole, "all others are there");
    assert!(trial.names().contains(&"gen-2.held".to_owned()), "{:?}", trial.names());
    for named in &lost.named {
        let number: u8 = named.path.strip_prefix("large-").unwrap().parse().unwrap();
        let file: Vec<u8> = noise(300_000).iter().map(|byte| byte ^ number).collect();
        fs::write(trial.place().join(&named.path), file).unwrap();
    }
    let Saved::Written { generation, .. } = trial.save().unwrap() else { panic!("nothing was written") };
    trial.verify(generation).unwrap();
    // The older ones have lost nothing that they had.
    trial.verify(2).unwrap();
}

#[test]
fn a_snapshot_of_a_later_version_is_kept_and_so_is_all_that_it_may_need() {
    let scene = Scene::new();
    let mut file = fs::read(scene.file(2)).unwrap();
    for copy in [1, 2] {
        let start = file.len() - copy * FOOTER;
        file[start + 8] = 2;
        let sum = format::hash(&file[start..start + FOOTER - 32]);
        file[start + FOOTER - 32..start + FOOTER].copy_from_slice(&sum);
    }
    fs::write(scene.file(2), file).unwrap();
    let why = scene.falls_back("version 2");
    assert!(why.contains("version 2"), "{why}");
    scene.is_held("version 2");
    for number in 0..4 {
        fs::write(scene.trial.place().join("number"), number.to_string()).unwrap();
        scene.trial.save().unwrap();
    }
    assert!(scene.trial.generations().contains(&2), "{:?}", scene.trial.generations());
    let numbers: Vec<String> = (1..=6).map(|number| number.to_string()).collect();
    let names = scene.trial.names();
    let is_there = |number: &String| names.iter().any(|name| name.split('-').nth(1) == Some(number));
    assert!(numbers.iter().all(is_there), "{names:?}");
}

#[test]
fn a_snapshot_under_another_number_is_refused() {
    let scene = Scene::new();
    fs::copy(scene.file(1), scene.file(2)).unwrap();
    assert_eq!(scene.trial.verify(2).unwrap_err().kind, ErrorKind::SnapshotCorrupt);
}

#[test]
fn device_nodes_are_created_and_never_opened() {
    if !rustix::process::geteuid().is_root() {
        return skip("needs root");
    }
    let scene = Scene::new();
    let forged = Forged::new().add(&entry(b"null", Body::Character(1, 3))).add(&entry(b"pipe", Body::Fifo));
    scene.forge(&forged);
    scene.trial.reboot();
    let loaded = scene.trial.load().unwrap();
    assert_eq!((loaded.generation, loaded.extracted.omitted.count()), (Some(2), 0));
    assert!(scene.trial.place().join("pipe").exists());
}
