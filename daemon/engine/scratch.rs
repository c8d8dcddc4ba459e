//! Scratch devices for measuring: private, recorded before they are created, never left behind.
//!
//! Their records are in the directory of the other records, and are owned by the process that holds a lock on them. The
//! next process that provisions or measures removes the devices of owners that have exited, normally or not.

use std::collections::BTreeSet;

use super::create;
use super::error::Error;
use super::gather::{boot_id, record};
use super::perform::{load_module, parameters, set_algorithm, set_disk_size, will_carry};
use super::retry::while_busy;
use super::undo::{one, roll_back};
use host::{Host, absent};
use logic::device::algorithm::{Algorithm, parse_comp_algorithm};
use logic::device::attribute::Attribute;
use logic::device::stat::MmStat;
use logic::record::{Record, Target, Undo};
use logic::request::{DeviceRequest, Purpose, Request};

/// A scratch device, uninitialised until [`Scratch::configure`]. It must be [released](Scratch::release), because
/// errors cannot be reported on drop.
#[derive(Debug)]
#[must_use]
pub struct Scratch {
    number: u32,
    record: Record,
}

/// Removes scratch devices without a running owner. The caller holds the lock of [`Host::lock_run`].
pub fn sweep<H: Host>(host: &mut H) -> Result<(), Error> {
    for (name, text) in host.scratch_records()? {
        if host.own_scratch(&name)? {
            // The device of a damaged record is unknown. `doctor` names the file.
            let Ok(mut record) = record(&name, &text) else { continue };
            if record.boot_id != boot_id(host) {
                host.remove_record(&name)?;
                continue;
            }
            if let Some(error) = roll_back(host, &mut record).into_iter().reduce(Error::join) {
                return Err(error);
            }
        }
    }
    Ok(())
}

/// As [`sweep`], for callers without that lock.
pub fn sweep_now<H: Host>(host: &mut H) -> Result<(), Error> {
    host.lock_run()?;
    let swept = sweep(host);
    host.unlock_run();
    swept
}

impl Scratch {
    /// Creates one. Its number is neither that of a device nor in `configured`, so that provisioning at the same time
    /// finds its own numbers free.
    pub fn create<H: Host>(host: &mut H, configured: &BTreeSet<u32>) -> Result<Scratch, Error> {
        host.lock_run()?;
        let created = Scratch::locked(host, configured);
        host.unlock_run();
        created
    }

    fn locked<H: Host>(host: &mut H, configured: &BTreeSet<u32>) -> Result<Scratch, Error> {
        sweep(host)?;
        if !host.has_control() {
            load_module(host)?;
        }
        let taken = host.device_numbers().or_else(absent)?;
        let free = |number: &u32| !taken.contains(number) && !configured.contains(number);
        let number = (0..=u32::MAX).find(free).unwrap_or(u32::MAX);
        let request = DeviceRequest {
            number,
            disk_size: 0,
            memory_limit: 0,
            algorithms: Vec::new(),
            recompression: Vec::new(),
            writeback: None,
            purpose: Purpose::Raw { fs_type: None, mkfs_options: Vec::new() },
            label: String::new(),
        };
        let mut record =
            Record { scratch: true, ..Record::begin(Target::Device(number), Request::Device(request)) };
        if !host.own_scratch(&record.file_name())? {
            return Err(Error::failed(format!("zram{number}: another benchmark is using it")));
        }
        let created = create::create(host, number, &mut record);
        if let Err(error) = created.and_then(|()| create::remove_spares_of(host, &mut record)) {
            return Err(roll_back(host, &mut record).into_iter().fold(error, Error::join));
        }
        Ok(Scratch { number, record })
    }

    /// N of its `zramN`.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// The algorithms that this kernel offers.
    pub fn offered<H: Host>(&self, host: &H) -> Result<Vec<String>, Error> {
        Ok(parse_comp_algorithm(&host.read_attribute(self.number, Attribute::CompAlgorithm)?).0)
    }

    /// Whether this kernel takes parameters for algorithms.
    pub fn takes_parameters<H: Host>(&self, host: &H) -> bool {
        host.has_attribute(self.number, Attribute::AlgorithmParams)
    }

    /// Resets the device and initialises it with an algorithm and a size. udev cannot probe it until
    /// [`Scratch::unlock`] or the next call.
    pub fn configure<H: Host>(
        &mut self,
        host: &mut H,
        algorithm: &Algorithm,
        bytes: u64,
    ) -> Result<(), Error> {
        self.reset(host)?;
        let number = self.number;
        while_busy(host, number, |host| host.lock_device(number))?;
        set_algorithm(host, number, &algorithm.name)?;
        if !algorithm.parameters.is_empty() {
            host.write_attribute(number, Attribute::AlgorithmParams, &parameters(0, algorithm))?;
        }
        will_carry(host, number, bytes, &mut self.record)?;
        set_disk_size(host, number, bytes)
    }

    /// Lets udev probe the device and other processes use it, as `swapon` and `mount` require.
    pub fn unlock<H: Host>(&mut self, host: &mut H) -> Result<(), Error> {
        Ok(host.unlock_device(self.number)?)
    }

    /// Resets it, which frees its memory.
    pub fn reset<H: Host>(&mut self, host: &mut H) -> Result<(), Error> {
        let number = self.number;
        host.unlock_device(number)?;
        while_busy(host, number, |host| host.write_attribute(number, Attribute::Reset, "1"))
    }

    /// Records how to undo the caller's next step (`swapon`, a mount), so that it is undone even if we are killed.
    pub fn note<H: Host>(&mut self, host: &mut H, undo: Undo) -> Result<(), Error> {
        self.record.push(undo);
        create::save(host, &self.record)
    }

    /// Undoes the step that was recorded last.
    pub fn undo<H: Host>(&mut self, host: &mut H, undo: &Undo) -> Result<(), Error> {
        one(host, &mut self.record, undo)?;
        self.record.undo.retain(|kept| kept != undo);
        create::save(host, &self.record)
    }

    /// How much it stores, and the memory used for that.
    pub fn memory<H: Host>(&self, host: &H) -> Result<MmStat, Error> {
        let text = host.read_attribute(self.number, Attribute::MmStat)?;
        MmStat::parse(&text).ok_or_else(|| Error::failed(format!("zram{}: mm_stat is {text:?}", self.number)))
    }

    /// Removes it, after undoing all recorded steps.
    pub fn release<H: Host>(mut self, host: &mut H) -> Result<(), Error> {
        host.unlock_device(self.number)?;
        host.lock_run()?;
        let errors = roll_back(host, &mut self.record);
        host.unlock_run();
        errors.into_iter().reduce(Error::join).map_or(Ok(()), Err)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sim::SimMachine;
    use sim::kernel::KernelConfig;

    fn lz4() -> Algorithm {
        Algorithm::parse("lz4").unwrap()
    }

    #[test]
    fn it_leaves_nothing_behind_and_takes_no_configured_number() {
        let machine = SimMachine::new(KernelConfig::full());
        let before = machine.snapshot();
        let mut host = machine.process();
        let scratch = Scratch::create(&mut host, &BTreeSet::from([1, 2])).unwrap();
        assert_eq!(scratch.number(), 3, "zram0 is there, 1 and 2 are configured");
        assert_eq!(host.device_numbers().unwrap(), [0, 3]);
        assert_eq!(host.records().unwrap(), [], "it has no target");
        let mut scratch = scratch;
        scratch.configure(&mut host, &lz4(), 1 << 20).unwrap();
        scratch.configure(&mut host, &lz4(), 2 << 20).unwrap();
        assert_eq!(scratch.memory(&host).unwrap().orig_data_size, 0);
        scratch.release(&mut host).unwrap();
        assert_eq!(machine.snapshot(), before);
    }

    #[test]
    fn one_whose_owner_was_killed_is_swept_and_one_in_use_is_not() {
        let machine = SimMachine::new(KernelConfig::full());
        let before = machine.snapshot();
        let mut killed = machine.process();
        let mut scratch = Scratch::create(&mut killed, &BTreeSet::new()).unwrap();
        scratch.configure(&mut killed, &lz4(), 1 << 20).unwrap();
        let mut alive = machine.process();
        let other = Scratch::create(&mut alive, &BTreeSet::new()).unwrap();
        assert_ne!(other.number(), scratch.number());
        drop(killed);
        let mut next = machine.process();
        next.lock_run().unwrap();
        sweep(&mut next).unwrap();
        next.unlock_run();
        assert_eq!(next.device_numbers().unwrap(), [0, other.number()]);
        other.release(&mut alive).unwrap();
        assert_eq!(machine.snapshot(), before);
    }
}
