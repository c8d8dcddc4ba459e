//! What the daemon has done by this program, so that it need not carry the planner and the TOML reader all the time. Each
//! command replies with a [`Result`] as JSON ([`zramd::host::linux::process::ask`]).

use std::path::Path;

use serde::Serialize;
use zramd::engine::apply::Outcome;
use zramd::engine::reload::{self, Scope, Survey, obsolete_overrides};
use zramd::engine::{self, Error};
use zramd::host::linux::{LinuxHost, cancel, files, unit_files};
use zramd::logic::change::UnitDisk;
use zramd::logic::config::{self, Loaded};
use zramd::logic::exit::ExitStatus;
use zramd::logic::plan::Activation;
use zramd::logic::record::Target;
use zramd::logic::unit_text::{self, UnitFile};
use zramd::logic::view::{Ended, Proposal, View};

use super::args::Invocation;
use super::show;

/// Prints the reply, and returns the exit status.
pub fn reply<T: Serialize>(reply: Result<T, Error>) -> Result<ExitStatus, Error> {
    show::json(&reply)?;
    Ok(reply.map_or_else(|error| error.exit_status(), |_| ExitStatus::Success))
}

/// The configuration with the sections of the moment, which `--config` does not hide: whoever asked for them is the same.
fn load(invocation: &Invocation) -> (Loaded, Vec<String>) {
    let sources = files::sources(Path::new("/"), invocation.config.as_ref());
    let names = sources.0.iter().map(|(path, _)| path.display().to_string()).collect();
    (config::load_sources(sources, &cmdline()), names)
}

fn cmdline() -> String {
    files::read_optional(Path::new("/"), "/proc/cmdline").unwrap_or_default()
}

pub fn view(invocation: &Invocation) -> View {
    let (loaded, files) = load(invocation);
    View::of(&loaded, files)
}

fn survey(invocation: &Invocation, loaded: &Loaded, targets: &[Target]) -> Result<Survey, Error> {
    let managed = invocation.managed;
    let activation = if managed { Activation::Managed } else { Activation::Direct };
    let disks = if managed { unit_disks().into_iter().map(|(disk, _)| disk).collect() } else { Vec::new() };
    let only = (!targets.is_empty()).then(|| targets.iter().cloned().collect());
    let scope = Scope { only, forced: invocation.force, disks };
    reload::survey(&LinuxHost::new("/"), loaded, activation, &scope)
}

/// The disks that PID 1 mounted from units of ours, and those units.
fn unit_disks() -> Vec<(UnitDisk, String)> {
    unit_files::disks(Path::new("/"))
}

pub fn propose(invocation: &Invocation, targets: &[Target]) -> Result<Proposal, Error> {
    let sources = files::sources(Path::new("/"), invocation.config.as_ref());
    let files = sources.0.clone();
    let loaded = config::load_sources(sources, &cmdline());
    let survey = survey(invocation, &loaded, targets)?;
    let disks = unit_disks();
    let unit_of = |name: &str| disks.iter().find(|(disk, _)| disk.name == name).map(|(_, unit)| unit.clone());
    let names = files.iter().map(|(path, _)| path.display().to_string()).collect();
    let mut proposal = Proposal::of(View::of(&loaded, names), &survey.changes, unit_of);
    proposal.obsolete = obsolete_overrides(&files, &loaded.merged.overrides, targets, |target, files| {
        let loaded = config::load(files, &cmdline());
        Ok(self::survey(invocation, &loaded, targets)?.plan.item(target).cloned())
    })?;
    Ok(proposal)
}

pub fn carry_out(invocation: &Invocation, targets: &[Target]) -> Result<Vec<Ended>, Error> {
    cancel::hand_termination_on();
    let (loaded, _) = load(invocation);
    let survey = survey(invocation, &loaded, targets)?;
    let outcomes = reload::carry_out(&mut LinuxHost::new("/"), &loaded, &survey)?;
    let ended = |outcome: Outcome| Ended { target: outcome.target, errors: outcome.errors };
    Ok(outcomes.into_iter().map(ended).collect())
}

/// The units of everything that is planned.
fn wanted_units(invocation: &Invocation) -> Result<Vec<UnitFile>, Error> {
    let (loaded, _) = load(invocation);
    let scope = Scope { disks: unit_disks().into_iter().map(|(disk, _)| disk).collect(), ..Scope::default() };
    let survey = reload::survey(&LinuxHost::new("/"), &loaded, Activation::Managed, &scope)?;
    Ok(unit_text::unit_files(&survey.plan))
}

pub fn units_are_in_place(invocation: &Invocation) -> Result<bool, Error> {
    Ok(unit_files::are_in_place(Path::new("/"), &wanted_units(invocation)?))
}

pub fn write_units(invocation: &Invocation) -> Result<bool, Error> {
    let wanted = wanted_units(invocation)?;
    let root = Path::new("/");
    // What was written earlier would hide what the generator writes from now on.
    let wanted = if unit_files::are_generated(root, &wanted) { Vec::new() } else { wanted };
    unit_files::write_runtime(root, &wanted).map_err(Error::failed)
}

pub fn adapt(invocation: &Invocation, number: u32) -> Result<(), Error> {
    let (loaded, _) = load(invocation);
    let mut host = LinuxHost::new("/");
    engine::control::must_be_ours(&host, number)?;
    engine::provision::adapt(&mut host, &loaded, number)
}

/// Takes a target away.
pub fn take_down(target: &Target) -> Result<bool, Error> {
    engine::down(&mut LinuxHost::new("/"), target)
}
