//! Selects and orders the files of another program. The caller lists the directories.

use std::path::{Path, PathBuf};

use super::{Peer, Warning};
use logic::path_kind::Content;

/// Locations of a program's configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sources {
    /// Main files, lowest precedence first.
    pub mains: &'static [&'static str],
    /// Directories of drop-ins, lowest precedence first.
    pub drop_ins: &'static [&'static str],
    /// Suffix of drop-ins.
    pub suffix: &'static str,
}

impl Peer {
    /// Locations of its configuration.
    pub fn sources(self) -> Sources {
        let single = |mains| Sources { mains, drop_ins: &[], suffix: "" };
        match self {
            Peer::ZramGenerator => Sources {
                mains: &[
                    "/usr/lib/systemd/zram-generator.conf",
                    "/usr/local/lib/systemd/zram-generator.conf",
                    "/etc/systemd/zram-generator.conf",
                    "/run/systemd/zram-generator.conf",
                ],
                drop_ins: &[
                    "/usr/lib/systemd/zram-generator.conf.d",
                    "/usr/local/lib/systemd/zram-generator.conf.d",
                    "/etc/systemd/zram-generator.conf.d",
                    "/run/systemd/zram-generator.conf.d",
                ],
                suffix: ".conf",
            },
            Peer::ZramTools => single(&["/etc/default/zramswap"]),
            Peer::Log2ram => single(&["/etc/log2ram.conf"]),
            // The package installs the first; its program reads the second.
            Peer::PopZram => single(&["/etc/default/pop-zram", "/etc/pop-zram"]),
            Peer::Fstab => single(&["/etc/fstab"]),
            Peer::RpiSwap => Sources {
                mains: &[
                    "/usr/lib/rpi/swap.conf",
                    "/usr/local/lib/rpi/swap.conf",
                    "/run/rpi/swap.conf",
                    "/etc/rpi/swap.conf",
                ],
                drop_ins: &[
                    "/usr/lib/rpi/swap.conf.d",
                    "/usr/local/lib/rpi/swap.conf.d",
                    "/run/rpi/swap.conf.d",
                    "/etc/rpi/swap.conf.d",
                ],
                suffix: ".conf",
            },
        }
    }
}

/// A file that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Index of the file in [`Sources::mains`], or of its directory in [`Sources::drop_ins`]; higher takes precedence.
    pub root: usize,
    /// The whole path.
    pub path: PathBuf,
    pub content: Content,
}

/// The files that a program reads.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Ordered {
    /// Files with their text, lowest precedence first.
    pub files: Vec<(PathBuf, String)>,
    /// Unreadable files that the program would read: without them, the configuration is incomplete.
    pub unreadable: Vec<Warning>,
    /// Other warnings.
    pub warnings: Vec<Warning>,
}

/// The files that the program reads, by its own rules.
pub fn order(peer: Peer, mains: Vec<Found>, drop_ins: Vec<Found>) -> Ordered {
    let mut ordered = Ordered::default();
    let mut chosen = match peer {
        Peer::ZramGenerator | Peer::RpiSwap => highest(mains),
        Peer::ZramTools | Peer::Log2ram | Peer::PopZram | Peer::Fstab => sorted(mains),
    };
    chosen.extend(by_name(drop_ins, peer, &mut ordered.warnings));
    for found in chosen {
        match found.content {
            Content::Text(text) | Content::Link { text: Some(text), .. } => {
                ordered.files.push((found.path, text));
            }
            Content::Link { text: None, .. } => {}
            Content::Unreadable(why) => {
                ordered
                    .unreadable
                    .push(Warning::of_file(&found.path, format!("this file cannot be read: {why}")));
            }
        }
    }
    ordered
}

fn sorted(mut found: Vec<Found>) -> Vec<Found> {
    found.sort_by_key(|found| found.root);
    found
}

/// Only the existing main file with the highest precedence. A dangling link does not count as existing.
fn highest(mains: Vec<Found>) -> Vec<Found> {
    let exists = |found: &Found| !matches!(found.content, Content::Link { text: None, .. });
    sorted(mains).into_iter().rfind(exists).into_iter().collect()
}

/// Of drop-ins with the same name, the one with the highest precedence. `/dev/null` masks those below it; zram-generator
/// does not follow other links.
fn by_name(drop_ins: Vec<Found>, peer: Peer, warnings: &mut Vec<Warning>) -> Vec<Found> {
    let mut drop_ins = sorted(drop_ins);
    drop_ins.retain(|found| is_drop_in(&found.path, peer.sources().suffix));
    // A stable sort: within one name, the order of the directories is kept.
    drop_ins.sort_by(|a, b| a.path.file_name().cmp(&b.path.file_name()));
    let mut chosen: Vec<Found> = Vec::new();
    for found in drop_ins {
        let replaces = chosen.last().is_some_and(|last| last.path.file_name() == found.path.file_name());
        match &found.content {
            Content::Link { target, .. } if target == "/dev/null" => {
                if replaces {
                    chosen.pop();
                }
            }
            Content::Link { target, .. } if peer == Peer::ZramGenerator => {
                let text = format!(
                    "zram-generator does not follow links in this directory, so nothing was imported from {target}; to import it, replace the link by a copy"
                );
                warnings.push(Warning::of_file(&found.path, text));
            }
            Content::Text(_) | Content::Link { .. } | Content::Unreadable(_) => {
                if replaces {
                    chosen.pop();
                }
                chosen.push(found);
            }
        }
    }
    chosen
}

fn is_drop_in(path: &Path, suffix: &str) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    !name.starts_with('.') && name.ends_with(suffix)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(root: usize, name: &str) -> Found {
        Found { root, path: format!("/{root}/{name}").into(), content: Content::Text("x".to_owned()) }
    }

    fn link(root: usize, name: &str, target: &str, text: Option<&str>) -> Found {
        let content = Content::Link { target: target.to_owned(), text: text.map(str::to_owned) };
        Found { root, path: format!("/{root}/{name}").into(), content }
    }

    fn check(mains: Vec<Found>, drop_ins: Vec<Found>, expected: &[&str]) -> usize {
        let ordered = order(Peer::ZramGenerator, mains, drop_ins);
        let found: Vec<String> = ordered.files.iter().map(|(path, _)| path.display().to_string()).collect();
        assert_eq!(found, expected);
        ordered.warnings.len()
    }

    #[test]
    fn one_main_file_counts_and_drop_ins_come_after_by_name() {
        let mains = vec![text(3, "m"), text(0, "m"), text(2, "m")];
        let drop_ins = vec![text(0, "90-a.conf"), text(2, "10-b.conf"), text(3, "20-c.conf")];
        check(mains, drop_ins, &["/3/m", "/2/10-b.conf", "/3/20-c.conf", "/0/90-a.conf"]);
    }

    #[test]
    fn a_main_file_that_links_nowhere_is_not_there_and_one_that_links_to_null_is_empty() {
        check(vec![text(0, "m"), link(2, "m", "/gone", None)], vec![], &["/0/m"]);
        check(vec![text(0, "m"), link(2, "m", "/dev/null", Some(""))], vec![], &["/2/m"]);
    }

    #[test]
    fn drop_ins_are_masked_by_null_and_by_files_but_not_by_other_links() {
        check(vec![], vec![text(0, "a.conf"), text(2, "a.conf")], &["/2/a.conf"]);
        check(vec![], vec![text(0, "a.conf"), link(2, "a.conf", "/dev/null", Some(""))], &[]);
        check(vec![], vec![link(0, "a.conf", "/dev/null", Some("")), text(2, "a.conf")], &["/2/a.conf"]);
        let relative = link(2, "a.conf", "../../dev/null", Some(""));
        assert_eq!(check(vec![], vec![text(0, "a.conf"), relative], &["/0/a.conf"]), 1);
        let followed =
            order(Peer::RpiSwap, vec![], vec![text(0, "a.conf"), link(2, "a.conf", "/srv/a", Some("x"))]);
        assert_eq!((followed.files.len(), followed.warnings.len()), (1, 0), "rpi-swap follows links");
        assert_eq!(followed.files[0].0, PathBuf::from("/2/a.conf"));
        check(vec![], vec![text(0, ".a.conf"), text(0, "a.txt"), text(0, "conf")], &[]);
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let broken = Found { content: Content::Unreadable("is a directory".to_owned()), ..text(3, "m") };
        let ordered = order(Peer::ZramGenerator, vec![text(0, "m"), broken], vec![]);
        assert_eq!((ordered.files.len(), ordered.unreadable.len()), (0, 1));
        assert!(ordered.unreadable[0].text.contains("is a directory"));
    }

    #[test]
    fn the_files_of_pop_os_are_read_in_their_order() {
        let files = order(Peer::PopZram, vec![text(1, "b"), text(0, "a")], vec![]).files;
        assert_eq!(files.len(), 2);
        assert_eq!(files[0].0, PathBuf::from("/0/a"));
    }
}
