//! Units written by zramd: by the generator, or by the daemon if the generator does not run.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use super::files::{self, GENERATED};
use logic::ramdisk::UnitRamdisk;
use logic::unit::ramdisk::ramdisk_of_unit;
use logic::unit::{Contents, HEAD, UnitFile, setup_unit};
use logic::view::UnitChange;

/// Directory of units that last until the next boot. They override generated ones.
const RUNTIME: &str = "run/systemd/system";

/// Whether PID 1 is systemd (sd_booted(3)).
pub fn is_booted(root: &Path) -> bool {
    root.join(RUNTIME).is_dir()
}

/// Whether there are units that set up and activate a device.
pub fn activates(root: &Path, number: u32) -> bool {
    exists(root, &format!("{}.d/bindings.conf", setup_unit(number)))
}

/// Whether there is a unit of this name in the directories that zramd writes to.
pub fn exists(root: &Path, name: &str) -> bool {
    [GENERATED, RUNTIME].iter().any(|directory| root.join(directory).join(name).exists())
}

/// Whether all these files exist: in the runtime directory, which overrides generated files, or else generated.
pub fn are_in_place(root: &Path, wanted: &[UnitFile]) -> bool {
    let [generated, runtime] = [GENERATED, RUNTIME].map(|directory| root.join(directory));
    let is_hidden = |file: &UnitFile| runtime.join(&file.path).symlink_metadata().is_ok();
    wanted.iter().all(|file| is_same(if is_hidden(file) { &runtime } else { &generated }, file))
}

fn is_same(directory: &Path, file: &UnitFile) -> bool {
    let path = directory.join(&file.path);
    match &file.contents {
        Contents::Text(text) => fs::read_to_string(path).is_ok_and(|found| found == *text),
        Contents::Link(target) => fs::read_link(path).is_ok_and(|found| found == Path::new(target)),
    }
}

/// The changes that make `wanted` the runtime units: files that differ are written, other units of ours are removed.
pub fn runtime_change(root: &Path, wanted: &[UnitFile]) -> UnitChange {
    let directory = root.join(RUNTIME);
    let name = |path: PathBuf| Some((path.strip_prefix(&directory).ok()?.to_str()?.to_owned(), None));
    let mut change = UnitChange {
        files: ours_below(&directory).into_iter().filter_map(name).collect(),
        links: links_below(&directory).into_iter().filter_map(name).collect(),
    };
    for file in wanted {
        let (changes, value) = match &file.contents {
            Contents::Text(text) => (&mut change.files, text),
            Contents::Link(target) => (&mut change.links, target),
        };
        if is_same(&directory, file) {
            changes.remove(&file.path);
        } else {
            changes.insert(file.path.clone(), Some(value.clone()));
        }
    }
    change
}

/// Applies such a change.
pub fn apply(root: &Path, change: &UnitChange) -> Result<(), String> {
    for (name, text) in &change.files {
        files::replace(root, &format!("{RUNTIME}/{name}"), text.as_deref())?;
        if let (None, Some((directory, _))) = (text, name.split_once('/')) {
            // Another program may have drop-ins there.
            fs::remove_dir(root.join(RUNTIME).join(directory)).ok();
        }
    }
    for (name, target) in &change.links {
        let path = format!("{RUNTIME}/{name}");
        files::replace(root, &path, None)?;
        if let Some(target) = target {
            let path = root.join(path);
            let made = path.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| symlink(target, &path));
            made.map_err(|error| format!("{}: {}", path.display(), files::describe(&error)))?;
        }
    }
    Ok(())
}

/// Links that make targets and units want units of ours: generated files, and instances of packaged templates.
fn links_below(directory: &Path) -> Vec<PathBuf> {
    let ours: Vec<PathBuf> = ours_below(directory);
    let wants = |path: &Path| {
        path.extension().is_some_and(|extension| extension == "wants" || extension == "requires")
    };
    let directories =
        fs::read_dir(directory).into_iter().flatten().filter_map(Result::ok).map(|entry| entry.path());
    let links = directories.filter(|path| wants(path)).flat_map(|path| {
        fs::read_dir(path).into_iter().flatten().filter_map(Result::ok).map(|entry| entry.path())
    });
    let is_ours = |path: &PathBuf| {
        let Ok(target) = fs::read_link(path) else { return false };
        let packaged = target.file_name().and_then(|name| name.to_str());
        ours.iter().any(|ours| ours.parent() == Some(directory) && ours.file_name() == path.file_name())
            || packaged
                .is_some_and(|name| name.starts_with("zramd-") && name.contains('@') && target.is_absolute())
    };
    links.filter(is_ours).collect()
}

/// Files with our header, in the directory itself and in its drop-in directories.
fn ours_below(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let Ok(entries) = fs::read_dir(directory) else { return found };
    for entry in entries.filter_map(Result::ok) {
        let path = entry.path();
        let Ok(kind) = entry.file_type() else { continue };
        if kind.is_dir() && path.extension().is_some_and(|extension| extension == "d") {
            found.extend(ours_below(&path));
        } else if kind.is_file() && fs::read_to_string(&path).is_ok_and(|text| text.starts_with(HEAD)) {
            found.push(path);
        }
    }
    found
}

/// The RAM disks that PID 1 mounted from units of ours, generated or not.
pub fn disks(root: &Path) -> Vec<UnitRamdisk> {
    let directories = [GENERATED, RUNTIME].map(|directory| root.join(directory));
    let paths = directories.iter().flat_map(|directory| ours_below(directory));
    let mounts = paths.filter(|path| path.extension().is_some_and(|extension| extension == "mount"));
    mounts.filter_map(|path| ramdisk_of_unit(&fs::read_to_string(path).ok()?)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_runtime_unit_hides_a_generated_one() {
        let root = tempfile::tempdir().unwrap();
        let unit = |text: &str| UnitFile {
            path: "dev-zram0.swap".to_owned(),
            contents: Contents::Text(text.to_owned()),
        };
        let write = |directory: &str, text: &str| {
            fs::create_dir_all(root.path().join(directory)).unwrap();
            fs::write(root.path().join(directory).join("dev-zram0.swap"), text).unwrap();
        };
        let is_in_place = |text| are_in_place(root.path(), &[unit(text)]);
        write(GENERATED, "generated");
        assert!(is_in_place("generated") && !is_in_place("runtime"));
        write(RUNTIME, "runtime");
        assert!(is_in_place("runtime") && !is_in_place("generated"));
    }
}
