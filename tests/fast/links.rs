//! Links, headings, files and `zramdctl` commands in Markdown files exist.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::apart::command_for;
use crate::support::{CTL, repository};

/// Directories of files that are mentioned by name; those of `daemon` are also mentioned without it.
const DIRECTORIES: [&str; 5] = ["config", "daemon", "packaging", "tests", "units"];

fn pages() -> Vec<(PathBuf, String)> {
    let mut directories = vec![repository("")];
    let mut found = Vec::new();
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            if path.is_dir() && !path.is_symlink() {
                // Build output, vendored crates, and output of the lab.
                if !name.starts_with('.')
                    && !["target", "vendor", "out", "golden", "node_modules"].contains(&name)
                {
                    directories.push(path);
                }
            } else if name.ends_with(".md") {
                found.push((path.clone(), fs::read_to_string(&path).unwrap()));
            }
        }
    }
    found.sort();
    assert!(found.len() > 5, "{found:?}");
    found
}

/// The text without code blocks, and the contents of blocks with commands.
fn split(page: &str) -> (String, String) {
    let (mut text, mut commands) = (String::new(), String::new());
    let mut fence: Option<&str> = None;
    for line in page.lines() {
        match (line.trim_start().strip_prefix("```"), fence) {
            (Some(kind), None) => fence = Some(kind),
            (Some(_), Some(_)) => fence = None,
            (None, None) => text.extend([line, "\n"]),
            (None, Some("sh")) => commands.extend([line, "\n"]),
            (None, Some(_)) => {}
        }
    }
    assert_eq!(fence, None, "a block of code has no end");
    (text, commands)
}

/// The text between backticks.
fn spans(text: &str) -> impl Iterator<Item = &str> {
    text.split("\n\n").flat_map(|paragraph| paragraph.split('`').skip(1).step_by(2))
}

/// The anchor of a rendered heading.
fn anchor(heading: &str) -> String {
    let kept =
        heading.trim().chars().filter(|letter| letter.is_alphanumeric() || [' ', '-', '_'].contains(letter));
    kept.flat_map(char::to_lowercase).map(|letter| if letter == ' ' { '-' } else { letter }).collect()
}

fn anchors(page: &str) -> BTreeSet<String> {
    let (text, _) = split(page);
    let headings = text.lines().filter(|line| line.starts_with('#'));
    headings.map(|line| anchor(line.trim_start_matches('#'))).collect()
}

#[test]
fn links_lead_somewhere() {
    let mut checked = 0;
    for (path, page) in pages() {
        let place = path.display();
        for link in split(&page).0.split("](").skip(1).map(|rest| rest.split(')').next().unwrap()) {
            if link.starts_with("https://") {
                continue;
            }
            let (file, heading) = link.split_once('#').unwrap_or((link, ""));
            let target = if file.is_empty() { path.clone() } else { path.parent().unwrap().join(file) };
            assert!(target.exists(), "{place}: {link} leads nowhere");
            if !heading.is_empty() {
                let there = anchors(&fs::read_to_string(target).unwrap());
                assert!(there.contains(heading), "{place}: {link}: there is no such heading: {there:?}");
            }
            checked += 1;
        }
    }
    assert!(checked > 10, "{checked}");
}

/// Pages below /usr/share/doc lead to pages beside them; `../` names a file of the source.
#[test]
fn installed_pages_link_to_installed_ones() {
    let manifest = fs::read_to_string(repository("packaging/manifest")).unwrap();
    let sources: BTreeSet<_> = manifest.lines().filter_map(|line| line.split_whitespace().next()).collect();
    let mut checked = 0;
    for (path, page) in pages() {
        let Ok(name) = path.strip_prefix(repository("packaging/docs")) else { continue };
        if !sources.contains(format!("packaging/docs/{}", name.display()).as_str()) {
            continue;
        }
        for link in split(&page).0.split("](").skip(1).map(|rest| rest.split([')', '#']).next().unwrap()) {
            let is_beside = !link.is_empty() && !link.starts_with("https://") && !link.starts_with("../");
            let target = format!("packaging/docs/{link}");
            assert!(!is_beside || sources.contains(target.as_str()), "{}: {link}", path.display());
            checked += usize::from(is_beside);
        }
    }
    assert!(checked > 10, "{checked}");
}

/// Whether a file of the tree exists; `*` matches anything in its last component, and a module needs no `.rs`.
fn is_there(base: &Path, name: &str) -> bool {
    let Some((before, after)) = name.split_once('*') else {
        return base.join(name).exists() || base.join(format!("{name}.rs")).is_file();
    };
    let (directory, start) = before.rsplit_once('/').unwrap();
    fs::read_dir(base.join(directory)).is_ok_and(|mut entries| {
        entries.any(|entry| {
            let name = entry.unwrap().file_name().into_string().unwrap();
            name.len() >= start.len() + after.len() && name.starts_with(start) && name.ends_with(after)
        })
    })
}

#[test]
fn files_that_are_named_are_there() {
    let parts: Vec<String> = fs::read_dir(repository("daemon"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    let mut checked = 0;
    for (path, page) in pages() {
        let (text, commands) = split(&page);
        let words = spans(&text).chain(commands.lines()).flat_map(str::split_whitespace);
        for word in words.map(|word| word.trim_end_matches([',', ';', ')', '/'])) {
            let Some((directory, _)) = word.split_once('/') else { continue };
            let base = if DIRECTORIES.contains(&directory) {
                repository("")
            } else if parts.iter().any(|part| part == directory) && path.ends_with("ARCHITECTURE.md") {
                repository("daemon")
            } else {
                continue;
            };
            // A placeholder, or output of a run.
            if word.contains("SCENARIO") || word.contains("NAME") || word.starts_with("tests/lab/out") {
                continue;
            }
            assert!(is_there(&base, word), "{}: there is no {word}", path.display());
            checked += 1;
        }
    }
    assert!(checked > 60, "{checked}");
}

#[test]
fn commands_of_zramdctl_exist() {
    let mut commands = BTreeSet::new();
    for (path, page) in pages() {
        // The changelog may mention removed files.
        if path.ends_with("CHANGELOG.md") {
            continue;
        }
        let (text, blocks) = split(&page);
        for command in spans(&text).chain(blocks.lines()).filter_map(|line| line.strip_prefix("zramdctl ")) {
            // Up to the first placeholder: a name, a comment, an ellipsis.
            let known = |word: &&str| {
                let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_=/.".contains(letter);
                word.chars().all(plain) && !word.chars().all(|letter| letter.is_ascii_uppercase())
            };
            commands
                .insert(command.split_whitespace().take_while(known).map(str::to_owned).collect::<Vec<_>>());
        }
    }
    assert!(commands.len() > 10, "{commands:?}");
    for words in commands {
        let output = command_for(CTL).args(&words).arg("--help").output().unwrap();
        assert!(output.status.success(), "zramdctl {}: {output:?}", words.join(" "));
    }
}
