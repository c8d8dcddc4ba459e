//! Log messages: levels, targets, and the fields that all messages about one request carry.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::text::nearest;

/// Importance of a message, the most important first: the priorities of syslog(3), and `trace`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    Emerg,
    Alert,
    Crit,
    Err,
    Warning,
    Notice,
    #[default]
    Info,
    /// What was read, decided, written and answered.
    Debug,
    /// Each step, and each attribute of the kernel. In the journal it has the priority of `debug`.
    Trace,
}

/// The names, those of systemd, in the order of [`Level`].
const LEVELS: [(Level, &str); 9] = [
    (Level::Emerg, "emerg"),
    (Level::Alert, "alert"),
    (Level::Crit, "crit"),
    (Level::Err, "err"),
    (Level::Warning, "warning"),
    (Level::Notice, "notice"),
    (Level::Info, "info"),
    (Level::Debug, "debug"),
    (Level::Trace, "trace"),
];

impl Level {
    /// Its name.
    pub fn word(self) -> &'static str {
        LEVELS[self as usize].1
    }

    /// Its priority in syslog(3), 0 to 7.
    pub fn priority(self) -> u8 {
        (self as u8).min(Level::Debug as u8)
    }

    /// The level with this number; from 8 on `trace`.
    pub fn of_number(number: u8) -> Level {
        LEVELS.get(usize::from(number)).map_or(Level::Trace, |(level, _)| *level)
    }
}

impl FromStr for Level {
    type Err = String;

    /// A name, or a priority from 0 to 7.
    fn from_str(word: &str) -> Result<Level, String> {
        if let [digit @ b'0'..=b'7'] = word.as_bytes() {
            return Ok(Level::of_number(digit - b'0'));
        }
        let found = LEVELS.iter().find(|(_, name)| *name == word);
        found.map(|(level, _)| *level).ok_or_else(|| unknown("log level", word, LEVELS.map(|(_, name)| name)))
    }
}

/// Where messages go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Target {
    /// To the journal if standard error is connected to it, otherwise to standard error.
    #[default]
    Auto,
    Journal,
    /// To standard error.
    Console,
    /// To the kernel log.
    Kmsg,
    /// Nowhere.
    Null,
}

const TARGETS: [(Target, &str); 5] = [
    (Target::Auto, "auto"),
    (Target::Journal, "journal"),
    (Target::Console, "console"),
    (Target::Kmsg, "kmsg"),
    (Target::Null, "null"),
];

impl Target {
    /// Its name.
    pub fn word(self) -> &'static str {
        TARGETS[self as usize].1
    }
}

impl FromStr for Target {
    type Err = String;

    fn from_str(word: &str) -> Result<Target, String> {
        let found = TARGETS.iter().find(|(_, name)| *name == word);
        found
            .map(|(target, _)| *target)
            .ok_or_else(|| unknown("log target", word, TARGETS.map(|(_, name)| name)))
    }
}

fn unknown<const N: usize>(what: &str, word: &str, known: [&str; N]) -> String {
    let hint = nearest(word, known.into_iter()).map(|meant| format!("; did you mean `{meant}`?"));
    format!("unknown {what} {word:?}{}, there are {}", hint.unwrap_or_default(), known.join(", "))
}

/// The level on the kernel command line: `zramd.log_level=`, or else `systemd.log_level=`. The last one counts.
pub fn level_on_cmdline(cmdline: &str) -> Option<Result<Level, String>> {
    ["zramd.log_level=", "systemd.log_level="].into_iter().find_map(|key| {
        let value = cmdline.split_whitespace().rev().find_map(|word| word.strip_prefix(key))?;
        Some(value.parse().map_err(|why| format!("/proc/cmdline: {key}: {why}")))
    })
}

/// The service in `/proc/self/cgroup` (cgroups(7)).
pub fn service_in_cgroup(text: &str) -> Option<&str> {
    text.lines().filter_map(|line| line.rsplit('/').next()).find(|name| name.ends_with(".service"))
}

/// Longest value of a field in bytes that is passed between programs.
const LONGEST: usize = 256;

/// What a program passes to those that it starts: its level, and the fields of all messages about the request.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Context {
    /// `None` if the level is the default one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub level: Option<Level>,
    /// Names of the journal, such as `ZRAMD_JOB`, with values.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub fields: BTreeMap<String, String>,
    /// Whether messages that are not read from standard error are lost, as those of the daemon, which may not wait.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub never_waits: bool,
}

impl Context {
    /// Parses the JSON form, [checked](Self::checked). What cannot be parsed is empty.
    pub fn parse(json: &str) -> Context {
        serde_json::from_str::<Context>(json).unwrap_or_default().checked()
    }

    /// Without fields that are not ours, and with long values cut.
    pub fn checked(mut self) -> Context {
        self.fields.retain(|name, _| is_ours(name));
        for value in self.fields.values_mut() {
            value.truncate(beginning(value, LONGEST).len());
        }
        self
    }

    /// The JSON form.
    pub fn json(&self) -> String {
        // Strings do not fail.
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// The beginning of a text, of at most this many bytes.
pub fn beginning(text: &str, most: usize) -> &str {
    let mut end = most.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// Appends a field of an entry in the native protocol of the journal. A value with a line break gets its length
/// (<https://systemd.io/JOURNAL_NATIVE_PROTOCOL/>), so that nothing in it is taken for another field.
pub fn put_field(entry: &mut Vec<u8>, name: &str, value: &str) {
    entry.extend_from_slice(name.as_bytes());
    if value.contains('\n') {
        entry.push(b'\n');
        entry.extend_from_slice(&(value.len() as u64).to_le_bytes());
    } else {
        entry.push(b'=');
    }
    entry.extend_from_slice(value.as_bytes());
    entry.push(b'\n');
}

/// Whether this is the name of a field of zramd, in the form that the journal accepts.
fn is_ours(name: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
    name.len() <= 64
        && name.strip_prefix("ZRAMD_").is_some_and(|rest| !rest.is_empty() && rest.bytes().all(is_part))
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_have_names_that_the_journal_accepts() {
        let long = format!("ZRAMD_{}", "A".repeat(58));
        for ours in ["ZRAMD_CODE", "ZRAMD_A1", "ZRAMD_SWAP_USED", "ZRAMD__", &long] {
            assert!(is_ours(ours), "{ours}");
        }
        for other in [
            "ZRAMD_",
            "ZRAMD",
            "MESSAGE",
            "AZRAMD_A",
            "ZRAMD_a",
            "ZRAMD_A-B",
            "ZRAMD_A=B",
            "ZRAMD_Ä",
            &(long.clone() + "A"),
        ] {
            assert!(!is_ours(other), "{other}");
        }
    }

    #[test]
    fn levels_and_targets_are_those_of_systemd() {
        for (number, (level, word)) in (0..).zip(LEVELS) {
            assert_eq!((level.word(), word.parse(), Level::of_number(number)), (word, Ok(level), level));
        }
        for (target, word) in TARGETS {
            assert_eq!((target.word(), word.parse()), (word, Ok(target)));
        }
        assert_eq!(("4".parse(), "7".parse()), (Ok(Level::Warning), Ok(Level::Debug)));
        assert_eq!((Level::Trace.priority(), Level::Info.priority()), (7, 6));
    }

    #[test]
    fn unknown_levels_are_explained() {
        for word in ["", "8", "-1", "07", "Debug", "infos", "debug\n"] {
            let message = word.parse::<Level>().unwrap_err();
            assert!(message.contains("emerg, alert, crit"), "{message}");
        }
        assert!("warn".parse::<Level>().unwrap_err().contains("unknown log level \"warn\""));
        assert!("debg".parse::<Level>().unwrap_err().contains("did you mean `debug`?"));
        assert!("journl".parse::<Target>().unwrap_err().contains("did you mean `journal`?"));
    }

    #[test]
    fn the_own_word_of_the_command_line_counts_more() {
        let level = |cmdline| level_on_cmdline(cmdline).map(|found| found.map_err(|_| ()));
        for (cmdline, expected) in [
            ("quiet", None),
            ("systemd.log_level=debug quiet", Some(Ok(Level::Debug))),
            ("systemd.log_level=debug zramd.log_level=err", Some(Ok(Level::Err))),
            ("zramd.log_level=err zramd.log_level=trace", Some(Ok(Level::Trace))),
            ("systemd.log_level=loud", Some(Err(()))),
            ("systemd.log_level", None),
            ("rd.systemd.log_level=debug", None),
        ] {
            assert_eq!(level(cmdline), expected, "{cmdline}");
        }
        let message = level_on_cmdline("zramd.log_level=loud").unwrap().unwrap_err();
        assert!(message.starts_with("/proc/cmdline: zramd.log_level=: unknown log level"), "{message}");
    }

    #[test]
    fn the_service_is_the_last_name_of_its_control_group() {
        for (text, expected) in [
            (
                "0::/system.slice/system-zramd\\x2dsetup.slice/zramd-setup@zram0.service\n",
                Some("zramd-setup@zram0.service"),
            ),
            (
                "4:memory:/system.slice\n1:name=systemd:/system.slice/zramd.service\n0::/\n",
                Some("zramd.service"),
            ),
            ("0::/user.slice/user-1000.slice/session-3.scope\n", None),
            ("0::/init.scope\n", None),
            ("", None),
        ] {
            assert_eq!(service_in_cgroup(text), expected, "{text}");
        }
    }

    #[test]
    fn a_value_cannot_begin_a_field_of_its_own() {
        let mut entry = Vec::new();
        put_field(&mut entry, "MESSAGE", "a=b");
        put_field(&mut entry, "ZRAMD_OBJECT", "x\nPRIORITY=0");
        assert_eq!(entry, b"MESSAGE=a=b\nZRAMD_OBJECT\n\x0c\0\0\0\0\0\0\0x\nPRIORITY=0\n");
    }

    #[test]
    fn a_context_takes_our_fields_only() {
        let text = r#"{"level":"debug","fields":{"ZRAMD_JOB":"17","MESSAGE":"x","ZRAMD_":"","ZRAMD_A\nPRIORITY":"0","_PID":"1"}}"#;
        let context = Context::parse(text);
        assert_eq!(context.level, Some(Level::Debug));
        assert_eq!(context.fields, BTreeMap::from([("ZRAMD_JOB".to_owned(), "17".to_owned())]));
        assert_eq!(Context::parse(&context.json()), context);
        // A value is not cut within a letter.
        for (begin, length) in [("", LONGEST), ("a", LONGEST - 1)] {
            let long = format!("{begin}{}", "ä".repeat(LONGEST));
            let fields = BTreeMap::from([("ZRAMD_JOB".to_owned(), long)]);
            let context = Context::parse(&Context { fields, ..Context::default() }.json());
            assert_eq!(context.fields["ZRAMD_JOB"].len(), length);
        }
        for wrong in ["", "{", "[]", r#"{"level":"loud"}"#, "null"] {
            assert_eq!(Context::parse(wrong), Context::default(), "{wrong}");
        }
    }
}
