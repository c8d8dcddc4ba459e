//! Common parts of the import tests.

pub mod cases;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use import::peer::files::{Found, order};
use import::peer::{Imported, Peer, Values, import};
use logic::config;
use logic::facts::Facts;
use logic::path_kind::Content;
use logic::plan::{self, Activation, Decision};
use logic::proc::Memory;
use logic::request::{DeviceRequest, Request};

/// Directory of the cases.
pub fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/import")
}

/// The lines of a file; empty if it does not exist.
pub fn lines(path: &Path) -> Vec<String> {
    fs::read_to_string(path).unwrap_or_default().lines().map(str::to_owned).collect()
}

/// Links of a case, path and target; a list, because git and packages should not contain them.
pub fn links(case: &Path) -> Vec<(String, String)> {
    let split = |line: &String| line.split_once(" -> ").map(|(a, b)| (a.to_owned(), b.to_owned()));
    lines(&case.join("links")).iter().filter_map(split).collect()
}

/// The file at an absolute path in a case.
fn found(case: &Path, root: usize, path: &str) -> Option<Found> {
    let relative = path.trim_start_matches('/');
    let content = if let Some((_, target)) = links(case).into_iter().find(|(link, _)| link == relative) {
        let text = match target.as_str() {
            "/dev/null" | "../../../dev/null" => Some(String::new()),
            "/gone" => None,
            _ => Some("another file".to_owned()),
        };
        Content::Link { target, text }
    } else {
        Content::Text(fs::read_to_string(case.join(relative)).ok()?)
    };
    Some(Found { root, path: path.into(), content })
}

/// Imports a case as `zramdctl import` does.
pub fn imported(name: &str) -> Imported {
    let case = fixtures().join(name);
    let peer =
        lines(&case.join("peer")).first().map_or(Peer::ZramGenerator, |name| Peer::parse(name).unwrap());
    let sources = peer.sources();
    let mains = sources.mains.iter().enumerate().filter_map(|(root, path)| found(&case, root, path));
    let mut drop_ins = Vec::new();
    for (root, directory) in sources.drop_ins.iter().enumerate() {
        let entries = fs::read_dir(case.join(directory.trim_start_matches('/'))).into_iter().flatten();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let linked = links(&case).into_iter().filter_map(|(link, _)| {
            link.strip_prefix(&format!("{}/", directory.trim_start_matches('/'))).map(str::to_owned)
        });
        drop_ins.extend(
            names.chain(linked).filter_map(|name| found(&case, root, &format!("{directory}/{name}"))),
        );
    }
    let ordered = order(peer, mains.collect(), drop_ins);
    assert_eq!(ordered.unreadable, [], "{name}");
    let given: Vec<(String, String)> = lines(&case.join("values"))
        .iter()
        .map(|line| line.split_once('=').map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap())
        .collect();
    let mut imported = import(peer, &ordered.files, &Values { given, ..Values::default() });
    imported.warnings.splice(0..0, ordered.warnings);
    imported
}

/// Copies the files of a case, and makes its links.
pub fn lay_out(case: &Path, root: &Path) {
    for directory in ["etc", "usr", "run"] {
        let status = Command::new("cp").arg("-r").arg(case.join(directory)).arg(root).output();
        drop(status.unwrap());
    }
    for (link, target) in links(case) {
        let link = root.join(link);
        fs::create_dir_all(link.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(target, link).unwrap();
    }
}

/// Devices, and RAM disks as lines, that zramd sets up for an imported file.
pub fn requests(toml: &str, mem_total_kib: u64, cmdline: &str) -> Vec<Request> {
    let loaded = config::load(&[("zramd.toml".into(), toml.to_owned())], cmdline);
    assert_eq!(loaded.problems, [], "{toml}");
    let facts = Facts {
        memory: Memory { total_kib: mem_total_kib, available_kib: mem_total_kib, ..Memory::default() },
        cpus: 4,
        page_size: 4096,
        ..Facts::default()
    };
    let plan = plan::plan(&loaded.settings, vec![], &facts, Activation::Direct);
    let wanted = plan.items.into_iter().filter(|item| item.decision != Decision::Skipped);
    wanted.filter_map(|item| item.request).collect()
}

/// The devices only.
pub fn devices(toml: &str, mem_total_kib: u64, cmdline: &str) -> Vec<DeviceRequest> {
    let requests = requests(toml, mem_total_kib, cmdline).into_iter();
    let device = |request| if let Request::Device(device) = request { Some(device) } else { None };
    requests.filter_map(device).collect()
}
