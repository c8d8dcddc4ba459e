//! The pager for long output on a terminal, chosen and started as systemd's tools do.

use std::ffi::OsString;
use std::process::{Child, Command, Stdio};

use super::out;
use logic::text::truth;

/// Pagers that are tried, and systemd's options for less: quit if it fits on one screen, keep colours, long lines and the screen.
const PAGERS: [&str; 3] = ["pager", "less", "more"];
const LESS: &str = "FRSXMK";

/// A running pager. It shows what is printed until it is dropped, which waits for its end.
#[derive(Debug)]
pub struct Pager(Child);

impl Pager {
    /// Starts a pager, if results go to a terminal, and one is wanted and installed.
    pub fn start() -> Option<Pager> {
        if !out::has_terminal() {
            return None;
        }
        let Pagers { commands, is_secure } = Pagers::choose(|name| std::env::var_os(name))?;
        for words in commands {
            let Some((program, options)) = words.split_first() else { continue };
            let mut command = Command::new(program);
            command.args(options).stdin(Stdio::piped());
            command.env("LESS", std::env::var_os("SYSTEMD_LESS").unwrap_or_else(|| LESS.into()));
            command.env(
                "LESSCHARSET",
                std::env::var_os("SYSTEMD_LESSCHARSET").unwrap_or_else(|| "utf-8".into()),
            );
            if is_secure {
                command.env("LESSSECURE", "1");
            }
            if let Ok(mut child) = command.spawn() {
                out::page(child.stdin.take()?);
                return Some(Pager(child));
            }
        }
        None
    }
}

impl Drop for Pager {
    fn drop(&mut self) {
        out::end_page();
        self.0.wait().ok();
    }
}

/// The pagers to try.
#[derive(Debug, PartialEq, Eq)]
struct Pagers {
    /// Programs with their options.
    commands: Vec<Vec<String>>,
    /// Whether the pager must not run programs, because it has more rights than its user.
    is_secure: bool,
}

impl Pagers {
    /// From the environment; `None` if it says that there is none.
    fn choose(variable: impl Fn(&str) -> Option<OsString>) -> Option<Pagers> {
        let text = |name: &str| variable(name).map(|value| value.to_string_lossy().into_owned());
        if text("TERM").is_none_or(|term| term.is_empty() || term == "dumb") {
            return None;
        }
        let named = text("SYSTEMD_PAGER").or_else(|| text("PAGER"));
        let named = named.map(|named| named.split_whitespace().map(str::to_owned).collect::<Vec<String>>());
        if named.as_ref().is_some_and(|words| words.is_empty() || *words == ["cat"]) {
            return None;
        }
        let asked = text("SYSTEMD_PAGERSECURE");
        let is_secure = match asked.as_deref() {
            Some(word) => truth(word) != Some(false),
            None => ["SUDO_UID", "PKEXEC_UID", "DOAS_USER"].iter().any(|name| variable(name).is_some()),
        };
        // Only less is known to have a secure mode. A pager of the user is trusted if the user asked for that.
        let known = PAGERS.iter().filter(|name| !is_secure || **name == "less");
        let known = known.map(|name| vec![(*name).to_owned()]);
        let named = named.filter(|_| !is_secure || asked.is_some());
        Some(Pagers { commands: named.into_iter().chain(known).collect(), is_secure })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choose(environment: &[(&str, &str)]) -> Option<(Vec<String>, bool)> {
        let all: Vec<_> = [("TERM", "xterm")].iter().chain(environment).collect();
        let find =
            |name: &str| all.iter().rev().find(|(known, _)| *known == name).map(|(_, value)| value.into());
        let Pagers { commands, is_secure } = Pagers::choose(find)?;
        Some((commands.iter().map(|words| words.join(" ")).collect(), is_secure))
    }

    #[test]
    fn the_pager_is_that_of_systemd() {
        let first =
            |environment: &[(&str, &str)]| choose(environment).map(|(commands, _)| commands[0].clone());
        assert_eq!(choose(&[]), Some((PAGERS.map(str::to_owned).to_vec(), false)));
        assert_eq!(first(&[("PAGER", "most -w")]).as_deref(), Some("most -w"));
        assert_eq!(first(&[("PAGER", "most"), ("SYSTEMD_PAGER", "less -S")]).as_deref(), Some("less -S"));
        for none in [("PAGER", ""), ("SYSTEMD_PAGER", "cat"), ("TERM", "dumb"), ("TERM", "")] {
            assert_eq!(choose(&[none]), None, "{none:?}");
        }
        assert_eq!(
            choose(&[("PAGER", "cat"), ("SYSTEMD_PAGER", "less")]).map(|(commands, _)| commands.len()),
            Some(4)
        );
    }

    #[test]
    fn a_pager_with_more_rights_than_its_user_runs_no_programs() {
        let less = |is_secure| Some((vec!["less".to_owned()], is_secure));
        assert_eq!(choose(&[("SUDO_UID", "1000"), ("PAGER", "vim -R")]), less(true));
        assert_eq!(choose(&[("SYSTEMD_PAGERSECURE", "1")]), less(true));
        let (commands, is_secure) =
            choose(&[("SUDO_UID", "1000"), ("SYSTEMD_PAGERSECURE", "0"), ("PAGER", "a")]).unwrap();
        assert_eq!((commands[0].as_str(), is_secure), ("a", false));
        let (commands, _) = choose(&[("SYSTEMD_PAGERSECURE", "yes"), ("PAGER", "a")]).unwrap();
        assert_eq!(commands, ["a", "less"]);
    }
}
