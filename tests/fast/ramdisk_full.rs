//! Saves into a store that is full: what the last save of a boot gives up, and what it never does.

use std::fs;
use std::path::Path;

use engine::{Error, ErrorKind};
use host::linux::ramdisk::{Calls, Room};
use logic::ramdisk::SaveReason;
use proptest::prelude::*;
use store::{Request, Saved};

use crate::support::ramdisk::{Trial, picture};

const LAST: Request = Request { reason: SaveReason::Stop, force: false, last: true, gives_up: true };
const KIB: usize = 1 << 10;

/// Bytes that do not compress.
fn random(seed: u64, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    blake3::Hasher::new().update(&seed.to_le_bytes()).finalize_xof().fill(&mut bytes);
    bytes
}

/// Writes files of 1 KiB, one for each number. With a thousand of them, a tree is stored as a difference to another one.
fn write(place: &Path, files: impl Iterator<Item = u64>) {
    for entry in fs::read_dir(place).unwrap() {
        fs::remove_file(entry.unwrap().path()).unwrap();
    }
    for number in files {
        fs::write(place.join(number.to_string()), random(number, KIB)).unwrap();
    }
}

/// A disk whose store has these generations, all of which stay.
fn with(generations: &[std::ops::Range<u64>]) -> Trial {
    let mut trial = Trial::new();
    trial.disk.keep.generations = 99;
    trial.load().unwrap();
    for files in generations {
        write(trial.place(), files.clone());
        trial.save().unwrap();
    }
    trial
}

fn pin(trial: &Trial, number: u64) {
    store::pin(&Calls::new(), &trial.disk, number, Some("asked for")).unwrap();
}

/// Bytes of all files, in blocks of 1 KiB.
fn used(store: &Path) -> u64 {
    let sizes = fs::read_dir(store).unwrap().map(|entry| entry.unwrap().metadata().unwrap().len());
    sizes.map(|size| size.next_multiple_of(1024)).sum()
}

/// The last save, while the store has room for this number of bytes more.
fn last_save(trial: &Trial, more: u64) -> Result<Saved, Error> {
    let bytes = used(trial.disk.store()) + more;
    in_room(trial, bytes, bytes)
}

fn in_room(trial: &Trial, bytes: u64, shown: u64) -> Result<Saved, Error> {
    let directory = trial.disk.store().to_owned();
    store::save(&Calls::with_room(Room { directory, bytes, shown }), &trial.disk, LAST, &mut |_| true)
}

#[track_caller]
fn warnings(saved: Result<Saved, Error>) -> Vec<String> {
    let Saved::Written { warnings, .. } = saved.unwrap() else { panic!("nothing was written") };
    warnings
}

/// What is on the disk is in the newest generation, and all that are left are good.
#[track_caller]
fn check(trial: &Trial, left: &[u64]) {
    assert_eq!(trial.generations(), left, "{:?}", trial.names());
    for number in left {
        trial.verify(*number).unwrap();
    }
    let saved = picture(trial.place());
    trial.reboot();
    assert_eq!(trial.load().unwrap().generation, left.first().copied());
    assert_eq!(picture(trial.place()), saved);
}

#[test]
fn a_pinned_one_is_given_up_although_the_newest_has_a_part_of_its_file() {
    // The tree of 2 is a difference to that of 1.
    let trial = with(&[0..1000, 2000..3000]);
    pin(&trial, 1);
    write(trial.place(), 4000..5500);
    let warnings = warnings(last_save(&trial, 700 << 10));
    assert!(warnings.iter().any(|warning| warning.contains("snapshot 1 was pinned")), "{warnings:?}");
    check(&trial, &[3, 2]);
    assert!(trial.names().contains(&"rest-1".to_owned()), "what 2 needs of it is left: {:?}", trial.names());
}

#[test]
fn those_that_share_contents_are_given_up_until_there_is_room() {
    // Each has half of its contents in common with the one before it.
    let trial = with(&[0..1000, 500..1500, 1000..2000, 1500..2500, 3000..4000]);
    (1..=4).for_each(|number| pin(&trial, number));
    write(trial.place(), 5000..6200);
    warnings(last_save(&trial, 64 << 10));
    // 1 gains half of its file, and 2 and 3 no more than that.
    check(&trial, &[6, 5, 4]);
}

#[test]
fn contents_that_the_new_one_needs_gain_nothing() {
    // The disk has again what only 1 has.
    let trial = with(&[0..1000, 2000..3000, 4000..5000]);
    (1..=2).for_each(|number| pin(&trial, number));
    write(trial.place(), (0..1000).chain(6000..6600));
    warnings(last_save(&trial, 64 << 10));
    check(&trial, &[4, 3, 1]);
}

#[test]
fn one_that_cannot_be_read_is_given_up_first() {
    let trial = with(&[0..1000, 2000..3000, 4000..5000]);
    pin(&trial, 1);
    let damaged = trial.disk.store().join("gen-2");
    let bytes = fs::read(&damaged).unwrap();
    fs::write(&damaged, &bytes[..bytes.len() - 1000]).unwrap();
    write(trial.place(), 6000..6900);
    warnings(last_save(&trial, 64 << 10));
    check(&trial, &[4, 3, 1]);
}

#[test]
fn one_that_was_set_aside_is_given_up_first() {
    let trial = with(&[0..1000, 2000..3000, 4000..5000]);
    pin(&trial, 1);
    fs::rename(trial.disk.store().join("gen-2"), trial.disk.store().join("gen-2.bad")).unwrap();
    write(trial.place(), 6000..6900);
    warnings(last_save(&trial, 64 << 10));
    check(&trial, &[4, 3, 1]);
    assert!(!trial.names().contains(&"gen-2.bad".to_owned()));
}

#[test]
fn if_the_newest_is_damaged_an_older_one_stays_in_its_place() {
    let trial = with(&[0..1000, 2000..3000, 4000..5000]);
    pin(&trial, 1);
    let damaged = trial.disk.store().join("gen-3");
    let mut bytes = fs::read(&damaged).unwrap();
    bytes[100_000..100_100].fill(0);
    fs::write(&damaged, bytes).unwrap();
    write(trial.place(), 6000..6900);
    warnings(last_save(&trial, 64 << 10));
    check(&trial, &[4, 2, 1]);
}

#[test]
fn a_store_that_is_full_to_the_last_block_has_room_again() {
    let trial = with(&[0..1000, 2000..3000, 4000..5000]);
    (1..=2).for_each(|number| pin(&trial, number));
    write(trial.place(), 6000..6900);
    // There is no space even for what 3 needs of 1, but 2 can be removed.
    warnings(last_save(&trial, 0));
    check(&trial, &[4, 3]);
}

#[test]
fn what_can_be_written_counts_and_not_what_the_file_system_says() {
    for (more, shown) in [(700 << 10, 0), (700 << 10, 100 << 20)] {
        let trial = with(&[0..1000, 2000..3000]);
        pin(&trial, 1);
        // With what root may use there is room without any deletion.
        write(trial.place(), 4000..4600);
        let used = used(trial.disk.store());
        warnings(in_room(&trial, used + more, used + shown));
        check(&trial, &[3, 2, 1]);
    }
    let trial = with(&[0..1000, 2000..3000]);
    pin(&trial, 1);
    write(trial.place(), 4000..5500);
    let used = used(trial.disk.store());
    warnings(in_room(&trial, used + (700 << 10), used + (100 << 20)));
    check(&trial, &[3, 2]);
}

#[test]
fn nothing_is_given_up_for_what_does_not_fit_without_all_others_either() {
    let trial = with(&[0..1000, 2000..3000]);
    pin(&trial, 1);
    write(trial.place(), 4000..7000);
    let before = trial.names();
    let error = last_save(&trial, 700 << 10).unwrap_err();
    assert_eq!(error.kind, ErrorKind::StoreFull, "{error}");
    assert!(!error.message.contains("deleted for its space"), "{error}");
    assert_eq!(trial.names(), before);
}

#[test]
fn deleting_one_by_request_gains_its_space_although_others_need_a_part() {
    let trial = with(&[0..1000, 2000..3000]);
    let before = used(trial.disk.store());
    store::delete(&Calls::new(), &trial.disk, 1).unwrap();
    assert!(used(trial.disk.store()) < before - (900 << 10), "{:?}", trial.names());
    check(&trial, &[2]);
}

#[test]
fn without_space_for_what_the_new_one_would_share_that_is_written_again() {
    let trial = with(&[266..366, 190..565, 1148..1932, 1461..1560]);
    // 3 has 99 contents of 4, whose tree is a difference to that of 3, and 51 of the new one.
    write(trial.place(), 287..1199);
    warnings(last_save(&trial, 190 << 10));
    check(&trial, &[5, 4, 1]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8, ..ProptestConfig::default() })]
    /// Whatever the generations share: if there is room for the newest and the new one, the last save succeeds.
    #[test]
    fn the_last_save_succeeds_if_the_newest_and_the_new_one_have_room(
        generations in proptest::collection::vec((0_u64..1500, 50_u64..900, any::<bool>()), 1..6),
        (start, length) in (0_u64..2500, 600_u64..1500),
        more in 0_u64..400,
    ) {
        let ranges: Vec<_> = generations.iter().map(|(start, length, _)| *start..start + length).collect();
        let alone = |files: std::ops::Range<u64>| used(with(&[files]).disk.store());
        let newest = alone(ranges[ranges.len() - 1].clone());
        let trial = with(&ranges);
        for (number, (.., is_pinned)) in (1..).zip(&generations) {
            if *is_pinned {
                pin(&trial, number);
            }
        }
        write(trial.place(), start..start + length);
        // A file of which little more than a seventh is not needed stays as it is, and a new file with what the newest one needs of
        // an old one exists beside that.
        let needed = (alone(start..start + length) + newest) * 8 / 7 + newest + (64 << 10);
        let bytes = needed.max(used(trial.disk.store()) + newest + (more << 10));
        let saved = in_room(&trial, bytes, bytes);
        prop_assert!(saved.is_ok(), "{:?} {:?}", saved, trial.names());
        let left = trial.generations();
        prop_assert!(left.contains(&(ranges.len() as u64)));
        check(&trial, &left);
    }
}
