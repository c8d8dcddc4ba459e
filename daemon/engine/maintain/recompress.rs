//! Recompression in chunks that are short enough for statistics to be read in between.

use super::{Attribute, Decision, Device, Done, Errno, Host, Pages, Run, Stopped, refused};
use logic::maintain::age::{Range, ages};
use logic::maintain::chunk::Chunks;
use logic::maintain::idle_marks::shared_age;
use logic::maintain::recompress::{Pass, Seen, Settings, decide};

const POLICY: &str = super::RECOMPRESS;

impl<H: Host> Run<'_, H> {
    /// Runs the policy, or one pass over the marked pages. `other` is the age for write-back, which may share the
    /// marks.
    pub(super) fn recompress(
        &mut self,
        device: &mut Device,
        settings: &Settings,
        pages: Option<Pages>,
        other: Option<Range>,
    ) -> Result<(), Stopped> {
        // Some of these pages may have been freed since, and others added.
        let hopeless = device.state.hopeless_huge_pages.min(device.huge_pages);
        device.state.hopeless_huge_pages = hopeless;
        let seen = Seen {
            primary: device.primary.clone(),
            secondary: device.secondary.clone(),
            stored_pages: device.stored_pages,
            huge_pages: device.huge_pages,
            hopeless_huge_pages: hopeless,
            utilisation: self.machine.utilisation,
            last: self.machine.since(device.state.recompressed),
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
                // That of write-back, whose marks these are.
                let other = other.and_then(|range| ages(range, self.machine.utilisation, self.cause).pop());
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
        let mut saved = 0;
        for pass in run.passes.into_iter().filter(|pass| marked || pass.pages == Pages::Huge) {
            if self.makes_way().is_some() {
                break;
            }
            let before = self.mm(device.number)?.huge_pages;
            let reason = match pass.threshold {
                Some(threshold) => format!("incompressible, and may shrink below {threshold} bytes"),
                None if pass.pages == Pages::Huge => "does not compress".to_owned(),
                None => reason.clone(),
            };
            let mut complete = !self.dry;
            self.measured(device, POLICY, pass.pages.word(), &reason, |run| {
                let (done, reached) = run.pass(device, &pass)?;
                complete = reached >= before && done.note.is_empty() && done.skipped.is_none();
                saved += done.saved;
                Ok(done)
            })?;
            if pass.pages == Pages::Huge && complete {
                let after = self.mm(device.number)?.huge_pages;
                device.state.hopeless_huge_pages = if after < before { 0 } else { after };
            }
        }
        device.marks_used |= marked && pages.is_none();
        if saved > 0 {
            // Shorter objects leave holes in the pages of the longer ones, so memory use may even grow without
            // compaction.
            self.compact(device, "after recompression")?;
        }
        self.check()
    }

    /// One pass in chunks, until all pages were tried. Also returns the number of pages that certainly were.
    fn pass(&mut self, device: &Device, pass: &Pass) -> Result<(Done, u64), Stopped> {
        let number = device.number;
        let pages = if pass.pages == Pages::Idle { device.stored_pages } else { device.huge_pages };
        let mut chunks = Chunks::begin(pages, self.cause);
        // A pass clears the mark of a page whether or not it shrinks. A huge page that did not shrink with its last
        // algorithm is not tried again (before Linux 6.15, only if the device has a single one); one above the
        // threshold is.
        let again = pass.pages == Pages::Huge && (pass.threshold.is_some() || device.secondary.len() > 1);
        if again {
            chunks = chunks.trying_again();
        }
        let mut next = Some(chunks);
        let mut done = Done::default();
        let (mut seen, mut reached) = (0, 0);
        while let Some(chunks) = next {
            self.watch.check()?;
            if self.makes_way().is_some() {
                break;
            }
            let threshold = pass.threshold.map_or_else(String::new, |bytes| format!(" threshold={bytes}"));
            // Kernels without max_pages ignore it, and process all pages at once.
            let words = format!(
                "type={} priority={} max_pages={}{threshold}",
                pass.pages.word(),
                pass.priority,
                chunks.pages
            );
            let before = self.mm(number)?;
            let begin = self.host.monotonic();
            if let Err(error) = self.host.write_attribute(number, Attribute::Recompress, &words) {
                if let Some(bytes) = pass.threshold.filter(|_| error.is(Errno::INVAL)) {
                    let why = format!(
                        "this kernel stores pages of {bytes} bytes uncompressed: recompress.threshold has to be less"
                    );
                    done.skipped = Some(why);
                } else {
                    done.note = refused(error)?;
                }
                return Ok((done, reached));
            }
            let took = self.host.monotonic().saturating_sub(begin);
            let after = self.mm(number)?;
            let shrank = if pass.pages == Pages::Idle {
                // The kernel does not tell the number of pages.
                if after.compr_data_size == before.compr_data_size { 0 } else { u64::from(chunks.pages) }
            } else {
                before.huge_pages.saturating_sub(after.huge_pages)
            };
            seen += u64::from(chunks.pages);
            reached = if again { reached.max(u64::from(chunks.pages)) } else { seen };
            done.saved += before.compr_data_size.saturating_sub(after.compr_data_size);
            next = chunks.next(took, shrank);
            if next.is_some() {
                let share = seen as f64 / pages.max(1) as f64;
                self.watch
                    .progress(share.min(1.0), &format!("{}: recompress {}", device.name, pass.pages.word()));
                self.host.sleep((took / 2).min(super::PAUSE));
            }
        }
        Ok((done, reached))
    }
}
