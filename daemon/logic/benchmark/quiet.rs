//! Whether the machine is idle enough for a measurement.

use std::time::Duration;

/// The `some` line of a file in `/proc/pressure`. Source: Documentation/accounting/psi.rst.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Stall {
    /// Percent of the last ten seconds in which some task waited.
    pub avg10: f64,
    /// The same for the last five minutes.
    pub avg300: f64,
    /// Microseconds since boot in which some task waited.
    pub total_usec: u64,
}

impl Stall {
    /// Parses the line `some`; `None` if there is none.
    pub fn parse(text: &str) -> Option<Stall> {
        let line = text.lines().find_map(|line| line.strip_prefix("some "))?;
        let field = |name: &str| {
            line.split_ascii_whitespace().find_map(|word| word.strip_prefix(name)?.strip_prefix('='))
        };
        Some(Stall {
            avg10: field("avg10")?.parse().ok()?,
            avg300: field("avg300")?.parse().ok()?,
            total_usec: field("total")?.parse().ok()?,
        })
    }
}

/// Pressure at one moment. `None` on a kernel without PSI.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Pressure {
    /// Memory.
    pub memory: Option<Stall>,
    /// CPU.
    pub cpu: Option<Stall>,
    /// Load average of one minute per CPU.
    pub load: f64,
}

/// Above this percentage of ten seconds in which some task waited, memory counts as short.
const MEMORY_PERCENT: f64 = 5.0;
/// The same for CPUs, which then count as busy.
const CPU_PERCENT: f64 = 25.0;
/// Runnable tasks per CPU above which CPUs count as busy, on kernels without PSI.
const LOAD: f64 = 0.8;
/// Percentage of a run's time in which other tasks may wait for a CPU.
const CPU_PERCENT_MEANWHILE: f64 = 60.0;

/// Why not to begin now; `None` if nothing is against it. An `idle` run (in the background) also yields to busy CPUs.
pub fn before(now: &Pressure, idle: bool) -> Option<String> {
    if let Some(memory) = now.memory
        && memory.avg10 > MEMORY_PERCENT
    {
        return Some(format!("programs wait for memory ({:.0} % of the last 10 s)", memory.avg10));
    }
    if !idle {
        return None;
    }
    match now.cpu {
        Some(cpu) if cpu.avg10 > CPU_PERCENT => {
            Some(format!("programs wait for a CPU ({:.0} % of the last 10 s)", cpu.avg10))
        }
        None if now.load > LOAD => Some(format!("the CPUs are busy (load {:.1} per CPU)", now.load)),
        _ => None,
    }
}

/// Why not to continue, `elapsed` after the beginning.
pub fn meanwhile(begun: &Pressure, now: &Pressure, elapsed: Duration, idle: bool) -> Option<String> {
    let elapsed_usec = elapsed.as_micros() as f64;
    // Too short for a meaningful percentage.
    if elapsed_usec < 200_000.0 {
        return None;
    }
    let percent = |begun: Option<Stall>, now: Option<Stall>| {
        let waited = now?.total_usec.saturating_sub(begun?.total_usec);
        Some(waited as f64 / elapsed_usec * 100.0)
    };
    if let Some(memory) = percent(begun.memory, now.memory)
        && memory > MEMORY_PERCENT
    {
        return Some(format!("programs began to wait for memory ({memory:.0} % of the time)"));
    }
    match percent(begun.cpu, now.cpu) {
        Some(cpu) if idle && cpu > CPU_PERCENT_MEANWHILE => {
            Some(format!("programs began to wait for a CPU ({cpu:.0} % of the time)"))
        }
        _ => None,
    }
}

#[cfg(test)]
#[allow(clippy::unnecessary_wraps)]
mod tests {
    use super::*;

    const TEXT: &str = "some avg10=1.50 avg60=2.02 avg300=3.25 total=809189\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=405503\n";

    fn stall(avg10: f64, total_usec: u64) -> Option<Stall> {
        Some(Stall { avg10, avg300: 0.0, total_usec })
    }

    #[test]
    fn the_kernels_text_is_understood() {
        assert_eq!(Stall::parse(TEXT), Some(Stall { avg10: 1.5, avg300: 3.25, total_usec: 809_189 }));
        assert_eq!(Stall::parse("full avg10=0\n"), None);
        assert_eq!(Stall::parse("some avg10=x avg300=0 total=0"), None);
    }

    #[test]
    fn memory_counts_always_and_cpus_when_idle() {
        let busy = Pressure { memory: stall(0.0, 0), cpu: stall(90.0, 0), load: 3.0 };
        assert_eq!(before(&busy, false), None);
        assert!(before(&busy, true).is_some());
        let short = Pressure { memory: stall(20.0, 0), ..busy };
        assert!(before(&short, false).is_some());
        let old_kernel = Pressure { memory: None, cpu: None, load: 3.0 };
        assert!(before(&old_kernel, true).is_some());
        assert_eq!(before(&Pressure { load: 0.1, ..old_kernel }, true), None);
    }

    #[test]
    fn what_comes_up_meanwhile_ends_it() {
        let begun = Pressure { memory: stall(0.0, 1000), cpu: stall(0.0, 1000), load: 0.0 };
        let second = Duration::from_secs(1);
        let memory = Pressure { memory: stall(0.0, 101_000), ..begun };
        assert!(meanwhile(&begun, &memory, second, false).unwrap().contains("10 %"));
        let cpu = Pressure { cpu: stall(0.0, 801_000), ..begun };
        assert!(meanwhile(&begun, &cpu, second, true).is_some());
        assert_eq!(meanwhile(&begun, &cpu, second, false), None);
        assert_eq!(meanwhile(&begun, &begun, second, true), None);
        assert_eq!(meanwhile(&begun, &memory, Duration::from_millis(10), true), None);
    }
}
