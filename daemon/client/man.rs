//! `man`: the manual page, generated from the definition of the command line.

use std::io;

use clap::{Arg, ArgAction, Command, CommandFactory};
use clap_mangen::Man;

use super::args::{Cli, GROUPS, of_group};
use super::columns::{COLUMNS, Column};
use super::out;
use engine::Error;
use logic::exit::{self, ExitStatus};
use logic::figure::{FIGURES, Figure, Unit};

const NAME: &str = "zramdctl";

/// Date of the last change of the pages, set by hand: a build date would make builds irreproducible.
pub const DATE: &str = "2026-11-21";

/// Maximum length of a line.
const WIDTH: usize = 79;

const FILES: [(&str, &str); 5] = [
    ("/etc/zramd/zramd.toml", "The configuration of the administrator."),
    ("/etc/zramd/zramd.toml.d/99-zramdctl.toml", "The changes of set, unset and edit."),
    ("/usr/lib/zramd/zramd.toml", "The configuration of the distribution, with lower precedence."),
    (
        "/run/zramd/zramd.toml",
        "The runtime configuration, with higher precedence. Beside each of the three, zramd.toml.d/*.toml is read too.",
    ),
    (
        "/usr/share/zramd/zramdctl.schema.json",
        "JSON schema of what bench run, bench show, cat-config, check, doctor, plan, report, stats and status print as JSON.",
    ),
];

const EXAMPLES: [(&str, &str); 6] = [
    ("zramdctl", "Lists devices and RAM disks, one line each."),
    ("zramdctl list -o +SAVED,HUGE", "With two additional columns."),
    ("zramdctl status zram0", "One device, with its figures explained."),
    ("zramdctl show zram0 -p SavedBytes --value", "One number, for a script."),
    (
        "zramdctl set zram0 zram-size=8GiB swap-priority=50",
        "Changes size and priority, now and at every boot. Nothing is written if the change has a mistake or is refused.",
    ),
    ("zramdctl stats", "A sample for Prometheus; zramd(8) names the units that pass it on."),
];

/// Captured output of commands: name of the block that `tests/captures` wrote, the command, and its purpose.
const OUTPUTS: [(&str, &str, &str); 5] = [
    ("list", "zramdctl", "Swap, a file system on zram and a tmpfs:"),
    ("status", "zramdctl status zram1", "One device in words:"),
    (
        "top",
        "zramdctl top -n 1",
        "The current activity; IN/S and OUT/S are bytes read from the device and written to it:",
    ),
    ("doctor", "zramdctl doctor", "After the configuration was changed; each problem has a fix:"),
    ("check", "zramdctl check five-mistakes.toml", "A mistake in the configuration:"),
];

/// The pages that contain the blocks.
const PAGES: [&str; 2] = [include_str!("../../README.md"), include_str!("../../packaging/docs/tour.md")];

const SEE_ALSO: [(&str, u8); 7] = [
    ("zramd", 8),
    ("zramd-setup", 8),
    ("zramd.toml", 5),
    ("org.zramd1", 5),
    ("zramctl", 8),
    ("swapon", 8),
    ("systemctl", 1),
];

pub fn run() -> Result<ExitStatus, Error> {
    let page = page().map_err(|error| Error::failed(format!("cannot write the page: {error}")))?;
    out::data(&page);
    Ok(ExitStatus::Success)
}

/// The page in roff.
pub fn page() -> io::Result<String> {
    let command = Cli::command();
    let man = Man::new(command.clone());
    let mut out =
        format!(".TH ZRAMDCTL 1 {DATE} \"zramd {}\" zramd\n.nh\n.ad l\n", env!("CARGO_PKG_VERSION"))
            .into_bytes();
    man.render_name_section(&mut out)?;
    let mut description = Vec::new();
    man.render_description_section(&mut description)?;
    let mut out = text(&out);
    out.push_str(".SH SYNOPSIS\n");
    let uses = [
        " [\\fIOPTION\\fR...] \\fICOMMAND\\fR [\\fIARGUMENT\\fR...]",
        " [\\fIOPTION\\fR...] [\\fIPATTERN\\fR...]",
    ];
    out.push_str(&uses.map(|arguments| format!(".B {NAME}\n{arguments}\n")).join(".br\n"));
    out.push_str(&text(&description));
    out.push_str(&marked(command.get_after_help().map(ToString::to_string).unwrap_or_default().as_str()));
    out.push_str("\n.SH COMMANDS\n");
    for (heading, names) in GROUPS {
        let names: Vec<String> = names.iter().map(|name| format!("\\fB{}\\fR", plain(name))).collect();
        out.push_str(&format!(".TP\n{}\n{}\n", plain(heading), names.join(", ")));
    }
    for (_, names) in GROUPS {
        for one in of_group(&command, names) {
            out.push_str(&subcommand(NAME, one)?);
        }
    }
    let mut options = Vec::new();
    man.render_options_section(&mut options)?;
    out.push_str(&text(&options));
    out.push_str(&figures());
    out.push_str(".SH EXIT STATUS\n");
    for (status, meaning) in exit::STATUSES {
        out.push_str(&tagged(&status.code().to_string(), meaning));
    }
    out.push_str(".SH ENVIRONMENT\n");
    out.push_str(&tagged("NO_COLOR", "Disables colours if it is not empty; --color takes precedence."));
    out.push_str(&tagged(
        "SYSTEMD_PAGER, PAGER",
        "The pager for long output on a terminal, with arguments; the first that is set is used, and an empty one or cat is none. Otherwise pager, less or more is used.",
    ));
    out.push_str(&tagged(
        "SYSTEMD_LESS, SYSTEMD_LESSCHARSET",
        "The options of less, otherwise FRSXMK, and its character set.",
    ));
    out.push_str(&tagged(
        "SYSTEMD_PAGERSECURE",
        "A true value keeps the pager from running programs; the pager is less then. If it is not set, this is so after sudo, pkexec and doas.",
    ));
    out.push_str(&tagged(
        "SYSTEMD_LOG_LEVEL, SYSTEMD_LOG_TARGET",
        "Level and target of log messages, as for zramd(8); --log-level takes precedence.",
    ));
    out.push_str(&tagged(
        "VISUAL, EDITOR",
        "The editor of edit, with arguments; the first that is set is used.",
    ));
    out.push_str(".SH FILES\n");
    for (path, meaning) in FILES {
        out.push_str(&tagged(path, meaning));
    }
    out.push_str(".SH EXAMPLES\n");
    for (example, meaning) in EXAMPLES {
        out.push_str(&tagged(example, meaning));
    }
    for (name, command, meaning) in OUTPUTS {
        out.push_str(&tagged(command, meaning));
        out.push_str(&captured(name));
    }
    out.push_str(".SH SEE ALSO\n");
    for (name, section) in SEE_ALSO {
        out.push_str(&format!(".BR {} ({section}),\n", plain(name)));
    }
    Ok(tidy(out.trim_end_matches(",\n")))
}

/// The captured output in the block of this name.
pub fn captured(name: &str) -> String {
    let mut blocks = PAGES.iter().flat_map(|page| page.split("<!-- capture: ").skip(1));
    let block = blocks.find(|block| block.split(' ').next() == Some(name));
    let lines = block.unwrap_or_default().split("```\n").nth(1).unwrap_or_default().lines();
    // Verbatim, in any encoding of the page.
    let line = |line: &str| match plain(line) {
        line if line.is_empty() => "\\&\n".to_owned(),
        line => format!("{}\n", ascii(&line)),
    };
    format!(".PP\n.nf\n{}.fi\n", lines.map(line).collect::<String>())
}

/// Replaces letters that are not ASCII by escapes of groff_char(7) and mandoc_char(7).
fn ascii(text: &str) -> String {
    let one = |letter: char| {
        if letter.is_ascii() { letter.to_string() } else { format!("\\[u{:04X}]", u32::from(letter)) }
    };
    text.chars().map(one).collect()
}

/// The page in the form that linters want: lines not too long, each sentence on a new line, no trailing blanks.
pub fn tidy(page: &str) -> String {
    let mut out = String::new();
    let (mut verbatim, mut tag) = (false, false);
    for line in page.lines().map(str::trim_end).filter(|line| !is_definition(line)) {
        // clap_mangen uses a string for apostrophes.
        let line = line.replace("\\*(Aq", "\\(aq");
        let request = line.starts_with(['.', '\'']);
        if line == ".nf" || line == ".fi" {
            verbatim = line == ".nf";
        }
        if !verbatim && (line.is_empty() || line == ".br" && out.ends_with("\n.br\n")) {
            continue;
        }
        if request || verbatim || tag {
            out.push_str(&line);
            out.push('\n');
        } else {
            fill(&mut out, &line);
        }
        tag = line == ".TP";
    }
    out
}

/// Appends one paragraph, a sentence per line.
fn fill(out: &mut String, text: &str) {
    let mut column = 0;
    let mut ended = false;
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        let sentence = ended && !word.starts_with(|letter: char| letter.is_lowercase());
        if column > 0 && (sentence || column + 1 + word.chars().count() > WIDTH) {
            out.push('\n');
            column = 0;
        } else if column > 0 {
            out.push(' ');
            column += 1;
        }
        if column == 0 && word.starts_with(['.', '\'']) {
            out.push_str("\\&");
        }
        out.push_str(word);
        column += word.chars().count();
        ended = word.ends_with(['.', '!', '?']);
    }
    out.push('\n');
}

/// One command, or each of its subcommands.
fn subcommand(parents: &str, command: &Command) -> io::Result<String> {
    let name = format!("{parents} {}", command.get_name());
    if command.has_subcommands() {
        return command.get_subcommands().map(|one| subcommand(&name, one)).collect();
    }
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    // Both begin with the same line.
    let more = command.get_long_about().map(ToString::to_string).unwrap_or_default();
    let more = more.strip_prefix(&about).unwrap_or_default().trim();
    let heading = name.strip_prefix(NAME).unwrap_or(&name).trim();
    let mut out = format!(".SS {}\n", plain(heading));
    let man = Man::new(command.clone().bin_name(name.clone()).disable_help_flag(true));
    let options = command.get_arguments().filter(|argument| !argument.is_positional());
    let arguments: String = options.chain(command.get_positionals()).map(synopsis).collect();
    out.push_str(&format!("\\fB{}\\fR{arguments}\n", plain(&name)));
    out.push_str(&format!(".PP\n{}.\n{}\n", marked(&about), marked(more)));
    let mut options = Vec::new();
    man.render_options_section(&mut options)?;
    out.push_str(&body(&options));
    if heading == "list" {
        out.push_str(".PP\nColumns; those with * are the default:\n");
        for (name, meaning) in COLUMNS.iter().map(Column::entry) {
            out.push_str(&tagged(&name, &meaning));
        }
    }
    Ok(out)
}

/// An argument in a synopsis, with a blank before it.
fn synopsis(argument: &Arg) -> String {
    let names = argument.get_value_names().unwrap_or_default();
    let value = names.first().map_or_else(String::new, |name| format!("\\fI{}\\fR", plain(name)));
    let more = if matches!(argument.get_action(), ArgAction::Append) && argument.is_positional() {
        "..."
    } else {
        ""
    };
    let flag = match (argument.get_short(), argument.get_long()) {
        (Some(short), _) => format!("\\fB\\-{short}\\fR"),
        (None, Some(long)) => format!("\\fB\\-\\-{}\\fR", plain(long)),
        (None, None) if argument.is_required_set() => return format!(" {value}{more}"),
        (None, None) => return format!(" [{value}{more}]"),
    };
    // The value of `--json` is attached by `=`, and may be left out.
    let takes = argument.get_action().takes_values() && !argument.is_require_equals_set();
    if takes { format!(" [{flag} {value}]") } else { format!(" [{flag}]") }
}

/// Each figure with its names.
fn figures() -> String {
    let mut out = ".SH FIGURES\nThe name of a figure in texts and tables, and in other places:\n".to_owned();
    for Figure { name, label, metric, .. } in FIGURES.iter().filter(|figure| !figure.label.is_empty()) {
        let columns = COLUMNS.iter().find(|column| column.figure() == Some(*name));
        let column = columns.map_or_else(String::new, |column| format!("column {} of list; ", column.name));
        let unit = if metric.unit == Unit::None { "" } else { "_" };
        let total = if metric.counter { "_total" } else { "" };
        let places = format!(
            "({column}{name} on the bus and in show; zramd_{}{unit}{}{total} in stats)",
            metric.name,
            metric.unit.word()
        );
        out.push_str(&tagged(label, &format!("{} {places}.", metric.help.trim_end_matches('.'))));
    }
    out
}

fn text(roff: &[u8]) -> String {
    String::from_utf8_lossy(roff).into_owned()
}

/// A section without its heading, and without the definitions that clap_mangen puts first.
fn body(roff: &[u8]) -> String {
    let mut out = String::new();
    for line in text(roff).lines().filter(|line| !line.starts_with(".SH") && !is_definition(line)) {
        out.push_str(line);
        out.push('\n');
    }
    out
}

fn is_definition(line: &str) -> bool {
    line.starts_with(".ie ") || line.starts_with(".el ")
}

/// An item of a tagged list.
pub fn tagged(tag: &str, meaning: &str) -> String {
    format!(".TP\n\\fB{}\\fR\n{}\n", plain(tag), plain(meaning))
}

/// Text with words between backticks in bold.
pub fn marked(text: &str) -> String {
    let mark = |(index, part): (usize, &str)| match index % 2 {
        0 => plain(part),
        _ => format!("\\fB{}\\fR", plain(part)),
    };
    text.split('`').enumerate().map(mark).collect()
}

/// Text with roff characters escaped.
pub fn plain(text: &str) -> String {
    let text = text.replace('\\', "\\e").replace('-', "\\-").replace('\'', "\\(aq").replace('"', "\\(dq");
    if text.starts_with('.') { format!("\\&{text}") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_and_option_is_on_the_page() {
        let page = page().unwrap();
        assert!(page.contains(".TH ZRAMDCTL 1"), "{}", &page[..200]);
        for one in Cli::command().get_subcommands().filter(|one| !one.is_hide_set()) {
            let heading = format!(".SS {}", plain(one.get_name()));
            assert!(page.contains(&heading), "{heading}");
        }
        for word in [
            "\\-\\-output\\-all",
            "\\-\\-no\\-block",
            "MOUNTPOINT*",
            "COMP\\-RATIO",
            ".SS swap on",
            "EXIT STATUS",
        ] {
            assert!(page.contains(word), "{word}");
        }
        assert!(!page.contains("completions"), "hidden");
        assert!(page.contains("\\fICOLUMNS\\fR]") && page.contains("[\\fIPATTERN\\fR...]"), "{page}");
        let grouped: usize = GROUPS.iter().map(|(_, names)| of_group(&Cli::command(), names).count()).sum();
        let listed: usize = GROUPS.iter().map(|(_, names)| names.len()).sum();
        let shown = Cli::command().get_subcommands().filter(|one| !one.is_hide_set()).count();
        assert_eq!([grouped, listed], [shown, shown], "each command is in one group");
        for (name, ..) in OUTPUTS {
            assert!(captured(name).lines().count() > 4, "no page has the output {name}");
        }
    }

    #[test]
    fn pages_are_tidied() {
        let page = ".ie \\n(.g .ds Aq \\(aq\n.TP\n\\fBa. B\\fR \nOne. Two.  3 \\*(Aqfour\\*(Aq\n.br\n\n.br\n.nf\nA.\n\nB\n.fi\n";
        assert_eq!(tidy(page), ".TP\n\\fBa. B\\fR\nOne.\nTwo.\n3 \\(aqfour\\(aq\n.br\n.nf\nA.\n\nB\n.fi\n");
        let long = tidy(&format!("{} .x\n", "y".repeat(78)));
        assert_eq!(long, format!("{}\n\\&.x\n", "y".repeat(78)));
    }

    #[test]
    fn text_stays_text() {
        assert_eq!(marked("a `b-c` d"), "a \\fBb\\-c\\fR d");
        assert_eq!(plain(".a\\b-c's \"d\""), "\\&.a\\eb\\-c\\(aqs \\(dqd\\(dq");
    }
}
