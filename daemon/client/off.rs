//! `off`: takes everything away that zramd set up, and disables it at boot. The configuration is not changed.

use std::path::Path;
use std::process::{Command, Stdio};

use super::args::{Cli, Off};
use super::{connect, out, read};
use engine::off::{self, Removal, Units};
use engine::reload::{Scope, Survey};
use engine::{Error, ErrorKind};
use host::Host;
use host::linux::{LinuxHost, files, pid_1, process, unit_files};
use logic::change::Action;
use logic::config;
use logic::exit::ExitStatus;
use logic::human::human;
use logic::overlay;
use logic::ramdisk::place::PLACES;
use logic::record::Target;

/// The units that `systemctl enable` starts at boot.
const ENABLED: [&str; 4] =
    ["zramd.service", "zramd-drain.service", "zramd-metrics.socket", "zramd-textfile.timer"];
/// The script of other init systems, as other-inits.md installs it, and the programs that disable it.
const SCRIPT: &str = "zramd-memory";
/// What the daemon leaves in `/run`: a change in progress, and that it has set up everything once.
const NOTES: [&str; 2] = ["/run/zramd/operation", "/run/zramd/provisioned"];

fn root() -> &'static Path {
    Path::new("/")
}

pub fn run(cli: &Cli, words: &Off) -> Result<ExitStatus, Error> {
    let mut host = read::host();
    if !host.is_privileged() {
        let message = "only root can take everything away: run `zramdctl off` with sudo";
        return Err(Error::new(ErrorKind::NotPermitted, message));
    }
    if cli.config.is_some() {
        out::note("warning: --config has no effect: off removes everything that is set up");
    }
    let booted = unit_files::is_booted(root());
    if booted && files::is_asked_for(root()) {
        let message = "systemd.zram=1 on the kernel command line sets zramd up whether it is enabled or not: remove that, reboot, and run this again";
        return Err(Error::new(ErrorKind::Unsafe, message));
    }
    // An empty configuration: everything is to go.
    let mut survey = read::survey(None, &config::load(&[], ""), Scope::default())?;
    survey.changes.extend(off::hidden(&survey));
    let question = match announce(&survey) {
        0 => "Disable zramd at boot?",
        _ => "Remove this, and disable zramd at boot?",
    };
    if !words.yes && !out::agreed(question)? {
        out::note("Nothing was changed.");
        return Ok(ExitStatus::Failure);
    }
    let mut removed =
        if booted { off::off(&mut host, &mut Pid1 { was_active: false }, &survey)? } else { Vec::new() };
    if removed.iter().all(|(_, result)| result.is_ok()) {
        // Everything without systemd; with it, what `zramd-setup apply` set up, and records that are damaged.
        removed.extend(engine::revert(&mut host)?);
    }
    end(&survey, &removed, booted)
}

/// Says what goes, and what is lost with it. Returns the number of lines.
fn announce(survey: &Survey) -> usize {
    let mut lines = Vec::new();
    for change in &survey.changes {
        let target = &change.target;
        let path = off::mount_point(change, survey);
        // The RAM disk that such a device holds has its own line.
        if matches!(target, Target::Device(_)) && path.is_some_and(|path| path.starts_with(PLACES)) {
            continue;
        }
        lines.push(match path {
            _ if off::taken_over(change, survey).is_some() => {
                format!("  not {target}: another program has set it up since zramd did")
            }
            _ if off::is_kept(change, survey) => format!("  {target}, which is saved first"),
            Some(path) if change.action == Action::Refuse => {
                let used = survey.facts.ramdisk_used.get(path.as_bytes());
                let used = used.map_or(String::new(), |bytes| format!(" ({})", human(*bytes)));
                format!("  {target}: what is on {path}{used} is lost")
            }
            _ => format!("  {target}"),
        });
    }
    if lines.is_empty() {
        out::note("Nothing is set up by zramd.");
    } else {
        out::note("These are removed:");
        for line in &lines {
            out::note(line);
        }
    }
    lines.len()
}

/// Says what became of each target, and how to get everything back.
fn end(survey: &Survey, removed: &[Removal], booted: bool) -> Result<ExitStatus, Error> {
    let mut failed: Vec<&Error> = Vec::new();
    for (target, result) in removed {
        match result {
            Ok(()) => out::done(&format!("{target}: removed")),
            Err(error) => {
                out::error(&error.message);
                failed.push(error);
            }
        }
    }
    if let Some(first) = failed.first() {
        let first = first.exit_status();
        if booted && files::generates(root()) {
            out::note("zramd is still enabled, so what was removed may be set up again.");
        }
        out::note("What is named above stays. Solve the problem, then run `zramdctl off` again.");
        return Ok(if failed.len() < removed.len() { ExitStatus::Partly } else { first });
    }
    for path in files::overlays(root()) {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if overlay::section_of(name).is_some() {
            files::write_overlay(root(), name, None).map_err(Error::failed)?;
        }
    }
    NOTES.iter().try_for_each(|note| files::replace(root(), note, None)).map_err(Error::failed)?;
    let back = if booted {
        out::note("zramd.service is disabled.");
        connect::how_to_start().to_owned()
    } else {
        disable_script()?
    };
    let stores = survey.changes.iter().filter_map(|change| off::store(change, survey));
    let kept: Vec<&str> = ["Kept: the configuration"].into_iter().chain(stores).collect();
    out::note(&format!("{}. {back} sets everything up again.", kept.join(", snapshots in ")));
    Ok(ExitStatus::Success)
}

/// Disables the boot script of another init system, and returns how to enable it.
fn disable_script() -> Result<String, Error> {
    let known = Path::new("/etc/init.d").join(SCRIPT).exists();
    let found = |name: &str| known.then(|| process::find_program(root(), name)).flatten();
    let (program, words, back) = if let Some(program) = found("rc-update") {
        (program, ["-a", "del", SCRIPT], format!("`rc-update add {SCRIPT} boot` and a reboot"))
    } else if let Some(program) = found("update-rc.d") {
        (program, [SCRIPT, "disable", ""], format!("`update-rc.d {SCRIPT} enable` and a reboot"))
    } else {
        out::note(
            "If a script runs `zramd-setup apply` at boot, disable it (see /usr/share/doc/zramd/other-inits.md).",
        );
        return Ok("`/usr/lib/zramd/zramd-setup apply`".to_owned());
    };
    let words = words.iter().filter(|word| !word.is_empty());
    let status = Command::new(&program).args(words).stdin(Stdio::null()).status();
    match status {
        Ok(status) if status.success() => {
            out::note(&format!("{SCRIPT} is disabled."));
            Ok(back)
        }
        Ok(status) => Err(Error::failed(format!("{}: disable {SCRIPT}: {status}", program.display()))),
        Err(error) => Err(Error::failed(format!("run {}: {error}", program.display()))),
    }
}

/// PID 1 of this machine.
struct Pid1 {
    was_active: bool,
}

impl Units<LinuxHost> for Pid1 {
    fn quiet(&mut self, _: &mut LinuxHost) -> Result<(), Error> {
        self.was_active = pid_1::property("zramd.service", "ActiveState")? == "active";
        // Patterns: units that are not there are no error.
        Ok(pid_1::stop(&["zramd.servic[e]", "zramd-maintenance.*"])?)
    }

    fn resume(&mut self, _: &mut LinuxHost) -> Result<(), Error> {
        if self.was_active { Ok(pid_1::start(&["zramd.service"])?) } else { Ok(()) }
    }

    fn save(&mut self, _: &mut LinuxHost, name: &str) -> Result<(), Error> {
        Ok(pid_1::start(&[&format!("zramd-ramdisk-save@{name}.service")])?)
    }

    fn start(&mut self, _: &mut LinuxHost, unit: &str) -> Result<(), Error> {
        Ok(pid_1::start(&[unit])?)
    }

    fn stop(&mut self, _: &mut LinuxHost, unit: &str) -> Result<(), Error> {
        Ok(pid_1::stop_if_active(unit)?)
    }

    fn disable(&mut self, _: &mut LinuxHost) -> Result<(), Error> {
        for unit in ENABLED {
            if pid_1::property(unit, "LoadState")? != "not-found" {
                pid_1::disable(unit)?;
            }
        }
        pid_1::stop(&["zramd-*.timer", "zramd-*.socket", "zramd-benchmark*.service"])?;
        if files::generates(root()) {
            let message = "zramd.service is still enabled, by a link that `systemctl disable` does not remove: remove it, or run `systemctl mask zramd.service`, and run this again";
            return Err(Error::failed(message));
        }
        unit_files::apply(root(), &unit_files::runtime_change(root(), &[])).map_err(Error::failed)?;
        Ok(pid_1::reload()?)
    }
}
