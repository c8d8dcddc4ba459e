//! zram-tools of Debian: `/etc/default/zramswap`.

use std::path::PathBuf;

use super::document::{self, Draft, Section};
use super::shell::{self, Variables};
use logic::overlay::quoted;

const KNOWN: [&str; 4] = ["ALGO", "PERCENT", "SIZE", "PRIORITY"];
/// The program's default size in MiB.
const SIZE: u64 = 256;

/// Reads the file.
pub fn import(files: &[(PathBuf, String)]) -> Draft {
    let mut draft = Draft::default();
    let Some((file, _)) = files.last() else { return draft };
    let variables = shell::read("zram-tools", &KNOWN, files, &mut draft);
    let mut section = Section::new("zram0", file.clone(), None);
    size(&variables, &mut section, &mut draft);
    let algorithm = variables.get("ALGO");
    let value = shell::algorithm(algorithm, "lz4", &mut draft);
    let is = section.set("compression-algorithm", &value);
    draft.row(shell::was(algorithm, "ALGO", "lz4"), is, "auto: another one where the kernel lacks it");
    let priority = variables.get("PRIORITY");
    let value = shell::priority(priority, 100, &mut draft);
    let is = section.set("swap-priority", &value.to_string());
    draft.row(shell::was(priority, "PRIORITY", "100"), is, "");
    draft.sections.push(section);
    draft
}

/// PERCENT of RAM, which takes precedence over SIZE in MiB.
fn size(variables: &Variables, section: &mut Section, draft: &mut Draft) {
    let (percent, size) = (variables.get("PERCENT"), variables.get("SIZE"));
    if let Some(percent) = percent {
        let plain = percent.value.trim().trim_end_matches('%');
        if let Ok(number) = plain.parse::<u32>() {
            if plain != percent.value {
                let text =
                    format!("zram-tools cannot work with `{}`; it was taken as {number}%", percent.value);
                draft.warn(&percent.file, Some(percent.line), text);
            }
            let is = section.set("zram-size", &quoted(&format!("{number}%")));
            draft.row(percent.text(), is, "of RAM in whole MiB, so up to 1 MiB less per 100%");
            if let Some(size) = size {
                draft.row(size.text(), "", "PERCENT counts instead");
            }
            return;
        }
        let text = format!("`{}` is no whole percentage of RAM; SIZE was taken", percent.value);
        draft.warn(&percent.file, Some(percent.line), text);
        draft.row(percent.text(), "", "no percentage");
    }
    let value = shell::mebibytes(size, SIZE, draft);
    let is = section.set("zram-size", &document::size(&value));
    draft.row(shell::was(size, "SIZE", "256"), is, "");
}
