//! Output that cannot be written changes nothing else: commands do the same, and end with the same exit status or with the
//! one for this error. Nothing here changes the machine.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::apart::command_for;
use crate::support::outputs::{BROKEN, Broken, UNWRITTEN};
use crate::support::{CTL, DAEMON, PYTHON, SETUP, WORKER, repository, setup, skip, texts};

/// What a command writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Writes {
    /// A result to standard output.
    Result,
    /// A reply to the program that started it.
    Reply,
    /// Only notices.
    Notices,
}

/// Commands that only look. `GOOD` and `BAD` are configurations.
const COMMANDS: [(&str, &str, Writes); 28] = [
    (SETUP, "--help", Writes::Result),
    (SETUP, "--version", Writes::Result),
    (SETUP, "frobnicate", Writes::Notices),
    (SETUP, "--config GOOD plan", Writes::Result),
    (SETUP, "--config GOOD plan --json", Writes::Result),
    (SETUP, "--config BAD plan", Writes::Result),
    (SETUP, "check GOOD", Writes::Result),
    (SETUP, "check BAD", Writes::Result),
    (SETUP, "--config GOOD view", Writes::Reply),
    (SETUP, "--config BAD view", Writes::Reply),
    (WORKER, "--help", Writes::Result),
    (WORKER, "--version", Writes::Result),
    (WORKER, "frobnicate", Writes::Notices),
    (WORKER, "--reply frobnicate", Writes::Reply),
    (DAEMON, "--help", Writes::Result),
    (DAEMON, "--version", Writes::Result),
    (DAEMON, "start", Writes::Notices),
    (CTL, "--help", Writes::Result),
    (CTL, "--version", Writes::Result),
    (CTL, "list --help", Writes::Result),
    (CTL, "-r zram0", Writes::Notices),
    (CTL, "check GOOD", Writes::Result),
    (CTL, "check BAD", Writes::Result),
    (CTL, "--config GOOD cat-config", Writes::Result),
    (CTL, "--config GOOD list --json", Writes::Result),
    (CTL, "--config GOOD stats", Writes::Result),
    (CTL, "completions zsh", Writes::Result),
    (CTL, "man", Writes::Result),
];

#[test]
fn a_result_that_cannot_be_written_is_an_error() {
    let good = repository("config/example.toml");
    let bad = repository("tests/golden/diagnostics/five-mistakes.toml");
    for (program, line, writes) in COMMANDS {
        let words = line.split(' ').map(|word| match word {
            "GOOD" => good.to_str().unwrap(),
            "BAD" => bad.to_str().unwrap(),
            word => word,
        });
        let words: Vec<&str> = words.collect();
        let usual = command_for(program).args(&words).output().unwrap();
        assert_eq!(usual.stdout.is_empty(), writes == Writes::Notices, "{line}: {usual:?}");
        let usual = usual.status.code().unwrap();
        for broken in BROKEN {
            let is_lost = match broken {
                Broken::Full => writes != Writes::Notices,
                Broken::Gone => writes == Writes::Reply,
                Broken::Closed => false,
            };
            let expected = if is_lost && usual == 0 { UNWRITTEN } else { usual };
            let status = broken.command(program).args(&words).stdin(Stdio::null()).status().unwrap();
            assert_eq!(status.code(), Some(expected), "{program} {line}, {broken:?}");
        }
    }
}

/// The error names standard output.
#[test]
fn a_lost_result_is_explained() {
    for (program, words) in
        [(SETUP, &["--help"][..]), (WORKER, &["--help"]), (DAEMON, &["--help"]), (CTL, &["list", "--help"])]
    {
        let full = fs::File::options().write(true).open("/dev/full").unwrap();
        let output = command_for(program).args(words).stdout(full).output().unwrap();
        assert_eq!(output.status.code(), Some(UNWRITTEN), "{program}");
        let said = texts(&output).1;
        assert!(said.starts_with("error: ") && said.contains("standard output"), "{program}: {said}");
        assert_eq!(said.lines().count(), 1, "{program}: {said}");
    }
}

/// All files below a directory; links by their target.
fn files(directory: &Path) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_symlink() {
            let target = fs::read_link(&path).unwrap();
            found.insert(path, target.display().to_string());
        } else if path.is_dir() {
            found.extend(files(&path));
        } else {
            let text = fs::read_to_string(&path).unwrap();
            found.insert(path, text);
        }
    }
    let relative = |path: PathBuf| path.strip_prefix(directory).map(Path::to_owned).unwrap_or(path);
    found.into_iter().map(|(path, text)| (relative(path), text)).collect()
}

/// Files that a command writes below a new directory, `ROOT` in its words, with outputs of this kind.
fn written(
    program: &str,
    line: &str,
    prepare: &[(&str, &str)],
    broken: Option<Broken>,
) -> (Option<i32>, BTreeMap<PathBuf, String>) {
    let root = tempfile::tempdir().unwrap();
    for (path, text) in prepare {
        let path = root.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let mut command = match broken {
        Some(broken) => broken.command(program),
        None => {
            let mut command = command_for(program);
            command.stdout(Stdio::null()).stderr(Stdio::null());
            command
        }
    };
    command.args(line.split(' ').map(|word| word.replace("ROOT", root.path().to_str().unwrap())));
    let status = command.stdin(Stdio::null()).status().unwrap();
    (status.code(), files(root.path()))
}

/// A generator whose messages cannot be written once wrote no unit, and `init` no configuration.
#[test]
fn files_are_written_although_output_cannot_be() {
    let mistake = "[zram241]\nzram-size = 64\nzram-sise = 64\n[zram242]\nzram-size = 64\n";
    let generator = "[zram0]\nzram-size = ram / 2\nfrobnicate = 1\n";
    let meminfo = "MemTotal: 4000000 kB\n";
    for (program, line, prepare, has_result) in [
        (SETUP, "--config ROOT/z.toml generate ROOT/units", &[("z.toml", mistake)][..], false),
        (CTL, "init --yes --root ROOT", &[("proc/meminfo", meminfo)], true),
        (
            CTL,
            "import zram-generator --write --root ROOT",
            &[("etc/systemd/zram-generator.conf", generator)],
            false,
        ),
    ] {
        let (status, usual) = written(program, line, prepare, None);
        assert!(usual.len() > prepare.len(), "{line}: {usual:?}");
        assert_eq!(status, Some(0), "{line}");
        for broken in BROKEN {
            let (status, found) = written(program, line, prepare, Some(broken));
            assert_eq!(found, usual, "{line}, {broken:?}");
            let expected = if has_result && broken == Broken::Full { UNWRITTEN } else { 0 };
            assert_eq!(status, Some(expected), "{line}, {broken:?}");
        }
    }
}

/// The units are the result of a generator.
#[test]
fn units_that_cannot_be_written_are_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let file = repository("config/example.toml");
    let blocked = directory.path().join("file");
    fs::write(&blocked, "").unwrap();
    let output = setup(&["--config", file.to_str().unwrap(), "generate", blocked.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(UNWRITTEN), "{output:?}");
    assert!(texts(&output).1.contains(blocked.to_str().unwrap()), "{output:?}");
}

/// Nothing in a name moves the cursor or reorders text.
#[test]
fn names_do_not_control_the_terminal() {
    let hostile = "zram\x1b]0;title\x07\u{202e}\u{9b}2J\r";
    for (program, words) in [
        (CTL, &["status", hostile][..]),
        (CTL, &[hostile]),
        (SETUP, &["up", hostile]),
        (WORKER, &[hostile]),
        (DAEMON, &[hostile]),
    ] {
        let output = command_for(program).args(words).output().unwrap();
        assert!(!output.status.success(), "{program}");
        let (result, said) = texts(&output);
        let raw = |letter: char| matches!(letter, '\x1b' | '\x07' | '\u{202e}' | '\u{9b}' | '\r');
        assert!(!result.contains(raw) && !said.contains(raw), "{program}: {output:?}");
        assert!(said.contains("zram"), "{program}: {output:?}");
    }
}

/// Starts a program on a terminal, closes the terminal when the program has drawn on it, and prints how the program ended.
const HANGUP: &str = "
import os, pty, signal, sys
pid, terminal = pty.fork()
if pid == 0:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    os.execv(sys.argv[1], sys.argv[1:])
drawn = 0
while drawn < 100:
    drawn += len(os.read(terminal, 65536))
os.close(terminal)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
";

#[test]
fn the_live_view_ends_in_order_when_its_terminal_has_gone() {
    if !Path::new(PYTHON).exists() {
        return skip("needs Python");
    }
    let output = command_for(PYTHON).args(["-c", HANGUP, CTL, "top"]).output().unwrap();
    let (status, said) = texts(&output);
    // Success after the signal, or failure after an error of the terminal.
    assert!(["0", "1"].contains(&status.trim()), "{status} {said}");
}
