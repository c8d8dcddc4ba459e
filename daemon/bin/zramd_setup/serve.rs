//! Commands for the daemon, which does not contain the planner and the TOML parser itself. Each replies with a [`Result`] as
//! JSON ([`host::linux::process::ask`]).

use std::path::Path;

use engine::reload::{self, Scope, Survey, obsolete_overrides};
use engine::{Error, ErrorKind, gather};
use host::linux::{LinuxHost, cancel, edit, files, unit_files};
use host::out;
use logic::change::Action;
use logic::config::Loaded;
use logic::config::edit::Edit;
use logic::config::lasting::{Changes, FILE, changed, must_be_described, must_have_effect};
use logic::exit::ExitStatus;
use logic::outcome::Outcome;
use logic::plan::Activation;
use logic::plan::wanted::variables;
use logic::ramdisk::UnitRamdisk;
use logic::record::Target;
use logic::unit::unit_files;
use logic::view::{Obsolete, Proposal, UnitChange, View};
use serde::Serialize;

use super::args::Invocation;
use super::show;

/// Prints the reply, and returns the exit status.
pub fn reply<T: Serialize>(reply: Result<T, Error>) -> Result<ExitStatus, Error> {
    out::reply(&show::json(&reply)?);
    Ok(reply.map_or_else(|error| error.exit_status(), |_| ExitStatus::Success))
}

/// The configuration. `--config` replaces the usual files; runtime sections are read in any case, because they override all files.
fn load(invocation: &Invocation) -> Loaded {
    files::load(Path::new("/"), files::sources(Path::new("/"), invocation.config.as_ref()))
}

pub fn view(invocation: &Invocation) -> View {
    here(&load(invocation))
}

/// The view on this machine.
fn here(loaded: &Loaded) -> View {
    View::on(loaded, &variables(&gather::machine(&LinuxHost::new("/"))))
}

fn survey(invocation: &Invocation, loaded: &Loaded, targets: &[Target]) -> Result<Survey, Error> {
    let managed = invocation.managed;
    let activation = if managed { Activation::Managed } else { Activation::Direct };
    let ramdisks = if managed { unit_ramdisks() } else { Vec::new() };
    let only = (!targets.is_empty()).then(|| targets.iter().cloned().collect());
    let scope = Scope { only, forced: invocation.force, ramdisks, patient: false };
    reload::survey(&LinuxHost::new("/"), loaded, activation, &scope)
}

/// The RAM disks that PID 1 mounted from units of ours.
fn unit_ramdisks() -> Vec<UnitRamdisk> {
    unit_files::disks(Path::new("/"))
}

pub fn propose(invocation: &Invocation, targets: &[Target]) -> Result<Proposal, Error> {
    let root = Path::new("/");
    let edit = match &invocation.set {
        Some(changes) => Some(lasting(invocation, changes)?),
        None => invocation.edit.clone(),
    };
    let sources = files::sources_after(root, invocation.config.as_ref(), edit.as_ref());
    let loaded = files::load(root, sources.clone());
    if let Some(changes) = &invocation.set {
        must_be_described(&loaded, changes)?;
        must_have_effect(&loaded, changes)?;
    }
    let survey = survey(invocation, &loaded, targets)?;
    let edits = obsolete_overrides(&sources.0, &loaded, &survey, targets);
    let obsolete = (!edits.is_empty()).then(|| {
        let (mut kept, found) = sources;
        kept.retain_mut(|(path, text)| {
            match edits.iter().find(|edit| path.as_os_str() == edit.path.as_str()) {
                Some(Edit { after: Some(rest), .. }) => {
                    text.clone_from(rest);
                    true
                }
                Some(_) => false,
                None => true,
            }
        });
        Obsolete { view: here(&files::load(root, (kept, found))), edits }
    });
    let removes = survey.changes.iter().any(|change| change.action == Action::Remove);
    let units = (invocation.managed && (removes || !units_are_in_place(&survey)))
        .then(|| unit_change(&loaded, &survey));
    let followers = survey.followers(&LinuxHost::new("/"), &loaded);
    Ok(Proposal { view: here(&loaded), changes: survey.changes, obsolete, units, followers, edit })
}

/// The edit of the drop-in with these changes.
fn lasting(invocation: &Invocation, changes: &Changes) -> Result<Edit, Error> {
    if let Some(file) = &invocation.config {
        let message = format!("zramd runs with `--config {0}`: change that file", file.display());
        return Err(Error::new(ErrorKind::Unsupported, message));
    }
    let before = edit::read(Path::new("/"), FILE)?;
    let after = changed(before.as_deref(), changes)?;
    Ok(Edit { path: FILE.to_owned(), before, after })
}

fn units_are_in_place(survey: &Survey) -> bool {
    unit_files::are_in_place(Path::new("/"), &unit_files(&survey.plan))
}

/// Changes of the units for the whole configuration, before PID 1 reloads.
fn unit_change(loaded: &Loaded, survey: &Survey) -> UnitChange {
    let root = Path::new("/");
    let wanted = unit_files(&survey.plan);
    // A unit in /run/systemd/system would override the generated one.
    let generated = files::has_generator(root) && files::generates(root);
    let by_generator = generated.then(|| unit_files(&engine::plan_elsewhere(&LinuxHost::new(root), loaded)));
    let is_generated = by_generator.is_some_and(|files| wanted.iter().all(|file| files.contains(file)));
    unit_files::runtime_change(root, if is_generated { &[] } else { &wanted })
}

/// Writes the units if the generator does not run.
pub fn write_units(invocation: &Invocation) -> Result<(), Error> {
    let loaded = load(invocation);
    let scope = Scope { ramdisks: unit_ramdisks(), ..Scope::default() };
    let survey = reload::survey(&LinuxHost::new("/"), &loaded, Activation::Managed, &scope)?;
    unit_files::apply(Path::new("/"), &unit_change(&loaded, &survey)).map_err(Error::failed)
}

pub fn carry_out(invocation: &Invocation, targets: &[Target]) -> Result<Vec<Outcome>, Error> {
    cancel::hand_termination_on();
    let loaded = load(invocation);
    let survey = survey(invocation, &loaded, targets)?;
    reload::carry_out(&mut LinuxHost::new("/"), &loaded, &survey)
}

pub fn adapt(invocation: &Invocation, number: u32) -> Result<(), Error> {
    let loaded = load(invocation);
    let mut host = LinuxHost::new("/");
    engine::device::control::must_be_ours(&host, number)?;
    engine::provision::adapt(&mut host, &loaded, number)
}

/// Removes a target.
pub fn take_down(target: &Target) -> Result<bool, Error> {
    engine::down(&mut LinuxHost::new("/"), target)
}
