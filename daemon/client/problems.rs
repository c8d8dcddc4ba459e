//! Findings as text, each with its remedy.

use super::style::Style;
use logic::finding::{Finding, Level};
use logic::text::shown;

/// All findings, two lines each.
pub fn render<'a>(findings: impl IntoIterator<Item = &'a Finding>, style: Style) -> String {
    let mut out = String::new();
    for finding in findings {
        let level = match finding.level {
            Level::Error => style.error("error:"),
            Level::Warning => style.warning("warning:"),
            Level::Note => style.dim("note:"),
        };
        out.push_str(&format!("{level} {}\n", finding.sentence()));
        if !finding.remedy.is_empty() {
            out.push_str(&format!("  {} {}\n", style.bold("fix:"), shown(finding.remedy.as_str())));
        }
    }
    out
}

/// `1 error, 2 warnings`, or `no problems`.
pub fn count(findings: &[Finding]) -> String {
    let of = |level| findings.iter().filter(|finding| finding.level == level).count();
    let words: Vec<String> = [(Level::Error, "error"), (Level::Warning, "warning"), (Level::Note, "note")]
        .into_iter()
        .map(|(level, name)| (of(level), name))
        .filter(|(count, _)| *count > 0)
        .map(|(count, name)| plural(count, name))
        .collect();
    if words.is_empty() { "no problems".to_owned() } else { words.join(", ") }
}

/// `1 device`, `2 devices`.
pub fn plural(count: usize, name: &str) -> String {
    format!("{count} {name}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn each_finding_has_its_fix() {
        let findings = fixture::machine().problems;
        assert_eq!(
            render(&findings, Style::default()),
            "error: 3 writes to zram1 failed for lack of memory\n\
             \x20 fix: raise or remove zram-resident-limit (now 64.0 MiB)\n\
             warning: zswap is on: it compresses pages before they reach any swap device, so zram stays nearly empty\n\
             \x20 fix: write enabled = false into [zswap], or boot with zswap.enabled=0\n"
        );
        assert_eq!(count(&findings), "1 error, 1 warning");
        assert_eq!(count(&[]), "no problems");
    }
}
