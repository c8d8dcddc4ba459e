//! The commands: gather input, call the engine, print the result, choose the exit status.

use std::path::{Path, PathBuf};

use engine::{Error, ErrorKind};
use host::linux::LinuxHost;
use host::linux::files;
use host::linux::unit_files::disks;
use host::out;
use logic::config::schema::section_of;
use logic::config::{self, Loaded};
use logic::exit::ExitStatus;
use logic::finding::{Finding, Level, has_errors};
use logic::overlay;
use logic::plan::{self, Activation, Decision, Plan};
use logic::record::Target;
use logic::render;
use logic::unit::{credential_files, unit_files};

use super::args::{Command, Invocation};
use super::serve::{self, reply};
use super::show;

/// Runs one command.
pub fn run(invocation: &Invocation) -> ExitStatus {
    let result = match &invocation.command {
        Command::Plan => show_plan(invocation),
        Command::Apply => apply(invocation),
        Command::Revert => revert(),
        Command::Status => status(),
        Command::Up(number) => up(invocation, *number),
        Command::UpVm(target) => up_vm(invocation, target),
        Command::Down(target) => down(target),
        Command::Check(files) => Ok(check(invocation, files)),
        Command::Generate { directory, by_systemd } => Ok(generate(invocation, directory, *by_systemd)),
        Command::View => reply(Ok(serve::view(invocation))),
        Command::Propose(targets) => reply(serve::propose(invocation, targets)),
        Command::CarryOut(targets) => reply(serve::carry_out(invocation, targets)),
        Command::WriteUnits => reply(serve::write_units(invocation)),
        Command::Adapt(number) => reply(serve::adapt(invocation, *number)),
        Command::TakeDown(target) => reply(serve::take_down(target)),
    };
    result.unwrap_or_else(|error| {
        show::error(&error);
        error.exit_status()
    })
}

/// Reads the configuration: one named file, or all roots below `--root`.
fn load(invocation: &Invocation) -> Loaded {
    let root = invocation.root.as_deref().unwrap_or(Path::new("/"));
    let sources = match &invocation.config {
        Some(file) => files::read_sources(std::slice::from_ref(file)),
        None => files::find_sources(root),
    };
    files::load(root, sources)
}

pub fn host(invocation: &Invocation) -> LinuxHost {
    LinuxHost::new(invocation.root.clone().unwrap_or_else(|| PathBuf::from("/")))
}

fn show_plan(invocation: &Invocation) -> Result<ExitStatus, Error> {
    let loaded = load(invocation);
    let plan = match &invocation.root {
        Some(_) => engine::check_elsewhere(&host(invocation), &loaded),
        None => engine::plan(&host(invocation), &loaded, Activation::Direct)?,
    };
    if invocation.json {
        out::data(&show::json(&plan::report::report(&plan))?);
    } else {
        show::findings(plan.findings());
        out::line(plan::report::text(&plan, &loaded).trim_end());
    }
    Ok(plan_status(&plan, has_errors(&loaded.problems)))
}

/// Exit status of a plan: configuration errors before refusals, refusals before success.
fn plan_status(plan: &Plan, config_errors: bool) -> ExitStatus {
    if config_errors {
        return ExitStatus::Failure;
    }
    let refused: Vec<ExitStatus> =
        plan.items.iter().filter_map(|item| item.kind).map(ErrorKind::exit_status).collect();
    let planned = plan.items.iter().any(|item| item.decision == Decision::Planned);
    match refused.first() {
        None => ExitStatus::Success,
        Some(ExitStatus::Failure) => ExitStatus::Failure,
        Some(_) if planned => ExitStatus::Partly,
        Some(status) => *status,
    }
}

fn apply(invocation: &Invocation) -> Result<ExitStatus, Error> {
    let loaded = load(invocation);
    let mut host = host(invocation);
    let applied = match engine::apply(&mut host, &loaded) {
        Ok(applied) => applied,
        Err(error) => {
            show::findings(&loaded.problems);
            return Err(error);
        }
    };
    show::findings(applied.plan.findings());
    show::outcomes(&applied.outcomes);
    match engine::status::rows(&host) {
        Ok(rows) => show::table(&rows, Some((&applied, &loaded))),
        // What was done counts, not whether it can be shown.
        Err(error) => show::note(&format!("the present state cannot be shown: {error}")),
    }
    Ok(outcome_status(&applied, has_errors(&loaded.problems)))
}

/// Exit status of an applied plan.
fn outcome_status(applied: &engine::provision::Applied, config_errors: bool) -> ExitStatus {
    let planned = plan_status(&applied.plan, config_errors);
    let failed: Vec<&Error> = applied.outcomes.iter().filter_map(|outcome| outcome.errors.first()).collect();
    let Some(first) = failed.first() else { return planned };
    let targets = applied.plan.items.iter().filter(|item| item.decision == Decision::Planned).count();
    match planned {
        ExitStatus::Failure => ExitStatus::Failure,
        _ if failed.len() < targets => ExitStatus::Partly,
        _ => first.exit_status(),
    }
}

fn up(invocation: &Invocation, number: u32) -> Result<ExitStatus, Error> {
    let loaded = load(invocation);
    let mut host = host(invocation);
    let name = Target::Device(number).to_string();
    let is_own = |found: &&Finding| section_of(found.key()).as_deref() == Some(&name);
    let applied = engine::up(&mut host, &loaded, number)
        .inspect_err(|_| show::short(loaded.problems.iter().filter(is_own)))?;
    let item = applied.plan.item(&Target::Device(number));
    // A refusal is an error, which is printed below.
    let own = applied.plan.problems.iter().filter(is_own).filter(|found| found.level == Level::Warning);
    show::short(own.chain(&applied.plan.neighbours));
    show::outcomes(&applied.outcomes);
    match item.map(|item| (item.decision, &item.reason, item.kind)) {
        Some((Decision::Skipped, reason, _)) => Err(Error::new(
            ErrorKind::NotFound,
            format!("zram{number}: not wanted on this machine: {reason}"),
        )),
        Some((Decision::Refused, reason, kind)) => {
            Err(Error::new(kind.unwrap_or(ErrorKind::Failed), format!("zram{number}: {reason}")))
        }
        _ => Ok(outcome_status(&applied, false)),
    }
}

fn up_vm(invocation: &Invocation, target: &Target) -> Result<ExitStatus, Error> {
    let loaded = load(invocation);
    let is_own = |found: &&Finding| section_of(found.key()).as_deref() == Some(&target.to_string());
    let applied = engine::up_vm(&mut host(invocation), &loaded, target)
        .inspect_err(|_| show::short(loaded.problems.iter().filter(is_own)))?;
    show::outcomes(&applied.outcomes);
    match applied.plan.item(target) {
        None => out::line(&format!("{target}: not configured, nothing to do")),
        Some(item) if item.decision == Decision::Skipped => {
            // Not an error: other swap has a higher priority, and these settings would slow it down.
            show::note(&format!("{target}: not changed: {}", item.reason));
        }
        Some(item) if item.decision == Decision::Refused => {
            let kind = item.kind.unwrap_or(ErrorKind::Failed);
            return Err(Error::new(kind, format!("{target}: {}", item.reason)));
        }
        Some(_) => {
            let steps = applied.outcomes.iter().flat_map(|outcome| &outcome.done);
            steps.for_each(|step| out::line(&format!("{target}: {step}")));
        }
    }
    Ok(outcome_status(&applied, false))
}

fn down(target: &Target) -> Result<ExitStatus, Error> {
    let mut host = LinuxHost::new("/");
    if !engine::down(&mut host, target)? {
        // Success, because a unit that is stopped after a crash must not fail.
        out::line(&format!("{target}: not set up by zramd, nothing to do"));
    }
    Ok(ExitStatus::Success)
}

fn revert() -> Result<ExitStatus, Error> {
    let mut host = LinuxHost::new("/");
    let results = engine::revert(&mut host)?;
    let forgotten = forget_requests(&results)?;
    if results.is_empty() && forgotten.is_empty() {
        out::line("nothing is set up by zramd");
    }
    let mut failed = Vec::new();
    for (target, result) in &results {
        match result {
            Ok(()) => out::line(&format!("{target}: removed")),
            Err(error) => {
                show::error(error);
                failed.push(error);
            }
        }
    }
    for section in &forgotten {
        out::line(&format!("{section}: overrides until the next boot removed"));
    }
    Ok(match failed.first() {
        None => ExitStatus::Success,
        Some(_) if failed.len() < results.len() => ExitStatus::Partly,
        Some(error) => error.exit_status(),
    })
}

/// Removes the runtime sections of removed targets, or the next `apply` would create them again. Targets that could not be
/// removed keep theirs.
fn forget_requests(results: &[(Target, Result<(), Error>)]) -> Result<Vec<String>, Error> {
    let root = Path::new("/");
    let mut forgotten = Vec::new();
    for path in files::overlays(root) {
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
        let Some(section) = overlay::section_of(name) else { continue };
        if !results.iter().any(|(target, result)| result.is_err() && target.to_string() == section) {
            files::write_overlay(root, name, None).map_err(Error::failed)?;
            forgotten.push(section.to_owned());
        }
    }
    Ok(forgotten)
}

fn status() -> Result<ExitStatus, Error> {
    let rows = engine::status::rows(&LinuxHost::new("/"))?;
    if rows.is_empty() {
        out::line("nothing is set up by zramd");
    } else {
        show::table(&rows, None);
    }
    Ok(ExitStatus::Success)
}

fn check(invocation: &Invocation, named: &[PathBuf]) -> ExitStatus {
    let loaded = if named.is_empty() {
        load(invocation)
    } else {
        config::load_sources(files::read_sources(named), "")
    };
    let plan = match &invocation.root {
        Some(_) => engine::check_elsewhere(&host(invocation), &loaded),
        None => engine::check(&host(invocation), &loaded, disks(Path::new("/"))),
    };
    show::findings(plan.findings());
    let (line, status) = render::verdict(&plan, &loaded);
    out::line(&line);
    status
}

fn generate(invocation: &Invocation, directory: &Path, by_systemd: bool) -> ExitStatus {
    let root = invocation.root.as_deref().unwrap_or(Path::new("/"));
    // With a file on the command line, units are always generated; otherwise only if zramd is enabled, or was until now.
    let is_named = invocation.config.is_some();
    let in_use = if is_named { Vec::new() } else { engine::ramdisk::saving(root) };
    if !is_named && !files::generates(root) && in_use.is_empty() {
        if !by_systemd {
            show::note(
                "zramd.service is not enabled here, so no units are written (`systemctl enable zramd.service`)",
            );
        }
        return ExitStatus::Success;
    }
    let loaded = load(invocation);
    let plan = engine::plan_elsewhere(&host(invocation), &loaded);
    show::short(plan.findings());
    let mut units = unit_files(&plan);
    units.extend(credential_files(&loaded));
    for file in in_use {
        if units.iter().all(|unit| unit.path != file.path) {
            units.push(file);
        }
    }
    // The units are the result.
    match files::write_units(directory, &units) {
        Ok(()) => ExitStatus::Success,
        Err(why) => {
            out::error(&why);
            ExitStatus::Unwritten
        }
    }
}
