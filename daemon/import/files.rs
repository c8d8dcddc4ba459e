//! Reads the files of other programs.

use std::path::{Path, PathBuf};

use super::peer::Peer;
use super::peer::files::{Found, Ordered, order};
use host::linux::root::Root;
use logic::path_kind::Content;

/// The files of a program below a root, in the order in which the program reads them.
pub fn read(peer: Peer, root: &Root) -> Ordered {
    let sources = peer.sources();
    let mains = sources.mains.iter().enumerate();
    let mains = mains.filter_map(|(index, path)| found(root, index, PathBuf::from(path)));
    let directories = sources.drop_ins.iter().enumerate();
    let drop_ins = directories.flat_map(|(index, directory)| drop_ins(root, index, directory));
    order(peer, mains.collect(), drop_ins.collect())
}

fn found(root: &Root, index: usize, path: PathBuf) -> Option<Found> {
    let content = root.content(&path)?;
    Some(Found { root: index, path, content })
}

/// Everything in a directory of drop-ins.
fn drop_ins(root: &Root, index: usize, directory: &str) -> Vec<Found> {
    let at = |name: &str| Path::new(directory).join(name);
    match root.names(directory) {
        Ok(names) => names.iter().filter_map(|name| found(root, index, at(name))).collect(),
        Err(why) => vec![Found { root: index, path: at("*.conf"), content: Content::Unreadable(why) }],
    }
}
