//! The completions that packaging/install generates, loaded and used by their shells.

use std::fs;
use std::process::Command;

use crate::support::{has_program, skip, texts};

/// Output of a script in a shell, with the file of completions as `$1` and without the configuration of this user.
fn said(shell: &str, words: &[&str], script: &str, name: &str) -> Option<String> {
    if !has_program(shell) {
        skip(&format!("needs {shell}"));
        return None;
    }
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join(name);
    let printed = Command::new(env!("CARGO_BIN_EXE_zramdctl")).args(["completions", shell]).output().unwrap();
    fs::write(&file, &printed.stdout).unwrap();
    let output = Command::new(shell)
        .args(words)
        .args(["-c", script])
        // fish counts arguments without a name for the script.
        .args((shell != "fish").then_some("test"))
        .arg(&file)
        .env("HOME", home.path())
        .env_remove("XDG_CONFIG_HOME")
        .output()
        .unwrap();
    let (printed, complained) = texts(&output);
    assert!(output.status.success(), "{shell}: {output:?}");
    assert_eq!(complained, "", "{shell}");
    Some(printed)
}

#[test]
fn bash_completes() {
    // As readline does: words, index of the completed word, completion function of the command.
    let script = r#"
        source "$1"
        function=$(complete -p zramdctl); function=${function##*-F }; function=${function%% *}
        for line in 'zramdctl ben' 'zramdctl disk sa' 'zramdctl import zram-g'; do
            COMP_WORDS=($line) COMP_CWORD=$(($(wc -w <<<"$line") - 1)) COMPREPLY=()
            "$function" zramdctl "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
            echo "${COMPREPLY[*]}"
        done"#;
    let Some(said) = said("bash", &["--norc", "--noprofile"], script, "zramdctl") else { return };
    assert_eq!(said, "bench\nsave\nzram-generator\n");
}

#[test]
fn fish_completes() {
    // clap's scripts for fish complete commands and options, but no arguments.
    let script = r"
        source $argv[1]
        for line in 'zramdctl ben' 'zramdctl disk sa' 'zramdctl import --wri'
            complete -C $line | string replace -r '\t.*' ''
        end";
    let Some(said) = said("fish", &["--no-config"], script, "zramdctl.fish") else { return };
    assert_eq!(said, "bench\nsave\n--write\n");
}

/// zsh completes on a terminal only: the test checks that the function loads and is registered.
#[test]
fn zsh_loads_it() {
    let script = r#"
        fpath=("${1%/*}" $fpath)
        autoload -Uz compinit && compinit -u -D
        autoload +X _zramdctl
        print $_comps[zramdctl] ${${functions[_zramdctl]}[(w)1]:+loaded}"#;
    let Some(said) = said("zsh", &["-f"], script, "_zramdctl") else { return };
    assert_eq!(said, "_zramdctl loaded\n");
}
