//! Selects generations to prune, and checks whether there is space for another one.
//!
//! A generation requested by an unprivileged user is pruned first, and does not influence which others are pruned.
//! Otherwise such saves could remove all earlier generations.

use super::Mode;

/// Whether a generation is pinned, in the order in which the last save of a boot gives them up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Pin {
    /// It is not.
    No,
    /// It was not loaded, or not completely ([`super::hold::Hold`]).
    Held,
    /// The administrator has pinned it, or it is selected for the next load.
    Asked,
}

/// A generation that is whole, as far as known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kept {
    pub number: u64,
    /// Size of its file.
    pub bytes: u64,
    /// The kind of its contents.
    pub mode: Mode,
    /// Whether it is pinned.
    pub pin: Pin,
    /// Whether an unprivileged user requested it.
    pub by_user: bool,
    /// Whether the RAM disk is large enough for it.
    pub fits: bool,
}

impl Kept {
    /// Whether it is not pruned.
    pub fn is_pinned(&self) -> bool {
        self.pin != Pin::No
    }
}

/// Limits of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Number of generations to keep besides pinned ones, at least one.
    pub keep: u32,
    /// Maximum bytes of all files.
    pub store_bytes: Option<u64>,
}

/// Whether this is the newest of its mode, or the newest of its mode that fits: it stays until a newer one is complete.
fn is_newest(all: &[Kept], one: &Kept) -> bool {
    let newest = |by_user: bool, larger: bool| {
        let comparable = all
            .iter()
            .filter(|other| other.mode == one.mode && other.by_user == by_user && (other.fits || larger));
        comparable.map(|other| other.number).max()
    };
    [false, true]
        .into_iter()
        .any(|larger| newest(false, larger).or_else(|| newest(true, larger)) == Some(one.number))
}

/// Whether a generation is never pruned automatically: the newest ones, the one loaded in this boot, pinned ones.
fn is_protected(all: &[Kept], one: &Kept, loaded: Option<u64>) -> bool {
    one.is_pinned() || is_newest(all, one) || Some(one.number) == loaded
}

/// Sorts by the order of pruning: first those requested by users, oldest first.
fn by_worth(all: &[Kept]) -> Vec<Kept> {
    let mut sorted = all.to_vec();
    sorted.sort_by_key(|kept| (!kept.by_user, kept.number));
    sorted
}

/// Numbers of the generations to prune after a save, in ascending order. One requested by a user is kept in addition to
/// the others until there is a newer such one, or as many newer others as are kept. One that does not fit is kept as long,
/// but takes the place of none that fits.
pub fn prune(all: &[Kept], limits: Limits, loaded: Option<u64>) -> Vec<u64> {
    let mut newest_first = all.to_vec();
    newest_first.sort_by_key(|kept| std::cmp::Reverse(kept.number));
    let (mut others, mut fitting, mut newer_by_user) = (0, 0, false);
    let mut gone = Vec::new();
    for kept in newest_first.iter().filter(|kept| !kept.is_pinned()) {
        let newer = if kept.fits && !kept.by_user { fitting } else { others };
        let stays = newer < limits.keep.max(1) && !(kept.by_user && newer_by_user);
        if !stays && !is_protected(all, kept, loaded) {
            gone.push(kept.number);
        }
        if kept.by_user {
            newer_by_user = true;
        } else {
            others += 1;
            fitting += u32::from(kept.fits);
        }
    }
    if let Some(limit) = limits.store_bytes {
        for kept in by_worth(all) {
            let counts = |other: &&Kept| !gone.contains(&other.number) && (kept.by_user || !other.by_user);
            let total = all.iter().filter(counts).fold(0_u64, |sum, other| sum.saturating_add(other.bytes));
            if total > limit && !gone.contains(&kept.number) && !is_protected(all, &kept, loaded) {
                gone.push(kept.number);
            }
        }
    }
    gone.sort_unstable();
    gone
}

/// Bytes that should be free for the first save of `content_bytes`: files are assumed to shrink to half, and a tenth is added.
/// A low estimate is safe: a save that runs out of space leaves the existing generations alone.
pub fn wanted_room(content_bytes: u64) -> u64 {
    let likely = content_bytes / 2;
    likely.saturating_add(likely / 10).saturating_add(4096)
}

/// The generations that may be removed before a save, in this order: those that are pruned after it anyway.
pub fn spare(all: &[Kept], keep: u32, loaded: Option<u64>, next: Kept) -> Vec<Kept> {
    let next = Kept { number: u64::MAX, ..next };
    let limits = Limits { keep, store_bytes: None };
    let gone = prune(&[all, &[next]].concat(), limits, loaded);
    let goes = |kept: &Kept| gone.contains(&kept.number) && !is_protected(all, kept, loaded);
    by_worth(all).into_iter().filter(goes).collect()
}

/// The generations that the last save of a boot, which cannot be repeated, gives up for its space, in this order: those that
/// are not pinned, then those that were not loaded, then pinned ones, in each case first those requested by users, then the
/// oldest. The newest ones stay until the new one is complete.
pub fn give_up(all: &[Kept]) -> Vec<Kept> {
    let mut sorted = by_worth(all);
    sorted.retain(|kept| !is_newest(all, kept));
    sorted.sort_by_key(|kept| kept.pin);
    sorted
}

#[cfg(test)]
mod tests {
    use crate::ramdisk::choose::*;
    use proptest::prelude::*;

    fn kept(number: u64, bytes: u64) -> Kept {
        Kept { number, bytes, mode: Mode::Snapshot, pin: Pin::No, by_user: false, fits: true }
    }

    const TWO: Limits = Limits { keep: 2, store_bytes: None };

    #[test]
    fn the_newest_and_what_is_protected_stay() {
        let mut all: Vec<Kept> = (1..=5).map(|number| kept(number, 10)).collect();
        assert_eq!(prune(&all, TWO, None), [1, 2, 3]);
        assert_eq!(prune(&all, TWO, Some(2)), [1, 3]);
        all[0].pin = Pin::Asked;
        assert_eq!(prune(&all, TWO, Some(2)), [3]);
        assert_eq!(prune(&all, Limits { keep: 0, ..TWO }, None), [2, 3, 4]);
        let limit = |bytes| Limits { keep: 9, store_bytes: Some(bytes) };
        assert_eq!(prune(&all, limit(50), None), [0_u64; 0]);
        assert_eq!(prune(&all, limit(49), None), [2]);
        assert_eq!(prune(&all, limit(0), Some(3)), [2, 4]);
        // A RAM disk just changed to keep only the skeleton still has its last full generation.
        all[4].mode = Mode::Skeleton;
        assert_eq!(prune(&all, Limits { keep: 1, ..TWO }, None), [2, 3]);
    }

    #[test]
    fn what_a_user_asked_for_takes_the_place_of_nothing_else() {
        let by_user = |number| Kept { by_user: true, ..kept(number, 10) };
        assert_eq!(prune(&[kept(1, 10), kept(2, 10), by_user(3)], TWO, None), [0_u64; 0]);
        assert_eq!(prune(&[kept(1, 10), kept(2, 10), by_user(3), by_user(4)], TWO, None), [3]);
        assert_eq!(prune(&[kept(1, 10), kept(2, 10), by_user(4), kept(5, 10)], TWO, None), [1]);
        assert_eq!(prune(&[kept(2, 10), by_user(4), kept(5, 10), kept(6, 10)], TWO, None), [2, 4]);
        let all = [kept(1, 10), kept(2, 10), by_user(3)];
        assert_eq!(prune(&all, Limits { keep: 9, store_bytes: Some(20) }, None), [3]);
        let numbers = |kept: Vec<Kept>| kept.iter().map(|kept| kept.number).collect::<Vec<_>>();
        assert_eq!(numbers(spare(&all, 2, None, kept(0, 0))), [1]);
        assert_eq!(numbers(spare(&all, 2, None, by_user(0))), [3]);
        assert_eq!(numbers(spare(&[by_user(3)], 1, None, by_user(0))), [0_u64; 0], "there is nothing else");
    }

    #[test]
    fn before_a_save_goes_only_what_goes_after_it() {
        let all = [kept(1, 100), kept(2, 100), kept(3, 100)];
        let goes = |keep, loaded| {
            spare(&all, keep, loaded, kept(0, 0)).iter().map(|kept| kept.number).collect::<Vec<_>>()
        };
        assert_eq!(goes(2, None), [1, 2]);
        assert_eq!(goes(2, Some(1)), [2]);
        assert_eq!(goes(3, None), [1], "`keep` counts, and the last good one stays");
        assert_eq!((wanted_room(1000), wanted_room(0)), (550 + 4096, 4096));
    }

    #[test]
    fn the_last_save_gives_up_pins_last_and_the_newest_never() {
        let all = [
            Kept { pin: Pin::Asked, ..kept(1, 10) },
            Kept { pin: Pin::Held, ..kept(2, 10) },
            kept(3, 10),
            Kept { pin: Pin::Asked, ..kept(4, 10) },
            Kept { by_user: true, ..kept(5, 10) },
            kept(6, 10),
        ];
        let numbers: Vec<u64> = give_up(&all).iter().map(|kept| kept.number).collect();
        assert_eq!(numbers, [5, 3, 2, 1, 4]);
        // Nor the newest that fits.
        let all = [kept(1, 10), kept(2, 10), Kept { fits: false, ..kept(3, 10) }];
        let numbers: Vec<u64> = give_up(&all).iter().map(|kept| kept.number).collect();
        assert_eq!(numbers, [1]);
    }

    #[test]
    fn what_does_not_fit_takes_the_place_of_nothing_that_does() {
        let large = |number| Kept { fits: false, ..kept(number, 10) };
        assert_eq!(prune(&[kept(1, 10), kept(2, 10), large(3), kept(4, 10)], TWO, None), [1]);
        assert_eq!(prune(&[kept(1, 10), kept(2, 10), large(3), large(4)], TWO, None), [0_u64; 0]);
        assert_eq!(prune(&[large(1), large(2), large(3), kept(4, 10)], TWO, None), [1, 2]);
        let held = Kept { pin: Pin::Held, ..large(1) };
        assert_eq!(prune(&[held, kept(2, 10), kept(3, 10), kept(4, 10)], TWO, None), [2]);
    }

    fn generations() -> impl Strategy<Value = Vec<Kept>> {
        let one = (1_u64..40, 0_u64..1000, 0_usize..5, any::<[bool; 3]>());
        proptest::collection::vec(one, 0..12).prop_map(|list| {
            let mut all: Vec<Kept> = Vec::new();
            for (number, bytes, pin, [skeleton, by_user, fits]) in list {
                let mode = if skeleton { Mode::Skeleton } else { Mode::Snapshot };
                if all.iter().all(|kept| kept.number != number) {
                    let pin = [Pin::No, Pin::No, Pin::No, Pin::Held, Pin::Asked][pin];
                    all.push(Kept { number, bytes, mode, pin, by_user, fits });
                }
            }
            all
        })
    }

    proptest! {
        #[test]
        fn nothing_that_is_needed_ever_goes(
            all in generations(), keep in 0_u32..5, limit in proptest::option::of(0_u64..5000),
            loaded in proptest::option::of(1_u64..40),
        ) {
            let limits = Limits { keep, store_bytes: limit };
            let gone = prune(&all, limits, loaded);
            let spares = spare(&all, keep, loaded, kept(0, 0));
            let room: Vec<u64> = spares.iter().map(|kept| kept.number).collect();
            let others: Vec<Kept> = all.iter().copied().filter(|kept| !kept.by_user).collect();
            let newest = others.iter().map(|kept| kept.number).max();
            for list in [&gone, &room] {
                for number in list {
                    let kept = all.iter().find(|kept| kept.number == *number).unwrap();
                    prop_assert!(!kept.is_pinned() && Some(*number) != loaded && Some(*number) != newest);
                }
            }
            // Pruning again changes nothing.
            let left: Vec<Kept> = all.iter().copied().filter(|kept| !gone.contains(&kept.number)).collect();
            prop_assert!(prune(&left, limits, loaded).is_empty());
            // No more than the limit, apart from protected ones.
            let free_ones = left.iter().filter(|kept| !is_protected(&left, kept, loaded)).count();
            prop_assert!(free_ones <= 2 * keep.max(1) as usize + 1);
            if let Some(limit) = limit {
                let total: u64 = left.iter().filter(|kept| !kept.by_user).map(|kept| kept.bytes).sum();
                prop_assert!(total <= limit || free_ones == 0);
            }
            // Generations requested by users do not cause others to be pruned.
            let of_others = |gone: &[u64]| -> Vec<u64> {
                gone.iter().copied().filter(|gone| others.iter().any(|kept| kept.number == *gone)).collect()
            };
            prop_assert_eq!(of_others(&gone), prune(&others, limits, loaded));
            prop_assert_eq!(
                of_others(&spares.iter().map(|kept| kept.number).collect::<Vec<_>>()),
                spare(&others, keep, loaded, kept(0, 0)).iter().map(|kept| kept.number).collect::<Vec<_>>()
            );
            // The last save keeps the newest, too, and gives up no pin before what is not pinned.
            let order = give_up(&all);
            prop_assert!(order.iter().all(|kept| Some(kept.number) != newest));
            prop_assert!(order.is_sorted_by_key(|kept| kept.pin));
        }
    }
}
