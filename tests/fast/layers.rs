//! Dependencies between crates, forbidden names in each crate, and import cycles between files and directories.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The crates below `daemon/`, from the bottom up, and the crates that each may use.
const CRATES: [(&str, &[&str]); 9] = [
    ("logic", &[]),
    ("host", &["logic"]),
    ("store", &["logic", "host"]),
    ("engine", &["logic", "host", "store"]),
    ("bench", &["logic", "host", "engine"]),
    ("import", &["logic", "host", "engine"]),
    ("service", &["logic", "host", "engine"]),
    ("client", &["logic", "host", "store", "engine", "bench", "import", "service"]),
    ("sim", &["logic", "host"]),
];

/// Programs with several files.
const PROGRAMS: [&str; 2] = ["bin/zramd_setup", "bin/zramd_worker"];

/// External crates that only these may use.
const RESERVED: [(&str, &[&str]); 4] = [
    ("tokio", &["service", "client"]),
    ("zbus", &["service", "client"]),
    ("rustix", &["host", "bench", "service"]),
    ("libc", &["host", "store", "service"]),
];

/// Names of what decisions, and parsers of foreign data, are without.
const MACHINE: [&str; 14] = [
    "std::fs",
    "std::io",
    "std::process",
    "std::net",
    "std::env",
    "std::thread",
    "std::os",
    "Instant::now",
    "SystemTime::now",
    "async fn",
    "println!",
    "eprintln!",
    "host",
    "engine",
];

/// Names that a crate, or a directory or file of one, must not use although Cargo allows it.
const FORBIDDEN: [(&str, &[&str]); 9] = [
    ("logic", &MACHINE),
    ("import/peer", &MACHINE),
    ("import/init.rs", &MACHINE),
    ("import", &["async fn", "std::fs"]),
    ("host", &["logic::config::settings"]),
    ("store", &["async fn", "std::fs"]),
    ("engine", &["async fn", "std::fs"]),
    ("bench", &["async fn", "std::fs"]),
    ("client", &["engine::apply", "engine::provision"]),
];

/// The source files below a directory, or the one file.
fn source_files(directory: &Path) -> Vec<PathBuf> {
    if directory.is_file() {
        return vec![directory.to_owned()];
    }
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(source_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files
}

/// Code without comments, string literals and the test module at the end.
fn code(text: &str) -> String {
    let text = text.split("#[cfg(test)]\nmod tests").next().unwrap();
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

fn is_part_of_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Whether `word` occurs in `code` as a whole identifier.
fn mentions(code: &str, word: &str) -> bool {
    code.match_indices(word).any(|(at, _)| {
        !code[..at].ends_with(is_part_of_word) && !code[at + word.len()..].starts_with(is_part_of_word)
    })
}

fn daemon() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("daemon")
}

/// The dependencies in a manifest; ours without `zramd-`.
fn dependencies(directory: &Path) -> BTreeSet<String> {
    let text = fs::read_to_string(directory.join("Cargo.toml")).unwrap();
    let manifest = DeTable::parse(&text).unwrap();
    let listed = manifest.get_ref()["dependencies"].get_ref().as_table().unwrap();
    let package = |(name, value): (&Spanned<Cow<'_, str>>, &Spanned<DeValue<'_>>)| {
        let package = value.get_ref().get("package").and_then(|value| value.get_ref().as_str());
        package.unwrap_or(name.get_ref()).trim_start_matches("zramd-").to_owned()
    };
    listed.iter().map(package).collect()
}

#[test]
fn each_crate_uses_only_what_is_below_it() {
    let mut offences = Vec::new();
    for (name, allowed) in CRATES {
        let used = dependencies(&daemon().join(name));
        let ours = CRATES.iter().map(|(other, _)| *other).filter(|other| !allowed.contains(other));
        let others = RESERVED.iter().filter(|(_, users)| !users.contains(&name)).map(|(other, _)| *other);
        offences.extend(ours.chain(others).filter(|other| used.contains(*other)).map(|other| (name, other)));
    }
    assert!(offences.is_empty(), "{offences:?}");
}

#[test]
fn the_simulator_is_no_part_of_the_programs() {
    let root = dependencies(&daemon().join(".."));
    for absent in ["sim", "tokio", "zbus"] {
        assert!(!root.contains(absent), "{absent}");
    }
    assert!(root.contains("client"));
}

#[test]
fn no_crate_mentions_what_it_must_not() {
    let mut offences = Vec::new();
    for (name, forbidden) in FORBIDDEN {
        for file in source_files(&daemon().join(name)) {
            let code = code(&fs::read_to_string(&file).unwrap());
            for word in forbidden {
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
    let place = daemon().join("engine/create.rs");
    assert!(place.exists());
    let elsewhere = ["host", "sim"].map(|name| daemon().join(name));
    for file in source_files(&daemon()) {
        if file == place || elsewhere.iter().any(|directory| file.starts_with(directory)) {
            continue;
        }
        let code = code(&fs::read_to_string(&file).unwrap());
        for verb in [".hot_add(", ".hot_remove("] {
            assert!(!code.contains(verb), "{} calls {verb}", file.display());
        }
    }
}

/// The lints are in the manifest of the workspace, and the method names in `.clippy.toml`.
#[test]
fn output_is_written_in_one_place() {
    let place = daemon().join("host/out.rs");
    let words = ["print_stdout", "print_stderr", "disallowed_methods"];
    assert!(mentions(&code(&fs::read_to_string(&place).unwrap()), words[2]));
    for file in source_files(&daemon()).into_iter().filter(|file| *file != place) {
        let code = code(&fs::read_to_string(&file).unwrap());
        for word in words {
            assert!(!mentions(&code, word), "{} mentions {word}", file.display());
        }
    }
}

/// Path of a module or an item: `["plan", "check"]`. The crate itself is empty.
type Module = Vec<String>;

/// The modules of a crate or program, with their code.
fn modules(directory: &Path) -> BTreeMap<Module, String> {
    let module = |file: PathBuf| {
        let path = file.strip_prefix(directory).unwrap().with_extension("");
        let mut module: Module = path.iter().map(|part| part.to_str().unwrap().to_owned()).collect();
        module.pop_if(|last| matches!(last.as_str(), "lib" | "main" | "mod"));
        (module, code(&fs::read_to_string(&file).unwrap()))
    };
    source_files(directory).into_iter().map(module).collect()
}

/// The paths of the use tree or expression at the start of `text`, and the remaining text.
fn paths(mut text: &str) -> (Vec<Module>, &str) {
    let mut path = Module::new();
    loop {
        text = text.trim_start();
        let end = text.find(|c| !is_part_of_word(c)).unwrap_or(text.len());
        if text[..end] != *"self" || path.is_empty() {
            path.extend((end > 0).then(|| text[..end].to_owned()));
        }
        text = &text[end..];
        let Some(rest) = text.strip_prefix("::") else { return (vec![path], text) };
        text = rest;
        if let Some(rest) = text.strip_prefix('{') {
            let mut all = Vec::new();
            text = rest;
            while !text.is_empty() && !text.starts_with('}') {
                let (some, rest) = paths(text);
                all.extend(some.into_iter().map(|below| [path.clone(), below].concat()));
                // A comma, or `as` with a name.
                text = rest.trim_start_matches(|c| c != ',' && c != '}').trim_start_matches(',').trim_start();
            }
            return (all, text.strip_prefix('}').unwrap_or(text));
        }
        if !text.starts_with(is_part_of_word) {
            return (vec![path], text);
        }
    }
}

/// Paths in the code of a module that begin with the crate, the parent module, or itself.
fn mentioned(module: &Module, code: &str) -> Vec<Module> {
    let mut found = Vec::new();
    // Indentation of the open inline modules.
    let mut inline: Vec<&str> = Vec::new();
    let mut rest = code;
    while let Some((line, after)) = rest.split_once('\n') {
        for word in ["crate::", "self::", "super::"] {
            for (at, _) in line.match_indices(word) {
                if line[..at].ends_with(|c| is_part_of_word(c) || c == ':') {
                    continue;
                }
                for path in paths(&rest[at..]).0 {
                    let ups = path.iter().take_while(|part| *part == "super").count();
                    let own = module.len().saturating_sub(ups.saturating_sub(inline.len()));
                    found.push(match path[0].as_str() {
                        "crate" => path[1..].to_vec(),
                        "self" => [module, &path[1..]].concat(),
                        _ => [&module[..own], &path[ups..]].concat(),
                    });
                }
            }
        }
        let text = line.trim_start();
        let indent = &line[..line.len() - text.len()];
        if text == "}" && inline.last() == Some(&indent) {
            inline.pop();
        } else if text.ends_with('{') && mentions(text, "mod") {
            inline.push(indent);
        }
        rest = after;
    }
    found
}

/// The module in which a path ends.
fn enclosing(path: &[String], modules: &BTreeMap<Module, String>) -> Module {
    (0..=path.len())
        .rev()
        .map(|length| path[..length].to_vec())
        .find(|part| modules.contains_key(part))
        .unwrap_or_default()
}

/// Pairs of entries of a directory (files, or directories as a whole) that import each other, directly or indirectly.
fn cycles(modules: &BTreeMap<Module, String>) -> Vec<String> {
    let mut exports: BTreeMap<Module, Module> = BTreeMap::new();
    for (module, code) in modules {
        for declaration in code.split("\npub use ").skip(1) {
            for path in
                paths(declaration).0.into_iter().filter(|path| path[0] != "crate" && path[0] != "super")
            {
                let (Some(name), target) = (path.last().cloned(), [module.clone(), path].concat()) else {
                    continue;
                };
                exports.insert([module.as_slice(), &[name]].concat(), enclosing(&target, modules));
            }
        }
    }
    let imports = |module: &Module, code: &str| -> BTreeSet<Module> {
        let target = |path: Module| {
            let found = enclosing(&path, modules);
            // A name that a module re-exports belongs to its submodule.
            path.get(..=found.len()).and_then(|name| exports.get(name)).cloned().unwrap_or(found)
        };
        let is_other = |other: &Module| !other.starts_with(module) && !module.starts_with(other);
        mentioned(module, code).into_iter().map(target).filter(is_other).collect()
    };
    // Of two modules, the entries of the directory that has both of them.
    let mut edges: BTreeMap<Module, BTreeSet<Module>> = BTreeMap::new();
    for (module, code) in modules {
        for other in imports(module, code) {
            let shared = module.iter().zip(&other).take_while(|(one, other)| one == other).count();
            edges.entry(module[..=shared].to_vec()).or_default().insert(other[..=shared].to_vec());
        }
    }
    let reaches = |from: &Module, to: &Module| {
        let (mut seen, mut todo) = (BTreeSet::new(), vec![from]);
        while let Some(entry) = todo.pop() {
            if seen.insert(entry) {
                todo.extend(edges.get(entry).into_iter().flatten());
            }
        }
        seen.contains(to)
    };
    let pairs = edges.iter().flat_map(|(entry, others)| others.iter().map(move |other| (entry, other)));
    pairs
        .filter(|(entry, other)| reaches(other, entry))
        .map(|(entry, other)| format!("{} uses {}", entry.join("::"), other.join("::")))
        .collect()
}

#[test]
fn files_and_directories_do_not_import_each_other() {
    let rooms = CRATES.iter().map(|(name, _)| *name).chain(PROGRAMS);
    let found: Vec<String> = rooms
        .flat_map(|room| {
            let modules = modules(&daemon().join(room));
            assert!(modules.len() > 2, "{room}");
            cycles(&modules).into_iter().map(move |pair| format!("{room}: {pair}"))
        })
        .collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn cycles_are_found() {
    let cycles = |files: &[(&str, &str)]| {
        let path = |name: &str| name.split("::").filter(|part| !part.is_empty()).map(str::to_owned).collect();
        cycles(&files.iter().map(|(name, code)| (path(name), format!("{code}\n"))).collect())
    };
    assert_eq!(cycles(&[("a", "use crate::b::X;"), ("b", "fn f() { super::c::g(); }"), ("c", "")]), [""; 0]);
    assert_eq!(
        cycles(&[("a", "use crate::b::X;"), ("b", "fn f() { super::c::g(); }"), ("c", "use super::{X, a};")]),
        ["a uses b", "b uses c", "c uses a"]
    );
    // A nested list over several lines.
    let list = "use crate::{\n    X,\n    d::{self, Y as Z},\n    b::{c::W, *},\n};";
    assert_eq!(
        cycles(&[("a", list), ("b", ""), ("b::c", "use super::super::a;"), ("d", "use crate::a;")]),
        ["a uses b", "a uses d", "b uses a", "d uses a"]
    );
    // A module and its submodules.
    assert_eq!(cycles(&[("", "use a::X;"), ("a", "use self::b::X;"), ("a::b", "use super::Y;")]), [""; 0]);
    // Through a name that the parent module re-exports.
    let exported =
        [("a", "use super::b::X;"), ("b", "mod c;\npub use c::{X, Y};"), ("b::c", "use crate::a;")];
    assert_eq!(cycles(&exported), ["a uses b", "b uses a"]);
    // Directories, although no two of their files do; and files within one.
    let directories =
        [("a::x", "use crate::b::y;"), ("a::z", ""), ("b::w", "use crate::a::z;"), ("b::y", "")];
    assert_eq!(cycles(&directories), ["a uses b", "b uses a"]);
    assert_eq!(
        cycles(&[("a::x", "use super::y;"), ("a::y", "use super::x;")]),
        ["a::x uses a::y", "a::y uses a::x"]
    );
    // In an inline module, `super` is the same file.
    let inline = "pub mod b {\n    use super::c::X;\n}\npub mod c {\n}\nuse super::d;";
    assert_eq!(
        cycles(&[("a", inline), ("c", "use super::a;"), ("d", "use super::a;")]),
        ["a uses d", "d uses a"]
    );
}

#[test]
fn the_check_itself_can_fail() {
    assert!(mentions("use std::fs;", "std::fs"));
    assert!(!mentions(&code("// std::fs\nlet a = \"std::fs\";"), "std::fs"));
    assert!(!mentions("let libc_like = 1;", "libc"));
}

/// zbus reads properties with a lock on all objects. Behind 64 calls that wait for the lock it receives no reply, so that a
/// getter that waits for one would never end. A table of properties (`bus/table.rs`) gets no connection at all.
#[test]
fn no_property_is_read_over_the_bus() {
    let mut getters = 0;
    for file in source_files(&daemon().join("service")) {
        let text = fs::read_to_string(&file).unwrap();
        for after in text.split("#[zbus(property").skip(1) {
            let signature = after[after.find("fn ").unwrap()..].split('{').next().unwrap();
            assert!(!signature.contains("zbus("), "{}: {signature}", file.display());
            getters += 1;
        }
    }
    assert!(getters > 10, "{getters}");
}
