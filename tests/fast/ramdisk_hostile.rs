//! Damaged and forged archives: entries that cannot be loaded are left out, a damaged archive is set aside and an older
//! generation loaded, and nothing is written outside of the disk.

use std::fs;

use crate::support::ramdisk::{Picture, Trial, change, picture, small};
use crate::support::skip;
use engine::ErrorKind;
use logic::ramdisk::header::Fields;
use logic::ramdisk::manifest::Manifest;
use logic::ramdisk::omitted::Reason;
use logic::ramdisk::state::Outcome;
use logic::ramdisk::{archive_name, manifest_name, pax};

/// An archive under construction.
#[derive(Default)]
struct Forged(Vec<u8>);

impl Forged {
    /// One with a valid beginning.
    fn new() -> Forged {
        Forged::default().entry(b'5', b"./", b"", b"")
    }

    fn entry(mut self, kind: u8, path: &[u8], link: &[u8], data: &[u8]) -> Forged {
        let fields = Fields {
            kind,
            path,
            link,
            mode: 0o777,
            uid: rustix::process::geteuid().as_raw(),
            gid: rustix::process::getegid().as_raw(),
            mtime: 1,
            size: data.len() as u64,
            device: None,
        };
        self.0.extend_from_slice(&fields.block());
        self.0.extend_from_slice(data);
        self.0.resize(self.0.len().next_multiple_of(512), 0);
        self
    }

    fn file(self, path: &[u8]) -> Forged {
        self.entry(b'0', path, b"", b"evil")
    }

    fn directory(self, path: &[u8]) -> Forged {
        self.entry(b'5', path, b"", b"")
    }

    fn symlink(self, path: &[u8], target: &[u8]) -> Forged {
        self.entry(b'2', path, target, b"")
    }

    fn hard_link(self, path: &[u8], target: &[u8]) -> Forged {
        self.entry(b'1', path, target, b"")
    }

    fn extended(self, records: &[u8]) -> Forged {
        self.entry(b'x', b"PaxHeaders/x", b"", records)
    }

    fn raw(mut self, data: &[u8]) -> Forged {
        self.0.extend_from_slice(data);
        self
    }

    fn end(self) -> Vec<u8> {
        self.raw(&[0; 1024]).0
    }
}

/// Two generations, their contents, and the surroundings of the disk.
struct Scene {
    trial: Trial,
    old: Picture,
    new: Picture,
    outside: Picture,
}

impl Scene {
    fn new() -> Scene {
        let trial = Trial::with(small);
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

    fn archive(&self) -> std::path::PathBuf {
        self.trial.disk.store().join(archive_name(2))
    }

    fn manifest(&self) -> std::path::PathBuf {
        self.trial.disk.store().join(manifest_name(2))
    }

    /// Replaces the archive of the newest generation, with a matching manifest.
    fn forge(&self, archive: &[u8]) {
        fs::write(self.archive(), archive).unwrap();
        let mut manifest = Manifest::parse(&fs::read_to_string(self.manifest()).unwrap()).unwrap();
        manifest.archive_bytes = archive.len() as u64;
        manifest.digest = format!("blake3:{}", blake3::hash(archive).to_hex());
        fs::write(self.manifest(), manifest.text()).unwrap();
    }

    /// Loads: the newest generation has to be refused, the older one loaded, and nothing written elsewhere.
    #[track_caller]
    fn falls_back(&self, what: &str) -> String {
        self.trial.reboot();
        let loaded = self.trial.load().unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!((loaded.outcome, loaded.generation), (Outcome::Fallback, Some(1)), "{what}");
        assert!(picture(self.trial.place()) == self.old, "{what}");
        assert!(picture(&self.trial.path("outside")) == self.outside, "{what}");
        let around: Vec<_> =
            fs::read_dir(self.trial.path("")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(around.len(), 3, "{what}: {around:?}");
        let [(2, why)] = loaded.refused.as_slice() else { panic!("{what}: {:?}", loaded.refused) };
        why.clone()
    }

    /// With a matching digest it is kept, and not pruned.
    #[track_caller]
    fn is_held(&self, what: &str) {
        let names = self.trial.names();
        assert!(names.contains(&"gen-2.held".to_owned()), "{what}: {names:?}");
        assert!(names.contains(&"gen-2.tar.zst".to_owned()), "{what}: {names:?}");
    }

    #[track_caller]
    fn is_set_aside(&self, what: &str) {
        let names = self.trial.names();
        assert!(names.contains(&"gen-2.tar.zst.bad".to_owned()), "{what}: {names:?}");
        assert!(!names.contains(&"gen-2.tar.zst".to_owned()), "{what}: {names:?}");
    }
}

#[test]
fn the_forger_can_make_good_archives() {
    let scene = Scene::new();
    let tar =
        Forged::new().directory(b"d/").file(b"d/f").hard_link(b"g", b"d/f").symlink(b"s", b"/etc").end();
    scene.forge(&zstd::encode_all(tar.as_slice(), 1).unwrap());
    scene.trial.reboot();
    let loaded = scene.trial.load().unwrap();
    assert_eq!((loaded.outcome, loaded.extracted.entries), (Outcome::Loaded, 5), "{:?}", loaded.refused);
    assert_eq!(fs::read(scene.trial.place().join("g")).unwrap(), b"evil");
}

/// The extent of a forgery.
enum Wrong {
    /// One or more entries; the others can be loaded.
    Entry,
    /// The archive cannot be read to its end.
    Whole,
}

#[test]
fn forged_entries_are_left_out() {
    use Wrong::{Entry, Whole};
    let scene = Scene::new();
    let outside = scene.trial.path("outside").into_os_string().into_encoded_bytes();
    let secret = [&outside[..], b"/secret"].concat();
    let absolute = [&outside[..], b"/evil"].concat();
    let new = Forged::new;
    let sparse = [
        ("GNU.sparse.major", "1"),
        ("GNU.sparse.minor", "0"),
        ("GNU.sparse.name", "h"),
        ("GNU.sparse.realsize", "99999999999999"),
    ];
    let huge = &records(&sparse);
    let archives = [
        ("parent", Entry, new().file(b"../outside/evil")),
        ("parent in the middle", Entry, new().directory(b"d/").file(b"d/../../outside/evil")),
        ("absolute", Entry, new().file(&absolute)),
        ("dot", Entry, new().file(b"./evil")),
        ("nothing", Entry, new().file(b"")),
        ("empty name", Entry, new().directory(b"d/").file(b"d//evil")),
        ("no parent", Entry, new().file(b"d/evil")),
        ("through a symbolic link", Entry, new().symlink(b"d", b"../outside").file(b"d/evil")),
        ("through an absolute symbolic link", Entry, new().symlink(b"d", &outside).file(b"d/evil")),
        (
            "through a symbolic link further down",
            Entry,
            new().directory(b"a/").symlink(b"a/d", b"../../outside").directory(b"a/d/x/").file(b"a/d/x/evil"),
        ),
        (
            "a symbolic link, then a directory",
            Entry,
            new().symlink(b"d", b"../outside").directory(b"d/").file(b"d/evil"),
        ),
        ("a symbolic link, then a file", Entry, new().symlink(b"d", b"../outside/evil").file(b"d")),
        ("a hard link upwards", Entry, new().hard_link(b"h", b"../outside/secret")),
        ("an absolute hard link", Entry, new().hard_link(b"h", &secret)),
        (
            "a hard link through a symbolic one",
            Entry,
            new().symlink(b"d", b"../outside").hard_link(b"h", b"d/secret"),
        ),
        ("a hard link to nothing", Entry, new().hard_link(b"h", b"missing")),
        ("a hard link to a directory", Entry, new().directory(b"d/").hard_link(b"h", b"d")),
        ("a hard link in the place of a file", Entry, new().file(b"f").file(b"h").hard_link(b"h", b"f")),
        ("twice", Entry, new().file(b"f").file(b"f")),
        ("a directory twice", Entry, new().directory(b"d/").directory(b"d/")),
        ("the root twice", Entry, new().directory(b"./")),
        ("no root", Whole, Forged::default().file(b"f")),
        ("a longer path", Entry, new().extended(&records(&[("path", "../outside/evil")])).file(b"f")),
        ("an absolute longer path", Entry, new().extended(b"19 path=/tmp/evil1\n").file(b"f")),
        ("a zero byte", Entry, new().extended(b"14 path=ab\0cd\n").file(b"f")),
        ("an unknown record", Entry, new().extended(&records(&[("charset", "abc")])).file(b"f")),
        ("a size that is not that of the header", Entry, new().extended(b"9 size=1\n").file(b"f")),
        ("a broken record", Entry, new().extended(b"99 path=f\n").file(b"f")),
        ("two extended headers", Whole, new().extended(b"9 path=f\n").extended(b"9 path=g\n").file(b"f")),
        ("an extended header and nothing", Whole, new().extended(b"9 path=f\n")),
        ("a global header", Entry, new().entry(b'g', b"g", b"", b"9 path=f\n").file(b"f")),
        (
            "a long name of GNU",
            Entry,
            new().entry(b'L', b"././@LongLink", b"", b"../outside/evil\0").file(b"f"),
        ),
        ("an old sparse file", Entry, new().entry(b'S', b"f", b"", b"")),
        ("a contiguous file", Entry, new().entry(b'7', b"f", b"", b"")),
        ("a directory with contents", Entry, new().entry(b'5', b"d/", b"", b"evil")),
        ("a link to nothing", Entry, new().symlink(b"l", b"")),
        ("a map that is none", Entry, new().extended(huge).file(b"h")),
        (
            "a map beyond the file",
            Entry,
            new().extended(huge).entry(b'0', b"h", b"", &map("1\n99999999999999\n1\n")),
        ),
        ("a map without data", Entry, new().extended(huge).entry(b'0', b"h", b"", &map("1\n0\n100000\n"))),
        ("a map backwards", Entry, new().extended(huge).entry(b'0', b"h", b"", &map("2\n9\n1\n0\n1\n"))),
        ("a map that is too long", Entry, new().extended(huge).entry(b'0', b"h", b"", &map("99999999999\n"))),
        ("something after the end", Whole, new().raw(&[0; 1024]).file(b"f")),
        ("a header that is none", Whole, new().raw(&[b'x'; 512])),
    ];
    for (what, wrong, archive) in archives {
        let scene = Scene::new();
        // The forged path names the outside of the first scene, which is another directory.
        scene.forge(&zstd::encode_all(archive.end().as_slice(), 1).unwrap());
        let checked = scene.trial.verify(2);
        scene.trial.reboot();
        let loaded = scene.trial.load().unwrap_or_else(|error| panic!("{what}: {error}"));
        let root = picture(scene.trial.place());
        match wrong {
            // `verify` and `load` agree, and omitted entries are named.
            Entry => {
                let found = checked.unwrap().found;
                assert_eq!((loaded.outcome, loaded.generation), (Outcome::Loaded, Some(2)), "{what}");
                assert_eq!(found.omitted, loaded.extracted.omitted, "{what}");
                assert!(!found.omitted.is_empty(), "{what}");
                assert_eq!(found.entries, loaded.extracted.entries, "{what}");
                assert_eq!(root.len() as u64, found.entries, "{what}: {root:?}");
            }
            Whole => {
                assert_eq!(checked.unwrap_err().kind, ErrorKind::SnapshotCorrupt, "{what}");
                assert_eq!((loaded.outcome, loaded.generation), (Outcome::Fallback, Some(1)), "{what}");
                assert!(root == scene.old, "{what}");
            }
        }
        // With a matching digest it is kept, whatever its contents.
        let names = scene.trial.names();
        assert!(names.contains(&"gen-2.held".to_owned()), "{what}: {names:?}");
        assert!(!names.iter().any(|name| name.ends_with(".bad")), "{what}: {names:?}");
        assert!(picture(&scene.trial.path("outside")) == scene.outside, "{what}");
    }
    assert!(picture(&scene.trial.path("outside")) == scene.outside);
}

fn records(pairs: &[(&str, &str)]) -> Vec<u8> {
    let mut out = Vec::new();
    for (key, value) in pairs {
        pax::push(&mut out, key.as_bytes(), value.as_bytes());
    }
    out
}

fn map(text: &str) -> Vec<u8> {
    let mut data = text.as_bytes().to_vec();
    data.resize(512, 0);
    data
}

#[test]
fn archives_that_end_too_early_are_refused() {
    for share in [0, 1, 10, 50, 90, 99] {
        let scene = Scene::new();
        let good = fs::read(scene.archive()).unwrap();
        // With the original manifest, and with a matching one.
        fs::write(scene.archive(), &good[..good.len() * share / 100]).unwrap();
        let why = scene.falls_back(&format!("{share} %"));
        assert!(why.contains(&good.len().to_string()), "{why}");
        scene.is_set_aside("cut off");

        let scene = Scene::new();
        scene.forge(&good[..good.len() * share / 100]);
        scene.falls_back(&format!("{share} % with a manifest"));
        scene.is_held("cut off");
    }
    // A complete zstd frame with half an archive.
    let scene = Scene::new();
    let tar = zstd::decode_all(fs::read(scene.archive()).unwrap().as_slice()).unwrap();
    for length in [0, 100, 512, 1024, 5000, tar.len() / 2, tar.len() - 1024, tar.len() - 512] {
        let scene = Scene::new();
        scene.forge(&zstd::encode_all(&tar[..length], 1).unwrap());
        scene.falls_back(&format!("{length} bytes"));
        scene.is_held("cut off");
    }
}

#[test]
fn a_flipped_bit_is_noticed_wherever_it_is() {
    let scene = Scene::new();
    let good = fs::read(scene.archive()).unwrap();
    let step = good.len() / 60;
    for at in (0..good.len()).step_by(step) {
        let scene = Scene::new();
        let mut bad = fs::read(scene.archive()).unwrap();
        let at = at.min(bad.len() - 1);
        bad[at] ^= 1 << (at % 8);
        fs::write(scene.archive(), &bad).unwrap();
        let error = scene.trial.verify(2).unwrap_err();
        assert_eq!(error.kind, ErrorKind::SnapshotCorrupt, "{at}: {error}");
        scene.falls_back(&format!("byte {at}"));
        // With a digest that is right it would stay.
        scene.is_set_aside("flipped");
    }
}

#[test]
fn wrong_manifests_are_refused() {
    // Neither does an archive without a checksum load without a manifest, nor one that is cut off.
    for text in ["", "{}", "no JSON", "{\"format_version\": 1}"] {
        let scene = Scene::new();
        let good = fs::read(scene.archive()).unwrap();
        let plain = zstd::encode_all(zstd::decode_all(good.as_slice()).unwrap().as_slice(), 1).unwrap();
        for archive in [&plain[..], &good[..good.len() - 1], &[&good[..], b"x"].concat()] {
            let scene = Scene::new();
            fs::write(scene.archive(), archive).unwrap();
            fs::write(scene.manifest(), text).unwrap();
            scene.falls_back(text);
            scene.is_set_aside(text);
        }
    }
    // A manifest of a later version: the snapshot is kept.
    let scene = Scene::new();
    let good = fs::read_to_string(scene.manifest()).unwrap();
    let newer = good.replace("\"format_version\": 1", "\"format_version\": 2");
    fs::write(scene.manifest(), newer.replace("digest", "digests")).unwrap();
    let why = scene.falls_back("version 2");
    assert!(why.contains("version 2"), "{why}");
    assert!(scene.trial.names().contains(&"gen-2.held".to_owned()), "{:?}", scene.trial.names());
    for _ in 0..4 {
        scene.trial.save().unwrap();
    }
    assert!(scene.trial.generations().contains(&2), "{:?}", scene.trial.generations());
    // So it is if the archive is not one of this version.
    let scene = Scene::new();
    fs::write(scene.manifest(), &newer).unwrap();
    fs::write(scene.archive(), "another format").unwrap();
    scene.falls_back("version 2");
    assert!(scene.trial.names().contains(&"gen-2.held".to_owned()), "{:?}", scene.trial.names());
    // Archives without a manifest are no generations.
    let scene = Scene::new();
    fs::remove_file(scene.manifest()).unwrap();
    scene.trial.reboot();
    assert_eq!(scene.trial.load().unwrap().generation, Some(1));
    let numbers = scene.trial.save().map(|_| scene.trial.generations()).unwrap();
    assert_eq!(numbers, [3, 1], "the number is not given again");
    scene.is_set_aside("no manifest");
    assert!(picture(scene.trial.place()) == scene.old && scene.old != scene.new);
}

#[test]
fn device_nodes_are_created_and_never_opened() {
    if !rustix::process::geteuid().is_root() {
        return skip("needs root");
    }
    let scene = Scene::new();
    let tar = Forged::new().entry(b'3', b"null", b"", b"").entry(b'6', b"pipe", b"", b"").file(b"null/evil");
    scene.forge(&zstd::encode_all(tar.end().as_slice(), 1).unwrap());
    let found = scene.trial.verify(2).unwrap().found;
    scene.trial.reboot();
    let loaded = scene.trial.load().unwrap();
    assert_eq!((loaded.generation, &loaded.extracted.omitted), (Some(2), &found.omitted));
    assert_eq!(found.omitted.counts, [(Reason::Entry, 2)].into());
    assert!(scene.trial.place().join("pipe").exists());
}
