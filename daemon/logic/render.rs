//! Problems as text: with the line underlined for terminals, on one line for the journal.

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};

use crate::config::Loaded;
use crate::config::problem::{Problem, Severity};
use crate::exit::ExitStatus;
use crate::plan::{Decision, Item, Plan};
use crate::record::Target;

/// Result of checking a configuration: one line, and the exit status.
pub fn verdict(plan: &Plan, loaded: &Loaded) -> (String, ExitStatus) {
    let usable = plan.items.iter().filter(|item| item.decision == Decision::Planned);
    let (devices, others): (Vec<&Target>, Vec<&Target>) =
        usable.map(|item| &item.target).partition(|target| matches!(target, Target::Device(_)));
    let disks = others.iter().filter(|target| matches!(target, Target::RamDisk(_))).count();
    let is_skipped =
        |item: &&Item| item.decision == Decision::Skipped && matches!(item.target, Target::Device(_));
    let skipped = plan.items.iter().filter(is_skipped);
    let skipped: Vec<String> = skipped.map(|item| format!("{} ({})", item.target, item.reason)).collect();
    let mut count = count(devices.len(), disks);
    if !skipped.is_empty() {
        count.push_str(&format!("; {} skipped: {}", skipped.len(), skipped.join(", ")));
    }
    if plan.problems.is_empty() && loaded.disabled_by_cmdline {
        (
            "no mistakes found, but the kernel command line has systemd.zram=0: nothing is used".to_owned(),
            ExitStatus::Success,
        )
    } else if plan.problems.is_empty() && loaded.merged.sections.is_empty() {
        let text = "nothing is configured: no section was found; `zramdctl init --now` proposes a configuration, and zramd.toml(5) lists the files that are read";
        (text.to_owned(), ExitStatus::Success)
    } else if plan.problems.is_empty() {
        (format!("no mistakes found: {count}"), ExitStatus::Success)
    } else {
        (format!("still usable: {count}"), ExitStatus::Failure)
    }
}

/// `2 zram devices, 1 RAM disk`.
pub fn count(devices: usize, ramdisks: usize) -> String {
    let plural = |count: usize, name: &str| format!("{count} {name}{}", if count == 1 { "" } else { "s" });
    format!("{}, {}", plural(devices, "zram device"), plural(ramdisks, "RAM disk"))
}

/// All problems, each with its position, the line underlined, and a correction.
pub fn render(problems: &[Problem], colour: bool) -> String {
    let renderer = if colour { Renderer::styled() } else { Renderer::plain() };
    let rendered: Vec<String> = problems.iter().map(|problem| render_one(problem, &renderer)).collect();
    rendered.join("\n\n") + "\n"
}

fn render_one(problem: &Problem, renderer: &Renderer) -> String {
    let level = match problem.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let origin = &problem.origin;
    let title = if origin.line == 0 && !origin.file.as_os_str().is_empty() {
        format!("{}: {}", origin.file.display(), problem.message)
    } else if origin.key.is_empty() {
        problem.message.clone()
    } else {
        format!("{}: {}", origin.key, problem.message)
    };
    let file = origin.file.display().to_string();
    let mut group =
        level.primary_title(&title).elements(None::<Snippet<'_, annotate_snippets::Annotation<'_>>>);
    if origin.line > 0 {
        let byte = |chars: u32| {
            origin
                .source_line
                .char_indices()
                .nth(chars as usize)
                .map_or(origin.source_line.len(), |(at, _)| at)
        };
        let start = byte(origin.column - 1);
        let end = byte(origin.column - 1 + origin.width).max(start);
        let snippet = Snippet::source(origin.source_line.as_str())
            .line_start(origin.line as usize)
            .path(file.as_str())
            .annotation(AnnotationKind::Primary.span(start..end));
        group = group.element(snippet);
    }
    if let Some(hint) = &problem.hint {
        group = group.element(Level::HELP.message(hint.as_str()));
    }
    renderer.render(&[group])
}

/// `/etc/zramd/zramd.toml:3:9: zram0.zram-size: what is wrong (what to write)`. Always one line, even if quoted text
/// has several: each line of the kernel log is an entry of its own.
pub fn one_line(problem: &Problem) -> String {
    let origin = &problem.origin;
    let mut text = String::new();
    if !origin.file.as_os_str().is_empty() {
        text.push_str(&origin.file.display().to_string());
        if origin.line > 0 {
            text.push_str(&format!(":{}:{}", origin.line, origin.column));
        }
        text.push_str(": ");
    }
    if !origin.key.is_empty() {
        text.push_str(&format!("{}: ", origin.key));
    }
    text.push_str(&problem.text());
    let visible = |c: char| if c.is_control() { c.escape_default().to_string() } else { c.to_string() };
    text.chars().map(visible).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::problem::Origin;

    #[test]
    fn what_is_quoted_cannot_begin_a_line_of_its_own() {
        let origin = Origin { key: "a\nb".to_owned(), ..Origin::default() };
        let problem = Problem::error(origin, "`\u{1b}[31m` is unknown").hint("write\tb");
        assert_eq!(one_line(&problem), r"a\nb: `\u{1b}[31m` is unknown (write\tb)");
    }
}
