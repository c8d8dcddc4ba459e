//! Mounts and directories: a mount hides earlier ones on the same path.

use std::collections::BTreeSet;

use super::kernel::MAJOR;
use host::Errno;
use logic::path_kind::PathKind;
use logic::record::MountId;

/// Inode of the only mount namespace.
pub(super) const NAMESPACE: u64 = 1;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mount {
    pub mount_point: String,
    pub fs_type: String,
    pub source: String,
    /// Options as given.
    pub options: String,
    /// N of the zram device on which it is, if any.
    pub number: Option<u32>,
}

#[derive(Debug, Clone)]
struct Mounted {
    /// ID that is not reused.
    id: u64,
    mount: Mount,
    tree: usize,
    minor: u32,
}

/// All mounts in order, the root first; and the directories of each file system.
#[derive(Debug, Clone)]
pub(super) struct Mounts {
    mounted: Vec<Mounted>,
    next_id: u64,
    /// Paths of directories below the root of each file system.
    trees: Vec<BTreeSet<String>>,
}

impl Mounts {
    pub(super) fn new() -> Mounts {
        let root = Mount {
            mount_point: "/".to_owned(),
            fs_type: "btrfs".to_owned(),
            source: "/dev/vda1".to_owned(),
            options: "rw".to_owned(),
            number: None,
        };
        let directories = ["/run", "/run/zramd", "/tmp", "/var"].map(str::to_owned);
        Mounts {
            mounted: vec![Mounted { id: 20, mount: root, tree: 0, minor: 1 }],
            next_id: 21,
            trees: vec![BTreeSet::from(directories)],
        }
    }

    /// A new, empty tree of directories.
    pub(super) fn new_tree(&mut self) -> usize {
        self.trees.push(BTreeSet::new());
        self.trees.len() - 1
    }

    pub(super) fn has_device(&self, number: u32) -> bool {
        self.mounted.iter().any(|mounted| mounted.mount.number == Some(number))
    }

    pub(super) fn snapshot(&self) -> Vec<(Mount, Vec<String>)> {
        let directories = |mounted: &Mounted| self.trees[mounted.tree].iter().cloned().collect();
        let mut all: Vec<_> =
            self.mounted.iter().map(|mounted| (mounted.mount.clone(), directories(mounted))).collect();
        all.sort();
        all
    }

    /// `/proc/self/mountinfo`.
    pub(super) fn text(&self) -> String {
        let line = |mounted: &Mounted| {
            let Mount { mount_point, fs_type, source, options, number } = &mounted.mount;
            let major = if number.is_some() { MAJOR } else { 0 };
            let path = mount_point.replace('\\', "\\134").replace(' ', "\\040");
            let id = mounted.id;
            format!(
                "{id} 20 {major}:{} / {path} rw,relatime - {fs_type} {source} rw,{options}\n",
                mounted.minor
            )
        };
        self.mounted.iter().map(line).collect()
    }

    /// The visible mount at `path`.
    pub(super) fn id_at(&self, path: &str) -> Option<MountId> {
        let found = self.mounted.iter().rev().find(|mounted| mounted.mount.mount_point == path)?;
        let major = if found.mount.number.is_some() { MAJOR } else { 0 };
        Some(MountId { namespace: NAMESPACE, id: found.id, unique: found.id, device: (major, found.minor) })
    }

    /// Moves a mount, as renaming a directory above it does.
    pub(super) fn rename(&mut self, from: &str, to: &str) {
        for mounted in &mut self.mounted {
            if mounted.mount.mount_point == from {
                to.clone_into(&mut mounted.mount.mount_point);
            }
        }
    }

    fn new_id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id
    }

    /// The topmost mount at `path`, and the path within it; empty for its root.
    fn resolve<'a>(&self, path: &'a str) -> (&Mounted, &'a str) {
        let inside = |mounted: &Mounted| -> Option<&'a str> {
            let rest = path.strip_prefix(mounted.mount.mount_point.trim_end_matches('/'))?;
            (rest.is_empty() || rest.starts_with('/')).then_some(rest.trim_end_matches('/'))
        };
        let found = self.mounted.iter().rev().find_map(|mounted| Some((mounted, inside(mounted)?)));
        found.unwrap_or((&self.mounted[0], path))
    }

    pub(super) fn path_kind(&self, path: &str) -> PathKind {
        let (mounted, inside) = self.resolve(path);
        let there = inside.is_empty() || self.trees[mounted.tree].contains(inside);
        if there { PathKind::Directory } else { PathKind::Missing }
    }

    pub(super) fn make_directory(&mut self, path: &str) -> Result<(), Errno> {
        if self.path_kind(path) == PathKind::Directory {
            return Err(Errno::EXIST);
        }
        let parent = path.rsplit_once('/').map_or("", |(parent, _)| parent);
        if self.path_kind(parent) != PathKind::Directory {
            return Err(Errno::NOENT);
        }
        let (mounted, inside) = self.resolve(path);
        let (tree, inside) = (mounted.tree, inside.to_owned());
        self.trees[tree].insert(inside);
        Ok(())
    }

    pub(super) fn remove_directory(&mut self, path: &str) -> Result<(), Errno> {
        let (mounted, inside) = self.resolve(path);
        if inside.is_empty() {
            return Err(Errno::BUSY);
        }
        let (tree, inside) = (mounted.tree, inside.to_owned());
        if !self.trees[tree].contains(&inside) {
            return Err(Errno::NOENT);
        }
        let below = format!("{inside}/");
        if self.trees[tree].iter().any(|directory| directory.starts_with(&below)) {
            return Err(Errno::NOTEMPTY);
        }
        self.trees[tree].remove(&inside);
        Ok(())
    }

    /// Mounts a tree; a new and empty one without `tree`.
    pub(super) fn mount(&mut self, mount: Mount, tree: Option<usize>) -> Result<(), Errno> {
        if self.path_kind(&mount.mount_point) != PathKind::Directory {
            return Err(Errno::NOENT);
        }
        let tree = tree.unwrap_or_else(|| self.new_tree());
        // Anonymous device numbers are unique at any one time.
        let anonymous = self.mounted.iter().filter(|mounted| mounted.mount.number.is_none());
        let next = anonymous.map(|mounted| mounted.minor).max().unwrap_or(0) + 1;
        let minor = mount.number.unwrap_or(next);
        let id = self.new_id();
        self.mounted.push(Mounted { id, mount, tree, minor });
        Ok(())
    }

    /// Mounts the same file system at another path.
    pub(super) fn bind(&mut self, from: &str, to: &str) -> Result<(), Errno> {
        if self.path_kind(to) != PathKind::Directory {
            return Err(Errno::NOENT);
        }
        let found = self.mounted.iter().rev().find(|mounted| mounted.mount.mount_point == from);
        let mut copy = found.ok_or(Errno::NOENT)?.clone();
        to.clone_into(&mut copy.mount.mount_point);
        copy.id = self.new_id();
        self.mounted.push(copy);
        Ok(())
    }

    pub(super) fn remount(&mut self, path: &str, options: &str) -> Result<(), Errno> {
        let found = self.mounted.iter_mut().rev().find(|mounted| mounted.mount.mount_point == path);
        options.clone_into(&mut found.ok_or(Errno::INVAL)?.mount.options);
        Ok(())
    }

    pub(super) fn unmount(&mut self, path: &str) -> Result<(), Errno> {
        let (top, inside) = self.resolve(path);
        if !inside.is_empty() || top.mount.mount_point == "/" {
            return Err(Errno::INVAL);
        }
        let below = format!("{path}/");
        let at = self.mounted.iter().rposition(|mounted| mounted.mount.mount_point == path);
        let at = at.ok_or(Errno::INVAL)?;
        if self.mounted[at..].iter().any(|mounted| mounted.mount.mount_point.starts_with(&below)) {
            return Err(Errno::BUSY);
        }
        self.mounted.remove(at);
        Ok(())
    }
}
