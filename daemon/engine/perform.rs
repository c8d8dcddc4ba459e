//! Performs one step, and reads back everything that it wrote.

use super::create;
use super::error::{Error, ErrorKind};
use super::gather;
use super::retry::while_busy;
use super::self_test;
use super::undo;
use host::{Errno, Host, MkfsSpec, MountSpec, RootSpec, SwapSpec};
use logic::device::algorithm::{Algorithm, parse_comp_algorithm, parse_recomp_algorithm, with_option};
use logic::device::attribute::Attribute;
use logic::device::signature::{self, Signature};
use logic::device::swap_header::{self, MOST_SWAPS};
use logic::facts::Seen;
use logic::human::human;
use logic::order::{Order, RamdiskOrder};
use logic::path_kind::PathKind;
use logic::plan::diff::{round_up, uuid_arguments};
use logic::plan::{Step, Through};
use logic::ramdisk::place::passthrough;
use logic::record::{Carried, Record, Undo};
use logic::vm::Tunable;

/// Pages that are on the way to the disk at once, where the kernel can (Linux 6.19; its default is 32). Requests of others wait
/// for these, and with fewer the disk is idle while the pass waits for a CPU.
const PAGES_IN_FLIGHT: &str = "8";

/// Performs one step. Its undo is in the record already, except for the two steps that learn it by running.
pub fn perform<H: Host>(host: &mut H, step: &Step, record: &mut Record) -> Result<(), Error> {
    match step {
        Step::LoadModule => load_module(host),
        Step::CreateDevice { number } => create::create(host, *number, record),
        Step::ClaimDevice { number } => claim(host, *number, record),
        Step::SetAlgorithm { number, algorithm } => set_algorithm(host, *number, algorithm),
        Step::SetRecompression { number, priority, algorithm } => {
            set_recompression(host, *number, *priority, algorithm)
        }
        Step::SetParameters { number, priority, algorithm } => Ok(host.write_attribute(
            *number,
            Attribute::AlgorithmParams,
            &parameters(*priority, algorithm),
        )?),
        Step::AttachFile { number, path, bytes } => {
            let node = attach_file(host, *number, path, *bytes)?;
            record.set_file(host.diskseq(&node));
            create::save(host, record)
        }
        Step::OpenCrypt { number, store } => {
            let node = open_crypt(host, *number, store.as_deref())?;
            record.set_mapping(host.diskseq(&node));
            create::save(host, record)
        }
        Step::SetBackingDevice { number, path, through } => set_backing_device(host, *number, path, *through),
        Step::SetDiskSize { number, bytes } => {
            will_carry(host, *number, *bytes, record)?;
            set_disk_size(host, *number, *bytes)
        }
        Step::SetMemoryLimit { number, bytes } => set_memory_limit(host, *number, *bytes),
        Step::SelfTest { number, bytes } => self_test::run(host, *number, *bytes),
        Step::MakeSwap { number, label } => {
            let header = swap_header(host, *number, label)?;
            will_have(host, record, signature::read(&header))?;
            Ok(host.write_pages(*number, 0, &header)?)
        }
        Step::MakeFilesystem { number, fs_type, arguments } => {
            make_filesystem(host, *number, fs_type, arguments, record)
        }
        Step::SetRoot { number, fs_type, mount } => {
            let root = RootSpec { mode: mount.mode, uid: mount.uid, gid: mount.gid };
            Ok(host.set_root(*number, fs_type, &root)?)
        }
        Step::ReleaseLock { number } => {
            host.unlock_device(*number)?;
            Ok(host.announce_device(*number)?)
        }
        Step::CreateDirectory { path } => match host.make_directory(path) {
            Err(error) if error.is(Errno::EXIST) => {
                let undo = Undo::RemoveDirectory { path: path.clone() };
                // If another target created it, too, the last one to go removes it.
                let shared = |other: &Record| other.target != record.target && other.undo.contains(&undo);
                if !gather::records(host)?.values().any(shared) {
                    record.undo.retain(|kept| *kept != undo);
                }
                Ok(())
            }
            other => Ok(other?),
        },
        Step::SwapOn { number, priority, discard } => swap_on(host, *number, *priority, *discard),
        Step::SwapOff { number } => undo::swap_off(host, *number),
        Step::MountDevice { number, fs_type, mount } => {
            let spec = MountSpec {
                source: format!("/dev/zram{number}"),
                mount_point: mount.mount_point.clone(),
                fs_type: fs_type.clone(),
                options: mount.options.clone(),
            };
            while_busy(host, *number, |host| host.mount(&spec))?;
            create::note_mount(host, &mount.mount_point, record)
        }
        Step::LoadRamdisk { name } => {
            // The worker reads the request from the record.
            create::save(host, record)?;
            host.run_worker(&Order::Load(RamdiskOrder::named(name)))
        }
        Step::ShowRamdisk { name, place, mount_point, .. } => {
            if host.path_kind(&passthrough(name)) != PathKind::Missing {
                return Ok(());
            }
            host.bind(place, mount_point)?;
            create::note_mount(host, mount_point, record)
        }
        Step::MountTmpfs { mount, options } => {
            host.mount(&tmpfs(&mount.mount_point, options))?;
            create::note_mount(host, &mount.mount_point, record)
        }
        Step::RemountTmpfs { mount_point, options } => Ok(host.remount(&tmpfs(mount_point, options))?),
        Step::SetTunable { tunable, value, .. } => set_tunable(host, *tunable, value),
        Step::CheckTunable { tunable, value } => check_tunable(host, *tunable, value, record),
        Step::Undo(step) => undo::one(host, record, step),
    }
}

/// Records the size and the algorithm of a device before it has them.
pub(super) fn will_carry<H: Host>(
    host: &mut H,
    number: u32,
    bytes: u64,
    record: &mut Record,
) -> Result<(), Error> {
    let (_, algorithm) = parse_comp_algorithm(&host.read_attribute(number, Attribute::CompAlgorithm)?);
    let disk_size = round_up(bytes, host.page_size());
    record.carries = Some(Carried { disk_size, algorithm, signature: None });
    create::save(host, record)
}

/// Records what is written to a device, before or after it is.
fn will_have<H: Host>(host: &mut H, record: &mut Record, signature: Option<Signature>) -> Result<(), Error> {
    if let Some(carries) = &mut record.carries
        && carries.signature != signature
    {
        carries.signature = signature;
        create::save(host, record)?;
    }
    Ok(())
}

/// Makes a file system whose UUID is in the record before, if `mkfs` can be told it.
fn make_filesystem<H: Host>(
    host: &mut H,
    number: u32,
    fs_type: &str,
    arguments: &[String],
    record: &mut Record,
) -> Result<(), Error> {
    let uuid = signature::uuid_text(&swap_header::version_4(host.random()));
    let options = uuid_arguments(fs_type, &uuid, arguments);
    let kind = signature::of_type(fs_type).filter(|_| options.is_some());
    let planned = kind.map(|kind| Signature { kind: kind.to_owned(), uuid, label: String::new() });
    will_have(host, record, planned)?;
    let arguments = options.into_iter().flatten().chain(arguments.iter().cloned()).collect();
    host.mkfs(number, &MkfsSpec { fs_type: fs_type.to_owned(), arguments })?;
    let found = match gather::identify(host, number)?.seen {
        Seen::Signature(found) => Some(found),
        Seen::Unknown | Seen::Nothing => None,
    };
    will_have(host, record, found)
}

fn tmpfs(mount_point: &str, options: &str) -> MountSpec {
    MountSpec {
        source: "tmpfs".to_owned(),
        mount_point: mount_point.to_owned(),
        fs_type: "tmpfs".to_owned(),
        options: options.to_owned(),
    }
}

/// A built-in driver has no module to load, so only its presence afterwards counts.
pub(super) fn load_module<H: Host>(host: &mut H) -> Result<(), Error> {
    let loaded = host.load_module();
    if host.has_control() {
        return Ok(());
    }
    let why = match loaded {
        Ok(()) => "its module is loaded, but /sys/class/zram-control is missing".to_owned(),
        Err(error) => error.to_string(),
    };
    Err(Error::new(ErrorKind::Unsupported, format!("this kernel has no zram: {why}")))
}

fn claim<H: Host>(host: &mut H, number: u32, record: &mut Record) -> Result<(), Error> {
    let device = gather::device(host, number)?;
    if device.initialised {
        return Err(Error::new(
            ErrorKind::Unsafe,
            format!("zram{number}: another program has set it up in the meantime"),
        ));
    }
    record.diskseq = device.diskseq;
    if !record.owns_device() {
        record.found_algorithm = device.algorithm;
    }
    record.push(Undo::Reset { number });
    create::save(host, record)?;
    while_busy(host, number, |host| host.lock_device(number))
}

fn differs(number: u32, what: &str, wanted: &str, found: &str) -> Error {
    Error::failed(format!("zram{number}: {what} was set to {wanted} but reads back as {found}"))
}

pub(super) fn set_algorithm<H: Host>(host: &mut H, number: u32, algorithm: &str) -> Result<(), Error> {
    if let Err(error) = host.write_attribute(number, Attribute::CompAlgorithm, algorithm) {
        if !error.is(Errno::INVAL) {
            return Err(error.into());
        }
        let (offered, _) = parse_comp_algorithm(&host.read_attribute(number, Attribute::CompAlgorithm)?);
        let message = format!(
            "zram{number}: this kernel does not offer {}; it has {}",
            with_option(algorithm, false),
            offered.join(", ")
        );
        return Err(Error::new(ErrorKind::Unsupported, message));
    }
    let (_, selected) = parse_comp_algorithm(&host.read_attribute(number, Attribute::CompAlgorithm)?);
    match selected {
        Some(selected) if selected == algorithm => Ok(()),
        found => Err(differs(number, "comp_algorithm", algorithm, found.as_deref().unwrap_or("nothing"))),
    }
}

fn set_recompression<H: Host>(host: &mut H, number: u32, priority: u8, algorithm: &str) -> Result<(), Error> {
    let value = format!("algo={algorithm} priority={priority}");
    host.write_attribute(number, Attribute::RecompAlgorithm, &value)?;
    let text = host.read_attribute(number, Attribute::RecompAlgorithm)?;
    let selected = parse_recomp_algorithm(&text);
    match selected.iter().find(|(found, _)| *found == priority) {
        Some((_, name)) if name == algorithm => Ok(()),
        _ => Err(differs(number, "recomp_algorithm", &value, text.trim())),
    }
}

/// Uses `priority=`, never `algo=`: two slots may have the same algorithm, and the kernel takes the first by name.
pub(super) fn parameters(priority: u8, algorithm: &Algorithm) -> String {
    let mut words = vec![format!("priority={priority}")];
    words.extend(algorithm.parameters.iter().map(|(key, value)| format!("{key}={value}")));
    words.join(" ")
}

fn attach_file<H: Host>(host: &mut H, number: u32, path: &str, bytes: u64) -> Result<String, Error> {
    host.attach_file(number, path, bytes)?;
    loop_device(host, number)
}

fn loop_device<H: Host>(host: &H, number: u32) -> Result<String, Error> {
    let missing = || Error::failed(format!("zram{number}: its file is not attached to a loop device"));
    host.loop_device(number)?.ok_or_else(missing)
}

fn crypt_device<H: Host>(host: &H, number: u32) -> Result<String, Error> {
    let missing = || Error::failed(format!("zram{number}: its encrypting mapping is not there"));
    host.crypt_device(number)?.ok_or_else(missing)
}

fn open_crypt<H: Host>(host: &mut H, number: u32, store: Option<&str>) -> Result<String, Error> {
    let store = match store {
        Some(store) => store.to_owned(),
        None => loop_device(host, number)?,
    };
    host.open_crypt(number, &store)?;
    crypt_device(host, number)
}

fn set_backing_device<H: Host>(host: &mut H, number: u32, path: &str, through: Through) -> Result<(), Error> {
    let path = match through {
        Through::Itself => path.to_owned(),
        Through::Loop => loop_device(host, number)?,
        Through::Crypt => crypt_device(host, number)?,
    };
    while_busy(host, number, |host| host.write_attribute(number, Attribute::BackingDev, &path))?;
    let found = host.read_attribute(number, Attribute::BackingDev)?;
    let found = found.trim();
    // The kernel shows the path by which the node was opened, with links resolved.
    let other = through != Through::Itself && found != path;
    if found == "none" || found.is_empty() || other {
        return Err(differs(number, "backing_dev", &path, found));
    }
    // They only save time, so a refusal is no error.
    let faster = [
        (Attribute::CompressedWriteback, "1"),
        (Attribute::WritebackCompressed, "1"),
        (Attribute::WritebackBatchSize, PAGES_IN_FLIGHT),
    ];
    for (attribute, value) in faster {
        if host.has_attribute(number, attribute) {
            host.write_attribute(number, attribute, value).ok();
        }
    }
    Ok(())
}

pub(super) fn set_disk_size<H: Host>(host: &mut H, number: u32, bytes: u64) -> Result<(), Error> {
    if let Err(error) = host.write_attribute(number, Attribute::DiskSize, &bytes.to_string()) {
        let why = match error.errno() {
            Some(Errno::NOMEM) => "not enough memory for its table of pages or for the compressor",
            Some(Errno::BUSY) => "another program has already initialised it",
            Some(Errno::INVAL) => "the kernel refuses the size or a parameter of an algorithm",
            _ => return Err(error.into()),
        };
        return Err(Error::failed(format!("zram{number}: set disksize to {}: {why}", human(bytes))));
    }
    let found = gather::device(host, number)?;
    let wanted = round_up(bytes, host.page_size());
    if !found.initialised || found.disk_size != wanted {
        return Err(differs(number, "disksize", &wanted.to_string(), &found.disk_size.to_string()));
    }
    Ok(())
}

fn set_memory_limit<H: Host>(host: &mut H, number: u32, bytes: u64) -> Result<(), Error> {
    host.write_attribute(number, Attribute::MemLimit, &bytes.to_string())?;
    let found = gather::device(host, number)?.memory_limit;
    let wanted = round_up(bytes, host.page_size());
    if found == wanted {
        Ok(())
    } else {
        Err(differs(number, "mem_limit", &wanted.to_string(), &found.to_string()))
    }
}

/// The header of a swap area for the whole device.
pub fn swap_header<H: Host>(host: &mut H, number: u32, label: &str) -> Result<Vec<u8>, Error> {
    let size = gather::device(host, number)?.disk_size;
    let page = usize::try_from(host.page_size()).unwrap_or(4096);
    swap_header::build(size, page, host.random(), label)
        .map_err(|error| Error::failed(format!("zram{number}: write a swap header: {error}")))
}

pub fn swap_on<H: Host>(host: &mut H, number: u32, priority: i32, discard: bool) -> Result<(), Error> {
    let activated = while_busy(host, number, |host| host.swap_on(number, SwapSpec { priority, discard }));
    let swaps = gather::swaps(host)?;
    activated.map_err(|error| {
        // EPERM is also the answer to a process without the right (swapon(2)).
        if error.kind == ErrorKind::NotPermitted && swaps.len() >= MOST_SWAPS {
            let message = format!("zram{number}: swapon: this kernel allows {} swap areas", swaps.len());
            return Error::new(ErrorKind::Unsupported, message);
        }
        error
    })?;
    match swaps.iter().find(|swap| swap.zram_number() == Some(number)) {
        Some(swap) if priority < 0 || swap.priority == priority => Ok(()),
        Some(swap) => {
            Err(differs(number, "its swap priority", &priority.to_string(), &swap.priority.to_string()))
        }
        None => {
            Err(Error::failed(format!("zram{number}: swapon succeeded but /proc/swaps does not show it")))
        }
    }
}

fn set_tunable<H: Host>(host: &mut H, tunable: Tunable, value: &str) -> Result<(), Error> {
    host.write_tunable(tunable, value).map_err(|error| match tunable {
        Tunable::ZswapCompressor if error.is(Errno::NOENT) || error.is(Errno::INVAL) => {
            lacks_compressor(value)
        }
        _ => error.into(),
    })?;
    let found = host.read_tunable(tunable)?;
    if found == value {
        return Ok(());
    }
    Err(Error::failed(format!("{tunable} was set to {value} but reads back as {found}")))
}

fn lacks_compressor(name: &str) -> Error {
    Error::new(ErrorKind::Unsupported, format!("this kernel has no compressor {name} for zswap"))
}

/// Checks a setting that the kernel may have replaced. Then ours is what the undo finds.
fn check_tunable<H: Host>(
    host: &mut H,
    tunable: Tunable,
    value: &str,
    record: &mut Record,
) -> Result<(), Error> {
    let found = host.read_tunable(tunable)?;
    if found == value {
        return Ok(());
    }
    for undo in &mut record.undo {
        match undo {
            Undo::RestoreTunable { tunable: set, ours, .. } if *set == tunable && ours == value => {
                ours.clone_from(&found);
            }
            _ => {}
        }
    }
    create::save(host, record)?;
    Err(lacks_compressor(value))
}

/// Whether a step failed only because this kernel lacks the attribute.
pub fn lacks_attribute<H: Host>(host: &H, step: &Step) -> bool {
    let (number, attribute) = match step {
        Step::SetParameters { number, .. } => (*number, Attribute::AlgorithmParams),
        Step::SetRecompression { number, .. } => (*number, Attribute::RecompAlgorithm),
        Step::SetBackingDevice { number, .. } => (*number, Attribute::BackingDev),
        _ => return false,
    };
    !host.has_attribute(number, attribute)
}
