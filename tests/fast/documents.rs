//! Manual pages. UPDATE_GOLDEN=1 writes them; `tests/captures`, as root, writes the outputs that they contain.

use std::collections::BTreeMap;
use std::fs;

use crate::apart::{command_for, outside};
use crate::support::introspection;
use crate::support::introspection::{Argument, Member, Property};
use crate::support::{DAEMON, golden, has_program, repository, setup, skip, texts};
use client::man::{self, DATE, captured, marked, plain, tagged, tidy};
use logic::config::key::Key;
use logic::config::locate::{MAIN, ROOTS, drop_in_prefix};
use logic::config::schema::SectionKind;
use logic::error::ErrorKind;
use logic::exit::STATUSES;
use logic::expr::{Expr, Variables, size_in_bytes};
use logic::figure::FIGURES;
use logic::human::human;
use service::bus::introspection::interfaces;

const PAGES: [&str; 5] = ["zramdctl.1", "zramd.8", "zramd-setup.8", "zramd.toml.5", "org.zramd1.5"];

fn text(path: &str) -> String {
    fs::read_to_string(repository(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// A list item; words between backticks are bold.
fn entry(tag: &str, meaning: &str) -> String {
    format!(".TP\n{tag}\n{}\n", marked(meaning))
}

fn bold(text: &str) -> String {
    format!("\\fB{}\\fR", plain(text))
}

/// A page from its template: a line `@NAME@` is replaced by the text for NAME.
fn page(name: &str, parts: &[(&str, String)]) {
    let template = text(&format!("packaging/man/{name}.in"));
    let (comment, template) = template.split_once('\n').unwrap();
    let mut out = format!("{}\n", comment.replace("Hand-written;", "From a template of the same name;"));
    for line in template.lines() {
        let line = line.replace("@DATE@", DATE).replace("@VERSION@", env!("CARGO_PKG_VERSION"));
        match parts.iter().find(|(part, _)| line == format!("@{part}@")) {
            Some((_, text)) => out.push_str(text.trim_end_matches('\n')),
            None => out.push_str(&line),
        }
        out.push('\n');
    }
    assert!(!out.lines().any(|line| line.starts_with('@')), "{name}: something was not filled in\n{out}");
    for (part, _) in parts {
        assert!(template.contains(&format!("@{part}@")), "{name} has no place for {part}");
    }
    golden(&format!("packaging/man/{name}"), &tidy(&out));
}

/// The headings of `--help` with their items; descriptions are aligned.
fn sections_of_help(help: &str) -> Vec<(String, Vec<(String, String)>)> {
    const COLUMN: usize = 23;
    let mut sections: Vec<(String, Vec<(String, String)>)> = vec![(String::new(), Vec::new())];
    for line in help.lines().filter(|line| !line.is_empty()) {
        let (_, entries) = sections.last_mut().unwrap();
        if !line.starts_with(' ') {
            sections.push((line.trim_end_matches(':').to_owned(), Vec::new()));
            continue;
        }
        let (tag, meaning) = line.split_at(COLUMN);
        assert!(tag.ends_with(' ') && !meaning.starts_with(' '), "not understood: {line:?}");
        if tag.trim().is_empty() {
            let (_, all) = entries.last_mut().unwrap();
            all.push_str(&format!(" {meaning}"));
        } else {
            entries.push((tag.trim().to_owned(), meaning.to_owned()));
        }
    }
    sections.retain(|(_, entries)| !entries.is_empty());
    sections
}

/// With a capital letter and a full stop.
fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first: String = letters.next().into_iter().flat_map(char::to_uppercase).collect();
    let stop = if text.ends_with('.') { "" } else { "." };
    format!("{first}{}{stop}", letters.as_str())
}

fn entries(entries: &[(String, String)]) -> String {
    let one = |(tag, meaning): &(String, String)| entry(&bold(tag), &sentence(meaning));
    entries.iter().map(one).collect()
}

fn statuses(codes: &[u8]) -> String {
    let known = STATUSES.iter().filter(|(status, _)| codes.contains(&status.code()));
    let out: Vec<String> =
        known.map(|(status, meaning)| tagged(&status.code().to_string(), meaning)).collect();
    assert_eq!(out.len(), codes.len(), "{codes:?}");
    out.concat()
}

#[test]
fn zramdctl_1_is_current() {
    golden("packaging/man/zramdctl.1", &man::page().unwrap());
}

#[test]
fn zramd_8_is_current() {
    let output = command_for(DAEMON).arg("--help").output().unwrap();
    let help = sections_of_help(&String::from_utf8(output.stdout).unwrap());
    let [(_, options)] = help.as_slice() else { panic!("{help:?}") };
    let messages: String = text("units/zramd.catalog")
        .split("\n-- ")
        .skip(1)
        .map(|message| {
            let (id, rest) = message.split_once("\nSubject: ").unwrap();
            let subject = rest.lines().next().unwrap();
            let subject = subject
                .replace("@ZRAMD_JOB_TYPE@", "A job")
                .replace("@ZRAMD_PROBLEM@", "its code")
                .replace("@ZRAMD_OBJECT@: @ZRAMD_ACTION@", "a device: what was done")
                .replace("@ZRAMD_OBJECT@", "its name")
                .replace("@ZRAMD_PRESSURE@", "its level")
                .replace("@ZRAMD_SWAPPING@", "stopped, or resumed");
            assert!(!subject.contains('@'), "{subject}: what stands there?");
            tagged(id, &format!("{subject}."))
        })
        .collect();
    page(
        "zramd.8",
        &[("OPTIONS", entries(options)), ("STATUSES", statuses(&[0, 1, 2, 74])), ("MESSAGES", messages)],
    );
}

#[test]
fn zramd_setup_8_is_current() {
    let help = String::from_utf8(setup(&["--help"]).stdout).unwrap();
    let (help, ends) = help.split_once("\nExit status: ").unwrap();
    let numbers = ends.split(|letter: char| !letter.is_ascii_digit()).filter(|word| !word.is_empty());
    let codes: Vec<u8> = numbers.map(|word| word.parse().unwrap()).collect();
    let (mut commands, mut options) = (String::new(), String::new());
    for (heading, found) in sections_of_help(help) {
        if heading == "Options" {
            options.push_str(&entries(&found));
        } else {
            commands.push_str(&format!(".SS \"{}\"\n{}", plain(&heading), entries(&found)));
        }
    }
    page("zramd-setup.8", &[("COMMANDS", commands), ("OPTIONS", options), ("STATUSES", statuses(&codes))]);
}

fn keys(kind: SectionKind) -> String {
    let shared: Vec<&str> = SectionKind::Defaults.keys().iter().map(|key| key.name).collect();
    kind.keys()
        .iter()
        .map(|key| {
            let Key { name, kind: values, default, example, meaning, since } = key;
            let mark = if kind == SectionKind::Device && shared.contains(name) { "*" } else { "" };
            let since = if *since == "0.1" { String::new() } else { format!("Since version {since}.\n") };
            format!(
                ".TP\n{} = {}\n{}\n{since}.br\nDefault: {}.\n.br\nExample: {}\n",
                bold(&format!("{name}{mark}")),
                plain(&values.to_string()),
                plain(meaning),
                plain(&default.to_string()),
                bold(&format!("{name} = {example}")),
            )
        })
        .collect()
}

#[test]
fn zramd_toml_5_is_current() {
    let list = |of: &dyn Fn(&str) -> String| -> String {
        let lines: Vec<String> = ROOTS.iter().rev().map(|root| plain(&of(root))).collect();
        lines.join("\n.br\n")
    };
    let owners = [
        "of the distribution",
        "among the credentials of the machine",
        "of the administrator",
        "at runtime, removed at a reboot",
    ];
    let roots: String = ROOTS
        .iter()
        .zip(owners)
        .map(|(root, owner)| tagged(&format!("{root}/{MAIN}"), &format!("The file {owner}.")))
        .collect();
    // 8 GiB of RAM; the page states the other figures of the machine.
    let machine = Variables { ram_mib: 8192.0, swap_mib: 0.0, cpus: 4.0 };
    let sizes: String = [
        ("512", ""),
        ("\"1.5GiB\"", ""),
        ("\"50%\"", ""),
        ("\"ram / 2\"", ""),
        ("\"min(ram / 2, 4GiB)\"", "as without zram\\-size"),
        ("\"25% + 512MiB\"", ""),
        ("\"ram < 4GiB ? ram : 4GiB\"", ""),
        ("\"max(ram / 8, cpus * 256)\"", ""),
        ("\"if(swap > 0, 1GiB, 2GiB)\"", ""),
        ("\"round(64, ram / 100)\"", "the nearest multiple of 64 MiB"),
        ("\"ceil(ram / 1000) * 1GiB / 4\"", ""),
    ]
    .into_iter()
    .map(|(size, note)| {
        let value = Expr::parse(size.trim_matches('"')).unwrap().evaluate(&machine).unwrap();
        let amount = human(size_in_bytes(value).unwrap());
        let note = if note.is_empty() { String::new() } else { format!(", {note}") };
        format!(".TP\n{}\n{}{note}\n", bold(size), plain(&amount))
    })
    .collect();
    let example: String = text("config/example.toml")
        .lines()
        .filter(|line| !line.starts_with('#'))
        .skip_while(|line| line.is_empty())
        .map(|line| format!("{}\n", plain(line)))
        .collect();
    page(
        "zramd.toml.5",
        &[
            ("MISTAKE", captured("check")),
            ("MAINS", list(&|root| format!("{root}/{MAIN}"))),
            ("DROPINS", list(&|root| format!("{}*.toml", drop_in_prefix(root)))),
            ("ROOTS", roots),
            ("DEVICE_KEYS", keys(SectionKind::Device)),
            ("RAMDISK_KEYS", keys(SectionKind::Ramdisk)),
            ("VM_KEYS", keys(SectionKind::Vm)),
            ("ZSWAP_KEYS", keys(SectionKind::Zswap)),
            ("MAINTENANCE_KEYS", keys(SectionKind::Maintenance)),
            ("BENCHMARK_KEYS", keys(SectionKind::Benchmark)),
            ("SIZES", sizes),
            ("EXAMPLE", example),
        ],
    );
}

/// The comment in a source file before the line with this beginning.
fn comment_before(source: &str, line: &str) -> String {
    let (before, _) = source.split_once(&format!("\n{line}")).unwrap_or_else(|| panic!("no line {line:?}"));
    let mut lines: Vec<&str> = before
        .lines()
        .rev()
        .map(str::trim)
        .skip_while(|line| line.starts_with("//") && !line.starts_with("///") || line.starts_with("#["))
        .map_while(|line| line.strip_prefix("///"))
        .map(str::trim)
        .collect();
    lines.reverse();
    assert!(!lines.is_empty(), "no comment on {line:?}");
    lines.join(" ")
}

/// Source of an interface.
fn source_of(interface: &str) -> String {
    let files =
        ["daemon/service", "daemon/service/bus"].map(|place| fs::read_dir(repository(place)).unwrap());
    let mut paths =
        files.into_iter().flatten().map(|file| file.unwrap().path()).filter(|path| path.is_file());
    let found = paths.find_map(|path| {
        let source = fs::read_to_string(path).unwrap();
        source.contains(&format!("#[interface(name = \"{interface}\"")).then_some(source)
    });
    found.unwrap_or_else(|| panic!("no file has the interface {interface}"))
}

/// `CamelCase` as lower-case words with a separator.
fn spaced(camel: &str, between: char) -> String {
    let mut out = String::new();
    for (index, letter) in camel.char_indices() {
        if letter.is_uppercase() && index > 0 {
            out.push(between);
        }
        out.extend(letter.to_lowercase());
    }
    out
}

/// Position of a member in the source.
fn place(source: &str, member: &str) -> usize {
    let function = format!(" fn {}", spaced(member, '_'));
    let renamed = source.find(&format!("name = \"{member}\""));
    renamed.or_else(|| source.find(&format!("{function}("))).unwrap_or_else(|| panic!("where is {member}?"))
}

/// The polkit actions of the methods of an interface, from the first line of each.
fn actions(source: &str) -> Vec<(String, String)> {
    let mut functions = source.split("\n    async fn ").skip(1).collect::<Vec<_>>();
    functions.retain(|function| function.contains("auth::check("));
    assert_eq!(functions.len(), source.matches("auth::check(").count(), "a check in an unexpected place");
    let policy = text("units/org.zramd1.policy");
    let action = |function: &str| {
        let (name, body) = function.split_once('(').unwrap();
        let (_, action) = body.split_once("Action::").unwrap();
        let camel = name.split('_').map(|word| word[..1].to_uppercase() + &word[1..]).collect();
        let words = spaced(action.split([')', '.']).next().unwrap(), '-');
        let action = format!("org.zramd1.{words}");
        assert!(policy.contains(&format!("<action id=\"{action}\">")), "{action} is no action");
        (camel, action)
    };
    functions.into_iter().map(action).collect()
}

fn arguments<'a>(of: impl Iterator<Item = &'a Argument>) -> String {
    let words: Vec<String> =
        of.map(|one| format!("\\fI{}\\fR {}", plain(&one.name), plain(&one.kind))).collect();
    words.join(", ")
}

/// The tag of a method or signal.
fn call(name: &str, member: &Member, is_method: bool) -> String {
    let (passed, answered): (Vec<&Argument>, Vec<&Argument>) =
        member.arguments.iter().partition(|argument| argument.incoming || !is_method);
    let answer = arguments(answered.into_iter());
    let arrow = if answer.is_empty() { "" } else { " \\(-> " };
    format!("{}({}){arrow}{answer}", bold(name), arguments(passed.into_iter()))
}

/// A property: its name with its type, its unit or whether it is signalled, and what it means.
fn property(name: &str, property: &Property) -> String {
    let unit =
        FIGURES.iter().find(|figure| figure.name == name).map_or("", |figure| figure.metric.unit.word());
    let signal = match property.emits.as_str() {
        "true" => "signalled",
        "const" => "constant",
        "invalidates" => "signalled without the value",
        "false" => unit,
        other => panic!("{other}"),
    };
    let comma = if signal.is_empty() { "" } else { ", " };
    let tag = format!("{} ({}{comma}{signal})", bold(name), plain(&property.kind));
    described(name, &tag, &property.documentation)
}

/// The entry of a member.
fn described(name: &str, tag: &str, documentation: &str) -> String {
    assert!(!documentation.is_empty(), "no description of {name}");
    entry(tag, documentation.replace('\n', " ").trim())
}

fn interface(name: &str, xml: &str) -> String {
    let found = &introspection::read(xml)[name];
    let source = source_of(name);
    let actions = actions(&source);
    let about = comment_before(&source, &format!("#[interface(name = \"{name}\""));
    let mut out = format!(".SH \"INTERFACE {}\"\n{}\n", plain(name), marked(&about));
    let of = |members: &BTreeMap<String, Member>, is_method: bool| -> Vec<_> {
        let one = |(name, member): (&String, &Member)| {
            let tag = call(name, member, is_method);
            (name.clone(), described(name, &tag, &member.documentation))
        };
        members.iter().map(one).collect()
    };
    let properties = found.properties.iter().map(|(name, one)| (name.clone(), property(name, one)));
    for (heading, mut members) in [
        ("Methods", of(&found.methods, true)),
        ("Signals", of(&found.signals, false)),
        ("Properties", properties.collect()),
    ] {
        // In the order of the source, which is better to read; zbus sorts by name.
        let is_table = heading == "Properties" && source.contains("impl Object for ");
        members.sort_by_key(|(name, _)| {
            if is_table {
                xml.find(&format!("<property name=\"{name}\"")).unwrap()
            } else {
                place(&source, name)
            }
        });
        if !members.is_empty() {
            out.push_str(&format!(".SS {heading}\n"));
        }
        for (name, text) in members {
            out.push_str(&text);
            // The action of a job method depends on the job, and is in its description.
            let own = |(method, action): &&(String, String)| *method == name && !action.is_empty();
            if let Some((_, action)) = actions.iter().find(own) {
                out.push_str(&format!("Polkit action: {}.\n", bold(action)));
            }
        }
    }
    out
}

#[test]
fn org_zramd1_5_is_current() {
    let source = text("daemon/logic/error.rs");
    // Other kinds of errors are those of the client.
    let errors: String = ErrorKind::all()
        .filter(|(kind, _)| !matches!(kind, ErrorKind::NotRunning | ErrorKind::Partly))
        .map(|(kind, on_the_bus)| tagged(on_the_bus, &comment_before(&source, &format!("    {kind:?},"))))
        .collect();
    let policy = text("units/org.zramd1.policy");
    let between = |text: &str, tag: &str| {
        let (_, rest) = text.split_once(&format!("<{tag}")).unwrap();
        rest.split(['>', '<']).nth(1).unwrap().to_owned()
    };
    let actions: String = policy
        .split("<action id=\"")
        .skip(1)
        .map(|action| {
            let id = action.split('"').next().unwrap();
            let meaning = format!(
                "{}. Unless the administrator says otherwise: {} in an active session, {} in others.",
                between(action, "description"),
                between(action, "allow_active"),
                between(action, "allow_any"),
            );
            assert_eq!(between(action, "allow_any"), between(action, "allow_inactive"));
            tagged(id, &meaning)
        })
        .collect();
    let interfaces: String = interfaces().iter().map(|(name, xml)| interface(name, xml)).collect();
    page("org.zramd1.5", &[("INTERFACES", interfaces), ("ERRORS", errors), ("ACTIONS", actions)]);
}

#[test]
fn all_pages_are_installed() {
    let manifest = text("packaging/manifest");
    for file in fs::read_dir(repository("packaging/man")).unwrap() {
        let name = file.unwrap().file_name().into_string().unwrap();
        assert_eq!(manifest.contains(&format!("packaging/man/{name} ")), !name.ends_with(".in"), "{name}");
    }
    for name in PAGES {
        let section = name.rsplit('.').next().unwrap();
        assert!(manifest.contains(&format!(" /usr/share/man/man{section}/{name} ")), "{name}");
    }
}

#[test]
fn linters_of_manual_pages_have_no_findings() {
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        return skip("needs pages that are not being written");
    }
    let tools = [("mandoc", &["-T", "lint"][..]), ("groff", &["-man", "-Tutf8", "-Kutf8", "-ww", "-z"])];
    for (program, words) in tools {
        if !has_program(program) {
            skip(&format!("needs {program}"));
            continue;
        }
        for name in PAGES {
            let file = repository(&format!("packaging/man/{name}"));
            let output = outside(program).args(words).arg(file).output().unwrap();
            let (printed, complained) = texts(&output);
            assert_eq!((printed.as_str(), complained.as_str()), ("", ""), "{program} {name}");
        }
    }
}
