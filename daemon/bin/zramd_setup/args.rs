//! The command line.

use std::ffi::OsString;
use std::path::PathBuf;

use logic::config::edit::Edit;
use logic::config::lasting::Changes;
use logic::log::Level;
use logic::proc::device_number;
use logic::record::Target;
use serde::de::DeserializeOwned;

/// Output of `--help`.
pub const HELP: &str = "\
Usage: zramd-setup [OPTION]... COMMAND

Sets up compressed swap and RAM disks from /etc/zramd/zramd.toml.

Commands that change the machine (as root):
  apply                set up everything that is configured, without systemd
  revert               remove everything that zramd set up, also contents of RAM disks that do not persist
  up zramN             set up one device; systemd then activates it
  up vm|zswap          apply [vm] or [zswap] for swap that systemd activates
  down NAME            remove one device (zramN) or RAM disk (ramdisk.NAME), or undo vm, zswap

Commands that do not change the machine:
  plan                 show what `apply` would do, and why
  check [FILE...]      look for mistakes in the configuration, or in these files
  status               show what zramd has set up
  generate DIR...      write systemd units below the first DIR (systemd.generator(7))

Commands that the daemon uses (JSON on standard output):
  view                 the configuration
  propose [TARGET...]  what a reload would change
  carry-out [TARGET..] do that without systemd
  write-units          write the units that the generator does not
  adapt zramN          change what can be changed while it is in use

Options:
  -c, --config FILE    read this file instead of those below /usr/lib, /etc and /run
  -r, --root DIR       take configuration, /proc/meminfo and /proc/cmdline from below DIR
                       (plan, check and generate only)
      --json           print JSON (plan only)
      --managed        systemd activates swap and mounts (propose only)
      --force          discard contents that would be lost (propose and carry-out only)
      --set JSON       with these lasting changes (propose only)
      --edit JSON      with this edit of a drop-in (propose only)
      --log-level WORD one of emerg, alert, crit, err, warning, notice, info, debug and trace; without it, that of
                       SYSTEMD_LOG_LEVEL, or of zramd.log_level= or systemd.log_level= on the kernel command line
  -h, --help           print a short help
  -V, --version        print the version

Exit status: 0 done, 1 failed or wrong configuration, 2 wrong usage, 4 no such device,
5 this kernel or machine lacks it, 6 partly done, 7 refused for safety,
74 done, but the result could not be written, 77 not permitted.
";

/// A command with its options.
#[derive(Debug, PartialEq, Eq)]
pub struct Invocation {
    pub command: Command,
    /// `--config`.
    pub config: Option<PathBuf>,
    /// `--root`.
    pub root: Option<PathBuf>,
    /// `--json`.
    pub json: bool,
    /// `--managed`.
    pub managed: bool,
    /// `--force`.
    pub force: bool,
    /// `--set`.
    pub set: Option<Changes>,
    /// `--edit`.
    pub edit: Option<Edit>,
    /// `--log-level`.
    pub log_level: Option<Level>,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Command {
    Plan,
    Apply,
    Revert,
    Status,
    Up(u32),
    UpVm(Target),
    Down(Target),
    Check(Vec<PathBuf>),
    View,
    /// An empty list is all targets.
    Propose(Vec<Target>),
    CarryOut(Vec<Target>),
    WriteUnits,
    Adapt(u32),
    TakeDown(Target),
    /// `by_systemd`: systemd runs us as a generator, under that name.
    Generate {
        directory: PathBuf,
        by_systemd: bool,
    },
}

/// The parsed command line.
#[derive(Debug, PartialEq, Eq)]
pub enum Parsed {
    Help,
    Version,
    Run(Invocation),
}

/// Parses the command line. Under the name `zramd-generator` the program is `zramd-setup generate`.
pub fn parse(words: impl IntoIterator<Item = OsString>) -> Result<Parsed, String> {
    use lexopt::prelude::{Long, Short, Value};
    let mut parser = lexopt::Parser::from_iter(words);
    let by_systemd = parser.bin_name().is_some_and(|name| name.ends_with("zramd-generator"));
    let (mut config, mut root, mut json, mut managed, mut force) = (None, None, false, false, false);
    let (mut set, mut edit, mut log_level) = (None, None, None);
    let mut values: Vec<OsString> = Vec::new();
    while let Some(argument) = parser.next().map_err(|error| error.to_string())? {
        match argument {
            Short('h') | Long("help") => return Ok(Parsed::Help),
            Short('V') | Long("version") => return Ok(Parsed::Version),
            Short('c') | Long("config") => config = Some(value(&mut parser)?),
            Short('r') | Long("root") => root = Some(value(&mut parser)?),
            Long("json") => json = true,
            Long("managed") => managed = true,
            Long("force") => force = true,
            Long("set") => set = Some(json_value(&mut parser, "--set")?),
            Long("edit") => edit = Some(json_value(&mut parser, "--edit")?),
            Long("log-level") => log_level = Some(value(&mut parser)?.to_string_lossy().parse()?),
            Value(value) => values.push(value),
            other => return Err(other.unexpected().to_string()),
        }
    }
    let command = if by_systemd { generate(values, true)? } else { command(values)? };
    let looks = matches!(command, Command::Plan | Command::Check(_) | Command::Generate { .. });
    if root.is_some() && !looks {
        return Err("--root is only allowed with plan, check and generate".to_owned());
    }
    if json && command != Command::Plan {
        return Err("--json is only allowed with plan".to_owned());
    }
    if managed && !matches!(command, Command::Propose(_)) {
        return Err("--managed is only allowed with propose".to_owned());
    }
    if set.is_some() && !matches!(command, Command::Propose(_)) {
        return Err("--set is only allowed with propose".to_owned());
    }
    if edit.is_some() && !matches!(command, Command::Propose(_)) {
        return Err("--edit is only allowed with propose".to_owned());
    }
    if force && !matches!(command, Command::Propose(_) | Command::CarryOut(_)) {
        return Err("--force is only allowed with propose and carry-out".to_owned());
    }
    Ok(Parsed::Run(Invocation { command, config, root, json, managed, force, set, edit, log_level }))
}

fn value(parser: &mut lexopt::Parser) -> Result<PathBuf, String> {
    parser.value().map(PathBuf::from).map_err(|error| error.to_string())
}

fn json_value<T: DeserializeOwned>(parser: &mut lexopt::Parser, option: &str) -> Result<T, String> {
    let text = parser.value().map_err(|error| error.to_string())?;
    serde_json::from_str(&text.to_string_lossy()).map_err(|error| format!("{option}: {error}"))
}

fn command(values: Vec<OsString>) -> Result<Command, String> {
    let mut values = values.into_iter();
    let Some(verb) = values.next() else { return Err("which command?".to_owned()) };
    let verb = verb.to_string_lossy().into_owned();
    let rest: Vec<OsString> = values.collect();
    match verb.as_str() {
        "generate" => return generate(rest, false),
        "check" => return Ok(Command::Check(rest.into_iter().map(PathBuf::from).collect())),
        _ => {}
    }
    let rest: Vec<String> = rest.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let rest: Vec<&str> = rest.iter().map(String::as_str).collect();
    match (verb.as_str(), rest.as_slice()) {
        ("plan", []) => Ok(Command::Plan),
        ("apply", []) => Ok(Command::Apply),
        ("revert", []) => Ok(Command::Revert),
        ("status", []) => Ok(Command::Status),
        ("view", []) => Ok(Command::View),
        ("propose", names) => targets(names).map(Command::Propose),
        ("carry-out", names) => targets(names).map(Command::CarryOut),
        ("write-units", []) => Ok(Command::WriteUnits),
        ("adapt", [name]) => match target(name) {
            Some(Target::Device(number)) => Ok(Command::Adapt(number)),
            _ => Err(format!("`{name}` is no zram device")),
        },
        ("take-down", [name]) => {
            target(name).map(Command::TakeDown).ok_or_else(|| format!("`{name}` is no target"))
        }
        ("up", [name]) => match target(name) {
            Some(Target::Device(number)) => Ok(Command::Up(number)),
            Some(target @ (Target::Vm | Target::Zswap)) => Ok(Command::UpVm(target)),
            _ => Err(format!("`{name}` is no zram device; write for example `up zram0`")),
        },
        ("down", [name]) => target(name)
            .map(Command::Down)
            .ok_or_else(|| format!("`{name}` is neither a device (zram0) nor a RAM disk (ramdisk.NAME)")),
        ("up" | "down" | "adapt", _) => Err(format!("{verb} takes one device, for example `{verb} zram0`")),
        ("plan" | "apply" | "revert" | "status" | "view" | "write-units", _) => {
            Err(format!("{verb} takes no further arguments"))
        }
        // Commands of an unrelated program with the same name, which old guides mention.
        ("start" | "stop", _) => Err(format!(
            "there is no command `{verb}`; use `systemctl {verb} zramd.service`, or `apply` and `revert` without systemd"
        )),
        (other, _) => Err(format!("there is no command `{other}`")),
    }
}

fn targets(names: &[&str]) -> Result<Vec<Target>, String> {
    let found =
        names.iter().map(|name| target(name).ok_or_else(|| format!("`{name}` is no device or RAM disk")));
    found.collect()
}

/// `zramN`, `/dev/zramN`, `ramdisk.NAME`, `vm` or `zswap`.
fn target(name: &str) -> Option<Target> {
    if let Some(disk) = name.strip_prefix("ramdisk.") {
        return (!disk.is_empty()).then(|| Target::Ramdisk(disk.to_owned()));
    }
    match name {
        "vm" => return Some(Target::Vm),
        "zswap" => return Some(Target::Zswap),
        _ => {}
    }
    device_number(name).map(Target::Device)
}

/// systemd passes three directories to a generator: normal, early, late. Only the first is used.
fn generate(directories: Vec<OsString>, by_systemd: bool) -> Result<Command, String> {
    if directories.len() > 3 {
        return Err("generate takes one to three directories".to_owned());
    }
    let directory =
        directories.into_iter().next().ok_or("generate takes the directory to write units into")?;
    Ok(Command::Generate { directory: PathBuf::from(directory), by_systemd })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Parsed, String> {
        parse(line.split_whitespace().map(OsString::from))
    }

    fn run(command: Command) -> Parsed {
        Parsed::Run(Invocation {
            command,
            config: None,
            root: None,
            json: false,
            managed: false,
            force: false,
            set: None,
            edit: None,
            log_level: None,
        })
    }

    #[test]
    fn commands_are_parsed() {
        assert_eq!(parsed("zramd-setup apply"), Ok(run(Command::Apply)));
        assert_eq!(parsed("zramd-setup up zram3"), Ok(run(Command::Up(3))));
        assert_eq!(parsed("zramd-setup down /dev/zram3"), Ok(run(Command::Down(Target::Device(3)))));
        assert_eq!(
            parsed("zramd-setup down ramdisk.logs"),
            Ok(run(Command::Down(Target::Ramdisk("logs".into()))))
        );
        let generate = |by_systemd| Command::Generate { directory: "/a".into(), by_systemd };
        assert_eq!(parsed("zramd-setup generate /a /b /c"), Ok(run(generate(false))));
        assert_eq!(
            parsed("/usr/lib/systemd/system-generators/zramd-generator /a /b /c"),
            Ok(run(generate(true)))
        );
        assert_eq!(
            parsed("zramd-setup --config=x.toml plan --json"),
            Ok(Parsed::Run(Invocation {
                command: Command::Plan,
                config: Some("x.toml".into()),
                root: None,
                json: true,
                managed: false,
                force: false,
                set: None,
                edit: None,
                log_level: None,
            }))
        );
        assert_eq!(parsed("zramd-setup -h"), Ok(Parsed::Help));
    }

    #[test]
    fn wrong_usage_is_explained() {
        for (line, expected) in [
            ("zramd-setup", "command"),
            ("zramd-setup frobnicate", "`frobnicate`"),
            ("zramd-setup start", "systemctl start zramd.service"),
            ("zramd-setup up sda", "`up zram0`"),
            ("zramd-setup up zram01", "`up zram0`"),
            ("zramd-setup down", "down"),
            ("zramd-setup apply now", "apply"),
            ("zramd-setup --root / apply", "--root"),
            ("zramd-setup --json apply", "--json"),
            ("zramd-setup --set {} apply", "--set"),
            ("zramd-setup --set zram0 propose", "--set"),
            ("zramd-setup --edit zram0 propose", "--edit"),
            (r#"zramd-setup --edit {"path":"/a","before":null,"after":null} plan"#, "--edit"),
            ("zramd-setup generate", "generate"),
            ("zramd-setup --log-level loud plan", "unknown log level \"loud\""),
            ("zramd-setup generate a b c d", "generate"),
            ("zramd-setup --frob", "--frob"),
        ] {
            let message = parsed(line).expect_err(line);
            assert!(message.contains(expected), "{line}: {message}");
        }
    }
}
