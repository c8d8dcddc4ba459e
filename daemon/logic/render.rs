//! Findings as text, with the line of the configuration underlined.

use annotate_snippets::{AnnotationKind, Level as Shown, Renderer, Snippet};

use crate::config::Loaded;
use crate::exit::ExitStatus;
use crate::finding::{Finding, Level, has_errors};
use crate::origin::Origin;
use crate::plan::{Decision, Item, Plan};
use crate::record::Target;
use crate::text;

/// Result of checking a configuration: one line, and the exit status.
pub fn verdict(plan: &Plan, loaded: &Loaded) -> (String, ExitStatus) {
    let count = counted(plan, loaded);
    // What others have set up is no mistake, unless it keeps something from being set up.
    let is_right = plan.problems.is_empty() && !has_errors(&plan.neighbours);
    let text = match (is_right, loaded.disabled_by_cmdline) {
        (false, _) => return (format!("still usable: {count}"), ExitStatus::Failure),
        (true, true) => {
            "no mistakes found, but the kernel command line has systemd.zram=0: nothing is used".to_owned()
        }
        (true, false) if loaded.merged.sections.is_empty() => {
            "nothing is configured: no section was found; `zramdctl init --now` proposes a configuration, and zramd.toml(5) lists the files that are read".to_owned()
        }
        (true, false) => format!("no mistakes found: {count}"),
    };
    (text, ExitStatus::Success)
}

/// The usable devices and RAM disks, then the sections of others, each with what becomes of it.
fn counted(plan: &Plan, loaded: &Loaded) -> String {
    let all =
        || plan.items.iter().filter(|item| matches!(item.target, Target::Device(_) | Target::Ramdisk(_)));
    let usable = |disk: bool| {
        let is_usable = |item: &&Item| {
            item.decision == Decision::Planned && matches!(item.target, Target::Ramdisk(_)) == disk
        };
        all().filter(is_usable).count()
    };
    let decided = |decision| all().filter(move |item| item.decision == decision);
    let explained = |item: &Item| format!("{} ({})", item.target, item.reason);
    let skipped = decided(Decision::Skipped).map(explained).collect();
    // Of an image, not all is known.
    let open = decided(Decision::Planned).filter(|item| !item.reason.is_empty()).map(explained).collect();
    let refused = decided(Decision::Refused).map(|item| item.target.to_string()).collect();
    let left_out = plan.left_out(loaded);
    let (off, mistaken): (Vec<_>, Vec<_>) = left_out.partition(|(_, is_off)| *is_off);
    let names = |sections: Vec<(&str, bool)>| sections.iter().map(|(name, _)| (*name).to_owned()).collect();
    let rest: [(Vec<String>, &str); 5] = [
        (open, "decided at boot"),
        (skipped, "skipped"),
        (refused, "refused"),
        (names(mistaken), "not usable"),
        (names(off), "switched off"),
    ];
    let rest = rest.into_iter().filter(|(names, _)| !names.is_empty());
    let rest = rest.map(|(names, what)| format!("; {} {what}: {}", names.len(), listed(&names)));
    count(usable(false), usable(true)) + &rest.collect::<String>()
}

/// The names, at most 20 of them.
pub fn listed(names: &[String]) -> String {
    let dots = if names.len() > MOST { ", …" } else { "" };
    names[..names.len().min(MOST)].join(", ") + dots
}

/// `2 zram devices, 1 RAM disk`.
pub fn count(devices: usize, ramdisks: usize) -> String {
    let plural = |count: usize, name: &str| format!("{count} {name}{}", if count == 1 { "" } else { "s" });
    format!("{}, {}", plural(devices, "zram device"), plural(ramdisks, "RAM disk"))
}

/// Most findings that are printed, and names in a line.
const MOST: usize = 20;

/// The findings to print: of more than 20 the worst, in their order, and a line with the number of the rest.
pub fn shown<'a>(findings: impl IntoIterator<Item = &'a Finding>) -> (Vec<&'a Finding>, Option<String>) {
    let mut ranked: Vec<(usize, &Finding)> = findings.into_iter().enumerate().collect();
    ranked.sort_by_key(|(_, finding)| finding.level);
    let rest = ranked.len().saturating_sub(MOST);
    ranked.truncate(MOST);
    ranked.sort_by_key(|(index, _)| *index);
    let line = (rest > 0).then(|| format!("{rest} more, which are not shown"));
    (ranked.into_iter().map(|(_, finding)| finding).collect(), line)
}

/// The findings to print, each with its position, the line underlined, and a correction.
pub fn render<'a>(findings: impl IntoIterator<Item = &'a Finding>, colour: bool) -> String {
    let renderer = if colour { Renderer::styled() } else { Renderer::plain() };
    let (findings, rest) = shown(findings);
    let rendered = findings.into_iter().map(|finding| render_one(finding, &renderer));
    rendered.chain(rest).collect::<Vec<_>>().join("\n\n") + "\n"
}

fn render_one(finding: &Finding, renderer: &Renderer) -> String {
    let level = match finding.level {
        Level::Error => Shown::ERROR,
        Level::Warning => Shown::WARNING,
        Level::Note => Shown::NOTE,
    };
    let nowhere = Origin::default();
    let origin = finding.place.as_ref().unwrap_or(&nowhere);
    let title = if origin.line == 0 && !origin.file.as_os_str().is_empty() {
        format!("{}: {}", origin.file.display(), finding.message)
    } else if origin.key.is_empty() {
        finding.message.clone()
    } else {
        format!("{}: {}", origin.key, finding.message)
    };
    // The renderer replaces what a terminal would hide in the source line.
    let (title, file) = (text::shown(title), text::shown(origin.file.display().to_string()));
    let mut group =
        level.primary_title(&title).elements(None::<Snippet<'_, annotate_snippets::Annotation<'_>>>);
    if origin.line > 0 {
        let snippet = Snippet::source(origin.source_line.as_ref())
            .line_start(origin.line as usize)
            .path(file.as_str())
            .annotation(AnnotationKind::Primary.span(origin.offset..origin.behind(origin.width)));
        group = group.element(snippet);
    }
    let remedy = text::shown(finding.remedy.as_str());
    if !remedy.is_empty() {
        group = group.element(Shown::HELP.message(remedy.as_str()));
    }
    renderer.render(&[group])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::Code;

    #[test]
    fn a_finding_without_a_line_is_one_line() {
        let found = Finding::new(Level::Warning, Code::SwapOff, "zram0", "zram0 is off", "");
        assert_eq!(render([&found], false), "warning: zram0 is off\n");
        let origin = Origin { file: "/proc/cmdline".into(), ..Origin::default() };
        let found = Finding::error(origin, "it has a mistake");
        assert_eq!(render([&found], false), "error: /proc/cmdline: it has a mistake\n");
    }

    #[test]
    fn dots_are_for_names_that_are_not_listed() {
        let names: Vec<String> = (1..=21).map(|number: u32| format!("zram{number}")).collect();
        assert!(listed(&names[..20]).ends_with(", zram19, zram20"));
        assert!(listed(&names).ends_with(", zram19, zram20, …"));
    }
}
