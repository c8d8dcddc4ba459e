//! Commands that change something: each calls the daemon, waits for the job, and prints the outcome.

use std::collections::{HashMap, HashSet};

use zbus::{OwnedObjectPath, Variant};

use super::amount::amount;
use super::args::{Change, Create, NoBlock};
use super::connect::Bus;
use super::job::Jobs;
use super::{options, out};
use engine::sample::{self, Detail};
use host::linux::LinuxHost;
use logic::error::{Error, ErrorKind};
use logic::exit::ExitStatus;
use logic::human::human;
use logic::proc::device_number;
use logic::sample::{RoleView, Snapshot};
use logic::view::View;

const DEVICE: &str = "org.zramd1.Device";

type Result<T> = std::result::Result<T, Error>;

/// Options of a method.
pub fn forced(force: bool) -> HashMap<&'static str, Variant<'static>> {
    if force { HashMap::from([("force", true.into())]) } else { HashMap::new() }
}

/// The path of a device, by its name or its node.
async fn device(bus: &Bus, name: &str) -> Result<OwnedObjectPath> {
    bus.manager("GetDevice", &device_name(name)?).await
}

/// The name of a device, by its name or its node.
fn device_name(name: &str) -> Result<&str> {
    let remedy = if name.contains('/') { "" } else { "; for RAM disks there is `zramdctl ramdisk`" };
    let wrong = || Error::new(ErrorKind::NotFound, format!("{name} is no zram device{remedy}"));
    Some(bare(name)).filter(|name| device_number(name).is_some()).ok_or_else(wrong)
}

pub(super) fn bare(name: &str) -> &str {
    name.strip_prefix("/dev/").unwrap_or(name)
}

/// Waits for a job and prints its outcome; with `--no-block`, prints only its path.
pub(super) async fn finish(
    jobs: &mut Jobs<'_>,
    job: &OwnedObjectPath,
    no_block: bool,
    doing: &str,
) -> Result<()> {
    if no_block {
        out::line(job.as_str());
        return Ok(());
    }
    for line in jobs.wait(job, doing).await? {
        out::done(&line);
    }
    Ok(())
}

/// `reload`.
pub async fn reload(ask: bool, change: Change) -> Result<ExitStatus> {
    let bus = Bus::open(ask).await?;
    let mut jobs = Jobs::listen(&bus).await?;
    let job: OwnedObjectPath = bus.manager("Reload", &forced(change.force)).await?;
    finish(&mut jobs, &job, change.no_block, "reloading").await?;
    Ok(ExitStatus::Success)
}

/// `create`.
pub async fn create(ask: bool, words: &Create) -> Result<ExitStatus> {
    out::line(&created(ask, words).await?);
    Ok(ExitStatus::Success)
}

/// Creates a device, and returns its node.
pub async fn created(ask: bool, words: &Create) -> Result<String> {
    let options = options::of_create(words)?;
    let bus = Bus::open(ask).await?;
    let path: OwnedObjectPath = bus.manager("CreateDevice", &options).await?;
    let name = path.as_str().rsplit('/').next().unwrap_or_default();
    Ok(format!("/dev/{name}"))
}

/// `remove`.
pub async fn remove(ask: bool, names: &[String], change: Change) -> Result<ExitStatus> {
    let bus = Bus::open(ask).await?;
    let mut jobs = Jobs::listen(&bus).await?;
    let mut ends = Vec::new();
    for name in distinct(names) {
        let end = async {
            let job: OwnedObjectPath =
                bus.manager("RemoveDevice", &(device_name(name)?, forced(change.force))).await?;
            finish(&mut jobs, &job, change.no_block, &format!("removing {}", bare(name))).await
        };
        ends.push(end.await);
    }
    together(ends)
}

/// Names and nodes of devices, each device once.
fn distinct(names: &[String]) -> impl Iterator<Item = &String> {
    let mut seen = HashSet::new();
    names.iter().filter(move |name| seen.insert(bare(name)))
}

/// `resize`.
pub async fn resize(ask: bool, name: &str, size: &str, change: Change) -> Result<ExitStatus> {
    let bytes = amount(size)?;
    if bytes == 0 {
        let message = format!("the size must not be 0; `zramdctl remove {}` removes the device", bare(name));
        return Err(Error::new(ErrorKind::InvalidArgument, message));
    }
    let bus = Bus::open(ask).await?;
    let path = device(&bus, name).await?;
    let mut jobs = Jobs::listen(&bus).await?;
    let job: OwnedObjectPath =
        bus.call(path.as_str(), DEVICE, "Resize", &(bytes, forced(change.force))).await?;
    let doing = format!("resizing {} to {}", bare(name), human(bytes));
    finish(&mut jobs, &job, change.no_block, &doing).await?;
    Ok(ExitStatus::Success)
}

/// `swap on`.
pub async fn swap_on(ask: bool, name: &str, change: NoBlock) -> Result<ExitStatus> {
    let name = device_name(name)?;
    let found = machine();
    // The daemon activates file systems, too.
    if found.device(name).is_some_and(|device| device.role == RoleView::Filesystem) {
        return Err(no_swap(name));
    }
    let bus = Bus::open(ask).await?;
    let mut jobs = Jobs::listen(&bus).await?;
    // By name: a device that is off has no object.
    let job: OwnedObjectPath = bus.manager("ActivateDevice", &(name, forced(false))).await?;
    finish(&mut jobs, &job, change.no_block, &format!("switching on {name}")).await?;
    Ok(ExitStatus::Success)
}

/// `swap off`; `is_off` if the same command has switched it off before.
pub async fn swap_off(ask: bool, name: &str, change: NoBlock, is_off: bool) -> Result<ExitStatus> {
    let bus = Bus::open(ask).await?;
    let mut jobs = Jobs::listen(&bus).await?;
    let asked = async {
        let path = device(&bus, name).await?;
        let asked = bus.call(path.as_str(), "org.zramd1.Swap", "Deactivate", &(forced(false),)).await;
        asked.map_err(|failure: Error| match failure.kind {
            // The device exists, so the missing object is its swap interface.
            ErrorKind::NotFound => no_swap(name),
            _ => failure,
        })
    };
    let job: OwnedObjectPath = match asked.await {
        Err(failure) if failure.kind == ErrorKind::NotFound && is_off => {
            out::done(&format!("{}: switched off already", bare(name)));
            return Ok(ExitStatus::Success);
        }
        asked => asked?,
    };
    finish(&mut jobs, &job, change.no_block, &format!("switching off {}", bare(name))).await?;
    Ok(ExitStatus::Success)
}

fn no_swap(name: &str) -> Error {
    Error::new(ErrorKind::NotFound, format!("{} is no swap", bare(name)))
}

/// `limit`.
pub async fn limit(ask: bool, name: &str, limit: &str) -> Result<ExitStatus> {
    let bytes = if limit == "none" { 0 } else { amount(limit)? };
    let bus = Bus::open(ask).await?;
    let path = device(&bus, name).await?;
    let () = bus.call(path.as_str(), DEVICE, "SetMemoryLimit", &bytes).await?;
    let name = bare(name);
    match bytes {
        0 => out::done(&format!("{name}: no memory limit")),
        _ => out::done(&format!("{name}: memory limited to {}", human(bytes))),
    }
    Ok(ExitStatus::Success)
}

/// `compact`.
pub async fn compact(ask: bool, names: &[String]) -> Result<ExitStatus> {
    let bus = Bus::open(ask).await?;
    let mut ends = Vec::new();
    for name in names {
        let end = async {
            let path = device(&bus, name).await?;
            let before = memory_used(bare(name));
            let () = bus.call(path.as_str(), DEVICE, "Compact", &()).await?;
            let freed = before.saturating_sub(memory_used(bare(name)));
            out::done(&match freed {
                0 => format!("{}: nothing to free", bare(name)),
                _ => format!("{}: {} freed", bare(name), human(freed)),
            });
            Ok(())
        };
        ends.push(end.await);
    }
    together(ends)
}

/// Memory used by a device; 0 if it cannot be read.
fn memory_used(name: &str) -> u64 {
    machine().device(name).map_or(0, |device| device.stats.memory.mem_used_total)
}

/// The devices; none if they cannot be read.
fn machine() -> Snapshot {
    sample::figures(&LinuxHost::new("/"), &View::default(), Detail::Listed).unwrap_or_default()
}

/// Prints each failure, and returns the exit status for all of them.
pub(super) fn together(ends: Vec<Result<()>>) -> Result<ExitStatus> {
    let all = ends.len();
    let mut failures: Vec<Error> = ends.into_iter().filter_map(std::result::Result::err).collect();
    let Some(last) = failures.pop() else { return Ok(ExitStatus::Success) };
    let kind = match failures.first() {
        _ if failures.len() + 1 < all => ErrorKind::Partly,
        Some(first) => first.kind,
        None => last.kind,
    };
    for failure in failures {
        out::error(&failure.message);
    }
    Err(Error::new(kind, last.message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_is_removed_once() {
        let names = ["zram1", "zram0", "/dev/zram1"].map(str::to_owned);
        assert!(distinct(&names).eq(&names[..2]));
    }

    #[test]
    fn the_status_is_partly_or_that_of_the_first_failure() {
        let no = |kind| Err(Error::new(kind, "no"));
        assert_eq!(together(vec![Ok(()), Ok(())]), Ok(ExitStatus::Success));
        let some = together(vec![Ok(()), no(ErrorKind::NotFound)]).unwrap_err();
        assert_eq!(some.kind, ErrorKind::Partly);
        let one = together(vec![no(ErrorKind::NotFound)]).unwrap_err();
        assert_eq!(one.kind, ErrorKind::NotFound);
        let all = together(vec![no(ErrorKind::Unsafe), no(ErrorKind::NotFound)]).unwrap_err();
        assert_eq!(all.kind, ErrorKind::Unsafe);
    }
}
