//! How busy the machine is: pressure stall information (Documentation/accounting/psi.rst) and load.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::word::{of_word, word};

/// A line of a file in `/proc/pressure`.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Stall {
    /// Percentage of the last ten seconds in which tasks waited.
    pub avg10: f64,
    /// Time since boot in which tasks waited.
    pub total: Duration,
}

/// A file in `/proc/pressure`.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Pressure {
    /// Some task waited.
    pub some: Stall,
    /// All tasks waited. Zero for CPUs before Linux 5.13, which lacks the line.
    pub full: Stall,
}

impl Pressure {
    /// Parses the file; `None` if it has no line `some`.
    pub fn parse(text: &str) -> Option<Pressure> {
        let stall = |kind: &str| {
            let words =
                || text.lines().map(str::split_whitespace).find(|words| words.clone().next() == Some(kind));
            let field = |name: &str| words()?.find_map(|word| word.strip_prefix(name));
            Some(Stall {
                avg10: field("avg10=")?.parse().ok()?,
                total: Duration::from_micros(field("total=")?.parse().ok()?),
            })
        };
        Some(Pressure { some: stall("some")?, full: stall("full").unwrap_or_default() })
    }
}

/// Level of memory pressure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "PressureLevel"))]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// No pressure.
    #[default]
    None,
    /// Some tasks wait noticeably often.
    Moderate,
    /// At times all tasks wait.
    Severe,
    /// All tasks wait most of the time.
    Critical,
}

impl Level {
    /// Its name on the bus and in files.
    pub fn word(self) -> &'static str {
        word(self)
    }

    /// Parses the name.
    pub fn of_word(word: &str) -> Option<Level> {
        of_word(word)
    }
}

/// The machine at one moment. `None` where the kernel does not tell.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Usage {
    /// Waiting for memory.
    pub memory: Option<Pressure>,
    /// Waiting for a CPU.
    pub cpu: Option<Pressure>,
    /// Load of the last minute, per CPU.
    pub load: Option<f64>,
}

/// Percentage of ten seconds in which some task waits for a CPU, above which the machine is busy.
const CPU: f64 = 25.0;
/// Load per CPU above which the machine is busy, on kernels without PSI: with it, running without waiting is no reason.
const LOAD: f64 = 0.9;
/// Percentage of ten seconds in which all tasks wait for memory, above which no work is added.
const THRASHING: f64 = 20.0;

impl Usage {
    /// Parses the files `/proc/pressure/memory`, `/proc/pressure/cpu` and `/proc/loadavg` of a machine with this number of CPUs.
    pub fn parse(memory: Option<&str>, cpu: Option<&str>, loadavg: Option<&str>, cpus: u32) -> Usage {
        let load: Option<f64> = loadavg.and_then(|text| text.split_whitespace().next()?.parse().ok());
        Usage {
            memory: memory.and_then(Pressure::parse),
            cpu: cpu.and_then(Pressure::parse),
            load: load.map(|load| load / f64::from(cpus.max(1))),
        }
    }

    /// Why work in the background has to wait, if so.
    pub fn busy(&self) -> Option<String> {
        match (self.cpu.map(|cpu| cpu.some.avg10), self.load) {
            (Some(percent), _) if percent > CPU => {
                return Some(format!(
                    "the machine is busy (tasks wait for a CPU {percent:.0} % of the time)"
                ));
            }
            (None, Some(load)) if load > LOAD => {
                return Some(format!("the machine is busy (load {load:.1} per CPU)"));
            }
            _ => {}
        }
        let percent = self.memory?.full.avg10;
        (percent > THRASHING).then(|| format!("everything waits for memory {percent:.0} % of the time"))
    }
}

#[cfg(test)]
#[allow(clippy::unnecessary_wraps)]
mod tests {
    use super::*;

    fn waiting(some: f64, full: f64) -> Option<Pressure> {
        let stall = |avg10| Stall { avg10, total: Duration::ZERO };
        Some(Pressure { some: stall(some), full: stall(full) })
    }

    #[test]
    fn files_of_the_kernel_are_read() {
        let text = "some avg10=1.25 avg60=0.80 avg300=0.10 total=5000000\nfull avg10=0.75 avg60=0.00 avg300=0.00 total=7\n";
        let some = Stall { avg10: 1.25, total: Duration::from_secs(5) };
        let full = Stall { avg10: 0.75, total: Duration::from_micros(7) };
        assert_eq!(Pressure::parse(text), Some(Pressure { some, full }));
        let old = "some avg10=40.00 avg60=0.00 avg300=0.00 total=9\n";
        let usage = Usage::parse(None, Some(old), Some("1.20 0.80 0.50 1/312 4711\n"), 4);
        assert_eq!((usage.memory, usage.load), (None, Some(0.3)));
        assert!(usage.busy().is_some_and(|why| why.contains("40 %")), "/proc/pressure/cpu before Linux 5.13");
        for nothing in [
            "",
            "full avg10=1 total=1",
            "some avg10=x total=1",
            "some avg10=1 total=",
            "something avg10=1 total=1",
        ] {
            assert_eq!(Pressure::parse(nothing), None, "{nothing}");
        }
        assert_eq!(Usage::parse(None, None, Some(""), 0), Usage::default());
    }

    #[test]
    fn work_in_the_background_waits_for_the_machine() {
        let quiet = Usage { memory: waiting(30.0, 20.0), cpu: waiting(25.0, 0.0), load: Some(3.0) };
        for idle in [quiet, Usage::default(), Usage { load: Some(0.9), ..Usage::default() }] {
            assert_eq!(idle.busy(), None, "{idle:?}");
        }
        for (usage, figure) in [
            (Usage { cpu: waiting(26.0, 0.0), ..quiet }, "26 %"),
            (Usage { memory: waiting(30.0, 21.0), ..quiet }, "21 %"),
            (Usage { cpu: None, ..quiet }, "3.0"),
        ] {
            assert!(usage.busy().is_some_and(|why| why.contains(figure)), "{usage:?}");
        }
    }
}
