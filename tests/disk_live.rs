//! Saves of disks that are in use: what is written through mappings, and names that come and go meanwhile.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod support;
#[path = "support/disk.rs"]
mod trial;

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use support::{has_program, skip};
use trial::{ASKED, Trial, picture};
use zramd::engine::disk::{self, Request, Saved};
use zramd::host::linux::disk::Calls;

const LAST: Request<'static> = Request { reason: "stop", force: false, last: true };

/// A program that has mapped a file and read a byte of it; with every line that it is sent it writes that byte.
struct Mapper(Child, BufReader<std::process::ChildStdout>);

const MAPPER: &str = "
import mmap, sys
with open(sys.argv[1], 'r+b') as file:
    pages = mmap.mmap(file.fileno(), 0)
print(pages[0], flush=True)
for line in sys.stdin:
    pages[0] = ord(line[0])
    print(pages[0], flush=True)
";

impl Mapper {
    fn new(file: &Path) -> Mapper {
        let mut command = Command::new("python3");
        command.args(["-c", MAPPER]).arg(file).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let answers = BufReader::new(child.stdout.take().unwrap());
        let mut mapper = Mapper(child, answers);
        mapper.answer();
        mapper
    }

    fn answer(&mut self) {
        let mut line = String::new();
        assert!(self.1.read_line(&mut line).unwrap() > 0);
    }

    fn write(&mut self, letter: char) {
        writeln!(self.0.stdin.as_mut().unwrap(), "{letter}").unwrap();
        self.answer();
    }
}

impl Drop for Mapper {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        self.0.wait().unwrap();
    }
}

/// A file system in a file for as long as it lives; nothing without privileges or mkfs.
struct Image(PathBuf);

impl Image {
    fn new(trial: &Trial, kind: &str) -> Option<Image> {
        let mkfs = format!("mkfs.{kind}");
        if !rustix::process::geteuid().is_root() || !has_program(&mkfs) {
            skip(&format!("needs root and {mkfs}"));
            return None;
        }
        let image = trial.path("image");
        fs::File::create(&image).unwrap().set_len(32 << 20).unwrap();
        assert!(Command::new(mkfs).arg("-q").arg(&image).status().unwrap().success());
        Image::mount(&image, trial.place())
    }

    fn mount(image: &Path, place: &Path) -> Option<Image> {
        let mounted = Command::new("mount").args(["-o", "loop"]).arg(image).arg(place).status().unwrap();
        if !mounted.success() {
            skip("this kernel mounts no such file system from a file");
            return None;
        }
        Some(Image(place.to_owned()))
    }
}

impl Drop for Image {
    fn drop(&mut self) {
        Command::new("umount").arg(&self.0).status().unwrap();
    }
}

/// Saves, as whoever asks, what a program wrote through its mapping; and nothing when it wrote nothing.
fn mapped_writes_are_saved(trial: &Trial) {
    let file = trial.place().join("database");
    fs::write(&file, vec![b'-'; 10_000]).unwrap();
    // Files that have just changed are saved again anyway.
    Calls::new().wait_for_tick();
    let mut mapper = Mapper::new(&file);
    mapper.write('0');
    Calls::new().wait_for_tick();
    trial.save().unwrap();
    let requests = [('a', LAST), ('b', ASKED), ('c', Request { reason: "timer", ..ASKED })];
    for (number, (letter, request)) in (2..).zip(requests) {
        let store = picture(&trial.disk.store);
        assert_eq!(trial.save_as(ASKED), Ok(Saved::Unchanged(number - 1)));
        assert!(picture(&trial.disk.store) == store, "nothing is written");
        mapper.write(letter);
        Calls::new().wait_for_tick();
        let saved = trial.save_as(request).unwrap();
        assert!(matches!(saved, Saved::Written { generation, .. } if generation == number), "{saved:?}");
        let to = trial.path(&format!("exported-{number}"));
        disk::export(&Calls::new(), &trial.disk, None, &to, &mut |_| true).unwrap();
        assert!(fs::read(to.join("database")).unwrap() == fs::read(&file).unwrap());
    }
}

#[test]
fn what_is_written_through_a_mapping_of_a_tmpfs_is_saved() {
    if !has_program("python3") {
        return skip("needs python3");
    }
    let trial = Trial::new();
    trial.load().unwrap();
    mapped_writes_are_saved(&trial);
}

#[test]
fn what_is_written_through_a_mapping_of_an_ext4_is_saved() {
    if !has_program("python3") {
        return skip("needs python3");
    }
    let trial = Trial::new();
    let Some(_mounted) = Image::new(&trial, "ext4") else { return };
    trial.load().unwrap();
    mapped_writes_are_saved(&trial);
}
