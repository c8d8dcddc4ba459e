//! Files outside of [`Host`](crate::Host): configuration and generated units.
//!
//! `plan`, `check` and `generate` read below a root directory and never touch devices, so these are plain functions.

use std::ffi::OsString;
use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::mem::MaybeUninit;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, RawDir};

use crate::lossy;
use logic::config::edit::Edit;
use logic::config::locate::{self, Entry, EntryKind};
use logic::config::{self, Loaded, enabled_by_cmdline};
use logic::finding::Finding;
use logic::origin::Origin;
use logic::overlay::{DIRECTORY, section_of_path};
use logic::unit::{CREDENTIALS_DROP_IN, Contents, UnitFile};

/// Files by precedence, and problems with files that could not be read.
pub type Sources = (Vec<(PathBuf, String)>, Vec<Finding>);

/// Directory of generated units.
pub(super) const GENERATED: &str = "run/systemd/generator";
/// Maximum length in bytes of a file of the kernel or in `/etc`.
const LARGEST: usize = 64 << 20;
/// Maximum length in bytes of a line of `/proc/self/mountinfo`: four times `PATH_MAX`, because each byte may be escaped.
/// Users can make longer ones by moving a directory that has a mount in it, but no mount of ours has such a path.
const LONGEST_MOUNT: usize = 4 * 4096;
/// Maximum length in bytes of a configuration file.
const LARGEST_CONFIGURATION: u64 = 1 << 20;

/// The text of a file below `root`; a missing one is empty, and what is not UTF-8 is replaced.
pub fn read_optional(root: &Path, path: &str) -> Result<String, String> {
    let full = inside(root, path);
    match read_small(&full) {
        Ok(bytes) => Ok(lossy(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        Err(error) => Err(format!("{}: {}", full.display(), describe(&error))),
    }
}

/// The contents of a file of the kernel or in `/etc`.
pub(super) fn read_small(path: &Path) -> io::Result<Vec<u8>> {
    let mut kept = Vec::new();
    in_parts(open_regular(path)?, |part| keep(&mut kept, part))?;
    Ok(kept)
}

/// Reads until the end. Not with `read_to_end`: most files of the kernel have no size.
fn in_parts(mut file: impl Read, mut take: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
    let mut buffer = [0; 4096];
    loop {
        match file.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(length) => take(&buffer[..length])?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

fn keep(kept: &mut Vec<u8>, part: &[u8]) -> io::Result<()> {
    kept.extend_from_slice(part);
    if kept.len() > LARGEST { Err(rustix::io::Errno::FBIG.into()) } else { Ok(()) }
}

/// The contents of an attribute in sysfs. It is read at once, so a short read is the end (Documentation/filesystems/sysfs.rst).
pub(super) fn read_attribute(path: &Path) -> io::Result<Vec<u8>> {
    let file = rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK, Mode::empty())?;
    let (mut kept, mut buffer) = (Vec::new(), [0; 4096]);
    loop {
        let length = rustix::io::retry_on_intr(|| rustix::io::read(&file, &mut buffer))?;
        keep(&mut kept, &buffer[..length])?;
        if length < buffer.len() {
            return Ok(kept);
        }
    }
}

/// Reads until the end or until `data` is full, and returns the number of bytes.
pub(super) fn fill(mut file: File, data: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < data.len() {
        match file.read(&mut data[filled..]) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

/// `/proc/self/mountinfo` below `root`; see [`mountinfo`].
pub(super) fn read_mountinfo(root: &Path) -> io::Result<Vec<u8>> {
    mountinfo(&open_mountinfo(root)?)
}

pub(super) fn open_mountinfo(root: &Path) -> io::Result<File> {
    open_regular(&below(root, "/proc/self/mountinfo"))
}

/// Its contents, without lines that are too long for a mount of ours.
pub(super) fn mountinfo(file: &File) -> io::Result<Vec<u8>> {
    read_lines(file, LONGEST_MOUNT)
}

/// All lines of at most `longest` bytes.
fn read_lines(file: impl Read, longest: usize) -> io::Result<Vec<u8>> {
    let (mut kept, mut line, mut skipped) = (Vec::new(), 0, false);
    in_parts(file, |read| {
        for part in read.split_inclusive(|byte| *byte == b'\n') {
            if !skipped {
                keep(&mut kept, part)?;
                skipped = kept.len() - line > longest;
            }
            if skipped {
                kept.truncate(line);
            }
            if part.ends_with(b"\n") {
                (line, skipped) = (kept.len(), false);
            }
        }
        Ok(())
    })?;
    Ok(kept)
}

/// Opens a file for reading if it is regular: opening a pipe may block, and opening a device may have side effects.
fn open_regular(path: &Path) -> io::Result<File> {
    must_be_regular(&fs::metadata(path)?)?;
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    must_be_regular(&file.metadata()?)?;
    Ok(file)
}

/// An error for anything but a regular file.
pub(super) fn must_be_regular(found: &Metadata) -> io::Result<()> {
    if found.is_file() { Ok(()) } else { Err(io::Error::other("it is not a regular file")) }
}

/// The text of an open configuration file.
pub(super) fn read_text(file: File) -> io::Result<String> {
    let mut bytes = Vec::new();
    file.take(LARGEST_CONFIGURATION + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LARGEST_CONFIGURATION {
        return Err(io::Error::other("it is larger than 1 MiB"));
    }
    String::from_utf8(bytes).map_err(|_| io::Error::other("it is not UTF-8 text"))
}

/// The text of a configuration file, with a warning if every user can write to it. `/dev/null` is empty.
fn read_configuration(path: &Path) -> io::Result<(String, Option<Finding>)> {
    let found = fs::metadata(path)?;
    let null = rustix::fs::makedev(1, 3);
    if found.file_type().is_char_device() && found.rdev() == null {
        return Ok((String::new(), None));
    }
    let file = open_regular(path)?;
    let writable = file.metadata()?.mode() & 0o002 != 0;
    let warning = writable
        .then(|| Finding::warning(at(path), "every user can write to this file").remedy("run `chmod o-w`"));
    let text = read_text(file)?;
    tracing::debug!("read {}: {} bytes", path.display(), text.len());
    Ok((text, warning))
}

fn at(path: &Path) -> Origin {
    Origin { file: path.to_owned(), ..Origin::default() }
}

/// The configuration below `root`, in the order of precedence.
pub fn find_sources(root: &Path) -> Sources {
    find_sources_after(root, None)
}

fn find_sources_after(root: &Path, edit: Option<&Edit>) -> Sources {
    let edited = edit.map(|edit| below(root, &edit.path));
    let mut mains = Vec::new();
    let mut drop_ins = Vec::new();
    let mut warnings = Vec::new();
    for (index, directory) in locate::ROOTS.iter().enumerate() {
        if *directory == locate::CREDENTIALS {
            let found = credentials(root, index, &mut warnings);
            mains.extend(found.0);
            drop_ins.extend(found.1);
            continue;
        }
        let directory = inside(root, directory);
        let main = directory.join(locate::MAIN);
        mains.extend(entry(index, locate::MAIN, &resolved(root, &main), main.clone(), &mut warnings));
        let directory = directory.join(locate::DROP_INS);
        if let (Some(edit), Some(path)) = (edit, &edited)
            && let (Some(text), Some(name)) =
                (&edit.after, path.strip_prefix(&directory).ok().and_then(Path::to_str))
        {
            let kind = EntryKind::Text(text.clone());
            drop_ins.push(Entry { root: index, name: name.to_owned(), path: path.clone(), kind });
        }
        let Ok(found) = fs::read_dir(resolved(root, &directory)) else { continue };
        for file in found.filter_map(Result::ok) {
            if let Ok(name) = file.file_name().into_string()
                && edited.as_ref() != Some(&file.path())
            {
                let path = file.path();
                drop_ins.extend(entry(index, &name, &resolved(root, &path), path.clone(), &mut warnings));
            }
        }
    }
    let (files, mut problems) = locate::order(mains, drop_ins);
    problems.append(&mut warnings);
    (files, problems)
}

/// The configuration below `root`, or one named file; in both cases with the runtime sections, which last until the next
/// boot.
pub fn sources(root: &Path, file: Option<&PathBuf>) -> Sources {
    sources_after(root, file, None)
}

/// As [`sources`], after an edit.
pub fn sources_after(root: &Path, file: Option<&PathBuf>, edit: Option<&Edit>) -> Sources {
    let Some(file) = file else { return find_sources_after(root, edit) };
    let mut paths = vec![file.clone()];
    paths.extend(overlays(root));
    let (mut files, problems) = read_sources(&paths);
    if let Some(edit) = edit {
        let edited = below(root, &edit.path);
        files.retain(|(path, _)| *path != edited);
        // Runtime sections take precedence over all files.
        files.extend(edit.after.clone().map(|text| (edited, text)));
    }
    (files, problems)
}

/// Reads the configuration from these sources and the kernel command line.
pub fn load(root: &Path, sources: Sources) -> Loaded {
    let loaded = config::load_sources(sources, &cmdline(root));
    let (files, found) = (loaded.files.len(), loaded.problems.len());
    tracing::debug!("configuration: {files} files, {found} findings");
    loaded
}

/// The kernel command line. If unreadable, it is treated as empty: it can only enable or disable zram, and choose the log level.
pub fn cmdline(root: &Path) -> String {
    read_optional(root, "/proc/cmdline").unwrap_or_default()
}

/// The named files, without any others.
pub fn read_sources(paths: &[PathBuf]) -> Sources {
    let mut files = Vec::new();
    let mut problems = Vec::new();
    for path in paths {
        match read_configuration(path) {
            Ok((text, warning)) => {
                files.push((path.clone(), text));
                problems.extend(warning);
            }
            Err(error) => {
                let message = format!("this file cannot be read: {}", describe(&error));
                problems.push(Finding::error(at(path), message));
            }
        }
    }
    (files, problems)
}

/// An I/O error without the number that Rust appends.
pub fn describe(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(number) => crate::Errno(number).to_string(),
        None => error.to_string(),
    }
}

/// The credentials for zramd: the main file and drop-ins. A unit with a mount namespace sees only its own copies, which a generated
/// drop-in gives it.
fn credentials(root: &Path, index: usize, warnings: &mut Vec<Finding>) -> (Option<Entry>, Vec<Entry>) {
    let system = below(root, locate::CREDENTIALS);
    let mut directory = system.clone();
    if let Err(error) = fs::read_dir(&system) {
        let own = std::env::var_os("CREDENTIALS_DIRECTORY").filter(|_| root == Path::new("/"));
        let is_denied = error.kind() == io::ErrorKind::PermissionDenied;
        if own.is_none() && is_denied && below(root, GENERATED).join(CREDENTIALS_DROP_IN).exists() {
            let message = "credentials of the machine are not read here: only root can";
            let place = at(&system.join(locate::MAIN));
            warnings.push(Finding::warning(place, message).remedy("run the command as root"));
        }
        let Some(own) = own else { return (None, Vec::new()) };
        directory = own.into();
    }
    let mut read = |file: &str, name| entry(index, name, &directory.join(file), system.join(file), warnings);
    let prefix = format!("{}.", locate::DROP_INS);
    let names = names(&directory);
    let drop_ins = names.iter().filter_map(|file| read(file, file.strip_prefix(&prefix)?)).collect();
    (read(locate::MAIN, locate::MAIN), drop_ins)
}

/// The entry for `path`, which is shown, with the contents of `file`; `None` if it is not part of the configuration, or missing.
fn entry(index: usize, name: &str, file: &Path, path: PathBuf, warnings: &mut Vec<Finding>) -> Option<Entry> {
    if name != locate::MAIN && !locate::is_drop_in(name) {
        return None;
    }
    let kind = match read_configuration(file) {
        Ok((text, _)) if text.trim().is_empty() => EntryKind::Mask,
        Ok((text, warning)) => {
            warnings.extend(warning);
            EntryKind::Text(text)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            fs::symlink_metadata(&path).ok()?;
            EntryKind::Dangling
        }
        Err(error) => EntryKind::Unreadable(describe(&error)),
    };
    Some(Entry { root: index, name: name.to_owned(), path, kind })
}

/// The runtime drop-ins, by name.
pub fn overlays(root: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(root.join(DIRECTORY)) else { return Vec::new() };
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.retain(|path| path.file_name().and_then(|name| name.to_str()).is_some_and(locate::is_drop_in));
    paths.sort_by_cached_key(|path| (section_of_path(path).is_some(), path.clone()));
    paths
}

/// Writes a runtime drop-in atomically; `None` removes it.
pub fn write_overlay(root: &Path, name: &str, text: Option<&str>) -> Result<(), String> {
    replace(root, &format!("/{DIRECTORY}/{name}"), text)?;
    if text.is_none() {
        // The directory stays while it holds other drop-ins; another program may have removed it.
        fs::remove_dir(root.join(DIRECTORY)).ok();
    }
    Ok(())
}

/// Replaces a file below `/run` atomically, creating its directory; `None` removes it.
pub fn replace(root: &Path, path: &str, text: Option<&str>) -> Result<(), String> {
    let path = below(root, path);
    let written = match (text, path.parent(), path.file_name().and_then(|name| name.to_str())) {
        (Some(text), Some(directory), Some(name)) => fs::create_dir_all(directory).and_then(|()| {
            let partial = directory.join(format!(".{name}.new"));
            fs::write(&partial, text).and_then(|()| fs::rename(&partial, &path)).inspect_err(|_| {
                fs::remove_file(&partial).ok();
            })
        }),
        _ => match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        },
    };
    written.map_err(|error| format!("{}: {}", path.display(), describe(&error)))
}

/// The text of a file, with replacements for what is not UTF-8; `None` if it cannot be read, or is larger than a configuration.
pub fn other_text(path: &Path) -> Option<String> {
    // A FIFO is not waited for, and a directory is not read.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty()).ok()?);
    let mut text = Vec::new();
    file.take(LARGEST_CONFIGURATION + 1).read_to_end(&mut text).ok()?;
    (text.len() as u64 <= LARGEST_CONFIGURATION).then(|| lossy(text))
}

/// The names in a directory, sorted; none if it cannot be read.
pub fn names(directory: &Path) -> Vec<String> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let Ok(opened) = rustix::fs::open(directory, flags, Mode::empty()) else { return Vec::new() };
    // On the stack, because the generator uses little heap.
    let mut buffer = [MaybeUninit::uninit(); 1024];
    let mut entries = RawDir::new(&opened, &mut buffer);
    let mut names = Vec::new();
    while let Some(Ok(entry)) = entries.next() {
        let name = entry.file_name().to_bytes();
        if ![&b"."[..], b".."].contains(&name) {
            names.push(lossy(name.to_vec()));
        }
    }
    names.sort();
    names
}

/// Whether a directory exists and has entries.
pub fn has_entries(directory: &Path) -> bool {
    fs::read_dir(directory).is_ok_and(|mut entries| entries.next().is_some())
}

/// Symbolic links that are followed in a path, as by the kernel (path_resolution(7)).
const MOST_LINKS: u32 = 40;

/// `path` below `root`.
pub fn below(root: &Path, path: &str) -> PathBuf {
    root.join(path.trim_start_matches('/'))
}

/// `path` below `root`, for reading: below the root of another machine, absolute links are followed there, too. One to `/dev/null` needs
/// no device there.
pub fn inside(root: &Path, path: impl AsRef<Path>) -> PathBuf {
    let path = path.as_ref();
    if root == Path::new("/") {
        return root.join(path);
    }
    let mut found = root.to_owned();
    let mut left: Vec<OsString> = Vec::new();
    let push = |left: &mut Vec<OsString>, path: &Path| {
        left.extend(path.components().rev().map(|part| part.as_os_str().to_owned()));
    };
    push(&mut left, path);
    let mut links = 0;
    while let Some(part) = left.pop() {
        if part == "/" || part == ".." {
            let stays = part == ".." && found != root;
            found = if stays { found.parent().unwrap_or(root).to_owned() } else { root.to_owned() };
            continue;
        }
        found.push(part);
        match fs::read_link(&found) {
            Ok(target) if target == Path::new("/dev/null") => return target,
            Ok(target) if links < MOST_LINKS => {
                links += 1;
                found.pop();
                push(&mut left, &target);
            }
            _ => {}
        }
    }
    found
}

/// A path that begins with `root`, with its links followed as by [`inside`].
fn resolved(root: &Path, path: &Path) -> PathBuf {
    path.strip_prefix(root).map_or_else(|_| path.to_owned(), |path| inside(root, path))
}

/// The unit that a file of it, a drop-in or a link is about.
fn unit_of(path: &str) -> &str {
    let (directory, name) = path.rsplit_once('/').unwrap_or(("", path));
    directory.rsplit('/').next().and_then(|last| last.strip_suffix(".d")).unwrap_or(name)
}

/// Writes units below `directory`, creating the directories they need. A unit of which a file cannot be written whole is not
/// linked, so that nothing starts it.
pub fn write_units(directory: &Path, files: &[UnitFile]) -> Result<(), String> {
    let write = |file: &UnitFile| {
        let path = directory.join(&file.path);
        write_unit(&path, &file.contents).map_err(|error| format!("{}: {}", path.display(), describe(&error)))
    };
    // A unit that cannot be written does not prevent the others.
    let (links, texts): (Vec<&UnitFile>, Vec<&UnitFile>) =
        files.iter().partition(|file| matches!(file.contents, Contents::Link(_)));
    let mut cut: Vec<&str> = Vec::new();
    let mut failed: Vec<String> = Vec::new();
    for file in texts.into_iter().chain(links) {
        let unit = unit_of(&file.path);
        if matches!(file.contents, Contents::Link(_)) && cut.contains(&unit) {
            // Of an earlier run.
            fs::remove_file(directory.join(&file.path)).ok();
        } else if let Err(why) = write(file) {
            cut.push(unit);
            failed.push(why);
        } else {
            tracing::debug!("wrote {}", file.path);
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(failed.join("; ")) }
}

fn write_unit(path: &Path, contents: &Contents) -> io::Result<()> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    match contents {
        // One that is empty or cut off would be started.
        Contents::Text(text) => fs::write(path, text).inspect_err(|_| drop(fs::remove_file(path))),
        Contents::Link(target) => {
            match fs::remove_file(path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            std::os::unix::fs::symlink(target, path)
        }
    }
}

/// Directories in which systemd looks for units, by precedence.
const UNIT_DIRECTORIES: [&str; 4] =
    ["etc/systemd/system", "run/systemd/system", "usr/local/lib/systemd/system", "usr/lib/systemd/system"];

/// Whether a `*.wants`, `*.requires` or `*.upholds` directory has a link to `zramd.service`, and the service is not masked.
/// These links are what `systemctl enable` makes; systemd's own generators use the same rule.
fn is_enabled(root: &Path) -> bool {
    let masked = UNIT_DIRECTORIES.iter().any(|directory| {
        let unit = root.join(directory).join("zramd.service");
        fs::read_link(unit).is_ok_and(|target| target == Path::new("/dev/null"))
    });
    !masked && UNIT_DIRECTORIES.iter().any(|directory| is_wanted_in(&root.join(directory)))
}

/// Directories in which systemd looks for generators, by precedence (systemd.generator(7)).
const GENERATOR_DIRECTORIES: [&str; 5] = [
    "run/systemd/system-generators",
    "etc/systemd/system-generators",
    "usr/local/lib/systemd/system-generators",
    "usr/lib/systemd/system-generators",
    "lib/systemd/system-generators",
];

/// Whether PID 1 runs the generator: it is installed, and not masked by a link to `/dev/null`.
pub fn has_generator(root: &Path) -> bool {
    let paths = GENERATOR_DIRECTORIES.iter().map(|directory| root.join(directory).join("zramd-generator"));
    paths.into_iter().find(|path| fs::symlink_metadata(path).is_ok()).is_some_and(|path| path.is_file())
}

/// Whether the kernel command line asks for zram, also where `zramd.service` is not enabled.
pub fn is_asked_for(root: &Path) -> bool {
    enabled_by_cmdline(&cmdline(root)) == Some(true)
}

/// Whether the generator writes units: the kernel command line asks for zram, or else `zramd.service` is enabled. A kernel
/// that only saves a crash dump has little memory and ends soon; nothing is set up there.
pub fn generates(root: &Path) -> bool {
    !root.join("proc/vmcore").exists()
        && enabled_by_cmdline(&cmdline(root)).unwrap_or_else(|| is_enabled(root))
}

fn is_wanted_in(directory: &Path) -> bool {
    let Ok(entries) = fs::read_dir(directory) else { return false };
    entries.filter_map(Result::ok).any(|entry| {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        [".wants", ".requires", ".upholds"].iter().any(|kind| name.ends_with(kind))
            && fs::symlink_metadata(entry.path().join("zramd.service")).is_ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{CWD, FileType};

    #[test]
    fn a_unit_that_cannot_be_written_whole_is_not_linked() {
        let root = tempfile::tempdir().unwrap();
        let file = |path: &str, contents| UnitFile { path: path.to_owned(), contents };
        let text = |path: &str| file(path, Contents::Text("[Unit]\n".to_owned()));
        let link = |path: &str| file(path, Contents::Link("../x".to_owned()));
        let files = [
            link("swap.target.wants/a.swap"),
            text("a.swap"),
            text("b@1.service.d/50.conf"),
            link("x.wants/b@1.service"),
            text("c.service"),
            link("x.wants/c.service"),
        ];
        write_units(root.path(), &files).unwrap();
        let there = |path: &str| fs::symlink_metadata(root.path().join(path)).is_ok();
        assert!(files.iter().all(|file| there(&file.path)));
        // A directory in place of a file, as an error that root gets, too.
        for path in ["a.swap", "b@1.service.d/50.conf"] {
            fs::remove_file(root.path().join(path)).unwrap();
            fs::create_dir(root.path().join(path)).unwrap();
        }
        let failed = write_units(root.path(), &files).unwrap_err();
        assert!(failed.contains("a.swap") && failed.contains("50.conf"), "{failed}");
        assert!(!there("swap.target.wants/a.swap") && !there("x.wants/b@1.service"));
        assert!(there("c.service") && there("x.wants/c.service"));
    }

    #[test]
    fn lines_that_no_mount_of_ours_has_are_left_out() {
        let ours = b"36 35 252:7 / /a rw - ext4 /dev/zram7 rw\n";
        let long = |length: usize| [vec![b'x'; length], b"\n".to_vec()].concat();
        let (fits, too_long) = (long(LONGEST_MOUNT - 1), long(LONGEST_MOUNT));
        // More in total than the largest file that is read.
        let many = Again(long(1 << 20), 0).take(65 * ((1 << 20) + 1));
        let text = ours.chain(&fits[..]).chain(&too_long[..]).chain(many).chain(&ours[..]);
        assert_eq!(read_lines(text, LONGEST_MOUNT).unwrap(), [&ours[..], &fits, ours].concat());
        assert_eq!(read_lines(&too_long[..=LONGEST_MOUNT], LONGEST_MOUNT).unwrap(), b"");
        assert!(read_lines(Again(fits, 0), LONGEST_MOUNT).is_err());
    }

    /// Repeats these bytes.
    struct Again(Vec<u8>, usize);

    impl Read for Again {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let length = (&self.0[self.1..]).read(buffer)?;
            self.1 = (self.1 + length) % self.0.len();
            Ok(length)
        }
    }

    #[test]
    fn a_file_with_blank_lines_only_hides_what_is_below_it() {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in [
            ("usr/lib/zramd/zramd.toml", "[zram0]\n"),
            ("etc/zramd/zramd.toml", "\n \t\n"),
            ("usr/lib/zramd/zramd.toml.d/10-a.toml", "[zram1]\n"),
            ("etc/zramd/zramd.toml.d/10-a.toml", "\r\n"),
            ("etc/zramd/zramd.toml.d/20-b.toml", "# [zram2]\n"),
        ] {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let (files, problems) = find_sources(root.path());
        let names: Vec<_> = files.iter().filter_map(|(path, _)| path.file_name()).collect();
        assert_eq!((names, problems.len()), (vec![std::ffi::OsStr::new("20-b.toml")], 0));
    }

    #[test]
    fn links_below_a_root_stay_there() {
        use std::os::unix::fs::symlink;
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        fs::create_dir_all(root.join("a/b")).unwrap();
        symlink("/a", root.join("absolute")).unwrap();
        symlink("../../../../a/b", root.join("a/b/up")).unwrap();
        symlink("loop", root.join("loop")).unwrap();
        symlink("/dev/null", root.join("null")).unwrap();
        symlink("/null", root.join("masked")).unwrap();
        for (path, expected) in [
            ("/a/c", "a/c"),
            ("a/c", "a/c"),
            ("/absolute/b/c", "a/b/c"),
            ("/a/b/up/c", "a/b/c"),
            ("/../../etc", "etc"),
            ("/a/b/up/../../..", ""),
            ("/gone/../a", "a"),
        ] {
            assert_eq!(inside(root, path), root.join(expected), "{path}");
        }
        assert!(inside(root, "/loop/x").starts_with(root));
        for path in ["/null", "/masked"] {
            assert_eq!(inside(root, path), Path::new("/dev/null"));
        }
        assert_eq!(inside(Path::new("/"), "/a/b"), Path::new("/a/b"));
        assert_eq!(inside(Path::new("/"), "a/b"), Path::new("/a/b"));
    }

    #[test]
    fn texts_of_other_programs_may_be_anything() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        fs::write(at("b"), b"a\xff\n").unwrap();
        fs::write(at("large"), vec![b'x'; (1 << 20) + 1]).unwrap();
        fs::create_dir(at("directory")).unwrap();
        std::os::unix::fs::symlink("/gone", at("gone")).unwrap();
        std::os::unix::fs::symlink("/dev/null", at("null")).unwrap();
        rustix::fs::mknodat(CWD, at("fifo"), FileType::Fifo, Mode::RUSR, 0).unwrap();
        assert_eq!(other_text(&at("b")).as_deref(), Some("a\u{fffd}\n"));
        assert_eq!(other_text(&at("null")).as_deref(), Some(""));
        assert_eq!(other_text(&at("fifo")).as_deref(), Some(""), "a FIFO is not waited for");
        for name in ["large", "directory", "gone", "missing"] {
            assert_eq!(other_text(&at(name)), None, "{name}");
        }
        assert_eq!(names(directory.path()), ["b", "directory", "fifo", "gone", "large", "null"]);
        assert_eq!(names(&at("b")), [""; 0]);
    }
}
