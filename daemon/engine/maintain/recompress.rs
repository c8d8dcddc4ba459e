//! Compressing pages again, in chunks that are short enough for statistics to be read in between.

use super::{Attribute, Decision, Device, Done, Errno, MmStat, Pages, Run, Stopped, Upkeep, refused};
use crate::logic::policy::age::{Range, idle_age};
use crate::logic::policy::chunk::Chunks;
use crate::logic::policy::marks::shared_age;
use crate::logic::policy::recompress::{Pass, Seen, Settings, decide};

const POLICY: &str = super::RECOMPRESS;

impl<H: Upkeep> Run<'_, H> {
    /// Runs the policy, or one pass over the pages as they are marked. `other` is the age of write-back, which may share the marks.
    pub(super) fn recompress(
        &mut self,
        device: &mut Device,
        settings: &Settings,
        pages: Option<Pages>,
        other: Option<Range>,
    ) -> Result<(), Stopped> {
        // Some of them may have gone since, and others come.
        let hopeless = device.state.hopeless_huge_pages.min(device.huge_pages);
        device.state.hopeless_huge_pages = hopeless;
        let seen = Seen {
            primary: device.primary.clone(),
            secondary: device.secondary.clone(),
            stored_pages: device.stored_pages,
            huge_pages: device.huge_pages,
            hopeless_huge_pages: hopeless,
            utilisation: self.machine.utilisation,
            last: self.machine.last(device.state.recompressed, device.state.recompressed_level),
        };
        let (mut run, reason) = match decide(settings, &seen, self.cause) {
            Decision::Do(run, reason) => (run, reason),
            Decision::Skip(reason) => {
                self.skip(&device.name, POLICY, reason);
                return Ok(());
            }
        };
        let (mut marked, mut reason) = (true, reason);
        match pages {
            Some(pages) => {
                run.passes.retain(|pass| pass.pages == pages);
                reason = "asked for".to_owned();
                if run.passes.is_empty() {
                    self.skip(&device.name, POLICY, "all pages in memory compress".to_owned());
                    return Ok(());
                }
            }
            None => {
                let marking = self.marking(device)?;
                let other = other.map(|range| idle_age(range, self.machine.utilisation, self.cause.level()));
                let (age, why) = shared_age(marking, run.age, other);
                if let Some(why) = why {
                    reason = format!("{reason}; {why}");
                }
                if let Err(why) = self.mark(device, age)? {
                    self.skip(&device.name, POLICY, why);
                    marked = false;
                }
            }
        }
        device.state.recompressed = Some(self.machine.now.awake);
        device.state.recompressed_level = self.cause.level();
        let mut freed = 0;
        for pass in run.passes.into_iter().filter(|pass| marked || pass.pages == Pages::Huge) {
            self.watch.check()?;
            let before = self.mm(device.number)?.huge_pages;
            let reason = match pass.threshold {
                Some(threshold) => format!("does not compress, and may shrink below {threshold} bytes"),
                None => reason.clone(),
            };
            let mut complete = !self.dry;
            freed += self.measured(device, POLICY, pass.pages.word(), &reason, |run| {
                let done = run.pass(device, &pass)?;
                complete = done.note.is_empty() && done.skipped.is_none();
                Ok(done)
            })?;
            if pass.pages == Pages::Huge && complete {
                let after = self.mm(device.number)?.huge_pages;
                device.state.hopeless_huge_pages = if after < before { 0 } else { after };
            }
        }
        device.marks_used |= marked && pages.is_none();
        if freed > 0 {
            // Shorter objects leave holes in the pages that held the longer ones.
            self.compact(device, "after recompression")?;
        }
        Ok(())
    }

    /// One pass in chunks, until all pages had their turn or nothing changes any more.
    fn pass(&mut self, device: &Device, pass: &Pass) -> Result<Done, Stopped> {
        let number = device.number;
        let key = |stat: &MmStat| (stat.compr_data_size, stat.huge_pages);
        let mut before = key(&self.mm(number)?);
        let (pages, chunks) = match pass.pages {
            Pages::Idle => (device.stored_pages, Chunks::begin(device.stored_pages, device.slots)),
            Pages::Huge | Pages::HugeIdle => {
                (device.huge_pages, Chunks::begin(device.huge_pages, device.slots).patient())
            }
        };
        let mut next = Some(chunks);
        let mut seen = 0;
        while let Some(chunks) = next {
            self.watch.check()?;
            let threshold = pass.threshold.map_or_else(String::new, |bytes| format!(" threshold={bytes}"));
            // Kernels that do not know max_pages ignore it, and do everything at once.
            let words = format!(
                "type={} priority={} max_pages={}{threshold}",
                pass.pages.word(),
                pass.priority,
                chunks.pages
            );
            let begin = self.host.monotonic();
            if let Err(error) = self.host.write_attribute(number, Attribute::Recompress, &words) {
                if let Some(bytes) = pass.threshold.filter(|_| error.is(Errno::INVAL)) {
                    let why = format!(
                        "this kernel stores pages of {bytes} bytes uncompressed: recompress.threshold has to be less"
                    );
                    return Ok(Done { skipped: Some(why), ..Done::default() });
                }
                return Ok(Done { note: refused(error)?, ..Done::default() });
            }
            let took = self.host.monotonic().saturating_sub(begin);
            let after = key(&self.mm(number)?);
            seen += u64::from(chunks.pages);
            next = chunks.next(took, after != before);
            before = after;
            if next.is_some() {
                let share = seen as f64 / pages.max(1) as f64;
                self.watch
                    .progress(share.min(1.0), &format!("{}: recompress {}", device.name, pass.pages.word()));
                self.host.sleep((took / 2).min(super::PAUSE));
            }
        }
        Ok(Done::default())
    }
}
