//! Carries out a plan group by group; a group is rolled back as a whole when one of its steps fails.

use super::create::{self, save};
use super::error::Error;
use super::gather;
use super::perform::{lacks_attribute, perform};
use super::span::span;
use super::undo::{one, roll_back, take_back};
use host::Host;
use logic::outcome::Outcome;
use logic::plan::{Group, Plan, Step, Taken, Way};
use logic::record::{Progress, Record, Target, Undo};

/// Carries out all groups. A failed group does not stop the others, except those mounted on top of it.
pub fn apply<H: Host>(host: &mut H, plan: &Plan) -> Vec<Outcome> {
    let mut outcomes: Vec<Outcome> = Vec::new();
    for group in plan.groups.iter().filter(|group| !group.is_empty() || group.resume.is_some()) {
        let failed = |target: &&Target| {
            outcomes.iter().any(|outcome| outcome.target == **target && !outcome.is_done())
        };
        let outcome = match group.needs.as_ref().filter(failed) {
            Some(needed) => blocked(group, needed),
            None => run(host, group),
        };
        outcomes.push(outcome);
    }
    let creates = |group: &Group| group.before.iter().any(|step| matches!(step, Step::CreateDevice { .. }));
    if plan.groups.iter().any(creates)
        && let Err(error) = remove_spares(host)
        && let Some(last) = outcomes.last_mut()
    {
        last.warnings.push(error.to_string());
    }
    outcomes
}

/// Removes the devices that were created to reach higher numbers. What stays is tried again by the next run.
pub(super) fn remove_spares<H: Host>(host: &mut H) -> Result<(), Error> {
    let records = gather::records(host)?.into_values();
    let failed = records.filter_map(|mut record| create::remove_spares_of(host, &mut record).err());
    failed.reduce(Error::join).map_or(Ok(()), Err)
}

/// Skips a group whose parent mount failed: it would end up below that mount, and the next run could not mount the
/// parent.
fn blocked(group: &Group, needed: &Target) -> Outcome {
    let target = &group.target;
    let why = match target {
        Target::Vm => format!("{target}: not changed, because {needed}, which needs it, failed"),
        _ => format!("{target}: not mounted, because {needed}, on which it is to be mounted, failed"),
    };
    Outcome::failed(target, Error::failed(why))
}

struct Run<'a, H: Host> {
    host: &'a mut H,
    outcome: Outcome,
    record: Record,
    /// Whether write-back is left out because a step to it failed.
    without_backing: bool,
}

fn run<H: Host>(host: &mut H, group: &Group) -> Outcome {
    let _span = span(&group.target).entered();
    let mut outcome = Outcome::new(&group.target);
    if let Some(record) = &group.retire {
        // Here it is made anew, and not only reset.
        outcome.errors = take_back(host, &Record { stays: false, ..record.clone() });
        if !outcome.errors.is_empty() {
            return outcome;
        }
        outcome.done.extend(record.undo.iter().rev().map(ToString::to_string));
    }
    let Some(request) = &group.request else { return outcome };
    let is_in_use = group.resume.as_ref().is_some_and(|record| record.progress == Progress::Done);
    let record = match &group.resume {
        Some(record) => Record { request: request.clone(), stays: false, ..record.clone() },
        None => Record::begin(group.target.clone(), request.clone()),
    };
    let mut run = Run { host, outcome, record, without_backing: false };
    if let Err(error) = run.all(group) {
        run.outcome.errors.push(error);
        if is_in_use {
            // The device is as before; only the change failed. The old record describes it.
            if let Some(record) = &group.resume {
                run.outcome.errors.extend(save(run.host, record).err());
            }
        } else {
            run.outcome.errors.extend(roll_back(run.host, &mut run.record));
        }
    }
    run.outcome
}

impl<H: Host> Run<'_, H> {
    fn all(&mut self, group: &Group) -> Result<(), Error> {
        // Without a record, no step could be undone after a kill.
        save(self.host, &self.record)?;
        self.steps(&group.before)?;
        self.ways(&group.ways)?;
        self.steps(&group.after)?;
        if let Target::Device(_) = self.record.target {
            // Sizes depend on the machine's memory; maintenance compares it with this value.
            self.record.memory_kib = gather::memory(self.host).unwrap_or_default().total_kib;
        }
        self.record.progress = Progress::Done;
        save(self.host, &self.record)
    }

    /// Tries the ways to configure the device, or zswap, in order. The steps of one that failed are undone.
    fn ways(&mut self, ways: &[Way]) -> Result<(), Error> {
        let Some((last, others)) = ways.split_last() else { return Ok(()) };
        let kept = self.record.undo.len();
        for way in others {
            let done = self.outcome.done.len();
            match self.steps(&way.steps) {
                Ok(()) => return self.chose(way),
                Err(error) => {
                    self.outcome.done.truncate(done);
                    self.outcome.warnings.push(format!("{error}; the next algorithm is tried"));
                    self.reset(kept)?;
                }
            }
        }
        self.steps(&last.steps)?;
        self.chose(last)
    }

    fn chose(&mut self, way: &Way) -> Result<(), Error> {
        self.record.algorithm.clone_from(&way.algorithm);
        self.record.measured = way.measured;
        save(self.host, &self.record)
    }

    /// Resets the device. `reset` needs the device unlocked, so the lock is released and taken again. For settings, undoes all
    /// but the first `kept`.
    fn reset(&mut self, kept: usize) -> Result<(), Error> {
        let Target::Device(number) = self.record.target else {
            while self.record.undo.len() > kept {
                let Some(undo) = self.record.undo.last().cloned() else { break };
                one(self.host, &mut self.record, &undo)?;
                self.record.undo.pop();
            }
            return save(self.host, &self.record);
        };
        one(self.host, &mut self.record, &Undo::Reset { number })?;
        super::retry::while_busy(self.host, number, |host| host.lock_device(number))
    }

    fn steps(&mut self, steps: &[Step]) -> Result<(), Error> {
        let mut without: Vec<u8> = Vec::new();
        for step in steps {
            if let Step::SetParameters { priority, .. } = step
                && without.contains(priority)
            {
                continue;
            }
            if step.is_backing() && self.without_backing {
                continue;
            }
            if let Err(error) = self.step(step) {
                let absent = lacks_attribute(self.host, step);
                if !absent && !step.is_optional() {
                    return Err(error);
                }
                if let Step::SetRecompression { priority, .. } = step {
                    without.push(*priority);
                }
                if step.is_backing() {
                    self.forget_backing()?;
                }
                let why =
                    if absent { "this kernel has no such attribute".to_owned() } else { error.to_string() };
                self.outcome.warnings.push(format!("{}: cannot {step}: {why}", self.record.target));
                continue;
            }
            self.outcome.done.push(step.to_string());
        }
        Ok(())
    }

    /// Undoes the steps done for write-back: they are of no use on their own.
    fn forget_backing(&mut self) -> Result<(), Error> {
        self.without_backing = true;
        let is_backing = |undo: &Undo| matches!(undo, Undo::DetachFile { .. } | Undo::CloseCrypt { .. });
        while let Some(at) = self.record.undo.iter().rposition(is_backing) {
            let undo = self.record.undo[at].clone();
            one(self.host, &mut self.record, &undo)?;
            self.record.undo.remove(at);
        }
        save(self.host, &self.record)
    }

    /// Records the undo of the step, then does the step. Two steps learn their undo only by running, and record it
    /// themselves.
    fn step(&mut self, step: &Step) -> Result<(), Error> {
        let learns = matches!(step, Step::CreateDevice { .. } | Step::ClaimDevice { .. });
        if let (Taken::By(undo), false) = (step.taken_back(), learns) {
            self.record.push(undo);
            save(self.host, &self.record)?;
        }
        let begun = self.host.monotonic();
        tracing::trace!("{}: {step}", self.record.target);
        let done = perform(self.host, step, &mut self.record);
        let time = self.host.monotonic().saturating_sub(begun).as_micros();
        match &done {
            Ok(()) => tracing::debug!("{}: {step}: done after {time} µs", self.record.target),
            Err(error) => tracing::debug!("{}: {step}: {error}, after {time} µs", self.record.target),
        }
        done
    }
}
