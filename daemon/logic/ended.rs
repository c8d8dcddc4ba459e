//! Programs that were ended because memory ran out: messages of the kernel and of systemd-oomd in the journal, with what zramd logged
//! before.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;

use super::finding::{Code, Finding, Level};
use super::log::beginning;
use super::maintain::span;

/// Most entries that are looked at, the newest ones.
const MOST: u32 = 500;
/// Most programs that are named, and most reports before each.
const NAMED: usize = 3;
/// Age from which a report of zramd no longer says how memory was when a program was ended.
const RECENT: Duration = Duration::from_secs(3600);
/// Longest quoted message or name in bytes.
const LONGEST: usize = 300;
const OOMD: &str = "systemd-oomd.service";
const ZRAMD: &str = "zramd.service";

/// Arguments of journalctl for what [`Log::parse`] reads. `reports`: message ids of zramd's reports of how memory is.
pub fn query(reports: &[&str]) -> Vec<String> {
    let fields = "MESSAGE,MESSAGE_ID,SYSLOG_IDENTIFIER,_TRANSPORT,_SYSTEMD_UNIT,_SOURCE_MONOTONIC_TIMESTAMP,_SOURCE_REALTIME_TIMESTAMP";
    let mut words = ["--boot", "--quiet", "--no-pager", "--output=json"].map(str::to_owned).to_vec();
    words.extend([format!("--output-fields={fields}"), format!("--lines={MOST}")]);
    // Both write these messages with one priority, so that the index of the journal finds them.
    words.extend(["_TRANSPORT=kernel", "PRIORITY=3", "+"].map(str::to_owned));
    words.extend([format!("_SYSTEMD_UNIT={OOMD}"), "PRIORITY=5".to_owned(), "+".to_owned()]);
    words.push(format!("_SYSTEMD_UNIT={ZRAMD}"));
    words.extend(reports.iter().map(|id| format!("MESSAGE_ID={id}")));
    words
}

/// Who ended a program, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum By {
    Kernel,
    /// The kernel, at the limit of a control group.
    Limit,
    /// systemd-oomd, because the unit waited for memory.
    Pressure,
    /// systemd-oomd, because swap was nearly full.
    Swap,
}

/// When an entry was written. It may be stored later, while memory is short.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Moment {
    /// Microseconds since boot, excluding suspend.
    monotonic_usec: u64,
    /// Microseconds since 1970.
    realtime_usec: u64,
}

/// A program that was ended.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Ended {
    at: Moment,
    by: By,
    /// `firefox (process 4711)`, or a unit.
    what: String,
}

/// A report of zramd.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Report {
    at: Moment,
    /// Message id.
    kind: String,
    message: String,
}

/// Entries of the journal, the oldest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Log {
    ended: Vec<Ended>,
    reports: Vec<Report>,
}

impl Log {
    /// Parses the output of journalctl with [`query`]: one JSON object a line. What others wrote, and what cannot be parsed, is left out.
    /// Names in messages are chosen by users.
    pub fn parse(output: &[u8]) -> Log {
        let mut log = Log::default();
        for line in output.split(|byte| *byte == b'\n') {
            let Ok(entry) = serde_json::from_slice::<BTreeMap<String, Value>>(line) else { continue };
            let text = |name: &str| entry.get(name).and_then(text).unwrap_or_default();
            let (Some(at), message) = (Moment::of(&entry), text("MESSAGE")) else { continue };
            match text("_SYSTEMD_UNIT").as_str() {
                OOMD => log.ended.extend(by_oomd(at, &message)),
                ZRAMD => log.reports.push(Report { at, kind: text("MESSAGE_ID"), message }),
                // Root can write to the kernel's log, too, but not as the kernel.
                _ if text("_TRANSPORT") == "kernel" && text("SYSLOG_IDENTIFIER") == "kernel" => {
                    log.ended.extend(by_kernel(at, &message));
                }
                _ => {}
            }
        }
        log.ended.sort_by_key(|ended| ended.at);
        log.reports.sort_by_key(|report| report.at);
        log
    }

    /// The newest report of each kind before this moment, as text.
    fn before(&self, at: Moment) -> Option<String> {
        let age = |report: &Report| at.monotonic_usec.checked_sub(report.at.monotonic_usec);
        let is_recent =
            |report: &&Report| age(report).is_some_and(|age| u128::from(age) <= RECENT.as_micros());
        let newest: BTreeMap<&str, &Report> =
            self.reports.iter().filter(is_recent).map(|report| (report.kind.as_str(), report)).collect();
        let mut newest: Vec<&Report> = newest.into_values().collect();
        newest.sort_by_key(|report| report.at);
        let old = newest.len().saturating_sub(NAMED);
        let said = newest.into_iter().skip(old).map(|report| {
            let ago = span(Duration::from_micros(age(report).unwrap_or_default()));
            format!("{ago} before, zramd logged: {}", beginning(&report.message, LONGEST))
        });
        let said: Vec<String> = said.collect();
        (!said.is_empty()).then(|| said.join("; "))
    }

    /// A note about each of the newest programs, the newest first. `now`, `clock`: see [`findings`].
    fn notes(&self, now: &str, clock: impl Fn(u64) -> String) -> Vec<Finding> {
        let more = self.ended.len().saturating_sub(NAMED);
        let note = |(index, ended): (usize, &Ended)| {
            let Ended { at, by, what } = ended;
            let (who, why, remedy) = by.words();
            let time = clock(at.realtime_usec);
            let state = self
                .before(*at)
                .unwrap_or_else(|| format!("zramd had logged nothing in the hour before; now, {now}"));
            let others = match more {
                0 => String::new(),
                _ if index + 1 < NAMED => String::new(),
                more => format!("; {more} more before, since boot"),
            };
            Finding::new(
                Level::Note,
                Code::ProgramEnded,
                "",
                format!("{who} ended {what} at {time} {why}; {state}{others}"),
                remedy,
            )
        };
        self.ended.iter().rev().take(NAMED).enumerate().map(note).collect()
    }
}

/// Notes about programs that were ended since boot. `log`: `None` if the journal cannot be read. `kills`: how many the kernel has
/// ended. `now`: how compressed memory is now, for those before which zramd logged nothing. `clock` writes microseconds since 1970 as text.
pub fn findings(
    log: Option<&Log>,
    kills: Option<u64>,
    now: &str,
    clock: impl Fn(u64) -> String,
) -> Vec<Finding> {
    let is_kernel = |ended: &Ended| matches!(ended.by, By::Kernel | By::Limit);
    let known = log.is_some_and(|log| log.ended.iter().any(is_kernel));
    let mut found = log.map(|log| log.notes(now, clock)).unwrap_or_default();
    if let Some(kills @ 1..) = kills
        && !known
    {
        let programs = if kills == 1 { "a program".to_owned() } else { format!("{kills} programs") };
        found.push(Finding::new(
            Level::Note,
            Code::ProgramEnded,
            "",
            format!("the kernel has ended {programs} since boot for lack of memory, which the journal does not name here; now, {now}"),
            "run `zramdctl doctor` as root, or see `dmesg`",
        ));
    }
    found
}

/// `oom_kill` in `/proc/vmstat` (Linux 4.13): how many processes the kernel has ended since boot.
pub fn kills(vmstat: &str) -> Option<u64> {
    vmstat.lines().find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok())
}

impl By {
    /// Who, why, and what to do.
    fn words(self) -> (&'static str, &'static str, &'static str) {
        match self {
            By::Kernel => (
                "the kernel",
                "for lack of memory",
                "`journalctl -b -k` lists the memory of all programs at that time",
            ),
            By::Limit => (
                "the kernel",
                "at the memory limit of its control group",
                "if it needs more, raise MemoryMax= of its unit (systemd.resource-control(5))",
            ),
            By::Pressure => (
                "systemd-oomd",
                "because it waited for memory",
                "see ManagedOOMMemoryPressure= of its slice (systemd.resource-control(5))",
            ),
            By::Swap => (
                "systemd-oomd",
                "because swap was nearly full",
                "see ManagedOOMSwap= of its slice (systemd.resource-control(5))",
            ),
        }
    }
}

impl Moment {
    fn of(entry: &BTreeMap<String, Value>) -> Option<Moment> {
        let number = |name: &str| entry.get(name).and_then(text)?.parse::<u64>().ok();
        let (monotonic, realtime) = (number("__MONOTONIC_TIMESTAMP")?, number("__REALTIME_TIMESTAMP")?);
        let late = match number("_SOURCE_MONOTONIC_TIMESTAMP") {
            Some(source) => monotonic.saturating_sub(source),
            None => number("_SOURCE_REALTIME_TIMESTAMP").map_or(0, |source| realtime.saturating_sub(source)),
        };
        Some(Moment {
            monotonic_usec: monotonic.saturating_sub(late),
            realtime_usec: realtime.saturating_sub(late),
        })
    }
}

/// The value of a field, which journalctl writes as numbers of bytes if it is not text.
fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Array(bytes) => {
            let bytes: Option<Vec<u8>> =
                bytes.iter().map(|byte| byte.as_u64().and_then(|byte| u8::try_from(byte).ok())).collect();
            bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        }
        _ => None,
    }
}

/// `Out of memory: Killed process 4711 (firefox) total-vm:…` (`__oom_kill_process` in mm/oom_kill.c). A name may have parentheses.
fn by_kernel(at: Moment, message: &str) -> Option<Ended> {
    let reasons = [
        ("Memory cgroup out of memory: ", By::Limit),
        ("Out of memory: ", By::Kernel),
        ("Out of memory (oom_kill_allocating_task): ", By::Kernel),
        // Before Linux 5.2.
        ("", By::Kernel),
    ];
    let said = |(reason, by)| Some((message.strip_prefix(reason)?.strip_prefix("Killed process ")?, by));
    let (rest, by) = reasons.into_iter().find_map(said)?;
    let (process, rest) = rest.split_once(" (")?;
    let process: u32 = process.parse().ok()?;
    let end = [") total-vm:", "), UID "].into_iter().filter_map(|end| rest.rfind(end)).max()?;
    Some(Ended { at, by, what: format!("{} (process {process})", beginning(&rest[..end], LONGEST)) })
}

/// `Killed /user.slice/…/app-firefox-4711.scope due to memory pressure for …` or `… due to memory used …`; newer ones `Marked … for
/// killing due to …` (src/oom/oomd-manager.c).
fn by_oomd(at: Moment, message: &str) -> Option<Ended> {
    let marked = message.strip_prefix("Marked ").and_then(|rest| rest.split_once(" for killing due to "));
    let (path, why) =
        marked.or_else(|| message.strip_prefix("Killed ").and_then(|rest| rest.split_once(" due to ")))?;
    let (_, unit) = path.rsplit_once('/')?;
    let by = if why.starts_with("memory pressure") { By::Pressure } else { By::Swap };
    Some(Ended { at, by, what: beginning(unit, LONGEST).to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::shown;
    use proptest::prelude::*;
    use serde_json::json;

    const SECOND: u64 = 1_000_000;
    /// Realtime at boot.
    const BOOT: u64 = 1_764_425_000 * SECOND;

    /// An entry that was stored `late` seconds after it was written.
    fn entry(seconds: u64, late: u64, message: &str, fields: &[(&str, &str)]) -> Vec<u8> {
        let stored = (seconds + late) * SECOND;
        let mut entry = json!({
            "__MONOTONIC_TIMESTAMP": stored.to_string(),
            "__REALTIME_TIMESTAMP": (BOOT + stored).to_string(),
            "MESSAGE": message,
        });
        for (name, value) in fields {
            entry[*name] = json!(value);
        }
        format!("{entry}\n").into_bytes()
    }

    fn kernel(seconds: u64, late: u64, message: &str) -> Vec<u8> {
        let source = (seconds * SECOND).to_string();
        let fields = [
            ("_TRANSPORT", "kernel"),
            ("SYSLOG_IDENTIFIER", "kernel"),
            ("_SOURCE_MONOTONIC_TIMESTAMP", &source),
        ];
        entry(seconds, late, message, &fields)
    }

    fn oomd(seconds: u64, message: &str) -> Vec<u8> {
        entry(seconds, 0, message, &[("_SYSTEMD_UNIT", OOMD)])
    }

    fn zramd(seconds: u64, kind: &str, message: &str) -> Vec<u8> {
        let source = (BOOT + seconds * SECOND).to_string();
        let fields =
            [("_SYSTEMD_UNIT", ZRAMD), ("MESSAGE_ID", kind), ("_SOURCE_REALTIME_TIMESTAMP", &source)];
        entry(seconds, 2, message, &fields)
    }

    fn killed(name: &str) -> String {
        format!(
            "Out of memory: Killed process 4711 ({name}) total-vm:2817032kB, anon-rss:1416016kB, file-rss:0kB"
        )
    }

    fn notes(entries: &[Vec<u8>]) -> Vec<String> {
        let log = Log::parse(&entries.concat());
        let clock = |usec: u64| format!("second {}", (usec - BOOT) / SECOND);
        findings(Some(&log), None, "all is empty", clock).into_iter().map(|found| found.message).collect()
    }

    /// Who ended what, and when.
    fn ended(message: &[u8]) -> Option<String> {
        let found = notes(&[message.to_vec()]).into_iter().next()?;
        found.split_once(';').map(|(first, _)| first.to_owned())
    }

    #[test]
    fn messages_of_each_kernel_and_systemd_are_understood() {
        for (message, expected) in [
            (killed("firefox").as_str(), "firefox (process 4711) at second 60 for lack of memory"),
            (
                "Memory cgroup out of memory: Killed process 311 (python3) total-vm:81316kB, anon-rss:66016kB, file-rss:6272kB, shmem-rss:0kB, UID:0 pgtables:200kB oom_score_adj:0",
                "python3 (process 311) at second 60 at the memory limit of its control group",
            ),
            (
                "Out of memory (oom_kill_allocating_task): Killed process 5 (sh) total-vm:1kB, anon-rss:1kB",
                "sh (process 5) at second 60 for lack of memory",
            ),
            (
                "Killed process 2592 (mysqld), UID 27, total-vm:1kB",
                "mysqld (process 2592) at second 60 for lack of memory",
            ),
            (
                "Killed process 9 (old) total-vm:1kB, anon-rss:1kB",
                "old (process 9) at second 60 for lack of memory",
            ),
        ] {
            assert_eq!(
                ended(&kernel(60, 0, message)).as_deref(),
                Some(format!("the kernel ended {expected}").as_str())
            );
        }
        let unit = "/user.slice/user-1000.slice/user@1000.service/app.slice/app-firefox-4711.scope";
        for (message, expected) in [
            (
                format!(
                    "Killed {unit} due to memory pressure for /user.slice being 80.01% > 50.00% for > 20s with reclaim activity"
                ),
                "because it waited for memory",
            ),
            (
                format!(
                    "Marked {unit} for killing due to memory pressure for /user.slice being 80.01% > 50.00% for > 20s with reclaim activity"
                ),
                "because it waited for memory",
            ),
            (
                format!(
                    "Killed {unit} due to memory used (81) / total (82) and swap used (41) / total (42) being more than 90.00%"
                ),
                "because swap was nearly full",
            ),
            (
                format!(
                    "Marked {unit} for killing due to memory used (81) / total (82) and swap used (41) / total (42) being more than 90.00%"
                ),
                "because swap was nearly full",
            ),
        ] {
            assert_eq!(
                ended(&oomd(60, &message)),
                Some(format!("systemd-oomd ended app-firefox-4711.scope at second 60 {expected}"))
            );
        }
    }

    /// As Linux 6.12 and systemd 257 wrote them in the lab (scenario `pressure-alarm`).
    #[test]
    fn captured_entries_are_understood() {
        let log = Log::parse(include_bytes!("../../tests/fast/fuzz/seeds/journal/captured"));
        let clock = |usec: u64| (usec / SECOND).to_string();
        let found = findings(Some(&log), None, "", clock);
        let begins = [
            "systemd-oomd ended greedy.service at 1795980546 because swap",
            "the kernel ended python3 (process 168) at 1795979653 for lack",
        ];
        assert_eq!(found.len(), begins.len());
        for (found, begin) in found.iter().zip(begins) {
            assert!(found.message.starts_with(begin), "{found:?}");
        }
    }

    #[test]
    fn other_senders_and_other_messages_are_left_out() {
        let message = killed("firefox");
        for fields in [
            [("_TRANSPORT", "syslog"), ("SYSLOG_IDENTIFIER", "kernel")],
            [("_TRANSPORT", "journal"), ("_SYSTEMD_UNIT", "mallory.service")],
            // Root, through /dev/kmsg.
            [("_TRANSPORT", "kernel"), ("SYSLOG_IDENTIFIER", "sh")],
            // A sender chooses the fields without an underscore only.
            [("TRANSPORT", "kernel"), ("SYSTEMD_UNIT", OOMD)],
        ] {
            assert_eq!(ended(&entry(60, 0, &message, &fields)), None, "{fields:?}");
        }
        let reaper =
            "oom_reaper: reaped process 4711 (firefox), now anon-rss:0kB, file-rss:0kB, shmem-rss:0kB";
        for message in [
            "",
            reaper,
            "Killed process 1",
            "Killed process x (a) total-vm:1kB",
            "a: Killed process 1 (a) total-vm:1kB",
        ] {
            assert_eq!(ended(&kernel(60, 0, message)), None, "{message}");
        }
        for message in [
            "Killed due to memory pressure",
            "Killed x due to memory pressure for /",
            "Considered 2 cgroups for killing, top candidates were:",
        ] {
            assert_eq!(ended(&oomd(60, message)), None, "{message}");
        }
        let broken: [&[u8]; 5] = [b"", b"{", b"[]", b"{\"MESSAGE\":\"x\"}", b"\xff\n{}"];
        for line in broken {
            assert_eq!(Log::parse(line), Log::default());
        }
    }

    #[test]
    fn names_stay_in_their_line() {
        for name in ["a) total-vm:1", "), UID 0, ", "x\nerror: y", "\u{1b}[31m", "\u{202e}"] {
            let found = ended(&kernel(60, 0, &killed(name))).unwrap();
            let expected =
                shown(format!("the kernel ended {name} (process 4711) at second 60 for lack of memory"));
            assert_eq!(found, expected);
        }
        // A message that is not UTF-8 comes as numbers.
        let mut bytes = serde_json::from_slice::<Value>(&kernel(60, 0, "")).unwrap();
        bytes["MESSAGE"] = json!([&killed("a").as_bytes()[..37], &[0xff], b") total-vm:1kB"].concat());
        assert_eq!(
            ended(bytes.to_string().as_bytes()).as_deref(),
            Some("the kernel ended a\u{fffd} (process 4711) at second 60 for lack of memory")
        );
        for other in [json!(null), json!(7), json!([300]), json!(["a", "b"])] {
            bytes["MESSAGE"] = other;
            assert_eq!(ended(bytes.to_string().as_bytes()), None);
        }
    }

    #[test]
    fn the_newest_report_of_each_kind_before_it_is_quoted() {
        let log = [
            zramd(40, "pressure", "memory pressure: none -> moderate"),
            zramd(50, "alarm", "zram0 is nearly full"),
            zramd(55, "pressure", "memory pressure: moderate -> severe"),
            // It was stored after the next report.
            kernel(60, 30, &killed("firefox")),
            zramd(61, "pressure", "memory pressure: severe -> none"),
        ];
        assert_eq!(
            notes(&log),
            [
                "the kernel ended firefox (process 4711) at second 60 for lack of memory; 10s before, zramd logged: zram0 is nearly full; \
              5s before, zramd logged: memory pressure: moderate -> severe"
            ]
        );
        let late =
            [zramd(40, "pressure", "memory pressure: none -> moderate"), kernel(3641, 0, &killed("firefox"))];
        assert_eq!(
            notes(&late),
            [
                "the kernel ended firefox (process 4711) at second 3641 for lack of memory; zramd had logged nothing in the hour before; now, all is empty"
            ]
        );
        let long = [zramd(40, "pressure", &"x".repeat(4000)), kernel(41, 0, &killed("firefox"))];
        assert!(notes(&long)[0].len() < 500);
    }

    #[test]
    fn the_newest_are_named_and_the_others_are_counted() {
        let log: Vec<_> =
            (0..9).map(|number| kernel(60 + number, 0, &killed(&format!("p{number}")))).collect();
        let found = notes(&log);
        assert_eq!(found.len(), NAMED);
        assert!(
            found[0].contains("p8 ")
                && found[2].contains("p6 ")
                && found[2].ends_with("; 6 more before, since boot"),
            "{found:?}"
        );
        assert!(!found[0].contains("more before"));
        assert_eq!(notes(&log[..3]).iter().filter(|note| note.contains("more before")).count(), 0);
    }

    #[test]
    fn programs_that_the_journal_does_not_name_are_counted_by_the_kernel() {
        let by = |log: Option<&Log>, kills| findings(log, kills, "all is empty", |_| String::new()).len();
        assert_eq!((by(None, None), by(None, Some(0)), by(None, Some(2))), (0, 0, 1));
        let empty = Log::default();
        assert_eq!((by(Some(&empty), Some(0)), by(Some(&empty), Some(1))), (0, 1));
        let known = Log::parse(&kernel(60, 0, &killed("firefox")));
        assert_eq!((by(Some(&known), Some(1)), by(Some(&known), Some(7))), (1, 1));
        let oomd =
            Log::parse(&oomd(60, "Killed /a.slice/b.scope due to memory pressure for /a.slice being 80.00%"));
        assert_eq!((by(Some(&oomd), Some(0)), by(Some(&oomd), Some(1))), (1, 2));
        for (kills, begin) in
            [(1, "the kernel has ended a program since"), (2, "the kernel has ended 2 programs since")]
        {
            let found = findings(None, Some(kills), "all is empty", |_| String::new());
            assert!(found[0].message.starts_with(begin), "{found:?}");
        }
        assert_eq!(kills("nr_free_pages 1\noom_kill 3\nnuma_hit 5\n"), Some(3));
        assert_eq!((kills("oom_kill_x 3\n"), kills("oom_kill x\n"), kills("")), (None, None, None));
    }

    #[test]
    fn only_the_entries_that_are_needed_are_asked_for() {
        let words = query(&["a", "b"]).join(" ");
        assert!(
            words.starts_with("--boot --quiet --no-pager --output=json --output-fields=MESSAGE,"),
            "{words}"
        );
        assert!(words.ends_with(
            " --lines=500 _TRANSPORT=kernel PRIORITY=3 + _SYSTEMD_UNIT=systemd-oomd.service PRIORITY=5 + _SYSTEMD_UNIT=zramd.service MESSAGE_ID=a MESSAGE_ID=b"
        ), "{words}");
    }

    proptest! {
        #[test]
        fn any_name_is_one_line(name in "\\PC{0,15}|[\\x00-\\xff]{0,15}", seconds in 0..u64::MAX / SECOND / 4) {
            let log = Log::parse(&kernel(seconds, 0, &killed(&name)));
            let found = findings(Some(&log), None, "", |usec| usec.to_string());
            prop_assert_eq!(found.len(), 1);
            prop_assert!(!found[0].one_line().contains(char::is_control));
            let expected = shown(format!("the kernel ended {name} (process 4711) at "));
            prop_assert!(found[0].message.starts_with(&expected), "{:?}", found);
        }
    }
}
