//! What the generations of a store need: which space is gained by removing some of them, and the removal itself.

use std::collections::BTreeSet;

use logic::ramdisk::{generation_name, rest_name};

use super::Error;
use super::directory::{Listing, Store};
use super::format::{self, ByHash, Hash, Hashes};
use super::frames::{self, End};
use super::shelf::{self, Shelf};
use super::transfer_error::TransferError;

/// Bytes of a content besides itself: its place in the head of a frame and in the index.
pub const PLACE: u64 = 72;
/// Bytes of a file besides its contents, at most: its footer, and the ends of blocks.
const BESIDES: u64 = 8 << 10;
/// A new save, whose contents are needed as those of the generations are.
const NEW: u64 = u64::MAX;

/// What a generation needs.
#[derive(Debug)]
struct Need {
    number: u64,
    base: Option<Hash>,
    /// Indexes of its contents in [`Needs::contents`].
    contents: Vec<u32>,
    /// Whether some of its contents are not found: it also needs the files with damage, which may have been read wrongly.
    lacks: bool,
}

/// Contents, files and generations of a store.
#[derive(Debug)]
pub struct Needs {
    generations: Vec<Need>,
    /// Numbers of the generations that cannot be read. While they are there, no file can be removed.
    pub unreadable: Vec<u64>,
    /// The file of each content, and its stored bytes.
    contents: Vec<(Hash, usize, u64)>,
    files: Vec<Held>,
}

/// A file.
#[derive(Debug)]
struct Held {
    number: u64,
    size: u64,
    /// The hash of its tree, if that may be a base, and the bytes of its two copies.
    base: Option<(Hash, u64)>,
    /// Whether it is removed only if its number is asked for.
    is_own: bool,
    has_damage: bool,
}

/// Which files can be removed.
#[derive(Debug)]
pub struct Cut {
    /// The bytes that are needed of each file; at least its size if it stays as it is.
    needed: Vec<u64>,
    is_live: Vec<bool>,
    /// Bytes that are gained.
    pub freed: u64,
}

impl Needs {
    /// `new`: the contents of a new save.
    pub fn new(shelf: &mut Shelf<'_>, new: &Hashes) -> Result<Needs, TransferError> {
        let (mut generations, mut unreadable) = (Vec::new(), Vec::new());
        let (mut ids, mut contents) = (ByHash::default(), Vec::new());
        let mut need = |shelf: &Shelf<'_>, number, base, all: &Hashes| {
            let mut need = Need { number, base, contents: Vec::with_capacity(all.len()), lacks: false };
            for hash in all {
                let Some(place) = shelf.find(hash) else {
                    need.lacks |= number != NEW;
                    continue;
                };
                need.contents.push(*ids.entry(*hash).or_insert_with(|| {
                    contents.push((*hash, place.file as usize, shelf.stored(place) + PLACE));
                    format::short(contents.len() - 1)
                }));
            }
            need
        };
        for at in 0..shelf.files.len() {
            let number = shelf.files[at].number;
            if shelf.files[at].name != generation_name(number) {
                continue;
            }
            match shelf.contents_of(number) {
                Ok(all) => {
                    let base = shelf.files[at].footer.as_ref().ok().and_then(|footer| footer.base);
                    generations.push(need(shelf, number, base, &all));
                }
                Err(TransferError::Bad(_) | TransferError::Unusable(_)) => unreadable.push(number),
                Err(error) => return Err(error),
            }
        }
        generations.push(need(shelf, NEW, None, new));
        let files = shelf.files.iter().enumerate().map(|(at, file)| Held {
            number: file.number,
            size: file.size,
            base: file
                .footer
                .as_ref()
                .ok()
                .filter(|footer| footer.base.is_none())
                .map(|footer| (footer.tree_hash, footer.tree.length + footer.again.length)),
            is_own: file.name != rest_name(file.number),
            has_damage: shelf.has_damage(at),
        });
        let files = files.collect();
        Ok(Needs { generations, unreadable, contents, files })
    }

    /// What is gained without these generations; `None` if that cannot be told.
    pub fn without(&self, goes: &[u64]) -> Option<Cut> {
        if !self.unreadable.iter().all(|number| goes.contains(number)) {
            return None;
        }
        let stays = || self.generations.iter().filter(|need| !goes.contains(&need.number));
        let bases: Hashes = stays().filter_map(|need| need.base).collect();
        let lacks = stays().any(|need| need.lacks);
        let mut is_live = vec![false; self.contents.len()];
        let mut needed = vec![0; self.files.len()];
        for id in stays().flat_map(|need| &need.contents) {
            if !std::mem::replace(&mut is_live[*id as usize], true) {
                let (_, at, bytes) = self.contents[*id as usize];
                needed[at] += bytes;
            }
        }
        let mut freed = 0;
        for (file, needed) in self.files.iter().zip(&mut needed) {
            if let Some((_, bytes)) = file.base.filter(|(hash, _)| bases.contains(hash)) {
                *needed += bytes;
            }
            let stays = file.is_own && !goes.contains(&file.number) || file.has_damage && lacks;
            // A file that is mostly needed is not worth it.
            if stays || *needed > 0 && *needed + BESIDES > file.size / 8 * 7 {
                // Also of one whose size could not be read.
                *needed = file.size.max(1);
            }
            freed += file.size - (*needed + if *needed > 0 { BESIDES } else { 0 }).min(file.size);
        }
        Some(Cut { needed, is_live, freed })
    }

    /// Bytes that are gained without these generations.
    pub fn freed(&self, goes: &[u64]) -> u64 {
        self.without(goes).map_or(0, |cut| cut.freed)
    }

    /// The first ones of `order` that gain `wanted` bytes, with `some` at least one; all of them, if they gain that but for
    /// `margin`; else `None`.
    pub fn choose(&self, order: &[u64], wanted: u64, margin: u64, some: bool) -> Option<Vec<u64>> {
        // As long as these are there, the others gain nothing.
        let mut goes: Vec<u64> =
            order.iter().copied().filter(|number| self.unreadable.contains(number)).collect();
        let mut freed = self.freed(&goes);
        for number in order.iter().filter(|number| !self.unreadable.contains(number)) {
            if freed >= wanted && !(some && goes.is_empty()) {
                return Some(goes);
            }
            let more = [goes.as_slice(), &[*number]].concat();
            let frees = self.freed(&more);
            if frees > freed {
                (goes, freed) = (more, frees);
            }
        }
        // Each of two may gain nothing that gain something together.
        let all = self.freed(order);
        let goes = if freed < wanted && all > freed { order.to_vec() } else { goes };
        let is_enough = all > 0 && all.saturating_add(margin) >= wanted && !(some && goes.is_empty());
        is_enough.then_some(goes)
    }
}

/// Removes generations, and the files that nothing else needs. With `writes`, files of which a part is needed are replaced by
/// that part. `new`: contents that a save which follows needs.
pub fn remove(
    store: &Store,
    listing: &Listing,
    numbers: &[u64],
    damaged: &BTreeSet<(u64, u64)>,
    writes: bool,
    new: &Hashes,
) -> Result<(), Error> {
    let mut shelf = Shelf::open(store, listing, damaged)?;
    let needs = Needs::new(&mut shelf, new)?;
    let cut = needs.without(numbers);
    let stays = cut.as_ref().map(|cut| {
        let files = needs.files.iter().zip(&cut.needed);
        files.filter(|(_, needed)| **needed > 0).map(|(file, _)| file.number).collect()
    });
    // A file that is open would keep its space.
    shelf.close();
    store.drop(&listing.files, numbers, stays.as_ref())?;
    let Some(cut) = cut.filter(|_| writes) else { return Ok(()) };
    store.sync()?;
    let is_part = |at: &usize| cut.needed[*at] > 0 && cut.needed[*at] < needs.files[*at].size;
    let mut parts: Vec<usize> = (0..needs.files.len()).filter(is_part).collect();
    // What gains space first makes room for the others.
    parts.sort_by_key(|at| cut.needed[*at]);
    // There is less to write without what the new save would share: it can write that itself.
    let least = needs.without(&[numbers, &[NEW]].concat());
    for at in parts {
        for cut in [Some(&cut), least.as_ref()].into_iter().flatten() {
            let contents = needs.contents.iter().zip(&cut.is_live);
            let contents = contents.filter(|((_, of, _), is_live)| *of == at && **is_live);
            let mut contents: Vec<Hash> = contents.map(|((hash, ..), _)| *hash).collect();
            // Its order in the file.
            contents.sort_by_key(|hash| shelf.find(hash));
            // Without space even for that, the file stays as it is.
            let done = shrink(store, &mut shelf, at, &contents);
            shelf.close();
            if done.is_ok() {
                break;
            }
        }
    }
    Ok(())
}

/// Replaces what is left of a generation by these contents of it, and its tree, which may be a base.
fn shrink(store: &Store, shelf: &mut Shelf<'_>, at: usize, contents: &[Hash]) -> Result<(), Error> {
    let number = shelf.files[at].number;
    let has_base = shelf.files[at].footer.as_ref().map_or(true, |footer| footer.base.is_some());
    let tree = if has_base { shelf::Tree::default() } else { shelf.tree(at)? };
    let packed = shelf::pack_tree(&tree, &[])?;
    let name = rest_name(number);
    let partial = format!("{name}.partial");
    let mut work = || {
        let ((), mut written) = frames::write(store, Some(partial.clone()), |frames| {
            contents.iter().try_for_each(|hash| frames.add(*hash, shelf.any(hash)?))
        })?;
        let end = End {
            number,
            tree: &tree,
            tree_hash: format::hash(&tree),
            packed: &packed,
            base: None,
            manifest: b"",
            copied_bytes: written.bytes(),
            allowance: 0,
        };
        written.end(&end, &[], &mut |_| true)?;
        written.file().map_or(Ok(()), |file| store.exchange(file, &partial, &name))
    };
    let done = work();
    if done.is_err() {
        store.discard(&partial);
    }
    done
}
