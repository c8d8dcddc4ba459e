//! RAM disks: the missing steps.
//!
//! A RAM disk that is not kept and not on zram is a tmpfs on its mount point. All others are *layered*: mounted at a
//! private place, filled there, and only then bind-mounted to the mount point. It is never visible while half-filled,
//! and it can be saved while processes keep the mount point busy.

use super::{Activation, Group, Step};
use crate::facts::Facts;
use crate::proc::MountLine;
use crate::ramdisk::place::{PLACES, ramdisk_mount};
use crate::record::{Progress, Target};
use crate::request::{MountRequest, RamdiskRequest, Request};

/// The steps for a RAM disk. A tmpfs mounted by PID 1 has no record and no steps.
pub(crate) fn group(
    target: &Target,
    request: &RamdiskRequest,
    facts: &Facts,
    activation: Activation,
) -> Result<Group, String> {
    let wanted = Request::Ramdisk(request.clone());
    let mut group = Group { request: Some(wanted.clone()), ..Group::new(target.clone()) };
    if activation == Activation::Direct {
        group.needs = request.number.map(Target::Device);
    }
    let Some(record) = facts.records.get(target) else {
        if let Some(left) = left_behind(request, facts).filter(|_| activation == Activation::Direct) {
            return Err(left);
        }
        group.after = steps(request);
        return Ok(group);
    };
    let Request::Ramdisk(present) = &record.request else {
        return Err(format!("its record in /run/zramd is for another target; remove {}", target.file_name()));
    };
    let (now, place) = (&present.mount.mount_point, present.place());
    let is_another = |path: &str, mount: &MountLine| {
        record.mounted(path).is_some_and(|id| id.is_not(mount, facts.mount_namespace))
    };
    let is_there = |path: &str| facts.mount_at(path).is_some_and(|mount| !is_another(path, mount));
    if let Some(other) = facts.mount_at(now).filter(|mount| is_another(now, mount)) {
        // With our file system, it does not matter which program has mounted it.
        let held = facts.mount_at(&place).filter(|_| present.is_layered());
        if held.is_none_or(|held| held.device != other.device) {
            let what = format!("{} on {}", other.fs_type, other.source);
            return Err(format!(
                "another program has mounted something else on {now} since ({what}): unmount that first"
            ));
        }
    }
    let ours = record.mounted(now).filter(|id| id.id != 0 && id.namespace == facts.mount_namespace);
    let moved = ours.and_then(|id| facts.mounts.iter().find(|mount| mount.id == id.id));
    if let Some(moved) = moved.filter(|moved| moved.mount_point != now.as_str() && present.is_layered()) {
        let path = &moved.mount_point;
        return Err(format!(
            "it was moved from {now} to {path}: move it back (`mount --move {path} {now}`), or run `zramd-setup down {target}`"
        ));
    }
    if record.progress == Progress::Working || !is_there(&place) {
        group.retire = Some(record.clone());
        group.after = steps(request);
    } else if *now != request.mount.mount_point {
        return Err(format!(
            "its mount point has changed from {now}, and its contents would be lost: save them, then run `zramd-setup down {target}`"
        ));
    } else if place != request.place() || present.number != request.number {
        return Err(format!(
            "its backend or persist has changed, and its contents would be lost: save them, then run `zramd-setup down {target}`"
        ));
    } else {
        let options = tmpfs_options(request);
        if request.number.is_none() && options != tmpfs_options(present) {
            group.after.push(Step::RemountTmpfs { mount_point: place, options });
        }
        // A removal was interrupted after the bind mount was unmounted.
        let hidden = ramdisk_mount(&facts.mounts, &request.name, now).is_none();
        if hidden && !facts.passthrough.contains(&request.name) {
            group.after.extend(steps(request).pop());
        }
        let altered = record.request != wanted || !group.after.is_empty();
        group.resume = altered.then(|| record.clone());
    }
    Ok(group)
}

/// Why a RAM disk without a record is not mounted over what is at its private place: it may hold data that was never saved.
fn left_behind(request: &RamdiskRequest, facts: &Facts) -> Option<String> {
    let (name, place) = (&request.name, request.place());
    let mounted = facts.mount_at(&place).filter(|_| request.is_layered() && request.number.is_none());
    let is_of_unit = facts.unit_ramdisks.iter().any(|disk| disk.name == *name);
    mounted.filter(|_| !is_of_unit).map(|_| {
        format!(
            "{place} is mounted already, and zramd has no record of it: run `zramdctl ramdisk save {name}` if it persists, then unmount it"
        )
    })
}

fn steps(request: &RamdiskRequest) -> Vec<Step> {
    let options = tmpfs_options(request);
    if !request.is_layered() {
        return vec![Step::MountTmpfs { mount: request.mount.clone(), options }];
    }
    let name = request.name.clone();
    let place = request.place();
    let mut steps = Vec::new();
    if request.number.is_none() {
        steps.push(Step::CreateDirectory { path: PLACES.to_owned() });
        steps.push(Step::CreateDirectory { path: place.clone() });
        let mount = MountRequest { mount_point: place.clone(), ..request.mount.clone() };
        steps.push(Step::MountTmpfs { mount, options });
    }
    if request.keep.is_some() {
        steps.push(Step::LoadRamdisk { name: name.clone() });
    }
    let mount_point = request.mount.mount_point.clone();
    steps.push(Step::ShowRamdisk { name, place, mount_point, kept: request.keep.is_some() });
    steps
}

/// Options of a tmpfs (tmpfs(5)): size, inodes, and owner and mode of the root directory.
pub fn tmpfs_options(request: &RamdiskRequest) -> String {
    let MountRequest { options, mode, uid, gid, .. } = &request.mount;
    let mut words: Vec<String> =
        options.split(',').filter(|word| !word.is_empty()).map(str::to_owned).collect();
    words.push(format!("size={}", request.size));
    words.extend(request.inodes.map(|inodes| format!("nr_inodes={inodes}")));
    words.extend(request.huge.as_ref().map(|huge| format!("huge={huge}")));
    words.extend(mode.map(|mode| format!("mode={mode:04o}")));
    words.extend(uid.map(|uid| format!("uid={uid}")));
    words.extend(gid.map(|gid| format!("gid={gid}")));
    words.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Decision;
    use crate::plan::tests::{facts, mount, plan_of, undo_of, words};
    use crate::ramdisk::UnitRamdisk;
    use crate::record::{MountId, Record};

    const PLAIN: &str = "[ramdisk.a]\nmount-point = \"/srv\"\nsize = \"16MiB\"\n";
    const KEPT: &str = "[ramdisk.a]\nmount-point = \"/srv\"\nsize = \"16MiB\"\npersist = \"snapshot\"\n";
    const ON_ZRAM: &str =
        "[ramdisk.a]\nmount-point = \"/srv\"\nsize = \"16MiB\"\npersist = \"snapshot\"\nbackend = \"zram\"\n";
    const PLACE: &str = "/run/zramd/ramdisk/a";
    /// Device number of its file system.
    const OURS: (u32, u32) = (0, 30);

    fn target() -> Target {
        Target::Ramdisk("a".to_owned())
    }

    fn request(text: &str) -> RamdiskRequest {
        let plan = plan_of(text, &facts(), Activation::Direct);
        let item = plan.item(&target()).unwrap();
        assert_eq!(item.decision, Decision::Planned, "{text}");
        let Some(Request::Ramdisk(request)) = &item.request else { panic!("{text}") };
        request.clone()
    }

    /// The machine after `text` was set up: the mount at the private place has the ID 10, the visible one 11.
    fn set_up(text: &str) -> Facts {
        let request = request(text);
        let mut facts = Facts { mount_namespace: 1, ..facts() };
        let id = |id| Some(MountId { namespace: 1, id, ..MountId::default() });
        let mut record = Record::begin(target(), Request::Ramdisk(request.clone()));
        record.progress = Progress::Done;
        record.undo = undo_of(steps(&request));
        record.set_mounted(PLACE, id(10));
        record.set_mounted("/srv", id(11));
        facts.records.insert(target(), record);
        if request.is_layered() {
            facts.mounts.push(mount(10, OURS, PLACE, "tmpfs"));
        }
        facts.mounts.push(mount(11, OURS, "/srv", "tmpfs"));
        facts
    }

    /// Its steps, `anew` if it is set up again, and `noted` if its record is written; or why it is refused.
    fn planned(text: &str, facts: &Facts) -> Result<Vec<String>, String> {
        let group = group(&target(), &request(text), facts, Activation::Direct)?;
        if group.retire.is_some() {
            return Ok(vec!["anew".to_owned()]);
        }
        let noted = group.resume.iter().map(|_| "noted".to_owned());
        Ok(words(group.after).into_iter().chain(noted).collect())
    }

    /// What happens to the machine.
    type Change = fn(&mut Facts);

    /// The visible mount is another one now.
    fn covered(facts: &mut Facts, device: (u32, u32)) {
        facts.mounts.retain(|mount| mount.id != 11);
        facts.mounts.push(mount(12, device, "/srv", "tmpfs"));
    }

    fn moved(facts: &mut Facts) {
        facts.mounts.retain(|mount| mount.id != 11);
        facts.mounts.push(mount(11, OURS, "/home/moved", "tmpfs"));
    }

    /// In another mount namespace, IDs are those of other mounts.
    fn elsewhere(facts: &mut Facts) {
        facts.mount_namespace = 2;
        facts.mounts = vec![
            mount(11, (8, 1), "/home", "ext4"),
            mount(20, OURS, PLACE, "tmpfs"),
            mount(21, OURS, "/srv", "tmpfs"),
        ];
    }

    #[test]
    fn a_ram_disk_is_left_mended_or_set_up_again_depending_on_its_mounts() {
        let shown = ["bind-mount it on /srv", "noted"];
        let cases: [(&str, Change, &[&str]); 11] = [
            (PLAIN, |_| {}, &[]),
            (KEPT, |_| {}, &[]),
            // It does not matter which program has mounted it.
            (KEPT, |facts| covered(facts, OURS), &[]),
            (KEPT, elsewhere, &[]),
            (KEPT, |facts| facts.mounts.retain(|mount| mount.id != 11), &shown),
            (
                KEPT,
                |facts| {
                    facts.mounts.retain(|mount| mount.id != 11);
                    facts.passthrough.insert("a".to_owned());
                },
                &[],
            ),
            (KEPT, |facts| facts.mounts.retain(|mount| mount.id != 10), &["anew"]),
            (PLAIN, |facts| facts.mounts.clear(), &["anew"]),
            (PLAIN, moved, &["anew"]),
            (PLAIN, interrupted, &["anew"]),
            (KEPT, interrupted, &["anew"]),
        ];
        for (number, (text, change, expected)) in cases.into_iter().enumerate() {
            let mut facts = set_up(text);
            change(&mut facts);
            let expected = expected.iter().map(|&word| word.to_owned()).collect();
            assert_eq!(planned(text, &facts), Ok(expected), "{number}");
        }
    }

    fn interrupted(facts: &mut Facts) {
        facts.records.get_mut(&target()).unwrap().progress = Progress::Working;
    }

    /// What was configured, what is now, what has happened, and the steps or why it is refused.
    type Case = (&'static str, String, Change, Result<&'static [&'static str], &'static str>);

    #[test]
    fn a_change_of_a_ram_disk_in_place_is_noted_or_refused() {
        let moved_from = KEPT.replace("/srv", "/mnt");
        let cases: [Case; 8] = [
            (KEPT, format!("{KEPT}keep = 5\n"), |_| {}, Ok(&["noted"])),
            (
                PLAIN,
                PLAIN.replace("16MiB", "32MiB"),
                |_| {},
                Ok(&["remount /srv with nosuid,nodev,size=33554432,mode=0755", "noted"]),
            ),
            (KEPT, moved_from, |_| {}, Err("its mount point has changed from /srv")),
            (KEPT, PLAIN.to_owned(), |_| {}, Err("its backend or persist has changed")),
            (KEPT, ON_ZRAM.to_owned(), |_| {}, Err("its backend or persist has changed")),
            (KEPT, KEPT.to_owned(), |facts| covered(facts, (0, 99)), Err("another program has mounted")),
            (PLAIN, PLAIN.to_owned(), |facts| covered(facts, (0, 99)), Err("another program has mounted")),
            (KEPT, KEPT.to_owned(), moved, Err("it was moved from /srv to /home/moved")),
        ];
        for (before, after, change, expected) in cases {
            let mut facts = set_up(before);
            change(&mut facts);
            match (planned(&after, &facts), expected) {
                (Ok(found), Ok(expected)) => assert_eq!(found, expected, "{after}"),
                (Err(found), Err(expected)) => assert!(found.starts_with(expected), "{after}: {found}"),
                (found, _) => panic!("{after}: {found:?}"),
            }
        }
    }

    /// What is mounted there may hold data that was never saved; PID 1 and a zram device keep their own.
    #[test]
    fn only_a_tmpfs_without_a_record_and_a_unit_is_left_behind() {
        let at_place = Facts { mounts: vec![mount(10, OURS, PLACE, "tmpfs")], ..facts() };
        let unit = |name: &str| UnitRamdisk { name: name.to_owned(), ..UnitRamdisk::default() };
        let of_unit = |name| Facts { unit_ramdisks: vec![unit(name)], ..at_place.clone() };
        for (text, activation, facts, is_left) in [
            (KEPT, Activation::Direct, facts(), false),
            (KEPT, Activation::Direct, at_place.clone(), true),
            (KEPT, Activation::Systemd, at_place.clone(), false),
            (KEPT, Activation::Direct, of_unit("a"), false),
            (KEPT, Activation::Direct, of_unit("b"), true),
            (ON_ZRAM, Activation::Direct, at_place.clone(), false),
        ] {
            let found = group(&target(), &request(text), &facts, activation);
            assert_eq!(found.is_err(), is_left, "{text} {activation:?}: {found:?}");
        }
    }

    #[test]
    fn without_systemd_a_ram_disk_on_zram_waits_for_its_device() {
        for (text, activation, expected) in [
            (ON_ZRAM, Activation::Direct, Some(Target::Device(0))),
            (ON_ZRAM, Activation::Systemd, None),
            (KEPT, Activation::Direct, None),
        ] {
            assert_eq!(group(&target(), &request(text), &facts(), activation).unwrap().needs, expected);
        }
    }
}
