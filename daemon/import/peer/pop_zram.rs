//! `Pop!_OS`: `/etc/pop-zram`, and `/etc/default/pop-zram`, which its program does not read.

use std::path::{Path, PathBuf};

use super::document::{self, Draft, Section};
use super::shell::{self, Variables};

const KNOWN: [&str; 5] = ["ALGO", "MAX_SIZE", "PORTION", "SWAPPINESS", "PAGE_CLUSTERS"];
/// Installed by the package, but not read by the program.
const IGNORED: &str = "/etc/default/pop-zram";

/// Reads the files.
pub fn import(files: &[(PathBuf, String)]) -> Draft {
    let mut draft = Draft::default();
    let Some((file, _)) = files.last() else { return draft };
    let variables = shell::read("pop-zram", &KNOWN, files, &mut draft);
    let ignored =
        |name: &&str| variables.get(name).is_some_and(|variable| variable.file == Path::new(IGNORED));
    let names: Vec<&str> = KNOWN.into_iter().filter(ignored).collect();
    if !names.is_empty() {
        let text = format!(
            "pop-zram never reads this file but /etc/pop-zram; imported anyway: {}",
            names.join(", ")
        );
        draft.warn(IGNORED, None, text);
    }
    let mut section = Section::new("zram0", file.clone(), None);
    size(&variables, &mut section, &mut draft);
    let algorithm = variables.get("ALGO");
    let value = shell::algorithm(algorithm, "zstd", &mut draft);
    let is = section.set("compression-algorithm", &value);
    draft.row(shell::was(algorithm, "ALGO", "zstd"), is, "auto: another one where the kernel lacks it");
    let is = section.set("swap-priority", "1000");
    draft.row("priority is always 1000", is, "");
    draft.sections.push(section);
    tuning(&variables, file, &mut draft);
    draft
}

/// PORTION percent of RAM, at most MAX_SIZE MiB.
fn size(variables: &Variables, section: &mut Section, draft: &mut Draft) {
    let (portion, max) = (variables.get("PORTION"), variables.get("MAX_SIZE"));
    let percent: i64 = shell::number(portion, 100, draft);
    // As in the program.
    let percent = percent.clamp(1, 200);
    let most = shell::mebibytes(max, 16384, draft);
    let ram = if percent == 100 { "ram".to_owned() } else { format!("{percent}%") };
    let is = section.set("zram-size", &document::size(&format!("min({ram}, {most})")));
    let was = [shell::was(portion, "PORTION", "100"), shell::was(max, "MAX_SIZE", "16384")].join(", ");
    draft.row(was, is, "of RAM in whole MiB, so up to 2 MiB less");
}

/// The program's other kernel settings.
fn tuning(variables: &Variables, file: &Path, draft: &mut Draft) {
    let zstd = variables.get("ALGO").is_none_or(|algorithm| algorithm.value == "zstd");
    let cluster = u32::from(!zstd);
    let mut section = Section::new("vm", file.to_owned(), None);
    section.set("tune", "true");
    // Limited to the range of zramd.
    for (name, key, default, most) in
        [("SWAPPINESS", "swappiness", 180_u32, 200), ("PAGE_CLUSTERS", "page-cluster", cluster, 10)]
    {
        let variable = variables.get(name);
        let mut value = shell::number(variable, default, draft);
        if let Some(variable) = variable.filter(|_| value > most) {
            let text = format!("{value} is no {key} from 0 to {most}; {default} was taken");
            draft.warn(&variable.file, Some(variable.line), text);
            value = default;
        }
        let is = section.set(key, &value.to_string());
        draft.row(shell::was(variable, name, &default.to_string()), is, "while the swap is in use");
    }
    draft.sections.push(section);
    let text = "zramd does not set vm.min_free_kbytes; to keep what pop-zram sets, write 1% of RAM into a file in /etc/sysctl.d";
    draft.warn(file, None, text);
}

#[cfg(test)]
mod tests {
    use crate::peer::{Peer, Values, import};

    #[test]
    fn a_value_that_zramd_does_not_take_becomes_the_default() {
        for (line, expected) in [
            ("SWAPPINESS=200", "swappiness = 200"),
            ("SWAPPINESS=201", "swappiness = 180"),
            ("PAGE_CLUSTERS=10", "page-cluster = 10"),
            ("PAGE_CLUSTERS=11", "page-cluster = 0"),
        ] {
            let files = [("/etc/pop-zram".into(), format!("{line}\n"))];
            let toml = import(Peer::PopZram, &files, &Values::default()).toml;
            assert!(toml.lines().any(|found| found == expected), "{line}: {toml}");
        }
    }
}
