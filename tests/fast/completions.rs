//! The completions that packaging/install generates, loaded and used by their shells.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use crate::apart::command_for;
use crate::support::{CTL, has_program, skip, texts};

/// Output of a script in a shell, with the file of completions as `$1` and without the configuration of this user.
fn said(shell: &str, words: &[&str], script: &str, name: &str) -> Option<String> {
    if !has_program(shell) {
        skip(&format!("needs {shell}"));
        return None;
    }
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join(name);
    let zramdctl = Path::new(CTL);
    let printed = command_for(zramdctl).args(["completions", shell]).output().unwrap();
    fs::write(&file, &printed.stdout).unwrap();
    // The script calls the program.
    let path = format!("{}:{}", zramdctl.parent().unwrap().display(), std::env::var("PATH").unwrap());
    let output = command_for(shell)
        .args(words)
        .args(["-c", script])
        // fish counts arguments without a name for the script.
        .args((shell != "fish").then_some("test"))
        .arg(&file)
        .env("HOME", home.path())
        .env("PATH", path)
        .env_remove("XDG_CONFIG_HOME")
        .output()
        .unwrap();
    let (printed, complained) = texts(&output);
    assert!(output.status.success(), "{shell}: {output:?}");
    assert_eq!(complained, "", "{shell}");
    Some(printed)
}

/// Lines to complete, with the candidates.
const LINES: [(&str, &str); 8] = [
    ("zramdctl ben", "bench"),
    ("zramdctl ramdisk sa", "save"),
    ("zramdctl set zram0 swap-", "swap-priority="),
    ("zramdctl import zram-g", "zram-generator"),
    ("zramdctl import --wri", "--write"),
    ("zramdctl show --property Probl", "Problems"),
    ("zramdctl list --output name,disks", "name,disksize"),
    ("zramdctl list --output +HEADR", "+HEADROOM"),
];

/// The names of what `list` shows, which completion offers without directories.
fn names() -> String {
    let listed = command_for(CTL).args(["list", "--all", "-n", "-o", "NAME"]).output().unwrap();
    texts(&listed)
        .0
        .split_whitespace()
        .map(|name| format!("{} ", name.trim_start_matches("/dev/")))
        .collect::<String>()
        .trim_end()
        .to_owned()
}

#[test]
fn bash_completes() {
    // As readline does: words, index of the completed word, completion function of the command.
    let lines: String = LINES.iter().map(|(line, _)| format!("'{line}' ")).collect();
    let script = format!(
        r#"
        source "$1"
        function=$(complete -p zramdctl); function=${{function##*-F }}; function=${{function%% *}}
        for line in {lines} 'zramdctl status '; do
            IFS=' ' read -ra COMP_WORDS <<<"$line"
            [[ $line != *' ' ]] || COMP_WORDS+=('')
            COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)) COMP_TYPE=9 COMPREPLY=()
            "$function" zramdctl "${{COMP_WORDS[COMP_CWORD]}}" "${{COMP_WORDS[COMP_CWORD - 1]}}" 2>/dev/null
            printf '%s\n' "$(printf '%s ' "${{COMPREPLY[@]}}")"
        done"#
    );
    let Some(said) = said("bash", &["--norc", "--noprofile"], &script, "zramdctl") else { return };
    let said: Vec<&str> = said.lines().map(str::trim).collect();
    for ((line, expected), said) in LINES.iter().zip(&said) {
        assert_eq!(said, expected, "{line}");
    }
    assert!(said[LINES.len()].starts_with(&names()), "{said:?}");
}

#[test]
fn fish_completes() {
    let lines: String = LINES.iter().map(|(line, _)| format!("'{line}' ")).collect();
    let script = format!(
        r"
        source $argv[1]
        for line in {lines} 'zramdctl status '
            echo (complete -C $line | string replace -r '\t.*' '')
        end"
    );
    let Some(said) = said("fish", &["--no-config"], &script, "zramdctl.fish") else { return };
    let said: Vec<&str> = said.lines().collect();
    for ((line, expected), said) in LINES.iter().zip(&said) {
        assert_eq!(said, expected, "{line}");
    }
    assert!(said[LINES.len()].starts_with(&names()), "{said:?}");
}

/// zsh completes on a terminal only: the test checks that the function loads and is registered.
#[test]
fn zsh_loads_it() {
    let script = r#"
        fpath=("${1%/*}" $fpath)
        autoload -Uz compinit && compinit -u -D
        autoload +X _zramdctl
        print $_comps[zramdctl] ${${functions[_zramdctl]}[(w)1]:+loaded}
        # What the function asks the program.
        ZRAMDCTL_COMPLETE=zsh _CLAP_IFS=$'\n' _CLAP_COMPLETE_INDEX=1 zramdctl -- zramdctl ben"#;
    let Some(said) = said("zsh", &["-f"], script, "_zramdctl") else { return };
    let (loaded, completed) = said.split_once('\n').unwrap();
    assert_eq!(loaded, "_zramdctl loaded");
    assert!(completed.starts_with("bench:"), "{completed}");
}

#[test]
fn an_answer_that_cannot_be_written_has_its_exit_status() {
    let ask = |words: &[&str], shell: &str, output: Stdio| {
        let mut command = command_for(CTL);
        command.args(words).env("ZRAMDCTL_COMPLETE", shell).env("_CLAP_COMPLETE_INDEX", "1").stdout(output);
        command.stderr(Stdio::piped()).spawn().unwrap().wait_with_output().unwrap()
    };
    for words in [&[][..], &["--", "zramdctl", "l"]] {
        let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        assert_eq!(ask(words, "bash", full.into()).status.code(), Some(74), "{words:?}");
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let ended = ask(words, "bash", writer.into());
        assert!(ended.status.success() && ended.stderr.is_empty(), "{words:?}: {ended:?}");
        let ended = ask(words, "/bin/bash", Stdio::piped());
        assert!(
            ended.status.success()
                && texts(&ended).0.contains(if words.is_empty() { "complete" } else { "list" })
        );
        assert_eq!(ask(words, "nosuch", Stdio::piped()).status.code(), Some(2), "{words:?}");
    }
}
