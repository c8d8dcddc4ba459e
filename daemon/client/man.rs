//! `man`: the manual page, from the one definition of the command line.

use std::io;

use clap::{Command, CommandFactory};
use clap_mangen::Man;

use super::args::Cli;
use super::columns::COLUMNS;
use super::out;
use crate::engine::Error;
use crate::logic::exit::ExitStatus;

const NAME: &str = "zramdctl";
const SECTION: &str = "8";

/// Exit statuses with their meanings.
const STATUSES: [(ExitStatus, &str); 9] = [
    (ExitStatus::Success, "Done, or nothing to do."),
    (ExitStatus::Failure, "It failed, or the configuration has mistakes."),
    (ExitStatus::Usage, "Wrong usage."),
    (ExitStatus::Inactive, "A named object is inactive, or doctor found warnings only."),
    (ExitStatus::NotFound, "There is no such device or disk."),
    (ExitStatus::Unsupported, "The kernel lacks zram or a feature that is needed."),
    (ExitStatus::Partly, "Some of several targets failed."),
    (ExitStatus::Refused, "Refused because it would hurt: memory would run out, or contents would be lost."),
    (ExitStatus::NotPermitted, "Not permitted."),
];

const FILES: [(&str, &str); 3] = [
    ("/etc/zramd/zramd.toml", "The configuration of the owner of the machine."),
    ("/usr/lib/zramd/zramd.toml", "That of the distribution, of lower precedence."),
    (
        "/run/zramd/zramd.toml",
        "That of the moment, of higher precedence. Beside each of the three, zramd.toml.d/*.toml is read too.",
    ),
];

const EXAMPLES: [(&str, &str); 5] = [
    ("zramdctl", "What there is, one line each."),
    ("zramdctl list -o +SAVED,HUGE", "With two columns more."),
    ("zramdctl status zram0", "One device, with its numbers explained."),
    ("zramdctl show zram0 -p SavedBytes --value", "One number, for a script."),
    (
        "zramdctl stats >zramd.prom.new && mv zramd.prom.new zramd.prom",
        "A sample for Prometheus, in the folder that the text-file collector of its node exporter reads.",
    ),
];

/// Runs `man`.
pub fn run() -> Result<ExitStatus, Error> {
    let page = page().map_err(|error| Error::failed(format!("cannot write the page: {error}")))?;
    out::print(&page)?;
    Ok(ExitStatus::Success)
}

/// The page as roff.
pub fn page() -> io::Result<String> {
    let command = Cli::command();
    let man = Man::new(command.clone()).section(SECTION).manual("zramd");
    let mut out = Vec::new();
    man.render_title(&mut out)?;
    man.render_name_section(&mut out)?;
    man.render_synopsis_section(&mut out)?;
    man.render_description_section(&mut out)?;
    let mut out = text(&out);
    out.push_str(&plain(command.get_after_help().map(ToString::to_string).unwrap_or_default().as_str()));
    out.push_str("\n.SH COMMANDS\n");
    for one in command.get_subcommands().filter(|one| !one.is_hide_set()) {
        out.push_str(&subcommand(NAME, one)?);
    }
    let mut options = Vec::new();
    man.render_options_section(&mut options)?;
    out.push_str(&text(&options));
    out.push_str(".SH EXIT STATUS\n");
    for (status, meaning) in STATUSES {
        out.push_str(&tagged(&status.code().to_string(), meaning));
    }
    out.push_str(".SH ENVIRONMENT\n");
    out.push_str(&tagged(
        "NO_COLOR",
        "Switches colours off when it is not empty; --color has the last word.",
    ));
    out.push_str(".SH FILES\n");
    for (path, meaning) in FILES {
        out.push_str(&tagged(path, meaning));
    }
    out.push_str(".SH EXAMPLES\n");
    for (example, meaning) in EXAMPLES {
        out.push_str(&tagged(example, meaning));
    }
    out.push_str(".SH SEE ALSO\n");
    out.push_str(".BR zramctl (8),\n.BR swapon (8),\n.BR systemctl (1)\n");
    Ok(out)
}

/// One command, or each of those below it.
fn subcommand(parents: &str, command: &Command) -> io::Result<String> {
    let name = format!("{parents} {}", command.get_name());
    if command.has_subcommands() {
        return command.get_subcommands().map(|one| subcommand(&name, one)).collect();
    }
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let heading = name.strip_prefix(NAME).unwrap_or(&name).trim();
    let mut out = format!(".SS {}\n", plain(heading));
    let man = Man::new(command.clone().bin_name(name.clone()).disable_help_flag(true));
    let mut synopsis = Vec::new();
    man.render_synopsis_section(&mut synopsis)?;
    out.push_str(&body(&synopsis));
    out.push_str(&format!(".PP\n{}.\n", plain(&about)));
    let mut options = Vec::new();
    man.render_options_section(&mut options)?;
    out.push_str(&body(&options));
    if command.get_name() == "list" {
        out.push_str(".PP\nColumns; those with * are shown when nothing else is asked for:\n");
        for column in COLUMNS {
            let mark = if column.default { "*" } else { "" };
            let also = column.alias.map_or_else(String::new, |alias| format!(" (also {alias})"));
            out.push_str(&tagged(&format!("{}{mark}", column.name), &format!("{}{also}", column.meaning)));
        }
    }
    Ok(out)
}

fn text(roff: &[u8]) -> String {
    String::from_utf8_lossy(roff).into_owned()
}

/// A section without its heading, and without the definitions that clap_mangen begins each with.
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

fn tagged(tag: &str, meaning: &str) -> String {
    format!(".TP\n\\fB{}\\fR\n{}\n", plain(tag), plain(meaning))
}

/// Text with nothing in it that roff would take for more.
fn plain(text: &str) -> String {
    let text = text.replace('\\', "\\e").replace('-', "\\-").replace('\'', "\\(aq").replace('"', "\\(dq");
    if text.starts_with('.') { format!("\\&{text}") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_and_option_is_on_the_page() {
        let page = page().unwrap();
        assert!(page.contains(".TH zramdctl 8"), "{}", &page[..200]);
        for one in Cli::command().get_subcommands().filter(|one| !one.is_hide_set()) {
            let heading = format!(".SS {}", plain(one.get_name()));
            assert!(page.contains(&heading), "{heading}");
        }
        for word in ["\\-\\-output\\-all", "\\-\\-no\\-block", "COMP\\-RATIO*", ".SS swap on", "EXIT STATUS"]
        {
            assert!(page.contains(word), "{word}");
        }
        assert!(!page.contains("completions"), "hidden");
    }

    #[test]
    fn text_stays_text() {
        assert_eq!(plain(".a\\b-c's \"d\""), "\\&.a\\eb\\-c\\(aqs \\(dqd\\(dq");
    }
}
