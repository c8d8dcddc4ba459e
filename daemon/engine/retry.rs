//! Retries while a device is held open for a moment: udev probes every new node, and `reset` fails while anything has
//! it open.

use std::time::Duration;

use super::error::{Error, held_open, in_use};
use super::gather;
use host::{Errno, Host, HostError};
use logic::device::attribute::Attribute;
use logic::proc::{self, MountLine};

const FIRST_PAUSE: Duration = Duration::from_millis(25);
const LONGEST_PAUSE: Duration = Duration::from_millis(250);
/// When to give up. According to all reports, boards that needed retries for `reset` recovered within a second.
pub const PATIENCE: Duration = Duration::from_secs(5);

/// Repeats `verb` with growing pauses while it fails with `EBUSY`, up to [`PATIENCE`]; then the error names the
/// processes that hold the device.
pub fn while_busy<H: Host, T>(
    host: &mut H,
    number: u32,
    mut verb: impl FnMut(&mut H) -> Result<T, HostError>,
) -> Result<T, Error> {
    let deadline = host.now() + PATIENCE;
    let mut pause = FIRST_PAUSE;
    loop {
        match verb(host) {
            Ok(value) => return Ok(value),
            Err(error) if error.is(Errno::BUSY) => {
                if host.now() >= deadline {
                    return Err(busy(host, number, &error));
                }
                host.sleep(pause);
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// The error for a busy device: names the processes that hold it, or its use by the kernel.
fn busy<H: Host>(host: &H, number: u32, error: &HostError) -> Error {
    let holders = host.holders(number);
    if !holders.is_empty() {
        return held_open(error, &holders);
    }
    let swaps = gather::swaps(host).unwrap_or_default();
    if swaps.iter().any(|swap| swap.zram_number() == Some(number)) {
        return in_use(error, &format!("it is in use as swap; run `swapoff /dev/zram{number}`"));
    }
    let device =
        host.read_attribute(number, Attribute::Dev).ok().and_then(|text| proc::parse_device_number(&text));
    let mounts = gather::mounts(host).unwrap_or_default();
    match proc::mount_of(&mounts, number, device) {
        Some(MountLine { mount_point, .. }) => {
            in_use(error, &format!("it is mounted at {mount_point}; run `umount {mount_point}`"))
        }
        None => held_open(error, &holders),
    }
}
