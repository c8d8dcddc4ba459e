//! Notices changes of zram devices, swaps and mounts by other programs, without polling.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::fs::inotify;
use rustix::net::netlink::{KOBJECT_UEVENT, SocketAddrNetlink};
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, bind, recv, socket_with};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::core::Core;
use logic::proc::{is_hotplug_event, is_zram_event};

/// The kernel's multicast group of uevents (udev's own is 2).
const KERNEL_EVENTS: u32 = 1;
/// Larger than any event: the kernel's limit is 2 KiB (`UEVENT_BUFFER_SIZE`).
const EVENT_BYTES: usize = 4096;

/// Watches until the daemon ends. A source that cannot be watched is logged once: callers still get current figures, but
/// change signals are late.
pub fn begin(core: &Arc<Core>) {
    let devices = Arc::clone(core);
    tokio::spawn(async move {
        if let Err(error) = follow_devices(&devices).await {
            tracing::warn!("cannot watch for zram devices that come and go: {error}");
        }
    });
    for path in ["/proc/swaps", "/proc/self/mountinfo"] {
        let core = Arc::clone(core);
        tokio::spawn(async move {
            if let Err(error) = follow_table(&core, path).await {
                tracing::warn!("cannot watch {path}: {error}");
            }
        });
    }
}

/// The replacement of this function is unsafe, because a type could return different descriptors. An `OwnedFd` does not.
#[allow(deprecated)]
pub(super) fn watched(fd: OwnedFd, interest: Interest) -> std::io::Result<AsyncFd<OwnedFd>> {
    AsyncFd::with_interest(fd, interest)
}

/// Calls `act` now, and after each change of a file in this directory, which may be removed and created again.
pub(super) async fn follow_directory(directory: &str, mut act: impl FnMut()) -> std::io::Result<()> {
    let watch = inotify::init(inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK)?;
    let watch = watched(watch, Interest::READABLE)?;
    loop {
        std::fs::create_dir_all(directory)?;
        let changes = inotify::WatchFlags::MOVED_TO | inotify::WatchFlags::DELETE;
        inotify::add_watch(&watch, directory, changes)?;
        act();
        let mut ready = watch.readable().await?;
        let mut buffer = [0; 4096];
        // All events are handled alike.
        while rustix::io::read(&watch, &mut buffer).is_ok() {}
        ready.clear_ready();
    }
}

/// `/proc/swaps` and mountinfo report a change as POLLPRI (proc(5)).
async fn follow_table(core: &Core, path: &str) -> std::io::Result<()> {
    let file = match File::open(path) {
        Ok(file) => file,
        // A kernel without swap.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    let file = watched(file.into(), Interest::PRIORITY)?;
    loop {
        file.ready(Interest::PRIORITY | Interest::ERROR).await?.clear_ready();
        core.changed.notify_one();
    }
}

async fn follow_devices(core: &Core) -> std::io::Result<()> {
    let socket: OwnedFd = socket_with(
        AddressFamily::NETLINK,
        SocketType::DGRAM,
        SocketFlags::CLOEXEC | SocketFlags::NONBLOCK,
        Some(KOBJECT_UEVENT),
    )?;
    bind(&socket, &SocketAddrNetlink::new(0, KERNEL_EVENTS))?;
    let socket = watched(socket, Interest::READABLE)?;
    let mut buffer = vec![0; EVENT_BYTES];
    loop {
        let mut ready = socket.readable().await?;
        match ready.try_io(|socket| Ok(recv(socket, &mut buffer[..], RecvFlags::empty())?)) {
            Ok(Ok((length, _))) => {
                let event = &buffer[..length.min(EVENT_BYTES)];
                if is_hotplug_event(event) {
                    core.verdicts.forget();
                }
                if is_zram_event(event) {
                    core.changed.notify_one();
                }
            }
            // Events were lost in an overflow, maybe some of zram.
            Ok(Err(error)) if error.raw_os_error() == Some(libc::ENOBUFS) => {
                core.verdicts.forget();
                core.changed.notify_one();
            }
            Ok(Err(error)) => return Err(error),
            Err(_would_block) => {}
        }
    }
}
