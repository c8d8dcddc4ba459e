//! The arrow between the layers, enforced: *logic decides, host touches, engine does, service serves, client shows.*

use std::fs;
use std::path::{Path, PathBuf};

/// A layer, and what its files must not mention.
struct Rule {
    folder: &'static str,
    forbidden: &'static [&'static str],
}

const RULES: [Rule; 6] = [
    Rule {
        folder: "logic",
        forbidden: &[
            "std::fs",
            "std::io",
            "std::process",
            "std::net",
            "std::env",
            "std::thread",
            "std::os",
            "Instant::now",
            "SystemTime::now",
            "tokio",
            "zbus",
            "rustix",
            "libc",
            "unsafe",
            "async fn",
            "crate::host",
            "crate::engine",
            "crate::service",
            "crate::client",
            "println!",
            "eprintln!",
        ],
    },
    Rule {
        folder: "host",
        forbidden: &[
            "crate::engine",
            "crate::service",
            "crate::client",
            "tokio",
            "zbus",
            "logic::config::settings",
        ],
    },
    Rule {
        folder: "engine",
        forbidden: &["crate::service", "crate::client", "tokio", "zbus", "unsafe", "async fn", "std::fs"],
    },
    Rule { folder: "service", forbidden: &["crate::client", "unsafe"] },
    Rule { folder: "client", forbidden: &["crate::engine::apply", "crate::engine::provision", "unsafe"] },
    Rule { folder: "bin", forbidden: &["unsafe"] },
];

fn source_files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut files = Vec::new();
    for entry in entries {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(source_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files
}

/// Code without comments, string literals and the test module at the end of a file.
fn code(text: &str) -> String {
    let text = text.split("#[cfg(test)]").next().unwrap();
    let mut out = String::new();
    for line in text.lines() {
        let line = line.split("//").next().unwrap();
        let mut outside = true;
        for part in line.split('"') {
            if outside {
                out.push_str(part);
            }
            outside = !outside;
        }
        out.push('\n');
    }
    out
}

/// Whether `word` stands in `code` with no letter, digit or underscore on either side.
fn mentions(code: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    code.match_indices(word).any(|(at, _)| {
        let before = code[..at].chars().next_back();
        let after = code[at + word.len()..].chars().next();
        !before.is_some_and(is_part) && !after.is_some_and(is_part)
    })
}

fn daemon() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("daemon")
}

#[test]
fn no_layer_mentions_what_is_above_it() {
    let mut offences = Vec::new();
    for rule in &RULES {
        for file in source_files(&daemon().join(rule.folder)) {
            let code = code(&fs::read_to_string(&file).unwrap());
            for word in rule.forbidden {
                if mentions(&code, word) {
                    offences.push(format!("{} mentions {word}", file.display()));
                }
            }
        }
    }
    assert!(offences.is_empty(), "{}", offences.join("\n"));
}

#[test]
fn unsafe_code_is_only_below_host_linux() {
    let allowed = daemon().join("host/linux");
    let offenders: Vec<PathBuf> = source_files(&daemon())
        .into_iter()
        .filter(|file| !file.starts_with(&allowed))
        .filter(|file| {
            let code = code(&fs::read_to_string(file).unwrap());
            mentions(&code, "unsafe") || mentions(&code, "unsafe_code")
        })
        .collect();
    assert!(offenders.is_empty(), "{offenders:?}");
}

#[test]
fn devices_are_created_and_removed_in_one_place() {
    let allowed = [daemon().join("engine/create.rs"), daemon().join("host")];
    for file in source_files(&daemon()) {
        if allowed.iter().any(|path| file.starts_with(path)) {
            continue;
        }
        let code = code(&fs::read_to_string(&file).unwrap());
        for verb in [".hot_add(", ".hot_remove("] {
            assert!(!code.contains(verb), "{} calls {verb}", file.display());
        }
    }
}

#[test]
fn the_check_itself_can_fail() {
    assert!(mentions("use std::fs;", "std::fs"));
    assert!(!mentions(&code("// std::fs\nlet a = \"std::fs\";"), "std::fs"));
    assert!(!mentions("let libc_like = 1;", "libc"));
}
