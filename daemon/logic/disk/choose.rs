//! Which generations may go, and whether there is room for another one.

use super::Mode;

/// A generation that is whole, as far as is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kept {
    /// N.
    pub number: u64,
    /// Size of its archive.
    pub bytes: u64,
    /// What it keeps.
    pub mode: Mode,
    /// Whether somebody asked that it stays.
    pub pinned: bool,
}

/// How much is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The newest so many besides those that are pinned, at least one.
    pub keep: u32,
    /// Bytes of all archives together.
    pub store_bytes: Option<u64>,
}

/// Those that may never go by themselves: the newest of each mode, what was loaded in this boot, what is pinned.
fn is_protected(all: &[Kept], one: &Kept, loaded: Option<u64>) -> bool {
    let newest = all.iter().filter(|other| other.mode == one.mode).map(|other| other.number).max();
    one.pinned || Some(one.number) == newest || Some(one.number) == loaded
}

/// Numbers of the generations that go after a save, oldest first.
pub fn prune(all: &[Kept], limits: Limits, loaded: Option<u64>) -> Vec<u64> {
    let mut sorted = all.to_vec();
    sorted.sort_by_key(|kept| std::cmp::Reverse(kept.number));
    let keep = usize::try_from(limits.keep.max(1)).unwrap_or(usize::MAX);
    let mut gone: Vec<u64> = sorted
        .iter()
        .filter(|kept| !kept.pinned)
        .skip(keep)
        .filter(|kept| !is_protected(all, kept, loaded))
        .map(|kept| kept.number)
        .collect();
    if let Some(limit) = limits.store_bytes {
        let mut total = sorted
            .iter()
            .filter(|kept| !gone.contains(&kept.number))
            .fold(0_u64, |sum, kept| sum.saturating_add(kept.bytes));
        for kept in sorted.iter().rev() {
            if total > limit && !gone.contains(&kept.number) && !is_protected(all, kept, loaded) {
                total -= kept.bytes;
                gone.push(kept.number);
            }
        }
    }
    gone.sort_unstable();
    gone
}

/// What the last generation tells about the next: size of its archive, and bytes of the files in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Experience {
    /// Size of the archive.
    pub archive_bytes: u64,
    /// Bytes of all files, without their holes.
    pub content_bytes: u64,
}

/// Bytes of room that a save of `content_bytes` should find: what it is likely to take, and a tenth.
///
/// Without experience files are taken to become half as large. It is only a guess: a save that runs out of room leaves
/// the generations as they are, one that was refused because of a guess may have been the last before the power went.
pub fn wanted_room(content_bytes: u64, last: Option<Experience>) -> u64 {
    let content = u128::from(content_bytes);
    let likely = match last {
        Some(last) if last.content_bytes > 0 => {
            content * u128::from(last.archive_bytes) / u128::from(last.content_bytes)
        }
        _ => content / 2,
    };
    u64::try_from(likely.saturating_add(likely / 10).saturating_add(4096)).unwrap_or(u64::MAX)
}

/// The generations that have to go before a save so that it finds `wanted` bytes where `free` are: the oldest ones that are
/// not protected. Nothing when even that would not do.
pub fn make_room(all: &[Kept], wanted: u64, free: u64, loaded: Option<u64>) -> Option<Vec<u64>> {
    let mut sorted = all.to_vec();
    sorted.sort_by_key(|kept| kept.number);
    let mut room = free;
    let mut gone = Vec::new();
    for kept in sorted {
        if room >= wanted {
            break;
        }
        if !is_protected(all, &kept, loaded) {
            room = room.saturating_add(kept.bytes);
            gone.push(kept.number);
        }
    }
    (room >= wanted).then_some(gone)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn kept(number: u64, bytes: u64) -> Kept {
        Kept { number, bytes, mode: Mode::Snapshot, pinned: false }
    }

    const TWO: Limits = Limits { keep: 2, store_bytes: None };

    #[test]
    fn the_newest_and_what_is_protected_stay() {
        let mut all: Vec<Kept> = (1..=5).map(|number| kept(number, 10)).collect();
        assert_eq!(prune(&all, TWO, None), [1, 2, 3]);
        assert_eq!(prune(&all, TWO, Some(2)), [1, 3]);
        all[0].pinned = true;
        assert_eq!(prune(&all, TWO, Some(2)), [3]);
        assert_eq!(prune(&all, Limits { keep: 0, ..TWO }, None), [2, 3, 4]);
        let limit = |bytes| Limits { keep: 9, store_bytes: Some(bytes) };
        assert_eq!(prune(&all, limit(50), None), [0_u64; 0]);
        assert_eq!(prune(&all, limit(49), None), [2]);
        assert_eq!(prune(&all, limit(0), Some(3)), [2, 4]);
        // A disk that has just been told to keep only the skeleton still has its last contents.
        all[4].mode = Mode::Skeleton;
        assert_eq!(prune(&all, Limits { keep: 1, ..TWO }, None), [2, 3]);
    }

    #[test]
    fn room_is_guessed_from_the_last_generation() {
        let last = Experience { archive_bytes: 50, content_bytes: 100 };
        assert_eq!(wanted_room(1000, Some(last)), 550 + 4096);
        assert_eq!(wanted_room(1000, None), 550 + 4096);
        assert_eq!(
            wanted_room(u64::MAX, Some(Experience { archive_bytes: u64::MAX, content_bytes: 1 })),
            u64::MAX
        );
        let all = [kept(1, 100), kept(2, 100), kept(3, 100)];
        assert_eq!(make_room(&all, 50, 50, None), Some(vec![]));
        assert_eq!(make_room(&all, 150, 50, None), Some(vec![1]));
        assert_eq!(make_room(&all, 150, 50, Some(1)), Some(vec![2]));
        assert_eq!(make_room(&all, 251, 50, None), None, "the last good one stays");
    }

    fn generations() -> impl Strategy<Value = Vec<Kept>> {
        let one = (1_u64..40, 0_u64..1000, any::<bool>(), any::<bool>());
        proptest::collection::vec(one, 0..12).prop_map(|list| {
            let mut all: Vec<Kept> = Vec::new();
            for (number, bytes, skeleton, pinned) in list {
                let mode = if skeleton { Mode::Skeleton } else { Mode::Snapshot };
                if all.iter().all(|kept| kept.number != number) {
                    all.push(Kept { number, bytes, mode, pinned });
                }
            }
            all
        })
    }

    proptest! {
        #[test]
        fn nothing_that_is_needed_ever_goes(
            all in generations(), keep in 0_u32..5, limit in proptest::option::of(0_u64..5000),
            loaded in proptest::option::of(1_u64..40), wanted in 0_u64..5000, free in 0_u64..5000,
        ) {
            let limits = Limits { keep, store_bytes: limit };
            let gone = prune(&all, limits, loaded);
            let room = make_room(&all, wanted, free, loaded);
            let newest = all.iter().map(|kept| kept.number).max();
            for list in [Some(&gone), room.as_ref()].into_iter().flatten() {
                for number in list {
                    let kept = all.iter().find(|kept| kept.number == *number).unwrap();
                    prop_assert!(!kept.pinned && Some(*number) != loaded && Some(*number) != newest);
                }
            }
            // Pruning again finds nothing more to do.
            let left: Vec<Kept> = all.iter().copied().filter(|kept| !gone.contains(&kept.number)).collect();
            prop_assert!(prune(&left, limits, loaded).is_empty());
            // No more than asked for, apart from what is protected.
            let free_ones = left.iter().filter(|kept| !is_protected(&left, kept, loaded)).count();
            prop_assert!(free_ones <= keep.max(1) as usize);
            if let Some(limit) = limit {
                let total: u64 = left.iter().map(|kept| kept.bytes).sum();
                prop_assert!(total <= limit || free_ones == 0);
            }
            if let Some(room) = room {
                let freed: u64 = all.iter().filter(|kept| room.contains(&kept.number)).map(|kept| kept.bytes).sum();
                prop_assert!(free + freed >= wanted);
            }
        }
    }
}
