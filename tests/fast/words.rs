//! Plain English: words and phrases that the tree does not use, in prose, names and messages alike.

use std::fs;

use crate::apart::outside;
use crate::support::{has_program, repository, skip};

/// Phrases in lower case that the tree does not use, and plain ones instead.
const PHRASES: [(&str, &str); 37] = [
    ("folder", "directory"),
    ("folders", "directories"),
    ("somebody else", "another program, another user"),
    ("somebody else's", "another program's, another user's"),
    ("goes on", "continues, is running"),
    ("has its turn", "runs"),
    ("have their turn", "run"),
    ("lets go", "releases"),
    ("let go", "release"),
    ("of the moment", "at runtime"),
    ("takes in hand", "changes"),
    ("of its own accord", "automatically"),
    ("wonders", "is unexpected"),
    ("in vain", "without success"),
    ("has the last word", "takes precedence"),
    ("left to chance", "not defined"),
    ("when nobody says", "by default"),
    ("who wants it", "if it is enabled"),
    ("whoever", "the user, the process or the caller that"),
    ("nobody", "no process, no user; or the passive voice"),
    ("nobody's", "unused, without owner"),
    ("somebody", "a user, another program"),
    ("somebody's", "a user's"),
    ("anybody", "any user"),
    ("everybody", "every user"),
    ("so many", "the number"),
    ("go on", "continue"),
    ("went on", "continued"),
    ("is told", "is reported, receives"),
    ("are told", "are reported, receive"),
    ("was told", "was reported, received"),
    ("means nothing", "has no effect"),
    ("mean nothing", "have no effect"),
    ("comes first", "has precedence"),
    ("does without", "lacks, is inactive"),
    ("is obeyed", "is carried out"),
    ("nothing is said", "by default"),
];

/// Prefixes of paths that are not checked, and why.
const LEFT_OUT: [(&str, &str); 7] = [
    ("tests/fast/words.rs", "the list itself"),
    ("tests/golden/import/", "files of other programs"),
    ("tests/lab/kernel/", "the lab's cache would compile its kernel again"),
    ("tests/lab/guest/image", "the lab's cache would build its image again"),
    ("packaging/fedora/zramd.rpmlintrc", "rpmlint's names of its findings"),
    ("Cargo.lock", "generated"),
    ("LICENSE", "not ours"),
];

/// `nobody` is also the name of a user: as an argument it is quoted, assigned, or alone after `chown`, `-u` and the like.
fn is_account(before: &str, after: &str) -> bool {
    before.ends_with(['"', '\'', '`', '=', ':', '/', '(', ','])
        || after.starts_with(['"', '\'', '`', ':', '/'])
        || ["chown ", "chown -r ", "-u ", "-g ", "su ", "user "].iter().any(|word| before.ends_with(word))
}

/// Positions of a phrase in a line, as whole words.
fn found<'a>(line: &'a str, phrase: &'a str) -> impl Iterator<Item = usize> + 'a {
    let inside = |letter: char| letter.is_alphanumeric() || letter == '\'';
    line.match_indices(phrase).map(|(at, _)| at).filter(move |at| {
        !line[..*at].ends_with(char::is_alphanumeric) && !line[at + phrase.len()..].starts_with(inside)
    })
}

#[test]
fn the_tree_is_in_plain_english() {
    if !has_program("git") || !repository(".git").exists() {
        skip("needs a clone");
        return;
    }
    let listed = outside("git")
        .args(["-c", "safe.directory=*", "-C"])
        .arg(repository(""))
        .arg("ls-files")
        .output()
        .unwrap();
    let mut faults = Vec::new();
    let mut looked_at = 0;
    for file in String::from_utf8(listed.stdout).unwrap().lines() {
        if LEFT_OUT.iter().any(|(start, _)| file.starts_with(start)) {
            continue;
        }
        let Ok(text) = fs::read_to_string(repository(file)) else { continue };
        looked_at += 1;
        for (number, line) in text.lines().enumerate() {
            let lower = line.to_ascii_lowercase();
            for (phrase, plain) in &PHRASES {
                for at in found(&lower, phrase) {
                    if *phrase != "nobody" || !is_account(&lower[..at], &lower[at + phrase.len()..]) {
                        faults.push(format!("{file}:{}: `{phrase}`; plain: {plain}\n    {line}", number + 1));
                    }
                }
            }
        }
    }
    assert!(looked_at > 300, "{looked_at}");
    assert!(faults.is_empty(), "{} places\n{}", faults.len(), faults.join("\n"));
}

#[test]
fn phrases_are_found_as_words() {
    let places = |line: &str, phrase: &str| found(line, phrase).collect::<Vec<_>>();
    assert_eq!(places("a folder, folders", "folder"), [2]);
    assert!(places("it goes on, cargo on", "go on").is_empty());
    assert!(places("nobody's", "nobody").is_empty());
    assert!(is_account("user=", "") && is_account("chown -r ", " x"));
    assert!(!is_account("because ", " asks"));
}
