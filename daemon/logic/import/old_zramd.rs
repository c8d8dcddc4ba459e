//! The older program called zramd: `/etc/default/zramd`.

use std::path::PathBuf;

use super::document::{self, Draft, Section};
use super::shell::{self, Variable, Variables};

const KNOWN: [&str; 6] = ["ALGORITHM", "FRACTION", "MAX_SIZE", "NUM_DEVICES", "PRIORITY", "SKIP_VM"];
/// As many areas of swap as the kernel takes.
const MOST_DEVICES: u32 = 32;

/// Reads the file.
pub fn import(files: &[(PathBuf, String)]) -> Draft {
    let mut draft = Draft::default();
    let Some((file, _)) = files.last() else { return draft };
    let variables = shell::read("the older zramd", &KNOWN, files, &mut draft);
    let count = count(variables.get("NUM_DEVICES"), &mut draft);
    let size = size(&variables, count, &mut draft);
    let algorithm = variables.get("ALGORITHM");
    let names = shell::algorithm(algorithm, "zstd", &mut draft);
    let priority = variables.get("PRIORITY");
    let level = shell::priority(priority, 100, &mut draft);
    for number in 0..count {
        let mut section = Section::new(format!("zram{number}"), file.clone(), None);
        let size = section.set("zram-size", &document::size(&size));
        let algorithms = section.set("compression-algorithm", &names);
        let swap_priority = section.set("swap-priority", &level.to_string());
        draft.sections.push(section);
        if number > 0 {
            // All of them are the same, and told once.
            continue;
        }
        let was = ["FRACTION", "MAX_SIZE", "NUM_DEVICES"].map(|name| variables.get(name).map(Variable::text));
        let was: Vec<String> = was.into_iter().flatten().collect();
        let was = if was.is_empty() {
            "size is not set: all of RAM up to 8192 MiB".to_owned()
        } else {
            was.join(" ")
        };
        draft.row(was, size, "of RAM in whole MiB, so up to 1 MiB less");
        let note = "auto: another one where the kernel lacks it";
        draft.row(shell::was(algorithm, "ALGORITHM", "zstd"), algorithms, note);
        let others = if count > 1 { "all of this holds for each of the devices" } else { "" };
        draft.row(shell::was(priority, "PRIORITY", "100"), swap_priority, others);
    }
    if let Some(skip) = variables.get("SKIP_VM") {
        if ["true", "1", "t", "yes"].contains(&skip.value.to_ascii_lowercase().as_str()) {
            let text = "zramd does not leave virtual machines out; put `enabled = false` into the sections on those machines";
            draft.warn(&skip.file, Some(skip.line), text);
        }
        draft.row(skip.text(), "", "zramd does not look for virtual machines");
    }
    draft
}

fn count(variable: Option<&Variable>, draft: &mut Draft) -> u32 {
    let count = shell::number(variable, 1u32, draft);
    let Some(variable) = variable else { return count };
    let sensible = count.clamp(1, MOST_DEVICES);
    if sensible != count {
        let text = format!("there cannot be {count} devices; {sensible} was taken");
        draft.warn(&variable.file, Some(variable.line), text);
    } else if count > 1 {
        let text = "one device serves all processors since Linux 4.7; keep [zram0] alone, with the whole size, unless you need more";
        draft.warn(&variable.file, Some(variable.line), text);
    }
    sensible
}

/// A share of RAM, at most so many MiB, in equal parts.
fn size(variables: &Variables, count: u32, draft: &mut Draft) -> String {
    let fraction = variables.get("FRACTION");
    let mut share: f64 = shell::number(fraction, 1.0, draft);
    if let Some(fraction) = fraction {
        if !share.is_finite() || share < 0.0 {
            let text = format!("`{}` is no share of RAM; all of RAM was taken", fraction.value);
            draft.warn(&fraction.file, Some(fraction.line), text);
            share = 1.0;
        } else if !(0.05..=1.0).contains(&share) {
            let text = format!(
                "the older zramd refuses a FRACTION of {share}, and zramd takes it; make sure that it is meant"
            );
            draft.warn(&fraction.file, Some(fraction.line), text);
        }
    }
    let ram = if (share - 1.0).abs() < f64::EPSILON { "ram".to_owned() } else { format!("ram * {share}") };
    let most = shell::mebibytes(variables.get("MAX_SIZE"), 8192, draft);
    let parts = if count > 1 { format!(" / {count}") } else { String::new() };
    format!("min({ram}, {most}){parts}")
}
