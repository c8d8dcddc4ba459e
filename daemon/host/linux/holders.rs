//! Processes that hold a device or a file system.
//!
//! Only the text of `/proc` is read. stat(2) of an open file of another process waits for its file system, without end if that
//! is a FUSE or NFS server that does not answer.

use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use rustix::fs::OFlags;

use super::files::read_small;
use crate::Holder;
use logic::proc::Mounts;

/// Time limit of a search: a machine may have millions of open files, and a user can make a process slow to inspect.
const LIMIT: Duration = Duration::from_secs(1);
/// Longest text of `/proc/PID/fdinfo/N` that is read. The fields of all files come first.
const FDINFO: usize = 512;

/// Processes other than this one that have the device node open.
pub fn of_node(root: &Path, node: &Path) -> Vec<Holder> {
    let Some(name) = node.file_name().map(OsStr::to_owned) else { return Vec::new() };
    search(root, node, move |process| process.files(Some(&name)).any(|file| is_open(&file)))
}

/// Processes other than this one that have a file open, a file mapped, a working directory, a root or a program on the file
/// system mounted at `path`.
pub fn of_mount(root: &Path, path: &Path) -> Vec<Holder> {
    search(root, path, |process| {
        ["cwd", "root", "exe"].into_iter().any(|link| process.leads_there(link))
            || process.files(None).next().is_some()
            || process.maps()
    })
}

/// The texts of `/proc/PID/fdinfo` for the open files of a process, of any name or of this one, by number.
pub(super) fn open_files(process: &Path, name: Option<&OsStr>) -> impl Iterator<Item = (OsString, String)> {
    let entries = fs::read_dir(process.join("fd")).into_iter().flatten();
    entries.filter_map(move |entry| {
        let entry = entry.ok()?;
        // Most files have another name, and a link takes fewer calls than a text.
        if name.is_some() && fs::read_link(entry.path()).ok()?.file_name() != name {
            return None;
        }
        let number = entry.file_name();
        let mut text = [0; FDINFO];
        let length = File::open(process.join("fdinfo").join(&number)).ok()?.read(&mut text).ok()?;
        Some((number, String::from_utf8_lossy(&text[..length]).into_owned()))
    })
}

/// A field of such a text.
pub(super) fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
}

/// Whether the file of such a text is open, and not its name only (`O_PATH`), which every user may do.
fn is_open(text: &str) -> bool {
    let flags = field(text, "flags").and_then(|flags| u32::from_str_radix(flags, 8).ok());
    flags.is_some_and(|flags| flags & OFlags::PATH.bits() == 0)
}

/// The name of a process, which the process can choose; empty if it has ended.
pub(super) fn comm(process: &Path) -> String {
    let name = fs::read(process.join("comm")).unwrap_or_default();
    name.trim_ascii_end().escape_ascii().to_string()
}

/// All processes for which `holds` returns true, ascending; at the time limit, those found so far. They are asked about the
/// file system that `path` is on.
fn search(root: &Path, path: &Path, holds: impl Fn(&Process<'_>) -> bool + Send + 'static) -> Vec<Holder> {
    let place = || {
        let path = Path::new("/").join(path.strip_prefix(root).ok()?);
        let mounts = Mounts::parse(&read_small(&root.join("proc/self/mountinfo")).ok()?);
        mounts.of_path(path.as_os_str().as_bytes()).map(|mount| mount.device)
    };
    let Some(device) = place() else { return Vec::new() };
    let (found, results) = mpsc::channel();
    let (root, deadline) = (root.to_owned(), Instant::now() + LIMIT);
    // A thread of its own: `maps` waits for a lock of the process.
    let begun = std::thread::Builder::new().spawn(move || {
        let processes = processes(&root);
        let namespaces = namespaces(&processes, deadline);
        let ids = namespaces.values().flat_map(|(_, mounts)| mounts.ids(device)).collect();
        for (pid, directory) in processes {
            if Instant::now() >= deadline {
                return;
            }
            let process = Process { directory: &directory, namespaces: &namespaces, device, ids: &ids };
            if holds(&process) && found.send(Holder { pid, name: comm(&directory) }).is_err() {
                return;
            }
        }
    });
    let mut holders = Vec::new();
    if begun.is_ok() {
        while let Ok(holder) = results.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            holders.push(holder);
        }
    }
    holders.sort_by_key(|holder: &Holder| holder.pid);
    holders
}

/// All processes except this one.
fn processes(root: &Path) -> Vec<(u32, PathBuf)> {
    let entries = fs::read_dir(root.join("proc")).into_iter().flatten().filter_map(Result::ok);
    let pids = entries.filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path())));
    pids.filter(|(pid, _)| *pid != std::process::id()).collect()
}

/// The mounts of each mount namespace, by the text of the link `/proc/PID/ns/mnt`, with the root directory that their mount points
/// are below.
type Namespaces = HashMap<PathBuf, (PathBuf, Mounts)>;

fn namespaces(processes: &[(u32, PathBuf)], deadline: Instant) -> Namespaces {
    let mut namespaces = Namespaces::new();
    for (_, process) in processes.iter().take_while(|_| Instant::now() < deadline) {
        let name = namespace(process);
        let top = fs::read_link(process.join("root")).unwrap_or_else(|_| PathBuf::from("/"));
        // A process in a chroot sees only the mounts there.
        let is_better =
            namespaces.get(&name).is_none_or(|(known, _)| *known != top && known.starts_with(&top));
        if is_better && let Ok(text) = read_small(&process.join("mountinfo")) {
            namespaces.insert(name, (top, Mounts::parse(&text)));
        }
    }
    namespaces
}

fn namespace(process: &Path) -> PathBuf {
    fs::read_link(process.join("ns/mnt")).unwrap_or_default()
}

/// A process that is asked about a file system.
struct Process<'a> {
    directory: &'a Path,
    namespaces: &'a Namespaces,
    device: (u32, u32),
    /// The ids of the mounts of the file system, in all namespaces. The kernel gives each id to one mount.
    ids: &'a HashSet<u64>,
}

impl Process<'_> {
    /// The texts of its open files there, of any name or of this one.
    fn files(&self, name: Option<&OsStr>) -> impl Iterator<Item = String> {
        let texts = open_files(self.directory, name).map(|(_, text)| text);
        texts.filter(|text| {
            let mount = field(text, "mnt_id").and_then(|mount| mount.parse().ok());
            mount.is_some_and(|mount: u64| self.ids.contains(&mount))
        })
    }

    /// Whether its link `cwd`, `root` or `exe` leads there.
    fn leads_there(&self, link: &str) -> bool {
        let device = || {
            let target = fs::read_link(self.directory.join(link)).ok()?;
            let (top, mounts) = self.namespaces.get(&namespace(self.directory))?;
            let path = Path::new("/").join(target.strip_prefix(top).ok()?);
            mounts.of_path(path.as_os_str().as_bytes()).map(|mount| mount.device)
        };
        device() == Some(self.device)
    }

    /// Whether it has a file from there mapped (proc_pid_maps(5)).
    fn maps(&self) -> bool {
        let Ok(file) = File::open(self.directory.join("maps")) else { return false };
        let wanted = format!("{:02x}:{:02x}", self.device.0, self.device.1).into_bytes();
        // The paths in it need not be UTF-8.
        let mut lines = BufReader::new(file).split(b'\n').map_while(Result::ok);
        lines.any(|line| line.split(|byte| *byte == b' ').nth(3) == Some(&wanted))
    }
}
