//! Runtime sections until the next boot, as written by `zramdctl create`, `resize` and similar commands.
//!
//! They are ordinary drop-ins below `/run/zramd`, so everything that reads the configuration uses them: the generator,
//! `zramd-setup up`, `zramdctl cat-config`. This module writes and parses them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::finding::{Code, Finding, Level};

/// One section with its assignments.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Overlay {
    /// Values by key.
    pub values: BTreeMap<String, Assigned>,
    /// Whether the whole section was created at runtime.
    pub transient: bool,
}

/// The value of one key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assigned {
    /// As TOML, for example `"256MiB"` with its quotation marks.
    pub value: String,
    /// The command that assigned it, if recorded.
    pub command: Option<Command>,
}

/// A command that assigns keys until the next boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Command {
    /// `create`.
    Create,
    /// `remove`.
    Remove,
    /// `resize`.
    Resize,
    /// `limit`.
    Limit,
    /// `swap off`.
    #[serde(rename = "swap off")]
    SwapOff,
    /// `ramdisk resize`.
    #[serde(rename = "ramdisk resize")]
    RamdiskResize,
    /// `set` with `--runtime`.
    Set,
}

impl Command {
    const ALL: [Command; 7] = [
        Command::Create,
        Command::Remove,
        Command::Resize,
        Command::Limit,
        Command::SwapOff,
        Command::RamdiskResize,
        Command::Set,
    ];

    /// The command as typed.
    pub const fn words(self) -> &'static str {
        match self {
            Command::Create => "create",
            Command::Remove => "remove",
            Command::Resize => "resize",
            Command::Limit => "limit",
            Command::SwapOff => "swap off",
            Command::RamdiskResize => "ramdisk resize",
            Command::Set => "set",
        }
    }

    fn of_words(words: &str) -> Option<Command> {
        Command::ALL.into_iter().find(|command| command.words() == words)
    }
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.words())
    }
}

/// How an override relates to the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Standing {
    /// Its section is in the configuration, and the override takes precedence.
    #[default]
    InForce,
    /// Its whole section was created at runtime.
    Created,
    /// Its section is no longer in the configuration, so the override is ignored.
    Orphaned,
    /// Its section has a mistake, so neither is used.
    Broken,
}

/// A key assigned until the next boot.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Override {
    /// The section: `zram0`, `ramdisk.logs`.
    pub object: String,
    pub key: String,
    /// Its value until the next boot, as TOML.
    pub value: String,
    /// Its configured value, as TOML; `None` if it is not configured.
    pub configured: Option<String>,
    /// Position of the configured value: file and line.
    pub configured_at: Option<String>,
    /// The command that assigned it, if recorded.
    pub command: Option<Command>,
    /// How it relates to the configuration.
    pub standing: Standing,
}

impl Override {
    /// The value in use, and the configured one.
    pub fn sentence(&self) -> String {
        let assignment = format!("{} = {}", self.key, self.value);
        match (self.standing, &self.configured, &self.configured_at) {
            (Standing::Orphaned, ..) => {
                format!("{assignment} is not used: the section is no longer in the configuration")
            }
            (Standing::Broken, ..) => format!("{assignment} is not used: the section has a mistake"),
            (Standing::Created, ..) => format!("{assignment} until the next boot"),
            (Standing::InForce, Some(value), Some(place)) => {
                format!("{assignment} until the next boot (the configuration says {value}, {place})")
            }
            (Standing::InForce, ..) => {
                format!("{assignment} until the next boot (the configuration does not assign it)")
            }
        }
    }

    /// The command that removes it.
    pub fn remedy(&self) -> String {
        format!("`zramdctl unset --runtime {}`", self.object)
    }

    /// Whether it disables its section.
    pub fn switches_off(&self) -> bool {
        self.key == ENABLED && self.value == "false"
    }
}

/// The key that disables a section. Stopping its unit is not enough: when any other unit is started, systemd starts
/// what `swap.target` wants again.
pub const ENABLED: &str = "enabled";

/// Overrides as notes, each with the command that removes it; a created section has one note.
pub fn findings(overrides: &[Override]) -> Vec<Finding> {
    let mut found: Vec<Finding> = Vec::new();
    for one in overrides {
        let (code, message) = match one.standing {
            Standing::InForce | Standing::Broken => {
                (Code::Overridden, format!("{}: {}", one.object, one.sentence()))
            }
            Standing::Orphaned => (Code::OverrideOrphaned, format!("{}: {}", one.object, one.sentence())),
            Standing::Created => {
                (Code::CreatedAtRuntime, format!("{} was created until the next boot", one.object))
            }
        };
        let remedy = format!("{} removes it", one.remedy());
        found.push(Finding::new(Level::Note, code, &one.object, message, remedy));
    }
    found.dedup();
    found
}

const HEAD: &str = "# Written by zramd on request; it lasts until the next boot. `zramdctl overrides` shows it, `zramdctl unset --runtime` removes it.\n";
/// A line of its own where the whole section was created at runtime.
const TRANSIENT: &str = "# transient";
/// Separates the command that assigned a key, at the end of the line.
const BY: &str = " # ";

/// The directory of these drop-ins, below the root.
pub const DIRECTORY: &str = "run/zramd/zramd.toml.d";
const PREFIX: &str = "zz-runtime-";
const SUFFIX: &str = ".toml";

/// Name of the drop-in for `section`; sorts after usual names.
pub fn file_name(section: &str) -> String {
    format!("{PREFIX}{section}{SUFFIX}")
}

/// Absolute path of the drop-in for `section`.
pub fn path(section: &str) -> String {
    format!("/{DIRECTORY}/{}", file_name(section))
}

/// The section of a drop-in, by its name; `None` for files of other programs.
pub fn section_of(file_name: &str) -> Option<&str> {
    file_name.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)
}

/// The section of a drop-in, by its path; `None` for other files.
pub fn section_of_path(path: &Path) -> Option<&str> {
    path.parent().filter(|directory| directory.ends_with(DIRECTORY))?;
    section_of(path.file_name()?.to_str()?)
}

/// A TOML string.
pub fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' | '\\' => out.extend(['\\', letter]),
            letter if letter.is_control() => out.push_str(&format!("\\u{:04X}", u32::from(letter))),
            letter => out.push(letter),
        }
    }
    out.push('"');
    out
}

/// A list of TOML strings.
pub fn list(words: &[impl AsRef<str>]) -> String {
    let words: Vec<String> = words.iter().map(|word| quoted(word.as_ref())).collect();
    format!("[{}]", words.join(", "))
}

impl Overlay {
    /// Sets a TOML value. The command is recorded afterwards.
    pub fn set(&mut self, key: &str, value: impl Into<String>) {
        self.values.insert(key.to_owned(), Assigned { value: value.into(), command: None });
    }

    /// Sets a size in bytes.
    pub fn set_bytes(&mut self, key: &str, bytes: u64) {
        self.set(key, quoted(&exactly(bytes)));
    }

    pub fn set_text(&mut self, key: &str, text: &str) {
        self.set(key, quoted(text));
    }

    /// Sets a list of strings.
    pub fn set_list(&mut self, key: &str, words: &[&str]) {
        self.set(key, list(words));
    }

    pub fn set_number(&mut self, key: &str, number: i64) {
        self.set(key, number.to_string());
    }

    /// Contents of the drop-in.
    pub fn text(&self, section: &str) -> String {
        let mut out = HEAD.to_owned();
        if self.transient {
            out.push_str(&format!("{TRANSIENT}\n"));
        }
        out.push_str(&format!("[{section}]\n"));
        for (key, Assigned { value, command }) in &self.values {
            out.push_str(&format!("{key} = {value}"));
            if let Some(command) = command {
                out.push_str(&format!("{BY}{command}"));
            }
            out.push('\n');
        }
        out
    }

    /// Records `command` for the values that differ from `before`.
    pub fn record(&mut self, before: &Overlay, command: Command) {
        for (key, assigned) in &mut self.values {
            assigned.command = match before.values.get(key) {
                Some(same) if same.value == assigned.value => same.command,
                _ => Some(command),
            };
        }
    }

    /// The commands that assigned keys; `None` for keys without a record.
    pub fn by(&self) -> BTreeSet<Option<Command>> {
        self.values.values().map(|assigned| assigned.command).collect()
    }

    /// A copy without the keys that a command assigned.
    pub fn without(&self, command: Option<Command>) -> Overlay {
        let mut rest = self.clone();
        rest.values.retain(|_, assigned| assigned.command != command);
        rest
    }

    /// Parses the output of [`Overlay::text`]; other lines are ignored.
    pub fn parse(text: &str) -> Overlay {
        let mut read =
            Overlay { transient: text.lines().any(|line| line == TRANSIENT), ..Overlay::default() };
        let lines = text.lines().filter(|line| !line.starts_with(['#', '[']));
        for (key, value) in lines.filter_map(|line| line.split_once(" = ")) {
            // A value never ends like a command: strings end with a quotation mark.
            let by = value.rsplit_once(BY).and_then(|(value, by)| Some((value, Command::of_words(by)?)));
            let (value, command) = by.map_or((value, None), |(value, command)| (value, Some(command)));
            read.values.insert(key.to_owned(), Assigned { value: value.to_owned(), command });
        }
        read
    }
}

/// An amount in the largest unit without a fraction.
fn exactly(bytes: u64) -> String {
    match bytes.trailing_zeros() {
        _ if bytes == 0 => "0B".to_owned(),
        30.. => format!("{}GiB", bytes >> 30),
        20.. => format!("{}MiB", bytes >> 20),
        10.. => format!("{}KiB", bytes >> 10),
        _ => format!("{bytes}B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config;

    #[test]
    fn what_is_written_is_read_back_and_is_a_configuration() {
        let mut overlay = Overlay { transient: true, ..Overlay::default() };
        overlay.set_bytes("zram-size", 256 << 20);
        overlay.set_number("swap-priority", -1);
        overlay.set_list("compression-algorithm", &["zstd(level=3)", "lz4"]);
        let text = overlay.text("zram5");
        assert_eq!(Overlay::parse(&text), overlay);
        let loaded = config::load(&[("/run/zramd/a.toml".into(), text)], "");
        assert_eq!(loaded.problems, []);
        assert_eq!(loaded.settings.devices[0].number, 5);
    }

    #[test]
    fn a_value_is_not_mistaken_for_a_mark() {
        let mut overlay = Overlay::default();
        overlay.set_text("label", TRANSIENT);
        assert_eq!(Overlay::parse(&overlay.text("zram1")), overlay);
        overlay.set("label", TRANSIENT);
        assert_eq!(Overlay::parse(&overlay.text("zram1")), overlay);
    }

    #[test]
    fn the_command_is_recorded_for_what_it_changed() {
        let mut before = Overlay { transient: true, ..Overlay::default() };
        before.set_bytes("zram-size", 256 << 20);
        before.set_text("label", "a # resize");
        before.record(&Overlay::default(), Command::Create);
        let mut after = before.clone();
        after.set_bytes("zram-size", 96 << 20);
        after.set("enabled", "false");
        after.record(&before, Command::SwapOff);
        assert!(after.text("zram1").contains("zram-size = \"96MiB\" # swap off\n"));
        assert_eq!(Overlay::parse(&after.text("zram1")), after);
        assert_eq!(after.by(), BTreeSet::from([Some(Command::Create), Some(Command::SwapOff)]));
        let rest = after.without(Some(Command::SwapOff));
        let keys: Vec<(&str, Option<Command>)> =
            rest.values.iter().map(|(key, assigned)| (key.as_str(), assigned.command)).collect();
        assert_eq!(keys, [("label", Some(Command::Create))]);
    }

    #[test]
    fn amounts_are_exact() {
        for (bytes, text) in [
            (0, "0B"),
            (1, "1B"),
            (1536, "1536B"),
            (3 << 10, "3KiB"),
            (96 << 20, "96MiB"),
            (1 << 40, "1024GiB"),
        ] {
            assert_eq!(exactly(bytes), text);
        }
    }

    #[test]
    fn only_drop_ins_of_our_directory_are_ours() {
        let name = file_name("zram0");
        assert_eq!(section_of_path(&Path::new("/srv/root").join(DIRECTORY).join(&name)), Some("zram0"));
        assert_eq!(section_of_path(&Path::new("/etc/zramd/zramd.toml.d").join(&name)), None);
    }

    #[test]
    fn a_drop_in_is_known_by_its_name() {
        assert_eq!(section_of(&file_name("ramdisk.logs")), Some("ramdisk.logs"));
        assert_eq!(section_of("50-mine.toml"), None);
    }

    #[test]
    fn odd_letters_stay_inside_their_quotation_marks() {
        let mut overlay = Overlay::default();
        overlay.set_text("label", "a\"b\\c\nzram-size = 1");
        assert_eq!(overlay.text("zram1").lines().count(), 3);
        assert_eq!(Overlay::parse(&overlay.text("zram1")), overlay);
    }

    fn overridden(object: &str, key: &str, value: &str, standing: Standing) -> Override {
        let [object, key, value] = [object, key, value].map(str::to_owned);
        Override { object, key, value, standing, ..Override::default() }
    }

    #[test]
    fn a_section_is_switched_off_by_one_value_of_one_key() {
        for (key, value, expected) in
            [("enabled", "false", true), ("enabled", "true", false), ("yield", "false", false)]
        {
            let found = overridden("zram0", key, value, Standing::InForce);
            assert_eq!(found.switches_off(), expected, "{key} = {value}");
        }
    }

    #[test]
    fn each_override_is_a_note_and_a_section_that_was_created_is_one() {
        let found = findings(&[
            overridden("zram0", "zram-size", "1", Standing::InForce),
            overridden("zram0", "label", "\"a\"", Standing::Broken),
            overridden("zram1", "zram-size", "1", Standing::Orphaned),
            overridden("zram2", "zram-size", "1", Standing::Created),
            overridden("zram2", "label", "\"a\"", Standing::Created),
        ]);
        let found: Vec<(Code, &str)> =
            found.iter().map(|found| (found.code, found.object.as_str())).collect();
        let expected = [
            (Code::Overridden, "zram0"),
            (Code::Overridden, "zram0"),
            (Code::OverrideOrphaned, "zram1"),
            (Code::CreatedAtRuntime, "zram2"),
        ];
        assert_eq!(found, expected);
    }
}
