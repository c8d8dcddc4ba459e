//! What governs the frequency of the CPUs: a benchmark on a slow one chooses for a slow one.

use host::{Host, MachineFile};
use serde::{Deserialize, Serialize};

/// The policy of the first CPU (`/sys/devices/system/cpu/cpufreq/policy0`, cpufreq in the kernel's admin-guide).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "BenchmarkFrequency"))]
pub struct Frequency {
    /// `scaling_driver`.
    pub driver: String,
    /// `scaling_governor`.
    pub governor: String,
    /// `scaling_max_freq`: the highest frequency that is allowed now, in kHz.
    pub limit_khz: u64,
    /// `cpuinfo_max_freq`: the highest frequency that the CPU can have, in kHz.
    pub maximum_khz: u64,
}

impl Frequency {
    /// `None` if the kernel does not say, as in most virtual machines.
    pub fn of<H: Host>(host: &H) -> Option<Frequency> {
        let text = |file| host.text(file).ok().map(|text: String| text.trim().to_owned());
        let number = |file| text(file)?.parse().ok();
        Some(Frequency {
            driver: text(MachineFile::FrequencyDriver)?,
            governor: text(MachineFile::FrequencyGovernor)?,
            limit_khz: number(MachineFile::FrequencyLimit)?,
            maximum_khz: number(MachineFile::FrequencyMaximum)?,
        })
    }

    /// Why the CPU is slower than it can be, in a few words, if so.
    pub fn held_back(&self) -> Option<String> {
        // These two choose the frequency themselves, and "powersave" is their usual governor.
        let chooses = ["intel_pstate", "amd-pstate-epp"].contains(&self.driver.as_str());
        let mhz = |khz: u64| khz / 1000;
        match self.governor.as_str() {
            "powersave" if !chooses => {
                Some("the governor powersave keeps it at its lowest frequency".to_owned())
            }
            "userspace" => {
                Some("the governor userspace keeps it at a frequency that a program has set".to_owned())
            }
            _ if self.limit_khz < self.maximum_khz / 20 * 19 => Some(format!(
                "scaling_max_freq keeps it at {} MHz, of {} MHz",
                mhz(self.limit_khz),
                mhz(self.maximum_khz)
            )),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_holds_a_cpu_back_is_named() {
        let held_back = |driver: &str, governor: &str, limit_khz| {
            let (driver, governor) = (driver.to_owned(), governor.to_owned());
            Frequency { driver, governor, limit_khz, maximum_khz: 3_600_000 }.held_back().unwrap_or_default()
        };
        for (driver, governor, limit, expected) in [
            ("intel_pstate", "powersave", 3_600_000, ""),
            ("amd-pstate-epp", "powersave", 3_600_000, ""),
            ("acpi-cpufreq", "schedutil", 3_600_000, ""),
            ("cpufreq-dt", "ondemand", 3_500_000, ""),
            ("acpi-cpufreq", "powersave", 3_600_000, "lowest"),
            ("cpufreq-dt", "userspace", 3_600_000, "userspace"),
            ("intel_pstate", "powersave", 1_200_000, "1200 MHz, of 3600 MHz"),
        ] {
            let found = held_back(driver, governor, limit);
            assert!(
                found.contains(expected) && found.is_empty() == expected.is_empty(),
                "{driver} {governor}: {found}"
            );
        }
    }
}
