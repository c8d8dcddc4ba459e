//! Whether the machine is idle enough for a measurement.

use std::time::Duration;

use logic::maintain::gate::low_battery;
use logic::psi::{Pressure, Usage};

/// Above this percentage of time in which some task waits, memory counts as short, and figures are not those of the algorithm.
const MEMORY_PERCENT: f64 = 5.0;
/// Percentage of a run's time in which other tasks may wait for a CPU.
const CPU_PERCENT_MEANWHILE: f64 = 60.0;

/// Why not to begin now; `None` if nothing is against it. An `idle` run (in the background) also waits for CPUs. `on_battery`: its charge in
/// percent; where it is low, many machines slow the CPU down.
pub fn before(now: &Usage, on_battery: Option<u8>, idle: bool) -> Option<String> {
    if let Some(why) = low_battery(on_battery) {
        return Some(why);
    }
    match now.memory.map(|memory| memory.some.avg10) {
        Some(percent) if percent > MEMORY_PERCENT => {
            Some(format!("programs wait for memory ({percent:.0} % of the last 10 s)"))
        }
        _ if idle => now.busy(),
        _ => None,
    }
}

/// Why not to continue, `elapsed` after the beginning.
pub fn meanwhile(begun: &Usage, now: &Usage, elapsed: Duration, idle: bool) -> Option<String> {
    // Too short for a meaningful percentage.
    if elapsed < Duration::from_millis(200) {
        return None;
    }
    let percent = |begun: Option<Pressure>, now: Option<Pressure>| {
        let waited = now?.some.total.saturating_sub(begun?.some.total);
        Some(waited.as_secs_f64() / elapsed.as_secs_f64() * 100.0)
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
    use logic::psi::Stall;

    fn waiting(avg10: f64, millis: u64) -> Option<Pressure> {
        let some = Stall { avg10, total: Duration::from_millis(millis) };
        Some(Pressure { some, full: Stall::default() })
    }

    #[test]
    fn memory_counts_always_and_cpus_when_idle() {
        let busy = Usage { memory: waiting(5.0, 0), cpu: waiting(90.0, 0), load: Some(3.0) };
        assert_eq!(before(&busy, None, false), None);
        assert_eq!(before(&busy, Some(30), false), None);
        assert!(before(&busy, Some(29), false).is_some_and(|why| why.contains("29 %")));
        assert!(before(&busy, None, true).is_some());
        let short = Usage { memory: waiting(6.0, 0), ..busy };
        assert!(before(&short, None, false).is_some_and(|why| why.contains("6 %")));
        let old_kernel = Usage { load: Some(0.1), ..Usage::default() };
        assert_eq!(before(&old_kernel, None, true), None);
    }

    #[test]
    fn what_comes_up_meanwhile_ends_it() {
        let begun = Usage { memory: waiting(0.0, 1), cpu: waiting(0.0, 1), load: None };
        let second = Duration::from_secs(1);
        let memory = Usage { memory: waiting(0.0, 101), ..begun };
        assert!(meanwhile(&begun, &memory, second, false).unwrap().contains("10 %"));
        let cpu = Usage { cpu: waiting(0.0, 801), ..begun };
        assert!(meanwhile(&begun, &cpu, second, true).is_some());
        assert_eq!(meanwhile(&begun, &cpu, second, false), None);
        assert_eq!(meanwhile(&begun, &begun, second, true), None);
        assert_eq!(meanwhile(&begun, &memory, Duration::from_millis(10), true), None);
    }
}
