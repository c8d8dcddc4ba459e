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
