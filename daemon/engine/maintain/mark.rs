//! Idle marks: how a kernel sets them, and which age those of a device stand for.

use std::time::Duration;

use super::{
    Attribute, Device, Done, Errno, Error, Host, HostError, Marking, Marks, Run, Step, Stopped, span,
};
use crate::error::ErrorKind;
use host::MachineFile;
use logic::maintain::idle_marks::only_adds;

/// The policy name of marks made on request.
const MARK: &str = "mark-idle";

impl<H: Host> Run<'_, H> {
    /// Marks pages on request.
    pub(super) fn mark_as_asked(
        &mut self,
        device: &mut Device,
        age: Option<Duration>,
    ) -> Result<(), Stopped> {
        let now = self.machine.now;
        let (value, marks) = match age {
            None => ("all".to_owned(), Marks::marked_all(now)),
            Some(age) => match self.marking(device)? {
                Marking::Untracked => {
                    return Err(Error::new(
                        ErrorKind::Unsupported,
                        format!("{}: this kernel does not track access times; mark all pages", device.name),
                    )
                    .into());
                }
                marking => match self.older(age) {
                    Ok(value) => (value, device.state.marks.marked_older(marking, age, now)),
                    Err(why) => {
                        self.skip(&device.name, MARK, why);
                        return Ok(());
                    }
                },
            },
        };
        self.remember(device, marks)?;
        let number = device.number;
        let pages = age.map_or_else(|| "all".to_owned(), |age| format!("idle for {}", span(age)));
        self.measured(device, MARK, &pages, "asked for", |run| {
            run.host.write_attribute(number, Attribute::Idle, &value)?;
            Ok(Done { note: "marked".to_owned(), ..Done::default() })
        })?;
        Ok(())
    }

    /// The value for `idle` that marks pages unused for this much waking time; the reason if the machine has not been
    /// awake that long. Given an age beyond its uptime (in whole seconds), Linux 7.2 would mark all pages.
    fn older(&self, age: Duration) -> Result<String, String> {
        let now = self.machine.now;
        match seconds(self.state.history.boottime_age(now, age)) {
            0 => Ok("all".to_owned()),
            old if old + 1 >= now.boot.as_secs() => {
                Err(format!("the machine has not been awake for {} yet", span(age)))
            }
            // Below 2^32 for an uptime of less than 136 years.
            old => Ok(old.to_string()),
        }
    }

    /// Stores the age of the marks before any is set: on kernels where marks only add up, those of a killed run must
    /// not count as older.
    fn remember(&mut self, device: &mut Device, marks: Marks) -> Result<(), HostError> {
        if self.dry {
            return Ok(());
        }
        device.state.marks = marks;
        self.state.devices.insert(device.number, device.state);
        self.state.write(self.host)
    }

    /// Sets marks, and stores which age they stand for.
    fn write_marks(&mut self, device: &mut Device, value: &str, marks: Marks) -> Result<(), HostError> {
        self.remember(device, marks)?;
        if self.dry {
            return Ok(());
        }
        self.host.write_attribute(device.number, Attribute::Idle, value)
    }

    /// How this kernel treats an age; tried once per device and boot.
    pub(super) fn marking(&mut self, device: &mut Device) -> Result<Marking, Stopped> {
        if let Some(known) = device.state.marking {
            return Ok(known);
        }
        if self.dry {
            // The test would set marks; leave it to the first real run.
            return Ok(Marking::Exact);
        }
        // No device existed in the first second after boot, so this marks nothing. Linux 7.2 marks all pages for an age
        // before the boot.
        let oldest = self.machine.now.boot.as_secs().saturating_sub(1).max(1);
        let tried = self.host.write_attribute(device.number, Attribute::Idle, &oldest.to_string());
        let marking = match tried {
            // Kernels with algorithm parameters (6.12) also clear the marks of younger pages, except for the first two
            // such versions.
            Ok(())
                if self.host.has_attribute(device.number, Attribute::AlgorithmParams)
                    && !only_adds(&self.host.text(MachineFile::KernelRelease).unwrap_or_default()) =>
            {
                Marking::Exact
            }
            Ok(()) => Marking::Additive,
            Err(error) if error.is(Errno::INVAL) => Marking::Untracked,
            Err(error) => return Err(Error::from(error).into()),
        };
        device.state.marking = Some(marking);
        Ok(marking)
    }

    /// Has the idle marks select pages of this age; the reason if they cannot yet.
    pub(super) fn mark(&mut self, device: &mut Device, age: Duration) -> Result<Result<(), String>, Stopped> {
        let marking = self.marking(device)?;
        let now = self.machine.now;
        match device.state.marks.step(marking, age, now) {
            Step::Ready => {}
            Step::Wait(time) => {
                return Ok(Err(format!("pages that are idle for {} are known in {}", span(age), span(time))));
            }
            Step::MarkAll => {
                self.write_marks(device, "all", Marks::marked_all(now))?;
                let why = "this kernel does not track access times: all pages are marked now, and those still unused then are selected";
                return Ok(Err(format!("{why} in {}", span(age))));
            }
            Step::MarkOlder => {
                let value = match self.older(age) {
                    Ok(value) => value,
                    Err(why) => return Ok(Err(why)),
                };
                self.write_marks(device, &value, device.state.marks.marked_older(marking, age, now))?;
            }
        }
        Ok(Ok(()))
    }
}

/// Whole seconds, rounded up.
fn seconds(age: Duration) -> u64 {
    age.as_secs().saturating_add(u64::from(age.subsec_nanos() > 0))
}
