//! Watching how full RAM disks are, for those who asked for it: tmpfs tells nobody.
//!
//! Only while the configuration has a disk with `space-watch` there is a timer, and it goes at the rate at which disks fill: twice
//! a minute for those that do not. Nobody with such a disk: no timer.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use zbus::Connection;

use super::bus::disk::RamDisk;
use super::bus::disk_path;
use super::core::Core;
use super::journal;
use crate::host::Host;
use crate::host::linux::LinuxHost;
use crate::logic::space::Watch;

/// Watches until the daemon ends.
pub async fn follow(core: Arc<Core>, connection: Connection) {
    let mut watches: BTreeMap<String, Watch> = BTreeMap::new();
    loop {
        let next = look(&core, &connection, &mut watches).await;
        match next {
            Some(time) => tokio::time::sleep(time).await,
            None => core.view_changed.notified().await,
        }
    }
}

/// Looks at all of them once. How long to wait, or nothing when there is none.
async fn look(
    core: &Core,
    connection: &Connection,
    watches: &mut BTreeMap<String, Watch>,
) -> Option<Duration> {
    let view = core.view();
    let wanted: Vec<_> = view.disks.iter().filter(|disk| disk.watch).collect();
    watches.retain(|name, _| wanted.iter().any(|disk| disk.name == *name));
    let host = LinuxHost::new("/");
    let mut next = None;
    for disk in wanted {
        // It may not be mounted yet, or any more; the folder below is as full as what it is in.
        if !host.is_mount_point(&disk.mount_point) {
            continue;
        }
        let Ok(space) = host.space(&disk.mount_point) else { continue };
        let watch = watches.entry(disk.name.clone()).or_default();
        let look = watch.look(space.used_bytes, space.total_bytes, host.monotonic());
        next = Some(next.map_or(look.again, |time: Duration| time.min(look.again)));
        if let Some(percent) = look.low {
            let free = space.total_bytes.saturating_sub(space.used_bytes);
            journal::space_low(&disk.name, &disk.mount_point, percent, free);
            let path = disk_path(&disk.name);
            if let Ok(object) = connection.object_server().interface::<_, RamDisk>(path).await {
                // Nobody has to listen.
                RamDisk::space_low(object.signal_emitter(), percent, free).await.ok();
            }
        }
    }
    next
}
