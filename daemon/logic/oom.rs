//! Which programs end others when memory runs out, before the kernel's OOM killer does.

use serde::Serialize;

/// Units of programs that end others by the memory and swap that are left.
const OTHERS: [&str; 3] = ["earlyoom.service", "nohang.service", "nohang-desktop.service"];
/// Unit of systemd-oomd, which only acts on units that are configured for it (systemd.resource-control(5)).
const OOMD: &str = "systemd-oomd.service";

/// What [`Killers::parse`] has to be given: `systemctl show` with these arguments.
pub const SHOW: [&str; 11] = [
    "show",
    "--property=Id,ActiveState,ManagedOOMSwap,ManagedOOMMemoryPressure",
    "--",
    OOMD,
    OTHERS[0],
    OTHERS[1],
    OTHERS[2],
    "-.slice",
    "*.slice",
    "*.service",
    "*.scope",
];

/// The programs that run, besides the kernel.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Killers {
    /// systemd-oomd, if it runs.
    pub systemd_oomd: Option<Oomd>,
    /// Other services that run: earlyoom, nohang, nohang-desktop.
    pub others: Vec<String>,
}

/// The units in which systemd-oomd ends programs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Oomd {
    /// When swap is nearly full (`ManagedOOMSwap=kill`).
    pub swap: Vec<String>,
    /// When they wait for memory (`ManagedOOMMemoryPressure=kill`).
    pub pressure: Vec<String>,
}

impl Killers {
    /// Parses the output of `systemctl` with [`SHOW`]: one block of lines `NAME=VALUE` per unit.
    pub fn parse(text: &str) -> Killers {
        let mut killers = Killers::default();
        let mut oomd = Oomd::default();
        let mut runs = false;
        for block in text.split("\n\n") {
            let value = |name: &str| {
                let mut lines = block.lines();
                lines.find_map(|line| line.strip_prefix(name)?.strip_prefix('=')).unwrap_or_default()
            };
            let unit = value("Id");
            let is_active = value("ActiveState") == "active";
            // A unit that two patterns match is shown twice.
            let note = |names: &mut Vec<String>, name: &str| {
                if !names.iter().any(|known| known == name) {
                    names.push(name.to_owned());
                }
            };
            if unit == OOMD {
                runs = is_active;
            } else if OTHERS.contains(&unit) && is_active {
                note(&mut killers.others, unit.trim_end_matches(".service"));
            }
            let kinds =
                [("ManagedOOMSwap", &mut oomd.swap), ("ManagedOOMMemoryPressure", &mut oomd.pressure)];
            for (kind, units) in kinds {
                if value(kind) == "kill" && is_active {
                    note(units, unit);
                }
            }
        }
        killers.systemd_oomd = runs.then_some(oomd);
        killers
    }

    /// One sentence that says who ends programs, and a second one with a remedy where there is a better choice.
    pub fn sentence(&self) -> String {
        let idle =
            self.systemd_oomd.as_ref().is_some_and(|oomd| oomd.swap.is_empty() && oomd.pressure.is_empty());
        let mut names = self.others.clone();
        let mut conditions = Vec::new();
        if let Some(oomd) = self.systemd_oomd.as_ref().filter(|_| !idle) {
            names.push("systemd-oomd".to_owned());
            if !oomd.swap.is_empty() {
                conditions.push(format!("if swap is nearly full in {}", oomd.swap.join(", ")));
            }
            if !oomd.pressure.is_empty() {
                conditions.push(format!("under memory pressure in {}", oomd.pressure.join(", ")));
            }
        }
        let who = names.join(" and ");
        let oomd = "`systemctl set-property -- -.slice ManagedOOMSwap=kill` lets it";
        match (names.len(), conditions.is_empty()) {
            (0, _) if idle => format!(
                "When memory runs out, only the kernel ends programs: systemd-oomd runs, but no unit is configured for it. {oomd}."
            ),
            (0, _) => "When memory runs out, only the kernel ends programs, and the machine may stall before. earlyoom or systemd-oomd end them earlier.".to_owned(),
            (1, true) => format!("When memory runs out, {who} ends programs."),
            (1, false) => format!("When memory runs out, {who} ends programs: {}.", conditions.join("; ")),
            (_, none) => {
                let detail = if none { String::new() } else { format!(" (systemd-oomd: {})", conditions.join("; ")) };
                format!("When memory runs out, {who} end programs{detail}. One of them is enough: disable the others.")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unit(id: &str, state: &str, swap: &str, pressure: &str) -> String {
        format!("Id={id}\nActiveState={state}\nManagedOOMSwap={swap}\nManagedOOMMemoryPressure={pressure}\n")
    }

    fn parsed(units: &[String]) -> Killers {
        Killers::parse(&units.join("\n"))
    }

    #[test]
    fn without_such_programs_it_is_the_kernel() {
        let slices = unit("-.slice", "active", "auto", "auto");
        let stopped = unit("earlyoom.service", "inactive", "auto", "auto");
        let killers = parsed(&[unit(OOMD, "inactive", "auto", "auto"), stopped, slices]);
        assert_eq!(killers, Killers::default());
        assert_eq!(Killers::parse(""), killers);
    }

    #[test]
    fn systemd_oomd_is_named_with_its_units() {
        let root = unit("-.slice", "active", "kill", "auto");
        let user = unit("user@1000.service", "active", "auto", "kill");
        let gone = unit("user@1001.service", "inactive", "auto", "kill");
        let killers = parsed(&[unit(OOMD, "active", "auto", "auto"), root.clone(), root.clone(), user, gone]);
        let oomd = Oomd { swap: vec!["-.slice".to_owned()], pressure: vec!["user@1000.service".to_owned()] };
        assert_eq!(killers, Killers { systemd_oomd: Some(oomd), others: Vec::new() });
        // Without the program, its settings have no effect.
        assert_eq!(parsed(&[unit(OOMD, "failed", "auto", "auto"), root]), Killers::default());
        let other = unit("earlyoom.service", "active", "auto", "auto");
        assert_eq!(parsed(&[other.clone(), other]).others, ["earlyoom"]);
        let idle = parsed(&[unit(OOMD, "active", "auto", "auto")]);
        assert_eq!(idle.systemd_oomd, Some(Oomd::default()));
        assert_ne!(idle.sentence(), Killers::default().sentence());
    }

    #[test]
    fn the_sentence_names_every_program() {
        let others = ["earlyoom", "nohang"].map(str::to_owned).to_vec();
        let oomd = Oomd { swap: vec!["-.slice".to_owned()], pressure: Vec::new() };
        let waiting = Oomd { swap: Vec::new(), pressure: vec!["user@1000.service".to_owned()] };
        for killers in [
            Killers { systemd_oomd: None, others: others.clone() },
            Killers { systemd_oomd: Some(waiting), others: Vec::new() },
            Killers { systemd_oomd: Some(oomd.clone()), others: others[..1].to_vec() },
            Killers { systemd_oomd: Some(oomd), others: Vec::new() },
        ] {
            let sentence = killers.sentence();
            assert!(killers.others.iter().all(|name| sentence.contains(name)), "{sentence}");
            let units = killers.systemd_oomd.iter().flat_map(|oomd| &oomd.swap).collect::<Vec<_>>();
            assert!(units.iter().all(|unit| sentence.contains(unit.as_str())), "{sentence}");
            let units = killers.systemd_oomd.iter().flat_map(|oomd| &oomd.pressure).collect::<Vec<_>>();
            assert!(units.iter().all(|unit| sentence.contains(unit.as_str())), "{sentence}");
            assert_eq!(sentence.contains("memory pressure"), !units.is_empty(), "{sentence}");
            assert_eq!(sentence.contains("systemd-oomd"), killers.systemd_oomd.is_some(), "{sentence}");
        }
    }
}
