//! Which contents a save copies into its file, so that old files can be removed.
//!
//! A file without a snapshot is emptied if its bytes that are not needed are worth what has to be copied. Files that a save
//! wrote and files with copies are not merged with each other: contents of the same age are often given up together, and
//! would otherwise leave a part of every file.

use std::collections::HashSet;

use logic::ramdisk::bad_name;

use super::format::{Hash, Hashes};
use super::needs::PLACE;
use super::shelf::{Place, Shelf};

/// Bytes that saves may copy for each byte that they add, in percent. What a save does not copy, later ones may.
const COPIES: u64 = 50;
/// A save copies if it gains at least this part of all bytes that are needed, and at most as many bytes.
const PART: u64 = 6;
/// Files that count as much as that part: a load opens each.
const FILES: u64 = 64;

/// A file without a snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Old {
    /// Bytes that are needed.
    needed: u64,
    /// All others.
    gained: u64,
    has_copies: bool,
}

/// The files to empty, best first, and how many bytes to copy at most; `needed`: bytes that are needed of all files. The last
/// file may be emptied in part.
fn choose(old: &[Old], needed: u64, allowance: u64) -> (Vec<usize>, u64) {
    let wanted = needed / PART;
    let gain = |file: &Old| file.gained + wanted / FILES;
    let most = allowance.min(wanted);
    for has_copies in [false, true] {
        let is_candidate = |at: &usize| old[*at].needed > 0 && old[*at].has_copies == has_copies;
        let mut order: Vec<usize> = (0..old.len()).filter(is_candidate).collect();
        order.sort_by_key(|at| old[*at].needed.saturating_mul(1000) / gain(&old[*at]).max(1));
        let (mut chosen, mut left, mut gained) = (Vec::new(), most, 0);
        for at in order {
            let (of_file, gain) = (old[at].needed, gain(&old[at]));
            if of_file <= left {
                left -= of_file;
                gained += gain;
            } else if chosen.is_empty() {
                // It takes several saves.
                let part = u128::from(gain) * u128::from(left) / u128::from(of_file);
                gained = u64::try_from(part).unwrap_or(u64::MAX);
                left = 0;
            } else {
                continue;
            }
            chosen.push(at);
            if gained >= wanted {
                return (chosen, most);
            }
        }
    }
    (Vec::new(), 0)
}

/// Bytes that a save may copy that adds `new_bytes`.
pub fn allowance(shelf: &Shelf<'_>, new_bytes: u64) -> u64 {
    let last = shelf.files.iter().rev().find_map(|file| file.footer.as_ref().ok());
    last.map_or(0, |footer| u64::from(footer.allowance) << 10) + new_bytes * COPIES / 100
}

/// The contents to copy: at most `allowance` stored bytes. `live`: all that are needed; `stays`: files that are not removed;
/// `new_bytes`: what the save adds.
pub fn copies(
    shelf: &Shelf<'_>,
    live: &Hashes,
    stays: &HashSet<usize>,
    new_bytes: u64,
    allowance: u64,
) -> Hashes {
    let mut contents: Vec<Vec<(Place, Hash)>> = vec![Vec::new(); shelf.files.len()];
    let mut bytes = vec![0; shelf.files.len()];
    for (hash, place) in shelf.places().filter(|(hash, _)| live.contains(*hash)) {
        contents[place.file as usize].push((place, *hash));
        bytes[place.file as usize] += shelf.stored(place) + PLACE;
    }
    let is_old = |at: &usize| {
        let file = &shelf.files[*at];
        // What was set aside is not removed.
        !stays.contains(at) && file.name != bad_name(file.number)
    };
    let files: Vec<usize> = (0..shelf.files.len()).filter(is_old).collect();
    let old: Vec<Old> = files
        .iter()
        .map(|at| Old {
            needed: bytes[*at],
            gained: shelf.files[*at].size.saturating_sub(bytes[*at]),
            has_copies: shelf.files[*at].footer.as_ref().is_ok_and(|footer| footer.copied_bytes > 0),
        })
        .collect();
    let (chosen, mut left) = choose(&old, new_bytes + bytes.iter().sum::<u64>(), allowance);
    let mut copied = Hashes::default();
    for at in chosen {
        let contents = &mut contents[files[at]];
        contents.sort_unstable();
        for (place, hash) in contents {
            let Some(rest) = left.checked_sub(shelf.stored(*place) + PLACE) else { return copied };
            left = rest;
            copied.insert(*hash);
        }
    }
    copied
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, VecDeque};

    use proptest::prelude::*;

    use super::super::format;
    use super::*;

    /// A content: its file, its place there, and its version.
    type Content = (u64, u64, u64);
    type Contents = BTreeMap<Content, u64>;

    const KEEP: usize = 3;
    /// Bytes of a file besides its contents.
    const BESIDES: u64 = 3000;

    /// A store without bytes: numbers and sizes only.
    #[derive(Default)]
    struct Model {
        /// By number: contents, and whether some are copies.
        files: BTreeMap<u64, (Contents, bool)>,
        /// The file of each content.
        places: BTreeMap<Content, u64>,
        generations: VecDeque<(u64, Contents)>,
        next: u64,
        new_bytes: u64,
        copied_bytes: u64,
    }

    /// Of a store, after a save.
    struct Figures {
        /// Its size divided by what is needed.
        size: f64,
        files: usize,
    }

    impl Model {
        fn is_needed(&self, content: &Content) -> bool {
            self.generations.iter().any(|(_, contents)| contents.contains_key(content))
        }

        /// Bytes of a file that are needed, and all of its bytes.
        fn bytes(&self, number: u64) -> (u64, u64) {
            let (contents, _) = &self.files[&number];
            let is_needed = |content: &&Content| self.places[*content] == number && self.is_needed(content);
            let needed = contents.keys().filter(is_needed).map(|content| contents[content]).sum();
            (needed, contents.values().sum::<u64>() + BESIDES)
        }

        fn save(&mut self, all: Contents) -> Figures {
            self.next += 1;
            let mut contents: Contents = all
                .iter()
                .filter(|(content, _)| !self.places.contains_key(*content))
                .map(|(c, b)| (*c, *b))
                .collect();
            self.new_bytes += contents.values().sum::<u64>();
            let new_bytes = contents.values().sum::<u64>();
            self.generations.push_back((self.next, all));
            if self.generations.len() > KEEP {
                self.generations.pop_front();
            }
            let stays = |number: &u64| self.generations.iter().any(|(kept, _)| kept == number);
            let files: Vec<u64> = self.files.keys().copied().filter(|number| !stays(number)).collect();
            let old: Vec<Old> = files
                .iter()
                .map(|number| {
                    let (needed, bytes) = self.bytes(*number);
                    Old { needed, gained: bytes - needed, has_copies: self.files[number].1 }
                })
                .collect();
            let needed = self.files.keys().map(|number| self.bytes(*number).0).sum::<u64>() + new_bytes;
            let allowance = self.new_bytes * COPIES / 100 - self.copied_bytes;
            let (chosen, mut left) = choose(&old, needed, allowance);
            let mut copied = 0;
            for number in chosen.into_iter().map(|at| files[at]) {
                for (content, bytes) in &self.files[&number].0 {
                    if self.places[content] == number && self.is_needed(content) && *bytes <= left {
                        left -= bytes;
                        copied += bytes;
                        contents.insert(*content, *bytes);
                    }
                }
            }
            self.copied_bytes += copied;
            for content in contents.keys() {
                self.places.insert(*content, self.next);
            }
            self.files.insert(self.next, (contents, copied > 0));
            for number in files {
                if self.bytes(number).0 == 0 {
                    self.files.remove(&number);
                    self.places.retain(|_, file| *file != number);
                }
            }
            let (mut needed, mut size) = (0, 0);
            for number in self.files.keys() {
                let bytes = self.bytes(*number);
                (needed, size) = (needed + bytes.0, size + bytes.1);
            }
            Figures { size: size as f64 / needed as f64, files: self.files.len() }
        }
    }

    /// Makes these saves; returns the mean of the sizes and the most files after the first `from` ones.
    fn run(from: usize, saves: impl Iterator<Item = Contents>) -> (f64, usize) {
        let mut model = Model::default();
        let (mut sum, mut count, mut files) = (0.0, 0.0, 0);
        for (number, contents) in saves.enumerate() {
            let figures = model.save(contents);
            if number >= from {
                (sum, count, files) = (sum + figures.size, count + 1.0, files.max(figures.files));
            }
        }
        assert!(model.copied_bytes * 100 <= model.new_bytes * COPIES);
        (sum / count, files)
    }

    /// Five logs, to each of which 4 KiB are added between two saves, and which are rotated every 50 saves.
    fn logs(saves: u64) -> impl Iterator<Item = Contents> {
        let mut logs = [0, 1, 2, 3, 4].map(|number| VecDeque::from([(number, 0)]));
        let mut next = 5;
        (0..saves).map(move |save| {
            let mut contents = Contents::new();
            for (number, files) in (0..).zip(&mut logs) {
                if save > 0 && (save + 10 * number) % 50 == 0 {
                    files.push_front((next, 0));
                    files.truncate(5);
                    next += 1;
                }
                files[0].1 += 4200 + (save * 7 + number * 13) % 300;
                for (file, size) in files {
                    contents.extend((0..*size >> 14).map(|at| ((*file, at, 0), 9000)));
                    contents.insert((*file, *size >> 14, *size), (*size & 0x3fff) * 9 / 16);
                }
            }
            contents
        })
    }

    /// Pages of databases, of which some are replaced between two saves at random.
    fn pages(saves: u64, pages: u64, replaced: u64) -> impl Iterator<Item = Contents> {
        let random = |of: u64| {
            let hash = format::hash(&of.to_le_bytes());
            hash.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
        };
        let mut versions: BTreeMap<u64, u64> = (0..pages).map(|page| (page, 0)).collect();
        (0..saves).map(move |save| {
            for number in 0..replaced {
                versions.insert(random(save * replaced + number) % pages, save);
            }
            versions.iter().map(|(page, version)| ((0, *page, *version), 9000)).collect()
        })
    }

    #[test]
    fn a_store_of_rotated_logs_stays_small_and_has_few_files() {
        let (size, files) = run(250, logs(400));
        assert!(size < 1.3 && files < 40, "{size} times what is needed, {files} files");
    }

    #[test]
    fn a_store_of_pages_replaced_at_random_stays_below_twice_what_is_needed() {
        let (size, files) = run(80, pages(130, 600, 38));
        assert!(size < 1.65 && files < 30, "{size} times what is needed, {files} files");
    }

    #[test]
    fn saves_that_add_little_to_a_large_store_are_merged() {
        let (size, files) = run(100, pages(260, 1000, 1));
        assert!(size < 1.2 && files < 80, "{size} times what is needed, {files} files");
    }

    fn old() -> impl Strategy<Value = Old> {
        (0..1_u64 << 44, 0..1_u64 << 44, any::<bool>()).prop_map(|(needed, gained, has_copies)| Old {
            needed,
            gained,
            has_copies,
        })
    }

    proptest! {
        #[test]
        fn no_more_is_copied_than_is_allowed_and_than_is_gained(
            old in proptest::collection::vec(old(), 0..20), besides in 0..1_u64 << 44, allowance in 0..1_u64 << 44,
        ) {
            let needed = old.iter().map(|file| file.needed).sum::<u64>() + besides;
            let (chosen, most) = choose(&old, needed, allowance);
            prop_assert!(most <= allowance && most <= needed / PART);
            let of_all: u64 = chosen.iter().map(|at| old[*at].needed).sum();
            prop_assert!(of_all <= most || chosen.len() == 1);
            let gained: u64 = chosen.iter().map(|at| old[*at].gained + needed / PART / FILES).sum();
            prop_assert!(chosen.is_empty() || gained + PART >= needed / PART);
            prop_assert!(chosen.iter().all(|at| old[*at].needed > 0 && old[*at].has_copies == old[chosen[0]].has_copies));
        }
    }
}
