//! Writes pages to the backing device, within the budget.

use std::time::Duration;

use super::{
    Attribute, Cause, Device, Done, Errno, Error, Host, HostError, Marking, Pages, Run, Stopped, human,
    observe, refused, write_back,
};
use host::{Priority, StateFile};
use logic::device::derived::{Frame, derive};
use logic::device::stat::{BACKING_BLOCK, BdStat};
use logic::ledger::Ledger;
use logic::maintain::age::ages;
use logic::maintain::chunk::Chunks;
use logic::maintain::filling::excess;
use logic::maintain::writeback::{LEAST, Seen, Settings, decide, whole_pages};
use logic::maintain_report::Budget;

const POLICY: &str = super::WRITE_BACK;

impl<H: Host> Run<'_, H> {
    /// Runs the policy, or one pass over the marked pages.
    pub(super) fn write_back(
        &mut self,
        device: &mut Device,
        settings: &Settings,
        pages: Option<Pages>,
    ) -> Result<(), Stopped> {
        let backing = match &device.backing {
            Ok(backing) => backing.as_ref().map(|(_, free)| *free),
            Err(why) => {
                let why = why.clone();
                self.skip(&device.name, POLICY, why);
                return Ok(());
            }
        };
        let (mut ledger, unknown) = self.ledger(settings);
        // Save it even if nothing is written: time that is not recorded is lost at a reboot.
        self.keep(&ledger)?;
        let seen = Seen {
            free: backing,
            left: ledger.left(settings.daily),
            wait: ledger.wait(),
            written: self.report.actions.iter().map(|action| action.written_bytes).sum(),
            page_size: device.page_size,
            stored_pages: device.stored_pages,
            utilisation: self.machine.utilisation,
            excess: self.excess(device)?,
            last: self.machine.since(device.state.written_back),
            failed: self.machine.since(device.state.write_back_failed),
        };
        let run = match decide(settings, &seen, self.cause) {
            Ok(run) => run,
            Err(reason) => {
                let why = unknown.filter(|_| backing.is_some() && seen.left < LEAST);
                let why = why.map_or_else(String::new, |why| format!(" ({why})"));
                self.skip(&device.name, POLICY, format!("{reason}{why}"));
                return Ok(());
            }
        };
        let ages = match pages {
            Some(_) => Vec::new(),
            None => {
                let mut ages = ages(settings.age, self.machine.utilisation, run.cause);
                // The marks stand for one age only.
                if self.marking(device)? == Marking::Untracked {
                    ages.drain(..ages.len().saturating_sub(1));
                }
                ages
            }
        };
        let mut ages = ages.into_iter();
        let first = self.mark_oldest(device, &mut ages)?;
        if pages.is_none() && first.is_none() && !run.huge {
            return Ok(());
        }
        if !self.dry {
            ledger.reserve(run.bytes);
            self.keep(&ledger)?;
        }
        let begin = self.written(device.number)?;
        let done = match pages {
            Some(pages) => {
                let reason = format!("on request, at most {}", human(run.bytes));
                self.write_pages(device, pages, run.bytes, &reason).map(drop)
            }
            None => self.oldest_first(device, &run, first, ages),
        };
        if self.dry {
            return done;
        }
        let written = self.written(device.number)?.saturating_sub(begin);
        ledger.settle(written, observe::clocks(self.host));
        self.keep(&ledger)?;
        self.note_budget(&ledger, settings);
        device.state.write_back_failed = match &done {
            Err(Stopped::Failed(_)) => Some(self.machine.now.awake),
            _ => None,
        };
        device.state.written_back = Some(self.machine.now.awake);
        device.marks_used |= first.is_some();
        if let Ok(Some((_, free))) = &mut device.backing {
            *free = free.saturating_sub(written);
        }
        done
    }

    /// The ledger of the last 24 hours, and why it is incomplete, if so. Reports the budget left.
    pub(super) fn ledger(&mut self, settings: &Settings) -> (Ledger, Option<String>) {
        let text = self.host.read_state(StateFile::Budget).map_err(|error| error.to_string());
        let read = Ledger::read(text, observe::clocks(self.host));
        self.note_budget(&read.0, settings);
        read
    }

    /// Saves the ledger.
    pub(super) fn keep(&mut self, ledger: &Ledger) -> Result<(), HostError> {
        if self.dry { Ok(()) } else { self.host.write_state(StateFile::Budget, &ledger.text()) }
    }

    fn note_budget(&mut self, ledger: &Ledger, settings: &Settings) {
        self.report.budget = Some(Budget {
            daily_bytes: settings.daily,
            left_bytes: ledger.left(settings.daily),
            day_bytes: ledger.spent(),
            total_bytes: ledger.total(),
        });
    }

    fn excess(&self, device: &Device) -> Result<u64, HostError> {
        let (memory, backing) = (self.mm(device.number)?, self.backing(device.number)?);
        // Others may be gone by now.
        let used = |number: &u32| self.mm(*number).unwrap_or_default().mem_used_total;
        let all = self.backed.iter().map(used).sum();
        let frame = Frame { page_size: device.page_size, free_bytes: 0, available_bytes: 0 };
        let total = self.machine.facts.memory.total_kib.saturating_mul(1024);
        Ok(excess(&memory, all, &derive(&memory, &backing, frame), total, self.cause.level()))
    }

    fn backing(&self, number: u32) -> Result<BdStat, HostError> {
        let text = self.host.read_attribute(number, Attribute::BdStat)?;
        Ok(BdStat::parse(&text).unwrap_or_default())
    }

    fn written(&self, number: u32) -> Result<u64, HostError> {
        Ok(self.backing(number)?.written_bytes)
    }

    /// Marks the pages of the first of these ages that the kernel can tell, and returns it. If there is none, the reason is
    /// in the report.
    fn mark_oldest(
        &mut self,
        device: &mut Device,
        ages: &mut impl Iterator<Item = Duration>,
    ) -> Result<Option<Duration>, Stopped> {
        let mut last = None;
        for age in ages {
            match self.mark(device, age)? {
                Ok(()) => return Ok(Some(age)),
                Err(why) => last = Some(why),
            }
        }
        if let Some(why) = last {
            self.skip(&device.name, POLICY, why);
        }
        Ok(None)
    }

    /// Passes over the marked pages, then over younger ones, until the limit of the run is reached.
    fn oldest_first(
        &mut self,
        device: &mut Device,
        run: &write_back::Run,
        first: Option<Duration>,
        mut ages: impl Iterator<Item = Duration>,
    ) -> Result<(), Stopped> {
        let begun = self.report.actions.len();
        let (mut age, mut left) = (first, run.bytes);
        while let Some(present) = age {
            let reason = run.reason(present);
            for pages in [Pages::HugeIdle, Pages::Idle] {
                left = self.write_pages(device, pages, left, &reason)?;
                self.check()?;
            }
            let is_spent = whole_pages(left, device.page_size) == 0;
            age = if is_spent { None } else { self.mark_oldest(device, &mut ages)? };
        }
        // Passes that found no pages are reported only for the last age.
        if !self.dry {
            let last = self.report.actions.len().saturating_sub(2);
            let mut index = 0;
            self.report.actions.retain(|action| {
                index += 1;
                index <= begun || index > last || action.written_bytes > 0
            });
        }
        if run.huge {
            self.write_pages(device, Pages::Huge, left, "does not compress")?;
        }
        Ok(())
    }

    /// One pass, which writes at most `bytes`. Returns what is left of them. The kernel's limit is 0 afterwards, also on
    /// failure: nothing is written back without a request.
    fn write_pages(
        &mut self,
        device: &Device,
        pages: Pages,
        bytes: u64,
        reason: &str,
    ) -> Result<u64, Stopped> {
        if whole_pages(bytes, device.page_size) == 0 {
            return Ok(bytes);
        }
        let number = device.number;
        if !self.dry {
            self.set_limit(number, 0)?;
            self.host.write_attribute(number, Attribute::WritebackLimitEnable, "1")?;
        }
        let begin = self.written(number)?;
        // The kernel sleeps for each page. When it wakes up, the programs that wait for memory must not keep it from a CPU.
        if self.cause.is_short() {
            self.host.set_priority(Priority::RealTime);
        }
        let done = self.measured(device, POLICY, pages.word(), reason, |run| run.write(device, pages, bytes));
        if self.cause.is_short() {
            self.host.set_priority(Priority::Normal);
        }
        if !self.dry {
            self.set_limit(number, 0)?;
        }
        done?;
        Ok(bytes.saturating_sub(self.written(number)?.saturating_sub(begin)))
    }

    fn set_limit(&mut self, number: u32, blocks: u64) -> Result<(), HostError> {
        self.host.write_attribute(number, Attribute::WritebackLimit, &blocks.to_string())
    }

    fn limit(&self, number: u32) -> Result<u64, HostError> {
        let text = self.host.read_attribute(number, Attribute::WritebackLimit)?;
        Ok(text.trim().parse().unwrap_or(0))
    }

    /// One pass in slices, so that statistics can be read in between.
    fn write(&mut self, device: &Device, pages: Pages, bytes: u64) -> Result<Done, Stopped> {
        let number = device.number;
        let begin = self.written(number)?;
        let mut note = String::new();
        // A pause lets readers of statistics proceed and, unless memory is short or it was asked for, leaves half of the disk's
        // time to others.
        let pauses_briefly = self.cause == Cause::Request || self.cause.is_short();
        let mut next = Some(Chunks::begin(bytes / device.page_size.max(1), self.cause));
        while let Some(chunks) = next {
            self.watch.check()?;
            // Memory may have become free in the meantime.
            if self.makes_way().is_some() || self.cause.is_short() && self.excess(device)? == 0 {
                break;
            }
            let so_far = self.written(number)?.saturating_sub(begin);
            let slice = (u64::from(chunks.pages) * device.page_size).min(bytes.saturating_sub(so_far));
            let blocks = whole_pages(slice, device.page_size) / BACKING_BLOCK;
            if blocks == 0 {
                break;
            }
            self.set_limit(number, blocks)?;
            let start = self.host.monotonic();
            let answer = self.host.write_attribute(number, Attribute::Writeback, pages.word());
            let took = self.host.monotonic().saturating_sub(start);
            let left = self.limit(number)?;
            if left > blocks {
                let message = format!(
                    "{}: the kernel exceeded the limit: {left} blocks are left of {blocks}",
                    device.name
                );
                return Err(Error::failed(message).into());
            }
            let spent = left == 0;
            match answer {
                // The slice was not used up: no more such pages.
                Ok(()) if !spent => break,
                Ok(()) => {}
                // The kernel's answer when the limit is reached.
                Err(error) if error.is(Errno::IO) && spent => {}
                Err(error) if error.is(Errno::NOSPC) => {
                    "the backing device is full".clone_into(&mut note);
                    break;
                }
                // Without a request for these alone, the pass over all idle pages follows, and writes them as well.
                Err(error) if error.is(Errno::INVAL) && pages == Pages::HugeIdle => {
                    "needs Linux 5.19".clone_into(&mut note);
                    break;
                }
                Err(error) => {
                    note = refused(error)?;
                    break;
                }
            }
            next = chunks.next(took, u64::MAX);
            let share = so_far as f64 / bytes.max(1) as f64;
            self.watch.progress(share.min(1.0), &format!("{}: write back {}", device.name, pages.word()));
            self.host.sleep(if pauses_briefly { (took / 2).min(super::PAUSE) } else { took });
        }
        let written = self.written(number)?.saturating_sub(begin);
        let note = if note.is_empty() { String::new() } else { format!(" ({note})") };
        Ok(Done { note: format!("{} written{note}", human(written)), written, ..Done::default() })
    }
}
