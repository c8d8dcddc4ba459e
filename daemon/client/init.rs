//! `init`: proposes a configuration for this machine, and writes it after a yes.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::args::{Change, Cli, Init};
use super::import::{DESTINATION, open, ordered, warn, write};
use super::{benchmark, changes, conditions, connect, doctor, out};
use engine::{Error, ErrorKind};
use host::Host;
use host::linux::root::Root;
use host::linux::{LinuxHost, files, unit_files};
use import::init::{Machine, amounts, without_refused};
use import::machine;
use import::peer::{self, Imported, Peer, Values};
use logic::config;
use logic::exit::ExitStatus;
use logic::finding::{Code, Finding};
use logic::path_kind::PathKind;
use logic::plan::{Decision, Item};
use logic::record::Target;
use logic::render;

/// Runs `init`: the proposal to standard output, everything else to standard error.
pub fn run(cli: &Cli, words: &Init) -> Result<ExitStatus, Error> {
    if cli.config.is_some() {
        out::note("warning: --config has no effect: init reads and writes the usual files");
    }
    let directory = words.root.clone().unwrap_or_else(|| PathBuf::from("/"));
    let root = open(&directory)?;
    let host = LinuxHost::new(&directory);
    let sources = files::sources(&directory, None);
    let configured = files::load(&directory, sources.clone());
    let mut machine = machine::look(&host, &configured.settings);
    if words.root.is_none() {
        machine.conditions =
            conditions::with_disks(&host, machine.conditions, &machine.swaps, &machine.mounts);
        machine.util_linux = conditions::util_linux();
    }
    let imported = take_over(&mut machine, &host, &root)?;
    match present(&host, &directory, &configured.files) {
        Some(why) if words.dry_run => out::note(&format!("warning: {why}")),
        Some(why) => return Err(Error::failed(why)),
        None if words.dry_run => {}
        None => refuse(words, &host, &machine, &directory)?,
    }
    if let Some((_, imported)) = &imported {
        warn(imported.warnings.iter());
    }
    let profile = words.profile.map(Into::into);
    let mut proposal = machine.propose(profile, imported.as_ref().map(|(peer, imported)| (*peer, imported)));
    let file = directory.join(DESTINATION);
    // Keys that the proposal does not have are those that packages ship.
    let mut sources = sources.0;
    sources.retain(|(path, _)| path.starts_with(directory.join("usr")));
    let planned = |toml: &str| {
        let mut sources = sources.clone();
        sources.push((file.clone(), toml.to_owned()));
        let loaded = files::load(&directory, (sources, Vec::new()));
        (engine::check_elsewhere(&host, &loaded), loaded)
    };
    let (mut plan, mut loaded) = planned(&proposal.toml);
    // Devices that yield now are set up later, if they can be.
    let (_, mut later) = planned(&proposal.toml);
    for device in &mut later.settings.devices {
        device.yields = false;
    }
    let (toml, refused) = without_refused(&proposal.toml, &engine::check_elsewhere(&host, &later));
    if !refused.is_empty() {
        proposal.toml = toml;
        proposal.remarks.extend(refused);
        (plan, loaded) = planned(&proposal.toml);
    }
    if loaded.disabled_by_cmdline {
        out::note("Nothing of this is set up while the kernel command line has systemd.zram=0.");
    }
    for remark in proposal.remarks.iter().chain(&amounts(&plan)) {
        out::note(remark);
    }
    // Remarks have named the other neighbours.
    let is_other =
        |found: &&Finding| matches!(found.code, Code::FstabLine | Code::UnitHidden | Code::DriverOption);
    let others = plan.neighbours.iter().filter(is_other);
    let found: Vec<&Finding> = plan.problems.iter().chain(others).collect();
    if !found.is_empty() {
        out::note(render::render(found, false).trim_end());
    }
    if let Some(number) = machine.taken(&proposal.toml).filter(|_| words.now) {
        let message = format!(
            "another program uses zram{number} as swap: run `zramdctl init` without --now, switch that program off, and reboot"
        );
        return Err(Error::new(ErrorKind::Unsafe, message));
    }
    out::note("");
    out::data(&proposal.toml);
    if words.dry_run {
        return Ok(ExitStatus::Success);
    }
    if !words.yes && !out::agreed(&format!("Write this to {}?", file.display()))? {
        out::note("Nothing was written.");
        return Ok(ExitStatus::Failure);
    }
    write(&root, &file, &proposal.toml)?;
    out::note(&format!("Written to {}.", file.display()));
    if words.now {
        let status = start(cli)?;
        let measures = status == ExitStatus::Success && loaded.settings.uses_verdict();
        return Ok(if measures { benchmark::first(cli) } else { status });
    }
    if words.root.is_none() {
        out::note(&format!("Start it with {} to use it now and at every boot.", connect::how_to_start()));
    }
    Ok(ExitStatus::Success)
}

/// Says that the administrator has a configuration, or hides that of packages.
fn present(host: &LinuxHost, directory: &Path, configured: &[PathBuf]) -> Option<String> {
    // Packages ship theirs below /usr, and overrides until the next boot are in /run.
    let is_own = |file: &&PathBuf| file.strip_prefix(directory).unwrap_or(file).starts_with("etc");
    if let Some(file) = configured.iter().find(is_own) {
        return Some(format!(
            "{} is there already: `zramdctl check` looks for mistakes in it, and zramd is started with {}",
            file.display(),
            connect::how_to_start()
        ));
    }
    let file = format!("/{DESTINATION}");
    (host.path_kind(&file) != PathKind::Missing).then(|| {
        let file = directory.join(DESTINATION);
        format!("{} is there already, and hides files of the same name: remove it first", file.display())
    })
}

/// Refuses where a configuration could not be written, or not used.
fn refuse(words: &Init, host: &LinuxHost, machine: &Machine, directory: &Path) -> Result<(), Error> {
    if words.root.is_some() {
        return Ok(());
    }
    if !host.is_privileged() {
        let message = "only root can write /etc/zramd/zramd.toml; --dry-run shows the proposal";
        return Err(Error::new(ErrorKind::NotPermitted, message));
    }
    if let Some(finding) = doctor::unsupported(directory, host.container().as_deref()) {
        return Err(Error::new(ErrorKind::Unsupported, format!("{}; {}", finding.message, finding.remedy)));
    }
    if !words.now {
        return Ok(());
    }
    if let Some(rival) = machine.rivals().next() {
        let off = &rival.off;
        let way = if rival.enabled {
            format!("run `zramdctl init` without --now, {off}, and reboot")
        } else {
            format!("{off}, then run `zramdctl init --now` again")
        };
        let message =
            format!("{} is set up here ({}) and would claim the same devices: {way}", rival.name, rival.file);
        return Err(Error::new(ErrorKind::Unsafe, message));
    }
    if !unit_files::is_booted(directory) {
        let message = "systemd is not running: without --now the configuration is written, and `/usr/lib/zramd/zramd-setup apply` sets it up";
        return Err(Error::new(ErrorKind::Unsupported, message));
    }
    Ok(())
}

/// The configuration of the program that sets up zram devices now. Those that are configured to set up none are set aside.
fn take_over(
    machine: &mut Machine,
    host: &LinuxHost,
    root: &Root,
) -> Result<Option<(Peer, Imported)>, Error> {
    while let Some(peer) = machine.import_from() {
        let ordered = match ordered(peer, root) {
            // It works without a configuration.
            Err(error) if error.kind == ErrorKind::NotFound => return Ok(None),
            other => other?,
        };
        let mut imported = peer::import(peer, &ordered.files, &Values::default());
        imported.warnings.splice(..0, ordered.warnings);
        let name = peer.name();
        if let Some(section) = imported.rejected.first() {
            return Err(Error::failed(format!(
                "zramd does not take [{section}] of {name} as it is: `zramdctl import {name}` says why; correct it first"
            )));
        }
        let mut loaded = config::load(&[(PathBuf::new(), imported.toml.clone())], "");
        // They yield to this very program.
        for device in &mut loaded.settings.devices {
            device.yields = false;
        }
        let is_wanted =
            |item: &Item| matches!(item.target, Target::Device(_)) && item.decision != Decision::Skipped;
        if engine::check_elsewhere(host, &loaded).items.iter().any(is_wanted) {
            return Ok(Some((peer, imported)));
        }
        if !peer::programs(peer, &ordered.files).is_empty() {
            return Err(Error::failed(format!(
                "{name} runs programs to find its sizes: `zramdctl import {name} --run-programs --write` takes its configuration over"
            )));
        }
        machine.set_aside(peer);
    }
    Ok(None)
}

/// Enables and starts the daemon, and waits until everything is set up.
fn start(cli: &Cli) -> Result<ExitStatus, Error> {
    // Its output is passed on: it would end early if it could not write.
    let mut command = Command::new("systemctl");
    command.args(["enable", "--now", "zramd.service"]).stdin(Stdio::inherit());
    let output = command.output().map_err(|error| Error::failed(format!("cannot run systemctl: {error}")))?;
    out::forward(&output.stdout);
    out::forward(&output.stderr);
    if !output.status.success() {
        return Err(Error::failed(format!("systemctl enable --now zramd.service: {}", output.status)));
    }
    Ok(connect::run(changes::reload(!cli.no_ask_password, Change::default())))
}
