//! rpi-swap of Raspberry Pi OS: `swap.conf` and its drop-ins.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::document::{Draft, Section};
use super::ini::{self, Setting};
use logic::duration;
use logic::overlay::{list, quoted};

/// Keys with their sections.
const KNOWN: [(&str, &str); 12] = [
    ("Main", "Mechanism"),
    ("Zram", "FixedSizeMiB"),
    ("Zram", "RamMultiplier"),
    ("Zram", "MaxSizeMiB"),
    ("Zram", "WritebackTrigger"),
    ("Zram", "WritebackInitialDelay"),
    ("Zram", "WritebackPeriodicInterval"),
    ("File", "Path"),
    ("File", "FixedSizeMiB"),
    ("File", "RamMultiplier"),
    ("File", "MaxSizeMiB"),
    ("File", "MaxDiskPercent"),
];
/// The program's default of `MaxSizeMiB`, for both sizes.
const MAX_SIZE: f64 = 2048.0;
/// The program's default of `Path`.
const SWAP_FILE: &str = "/var/swap";
/// zramd's file in its place; the program deletes its own one when it is switched off.
const WRITEBACK_FILE: &str = "/var/lib/zramd/zram0.writeback";
/// The program's default of `WritebackPeriodicInterval`.
const INTERVAL: &str = "24h";

/// The last setting of each key.
struct Settings(BTreeMap<(String, String), Setting>);

impl Settings {
    fn get(&self, section: &str, key: &str) -> Option<&Setting> {
        self.0.get(&(section.to_owned(), key.to_owned())).filter(|setting| !setting.value.is_empty())
    }
}

/// Reads the files, lowest precedence first.
pub fn import(files: &[(PathBuf, String)]) -> Draft {
    let mut draft = Draft::default();
    let Some((file, _)) = files.last() else { return draft };
    let settings = read(files, &mut draft);
    let mechanism = settings.get("Main", "Mechanism");
    let was = was(mechanism, "[Main] Mechanism", "auto");
    let writes_back = match mechanism.map_or("auto", |setting| &setting.value) {
        "none" | "swapfile" => {
            draft.row(was, "", "no zram; a swap file on a disk remains a matter of rpi-swap or fstab");
            return draft;
        }
        "zram" => false,
        // `auto` is zram+file on the cards and disks of these boards.
        "auto" | "zram+file" => true,
        other => {
            let text = format!("`{other}` is no mechanism of rpi-swap; auto was taken");
            let line = mechanism.map(|setting| setting.line);
            draft.warn(mechanism.map_or(file, |setting| &setting.file), line, text);
            true
        }
    };
    draft.row(was, "[zram0]", if writes_back { "with write-back to a file" } else { "" });
    let mut zram = Section::new("zram0", file.clone(), None);
    size(&settings, "Zram", ("zram-size", &mut zram), &mut draft);
    zram.set("compression-algorithm", &list(&["zstd", "auto"]));
    zram.set("swap-priority", "100");
    if writes_back {
        place(&settings, &mut zram, &mut draft);
        size(&settings, "File", ("writeback-size", &mut zram), &mut draft);
        if let Some(percent) = settings.get("File", "MaxDiskPercent") {
            draft.row(percent.text(), "", "zramd always leaves a tenth of the file system free");
        }
    }
    draft.sections.push(zram);
    if writes_back {
        let section = maintenance(&settings, file, &mut draft);
        draft.sections.push(section);
    }
    let mut vm = Section::new("vm", file.clone(), None);
    let is = vm.set("tune", "true");
    draft.row("vm.page-cluster = 0", is, "and zramd's other settings for compressed swap");
    draft.sections.push(vm);
    draft
}

/// The settings that the program knows; warns about others.
fn read(files: &[(PathBuf, String)], draft: &mut Draft) -> Settings {
    let mut settings = BTreeMap::new();
    for (file, text) in files {
        let (found, warnings) = ini::read(file, text);
        draft.warnings.extend(warnings);
        for setting in found.into_iter().filter(|setting| !setting.is_header()) {
            let section = setting.section.clone().unwrap_or_default();
            if KNOWN.contains(&(section.as_str(), setting.key.as_str())) {
                settings.insert((section, setting.key.clone()), setting);
            } else {
                let text = format!("rpi-swap ignores `{}`, and so it was left out", setting.name());
                draft.warn(file, Some(setting.line), text);
                draft.row(setting.text(), "", "rpi-swap does not know it");
            }
        }
    }
    Settings(settings)
}

/// `FixedSizeMiB`, otherwise `RamMultiplier` times RAM, at most `MaxSizeMiB`.
fn size(settings: &Settings, part: &str, (key, section): (&str, &mut Section), draft: &mut Draft) {
    let fixed = settings.get(part, "FixedSizeMiB");
    if let Some(setting) = fixed
        && let Some(size) = number(setting, draft)
    {
        let is = section.set(key, &size.to_string());
        draft.row(setting.text(), is, "");
        return;
    }
    let (factor, most) = (settings.get(part, "RamMultiplier"), settings.get(part, "MaxSizeMiB"));
    let times = factor.and_then(|setting| number(setting, draft)).unwrap_or(1.0);
    let limit = most.and_then(|setting| number(setting, draft)).unwrap_or(MAX_SIZE);
    let is = section.set(key, &quoted(&format!("min(ram * {times}, {limit})")));
    let was = [
        was(factor, &format!("[{part}] RamMultiplier"), "1"),
        was(most, &format!("[{part}] MaxSizeMiB"), &MAX_SIZE.to_string()),
    ];
    draft.row(was.join(", "), is, "");
}

/// The file for write-back: in the directory of the program's file, if that was chosen by the administrator.
fn place(settings: &Settings, section: &mut Section, draft: &mut Draft) {
    let path = settings.get("File", "Path");
    let chosen = path.filter(|setting| setting.value != SWAP_FILE);
    let file = match chosen.and_then(|setting| Path::new(&setting.value).parent()) {
        Some(directory) => directory.join("zram0.writeback"),
        None => WRITEBACK_FILE.into(),
    };
    let is = section.set("writeback-file", &quoted(&file.display().to_string()));
    draft.row(was(path, "[File] Path", SWAP_FILE), is, "a file of its own, encrypted");
}

fn maintenance(settings: &Settings, file: &Path, draft: &mut Draft) -> Section {
    let mut section = Section::new("maintenance", file.to_owned(), None);
    let every = settings.get("Zram", "WritebackPeriodicInterval");
    let is_span = |text: &str| duration::parse(text).is_some_and(|span| span >= Duration::from_secs(60));
    let interval = match every {
        Some(setting) if is_span(&setting.value) => setting.value.as_str(),
        Some(setting) => {
            let text =
                format!("`{}` is no span of time of at least 1min; {INTERVAL} was taken", setting.value);
            draft.warn(&setting.file, Some(setting.line), text);
            INTERVAL
        }
        None => INTERVAL,
    };
    let age = quoted(interval);
    let is = section.set("writeback", &format!("{{ idle-age = {age}, max-idle-age = {age} }}"));
    draft.row(
        was(every, "[Zram] WritebackPeriodicInterval", INTERVAL),
        is,
        "pages that were not used for so long",
    );
    for key in ["WritebackTrigger", "WritebackInitialDelay"] {
        if let Some(setting) = settings.get("Zram", key) {
            draft.row(setting.text(), "", "zramd looks every hour");
        }
    }
    section
}

/// A number that is not negative; a warning and `None` for anything else.
fn number(setting: &Setting, draft: &mut Draft) -> Option<f64> {
    let found = setting.value.parse().ok().filter(|number: &f64| number.is_finite() && *number >= 0.0);
    if found.is_none() {
        let text = format!("`{}` is no number for {}; its default was taken", setting.value, setting.name());
        draft.warn(&setting.file, Some(setting.line), text);
    }
    found
}

/// The setting as shown in the table, also if it is not set.
fn was(setting: Option<&Setting>, name: &str, default: &str) -> String {
    setting.map_or_else(|| format!("{name} is not set: {default}"), Setting::text)
}

#[cfg(test)]
mod tests {
    use crate::peer::{Peer, Values, import};

    #[test]
    fn a_number_below_zero_and_an_infinite_one_become_the_default() {
        for (lines, size, warnings) in [
            ("RamMultiplier=0.5\nMaxSizeMiB=512", "min(ram * 0.5, 512)", 0),
            ("RamMultiplier=-1", "min(ram * 1, 2048)", 1),
            ("MaxSizeMiB=inf", "min(ram * 1, 2048)", 1),
        ] {
            let text = format!("[Main]\nMechanism=zram\n[Zram]\n{lines}\n");
            let imported = import(Peer::RpiSwap, &[("/f".into(), text)], &Values::default());
            assert!(imported.toml.contains(&format!("\nzram-size = \"{size}\"\n")), "{}", imported.toml);
            assert_eq!(imported.warnings.len(), warnings, "{:?}", imported.warnings);
        }
    }
}
