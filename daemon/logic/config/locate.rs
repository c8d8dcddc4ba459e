//! Selects and orders the files to read. The host lists the directories.

use std::path::PathBuf;

use crate::finding::Finding;
use crate::origin::Origin;
use crate::overlay;

/// Configuration directories, lowest precedence first.
pub const ROOTS: [&str; 4] = ["/usr/lib/zramd", CREDENTIALS, "/etc/zramd", "/run/zramd"];
/// System credentials: a hypervisor, firmware or boot loader passes them to the machine (systemd.system-credentials(7)).
pub const CREDENTIALS: &str = "/run/credentials/@system";
/// Name of the main file.
pub const MAIN: &str = "zramd.toml";
/// Name of the drop-in directory.
pub const DROP_INS: &str = "zramd.toml.d";

/// Path of the drop-ins of a directory in [`ROOTS`], without their names. A credential has no directory, so that its name has a dot
/// instead of the slash.
pub fn drop_in_prefix(root: &str) -> String {
    format!("{root}/{DROP_INS}{}", if root == CREDENTIALS { '.' } else { '/' })
}

/// A file that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Index of its directory in [`ROOTS`]; higher takes precedence.
    pub root: usize,
    /// File name without directories; of a drop-in among the credentials, without `zramd.toml.d.`.
    pub name: String,
    /// The whole path.
    pub path: PathBuf,
    pub kind: EntryKind,
}

/// Contents at the path of an [`Entry`], after following links.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EntryKind {
    /// A file with this text.
    Text(String),
    /// An empty file, also one with blank lines only, or a link to `/dev/null`: hides files of the same name in lower directories.
    Mask,
    /// A dangling link: ignored with a warning.
    Dangling,
    /// Unreadable, for this reason.
    Unreadable(String),
}

/// Whether a file in a drop-in directory is read.
pub fn is_drop_in(name: &str) -> bool {
    !name.starts_with('.') && name.ends_with(".toml")
}

/// The files to read, lowest precedence first: main files from low to high, then drop-ins by name.
pub fn order(mains: Vec<Entry>, mut drop_ins: Vec<Entry>) -> (Vec<(PathBuf, String)>, Vec<Finding>) {
    let mut problems = Vec::new();
    let mut files = Vec::new();
    // A mask hides the main files below it; otherwise all of them are read.
    let mut visible: Vec<Entry> = Vec::new();
    for entry in sorted_by_root(mains) {
        if entry.kind == EntryKind::Mask {
            visible.clear();
        } else {
            visible.push(entry);
        }
    }
    // Of drop-ins with the same name, only the one with the highest precedence is read.
    drop_ins.retain(|entry| is_drop_in(&entry.name));
    let mut drop_ins = sorted_by_root(drop_ins);
    // Overrides are read last, whatever their names.
    let rank = |entry: &Entry| (overlay::section_of_path(&entry.path).is_some(), entry.name.clone());
    drop_ins.sort_by_cached_key(rank);
    let mut chosen: Vec<Entry> = Vec::new();
    for entry in drop_ins {
        if entry.kind == EntryKind::Dangling {
            problems.push(dangling(&entry));
            continue;
        }
        if chosen.last().is_some_and(|last| last.name == entry.name) {
            chosen.pop();
        }
        chosen.push(entry);
    }
    for entry in visible.into_iter().chain(chosen) {
        match entry.kind {
            EntryKind::Text(text) => files.push((entry.path, text)),
            EntryKind::Mask => {}
            EntryKind::Dangling => problems.push(dangling(&entry)),
            EntryKind::Unreadable(ref why) => {
                problems.push(Finding::error(place(&entry), format!("this file cannot be read: {why}")));
            }
        }
    }
    (files, problems)
}

fn sorted_by_root(mut entries: Vec<Entry>) -> Vec<Entry> {
    entries.sort_by_key(|entry| entry.root);
    entries
}

fn place(entry: &Entry) -> Origin {
    Origin { file: entry.path.clone(), ..Origin::default() }
}

fn dangling(entry: &Entry) -> Finding {
    Finding::warning(place(entry), "dangling link; ignored")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(root: usize, name: &str, kind: EntryKind) -> Entry {
        Entry { root, name: name.to_owned(), path: format!("{root}/{name}").into(), kind }
    }

    fn text(root: usize, name: &str) -> Entry {
        entry(root, name, EntryKind::Text(String::new()))
    }

    fn check(mains: Vec<Entry>, drop_ins: Vec<Entry>, expected: &[&str]) {
        let (files, _) = order(mains, drop_ins);
        let found: Vec<String> = files.iter().map(|(path, _)| path.display().to_string()).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn main_files_add_up_and_drop_ins_come_after_by_name() {
        check(
            vec![text(2, MAIN), text(0, MAIN), text(1, MAIN)],
            vec![text(1, "10-b.toml"), text(0, "90-a.toml"), text(2, "20-c.toml")],
            &["0/zramd.toml", "1/zramd.toml", "2/zramd.toml", "1/10-b.toml", "2/20-c.toml", "0/90-a.toml"],
        );
    }

    #[test]
    fn masks_hide_what_is_below_them_only() {
        check(vec![text(0, MAIN), entry(1, MAIN, EntryKind::Mask), text(2, MAIN)], vec![], &["2/zramd.toml"]);
        check(vec![], vec![text(0, "a.toml"), entry(1, "a.toml", EntryKind::Mask)], &[]);
        check(vec![], vec![entry(0, "a.toml", EntryKind::Mask), text(1, "a.toml")], &["1/a.toml"]);
    }

    #[test]
    fn of_equal_names_only_the_highest_is_read_and_a_dangling_link_is_not_there() {
        check(vec![], vec![text(0, "a.toml"), text(2, "a.toml"), text(1, "a.toml")], &["2/a.toml"]);
        check(vec![], vec![text(0, "a.toml"), entry(1, "a.toml", EntryKind::Dangling)], &["0/a.toml"]);
    }

    #[test]
    fn other_files_are_ignored_and_unreadable_ones_are_named() {
        check(vec![], vec![text(0, ".a.toml"), text(0, "a.conf"), text(0, "toml")], &[]);
        let (_, problems) =
            order(vec![entry(1, MAIN, EntryKind::Unreadable("is a directory".into()))], vec![]);
        assert_eq!(problems.len(), 1);
        for (kind, message) in [
            (EntryKind::Unreadable("is a directory".into()), "this file cannot be read: is a directory"),
            (EntryKind::Dangling, "dangling link; ignored"),
        ] {
            let (_, problems) = order(vec![entry(1, MAIN, kind)], vec![]);
            let place = problems[0].place.as_ref().map(Origin::place);
            assert_eq!((place.as_deref(), &*problems[0].message), (Some("1/zramd.toml"), message));
        }
    }
}
