//! Recomputes sizes that depend on the machine's memory, when that has changed.

use serde::{Deserialize, Serialize};

use crate::finding::{Code, Finding, Level};
use crate::human::human;

/// What to do if the memory has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnChange {
    /// Report it, and how to change the size.
    #[default]
    Report,
    /// Change the size if no data has to be moved.
    Apply,
}

/// A device whose size no longer matches the machine's memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Resize {
    /// Number of the device.
    pub number: u32,
    /// Its size in bytes, including devices that were added to it.
    pub from: u64,
    /// Size in bytes of these.
    #[serde(default)]
    pub added: u64,
    /// The size in bytes that it should have.
    pub to: u64,
    /// What to do.
    pub step: Step,
    /// Whether setting it up again would lose contents, because it is not swap.
    #[serde(default)]
    pub keeps: bool,
    /// Why its size should change.
    pub reason: String,
}

/// How to change a size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "ResizeStep"))]
#[serde(rename_all = "kebab-case")]
pub enum Step {
    /// Left to the administrator.
    Offer,
    /// Set it up again: it is empty.
    Recreate,
    /// Add a second device of this size in bytes: this one is in use.
    Add(u64),
}

/// State of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    /// Number of the device.
    pub number: u32,
    /// Its size in bytes.
    pub size: u64,
    /// The size in bytes of its expression now.
    pub wanted: u64,
    /// Bytes in use.
    pub used: u64,
    /// Whether it is swap: only swap can be spread over two devices, and can be set up again without loss.
    pub swap: bool,
    /// Size in bytes of devices that were added to it earlier.
    pub added: u64,
}

/// Minimum difference in percent: the kernel's total memory varies a little from boot to boot.
const NOTICEABLE_PERCENT: u64 = 5;
/// Size of the largest pages that Linux has.
const LARGEST_PAGE: u64 = 64 << 10;
/// Minimum size of a second device.
const LEAST: u64 = 64 << 20;

/// What to do with one device, if its size should change.
pub fn decide(seen: &Seen, on_change: OnChange) -> Option<Resize> {
    let has = seen.size.saturating_add(seen.added);
    let differs = has.abs_diff(seen.wanted);
    if differs <= has / 100 * NOTICEABLE_PERCENT || seen.wanted == 0 {
        return None;
    }
    let grows = seen.wanted > has;
    let step = match on_change {
        OnChange::Apply if seen.swap && seen.used == 0 && seen.added == 0 => Step::Recreate,
        OnChange::Apply if seen.swap && grows && differs >= LEAST => Step::Add(differs),
        // Includes changes that would move pages in use or lose contents: they are left to the administrator.
        OnChange::Report | OnChange::Apply => Step::Offer,
    };
    let what = if grows { "more" } else { "less" };
    let reason = format!(
        "the machine has {what} memory than when zram{} was set up: its size is {}, and would be {}",
        seen.number,
        human(has),
        human(seen.wanted)
    );
    let keeps = !seen.swap;
    Some(Resize { number: seen.number, from: has, added: seen.added, to: seen.wanted, step, keeps, reason })
}

/// Findings about changes left to the administrator, until they are made; `size` returns the present size of a device.
pub fn findings(resizes: &[Resize], size: impl Fn(u32) -> Option<u64>) -> Vec<Finding> {
    // The kernel rounds a size up to whole pages.
    let is_as_it_was = |resize: &&Resize| {
        let was = resize.from.saturating_sub(resize.added);
        size(resize.number).is_some_and(|size| (was..was.saturating_add(LARGEST_PAGE)).contains(&size))
    };
    let open = resizes.iter().filter(|resize| resize.step == Step::Offer).filter(is_as_it_was);
    open.map(|resize| {
        let remedy = match resize.added {
            _ if resize.keeps => {
                "save what is on it, then run `zramdctl reload --force`, which sets it up again, empty"
            }
            0 => "run `zramdctl reload`, which moves what is stored through memory",
            _ => "run `zramdctl remove` for the device that was added, then `zramdctl reload`; both move what is stored through memory",
        };
        let object = format!("zram{}", resize.number);
        Finding::new(Level::Warning, Code::MemoryChanged, &object, resize.reason.clone(), remedy)
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use crate::resize::*;

    const GIB: u64 = 1 << 30;
    const MIB: u64 = 1 << 20;

    fn seen() -> Seen {
        Seen { number: 0, size: 4 * GIB, wanted: 8 * GIB, used: GIB, swap: true, added: 0 }
    }

    fn step(seen: &Seen, on_change: OnChange) -> Option<Step> {
        decide(seen, on_change).map(|resize| resize.step)
    }

    #[test]
    fn a_change_is_offered_or_brought_about_without_moving_anything() {
        let cases = [
            (seen(), Step::Offer, Step::Add(4 * GIB)),
            (Seen { used: 0, ..seen() }, Step::Offer, Step::Recreate),
            (Seen { wanted: 2 * GIB, ..seen() }, Step::Offer, Step::Offer),
            (Seen { wanted: 2 * GIB, used: 0, ..seen() }, Step::Offer, Step::Recreate),
            (Seen { swap: false, ..seen() }, Step::Offer, Step::Offer),
            (Seen { swap: false, used: 0, ..seen() }, Step::Offer, Step::Offer),
            (Seen { swap: false, used: 0, wanted: 2 * GIB, ..seen() }, Step::Offer, Step::Offer),
            (Seen { added: 2 * GIB, ..seen() }, Step::Offer, Step::Add(2 * GIB)),
            // A second device has 64 MiB at least.
            (Seen { size: GIB, wanted: GIB + 64 * MIB, ..seen() }, Step::Offer, Step::Add(64 * MIB)),
            (Seen { size: GIB, wanted: GIB + 63 * MIB, ..seen() }, Step::Offer, Step::Offer),
        ];
        for (seen, reported, applied) in cases {
            assert_eq!(step(&seen, OnChange::Report), Some(reported));
            assert_eq!(step(&seen, OnChange::Apply), Some(applied));
        }
        let reason = decide(&seen(), OnChange::Report).unwrap().reason;
        assert!(reason.contains("4.0 GiB") && reason.contains("8.0 GiB"), "{reason}");
    }

    #[test]
    fn an_offer_stands_until_it_is_taken() {
        let offered = decide(&seen(), OnChange::Report).unwrap();
        let found = findings(std::slice::from_ref(&offered), |_| Some(4 * GIB));
        assert_eq!((found[0].code, found[0].object.as_str()), (Code::MemoryChanged, "zram0"));
        assert!(found[0].remedy.starts_with("run `zramdctl reload`, "), "{found:?}");
        let odd = Resize { from: 4 * GIB - 5, ..offered.clone() };
        assert_eq!(findings(&[odd], |_| Some(4 * GIB)).len(), 1);
        assert_eq!(findings(&[offered], |_| Some(8 * GIB)), []);
        let applied = decide(&seen(), OnChange::Apply).unwrap();
        assert_eq!(findings(&[applied], |_| Some(4 * GIB)), []);
        // For a file system, the remedy begins with saving its contents.
        let mounted = decide(&Seen { swap: false, used: 0, ..seen() }, OnChange::Apply).unwrap();
        assert!(findings(&[mounted], |_| Some(4 * GIB))[0].remedy.contains("`zramdctl reload --force`"));
        // Memory has shrunk again: which device to remove is left to the administrator.
        let less = Seen { wanted: 4 * GIB, used: 0, added: 4 * GIB, ..seen() };
        let offered = decide(&less, OnChange::Apply).unwrap();
        assert_eq!((offered.step, offered.from), (Step::Offer, 8 * GIB));
        assert!(findings(&[offered], |_| Some(4 * GIB))[0].remedy.contains("zramdctl remove"));
    }

    #[test]
    fn small_differences_and_what_was_added_already_change_nothing() {
        assert_eq!(step(&Seen { wanted: 4 * GIB + GIB / 8, ..seen() }, OnChange::Apply), None);
        assert_eq!(step(&Seen { added: 4 * GIB, ..seen() }, OnChange::Apply), None);
    }
}
