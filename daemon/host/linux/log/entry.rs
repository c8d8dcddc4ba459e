//! A message with its fields, in the forms of the journal, the kernel log and a terminal.

use logic::log::{Level, beginning, put_field};
use logic::text::shown;

/// Longest message and longest value of a field in bytes. An entry is smaller than a datagram may be.
const LONGEST: usize = 32 * 1024;
/// Longest record of the kernel log (`LOG_LINE_MAX` in kernel/printk/printk.c).
const LONGEST_RECORD: usize = 900;
/// Most fields of spans and messages.
const MOST: usize = 32;

/// A message.
pub(super) struct Line {
    pub level: Level,
    identifier: &'static str,
    message: String,
    /// File and line of the source.
    pub place: Option<(&'static str, u32)>,
    fields: Vec<(String, String)>,
}

impl Line {
    pub(super) fn new(level: Level, identifier: &'static str, message: &str) -> Line {
        let message = beginning(message, LONGEST).to_owned();
        Line { level, identifier, message, place: None, fields: Vec::new() }
    }

    /// Sets a field; a later value replaces an earlier one.
    pub(super) fn put(&mut self, name: &str, value: &str) {
        let value = beginning(value, LONGEST / MOST);
        if let Some((_, old)) = self.fields.iter_mut().find(|(other, _)| other == name) {
            value.clone_into(old);
        } else if self.fields.len() < MOST {
            self.fields.push((name.to_owned(), value.to_owned()));
        }
    }

    /// As an entry of the journal.
    pub(super) fn entry(&self) -> Vec<u8> {
        let mut entry = Vec::with_capacity(256);
        put_field(&mut entry, "MESSAGE", &self.message);
        put_field(&mut entry, "PRIORITY", &self.level.priority().to_string());
        put_field(&mut entry, "SYSLOG_IDENTIFIER", self.identifier);
        put_field(&mut entry, "SYSLOG_PID", &std::process::id().to_string());
        if let Some((file, line)) = self.place {
            put_field(&mut entry, "CODE_FILE", file);
            put_field(&mut entry, "CODE_LINE", &line.to_string());
        }
        for (name, value) in &self.fields {
            put_field(&mut entry, name, value);
        }
        entry
    }

    /// As a record of the kernel log. One write is one record (Documentation/ABI/testing/dev-kmsg).
    pub(super) fn record(&self) -> String {
        let text = shown(beginning(&self.message, LONGEST_RECORD));
        format!("<{}>{}: {text}\n", self.level.priority(), self.identifier)
    }

    /// As a line for people. What follows a line break does not begin a line.
    pub(super) fn text(&self) -> String {
        let word = match self.level {
            Level::Emerg | Level::Alert | Level::Crit | Level::Err => "error",
            Level::Notice => "note",
            level => level.word(),
        };
        format!("{word}: {}", self.message.replace('\n', "\n  "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_values_stay_in_their_field() {
        let mut line = Line::new(Level::Notice, "zramd", "refused\nPRIORITY=0");
        line.put("ZRAMD_CALLER_UNIT", "a\nMESSAGE_ID=0");
        line.put("ZRAMD_JOB", "1");
        line.put("ZRAMD_JOB", "2");
        let entry = line.entry();
        let text = String::from_utf8_lossy(&entry);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines.contains(&"PRIORITY=5") && lines.contains(&"ZRAMD_JOB=2"), "{text}");
        assert!(!lines.contains(&"ZRAMD_JOB=1"), "{text}");
        // After the name come eight bytes with the length.
        for (name, value) in [("MESSAGE", "refused\nPRIORITY=0"), ("ZRAMD_CALLER_UNIT", "a\nMESSAGE_ID=0")] {
            let mut field = format!("{name}\n").into_bytes();
            field.extend((value.len() as u64).to_le_bytes());
            field.extend(value.bytes());
            assert!(entry.windows(field.len()).any(|part| part == field), "{text}");
        }
        assert_eq!(line.record(), "<5>zramd: refused\\x0aPRIORITY=0\n");
        assert_eq!(line.text(), "note: refused\n  PRIORITY=0");
    }

    #[test]
    fn an_entry_fits_into_a_datagram() {
        let mut line = Line::new(Level::Debug, "zramd", &"ä".repeat(1_000_000));
        for number in 0..1000 {
            line.put(&format!("ZRAMD_{number}"), &"x".repeat(100_000));
        }
        // net.core.wmem_default is 212,992 bytes.
        assert!(line.entry().len() < 100_000);
        assert!(line.record().len() < 1000);
    }
}
