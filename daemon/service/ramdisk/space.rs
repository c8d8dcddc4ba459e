//! Polls how full RAM disks with `space-watch` are: tmpfs has no notification.
//!
//! Without such a disk there is no timer. The interval follows the rate at which a disk fills; for idle ones it is half a
//! minute.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use zbus::Connection;

use crate::bus::ramdisk::Ramdisk;
use crate::bus::table::Table;
use crate::core::Core;
use crate::journal;
use crate::names::ramdisk_path;
use host::linux::LinuxHost;
use host::{Host, Space};
use logic::ramdisk::space::Watch;

/// Runs until the daemon ends.
pub async fn follow(core: Arc<Core>, connection: Connection) {
    let mut watches = BTreeMap::new();
    loop {
        let next = look(&core, &connection, &mut watches).await;
        match next {
            Some(time) => tokio::time::sleep(time).await,
            None => core.view_changed.notified().await,
        }
    }
}

/// Checks all RAM disks once. Returns the time until the next check, or `None` if there is no RAM disk.
async fn look(
    core: &Core,
    connection: &Connection,
    watches: &mut BTreeMap<String, [Watch; 2]>,
) -> Option<Duration> {
    let view = core.view();
    let wanted: Vec<_> = view.ramdisks.iter().filter(|disk| disk.watch).collect();
    watches.retain(|name, _| wanted.iter().any(|disk| disk.name == *name));
    let host = LinuxHost::new("/");
    let mut next = None;
    for disk in wanted {
        // If it is not mounted, the figures would be those of the file system below.
        if !host.is_mount_point(&disk.mount_point) {
            continue;
        }
        let Ok(space) = host.space(disk.mount_point.as_bytes()) else { continue };
        let watch = watches.entry(disk.name.clone()).or_default();
        let ([bytes, inodes], again) = look_at(watch, space, host.monotonic());
        next = Some(next.map_or(again, |time: Duration| time.min(again)));
        let free = space.total_bytes.saturating_sub(space.used_bytes);
        if let Some(percent) = bytes {
            journal::space_low(&disk.name, &disk.mount_point, percent, free);
        }
        if let Some(percent) = inodes {
            journal::inodes_low(&disk.name, &disk.mount_point, percent, space.free_inodes);
        }
        for percent in [bytes, inodes].into_iter().flatten() {
            let path = ramdisk_path(&disk.name);
            if let Ok(object) = connection.object_server().interface::<_, Table<Ramdisk>>(path).await {
                // There may be no receiver.
                Ramdisk::space_low(object.signal_emitter(), percent, free).await.ok();
            }
        }
    }
    next
}

/// Checks bytes and inodes, because either may run out first. Returns the percentages to report, and the time until the next
/// check.
fn look_at(watch: &mut [Watch; 2], space: Space, now: Duration) -> ([Option<u32>; 2], Duration) {
    let used_inodes = space.total_inodes.saturating_sub(space.free_inodes);
    let bytes = watch[0].look(space.used_bytes, space.total_bytes, now);
    let inodes = watch[1].look(used_inodes, space.total_inodes, now);
    ([bytes.low, inodes.low], bytes.again.min(inodes.again))
}

#[cfg(test)]
mod tests {
    use crate::ramdisk::space::*;

    #[test]
    fn inodes_are_watched_separately() {
        let second = Duration::from_secs(1);
        let space = |used_bytes, free_inodes| Space {
            used_bytes,
            total_bytes: 1 << 20,
            free_inodes,
            total_inodes: 1000,
        };
        let mut watch = Default::default();
        assert_eq!(look_at(&mut watch, space(0, 1000), second).0, [None, None]);
        let (told, again) = look_at(&mut watch, space(0, 300), 2 * second);
        assert!(told == [None, None] && again < 2 * second, "{again:?}: it fills fast");
        assert_eq!(look_at(&mut watch, space(0, 190), 3 * second).0, [None, Some(81)]);
        assert_eq!(look_at(&mut watch, space(1 << 20, 190), 4 * second).0, [Some(100), None]);
        assert_eq!(look_at(&mut watch, space(1 << 20, 0), 5 * second).0, [None, Some(100)]);
        // btrfs allocates inodes dynamically and reports 0 of 0.
        let none = Space { free_inodes: 0, total_inodes: 0, ..space(0, 0) };
        assert_eq!(look_at(&mut Default::default(), none, second).0, [None, None]);
    }
}
