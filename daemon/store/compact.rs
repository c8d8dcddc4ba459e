//! Which contents a save copies into its file, so that old files can be removed: bounded by what the save writes anyway.

use std::collections::{BTreeMap, HashSet};

use super::format::Hash;
use super::needs::PLACE;
use super::shelf::{Place, Shelf};

/// Files with contents besides generations, above which the smallest ones are merged.
const FILES: usize = 64;
/// Share of the bytes that no generation needs, in percent, above which files are emptied.
const DEAD: u64 = 25;

/// Contents and bytes of a file that are needed.
#[derive(Debug, Clone, Default)]
struct Live {
    contents: Vec<(Place, Hash)>,
    bytes: u64,
}

/// The contents to copy, in their order: of the files with the smallest share that is needed, while too many bytes are not
/// needed; of the smallest ones, while there are too many files. At most `most` stored bytes.
pub fn copies(shelf: &Shelf<'_>, live: &HashSet<Hash>, stays: &HashSet<usize>, most: u64) -> Vec<Hash> {
    let mut files: BTreeMap<usize, Live> = BTreeMap::new();
    let (mut all, mut needed) = (0_u64, 0_u64);
    for (at, frames) in shelf.frames.iter().enumerate().filter(|(at, _)| !stays.contains(at)) {
        files.insert(at, Live::default());
        all += frames.iter().map(|frame| u64::from(frame.stored)).sum::<u64>();
    }
    for (hash, place) in shelf.places().filter(|(hash, _)| live.contains(*hash)) {
        let Some(file) = files.get_mut(&(place.file as usize)) else { continue };
        let bytes = shelf.stored(place);
        file.contents.push((place, *hash));
        file.bytes += bytes;
        needed += bytes;
    }
    // Files without anything that is needed are removed anyway.
    files.retain(|_, file| !file.contents.is_empty());
    let mut files: Vec<(usize, Live)> = files.into_iter().collect();
    let is_many = files.len() > FILES;
    let size = |at: usize| shelf.files[at].size.max(1);
    if is_many {
        files.sort_by_key(|(_, file)| file.bytes);
    } else if (all - needed.min(all)) * 100 > all * DEAD {
        // Deadest first.
        files.sort_by_key(|(at, file)| file.bytes.saturating_mul(1000) / size(*at));
    } else {
        return Vec::new();
    }
    let mut left = most;
    let mut copied = Vec::new();
    // A quarter of the files at once, so that not every save has to.
    let count = if is_many { files.len() - FILES + FILES / 4 } else { files.len() };
    for (at, mut file) in files.into_iter().take(count) {
        // A file that is mostly needed is not worth it.
        if !is_many && file.bytes > size(at) / 4 * 3 {
            break;
        }
        file.contents.sort_unstable();
        for (place, hash) in file.contents {
            let Some(rest) = left.checked_sub(shelf.stored(place) + PLACE) else { return copied };
            left = rest;
            copied.push(hash);
        }
    }
    copied
}
