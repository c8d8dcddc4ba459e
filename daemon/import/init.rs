//! `zramdctl init`: proposes a configuration for this machine.

use std::path::PathBuf;

use super::peer::{Imported, Peer};
use logic::config;
use logic::config::settings::MEASURED_SIZE;
use logic::human::human;
use logic::neighbours::programs::{Does, OtherManager};
use logic::plan::{Decision, Item, Plan};
use logic::proc::{MountLine, SwapLine, top};
use logic::record::Target;
use logic::request::{Choice, Purpose, Request};
use logic::text::shown;
use logic::zram_or_zswap::{Conditions, NO_DISK, Place, SMALL, Way, before_commands, commands};

/// What a proposal depends on.
#[derive(Debug, Clone, Default)]
pub struct Machine {
    /// `MemTotal` in bytes; 0 if unknown.
    pub memory_bytes: u64,
    /// Mounted file systems.
    pub mounts: Vec<MountLine>,
    /// Memory reserved as huge pages, which are neither swapped nor compressed.
    pub huge_bytes: u64,
    /// Active swap.
    pub swaps: Vec<SwapLine>,
    /// What the choice between zram and zswap depends on.
    pub conditions: Conditions,
    /// Version of util-linux; 0.0 if unknown.
    pub util_linux: (u32, u32),
    /// Whether control groups (v2) are known to keep no memory.
    pub lacks_memory_controller: bool,
    /// Whether the kernel is known not to measure memory pressure.
    pub lacks_pressure: bool,
    /// What zramd has set up.
    pub managed: Vec<Target>,
    /// Programs for which the administrator has written a configuration.
    pub own: Vec<Peer>,
    /// Other programs that set up zram.
    pub others: Vec<OtherManager>,
    /// Those that are configured, but set up no zram device.
    pub idle: Vec<OtherManager>,
    /// Names of the devices that a package configures to yield to these programs.
    pub yielding: Vec<String>,
}

/// What a proposal is for. Desktops and servers get the same: one size and one algorithm measured best on both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Profile {
    /// Any other machine.
    Standard,
    /// The root file system is on an SD card or eMMC.
    Board,
}

/// A proposed configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proposal {
    /// The file.
    pub toml: String,
    /// What was found, and what follows from it: one sentence each.
    pub remarks: Vec<String>,
}

/// The measured size and algorithm, as in `config/defaults.toml`.
const SWAP: &str = "
[zram0]
# How much can be stored, not how much memory it takes: three to four pages of programs fit into the memory of one.
zram-size = \"SIZE\"
# The one that costs this machine least, once it has been measured: see `[benchmark] when` in zramd.toml(5).
# Until then zstd, where the kernel has it.
compression-algorithm = \"auto\"
";

/// zswap as it was measured.
const ZSWAP: &str = "
# Pages on their way to the swap on the disk are compressed in memory first, and those that stay cold leave for the disk.
[zswap]
enabled = true
compressor = [\"zstd\", \"lz4\", \"lzo\"]
max-pool = \"20%\"
shrinker = true
";

/// The sections of all proposals that do not depend on the machine; an imported one is kept.
const REST: [(&str, &str); 2] = [
    (
        "[vm]",
        "
# While this swap is on, zswap is off, pages are swapped one by one and rather than dropping cached files, and user sessions keep
# memory when a program takes all of it.
[vm]
tune = true
protect-sessions = \"min(ram / 8, 256MiB)\"
",
    ),
    (
        "[maintenance]",
        "
# When memory is short, the journal, the bus and `zramdctl status` say how short, and what swap takes in.
[maintenance]
pressure.enabled = true
",
    ),
];

/// `[vm]` where control groups cannot keep memory.
const WITHOUT_PROTECTION: &str = "
# While this swap is on, zswap is off, and pages are swapped one by one and rather than dropping cached files.
[vm]
tune = true
";

const NO_CONTROLLER: &str = "protect-sessions is left out: the memory controller of control groups (version 2) is not there. Boot with systemd.unified_cgroup_hierarchy=1 cgroup_enable=memory before you add it.";

const NO_PRESSURE: &str = "[maintenance] with pressure.enabled is left out: this kernel does not measure memory pressure. Boot with psi=1, or a kernel with CONFIG_PSI, before you add it.";

/// A suggestion for machines with a card.
const LOGS: &str = "
# Logs in RAM spare the card. They are saved every six hours and at shutdown; a power cut costs what came after that.
# [ramdisk.logs]
# mount-point = \"/var/log\"
# size = \"min(ram / 10, 128MiB)\"
# mode = \"0755\"
# persist = \"snapshot\"
# save-interval = \"6h\"
";

/// `MMC_BLOCK_MAJOR` of the kernel.
const MMC_MAJOR: u32 = 179;

impl Machine {
    /// The profile that fits.
    pub fn profile(&self) -> Profile {
        if self.is_on_card() { Profile::Board } else { Profile::Standard }
    }

    /// The root file system.
    pub fn root(&self) -> Option<&MountLine> {
        top(&self.mounts, "/")
    }

    fn is_on_card(&self) -> bool {
        // A root file system that the kernel mounts has the source `/dev/root`. Later partitions have another major number.
        self.root()
            .is_some_and(|mount| mount.device.0 == MMC_MAJOR || mount.source.starts_with("/dev/mmcblk"))
    }

    /// Programs that would claim the same devices.
    pub fn rivals(&self) -> impl Iterator<Item = &OtherManager> {
        self.others.iter().filter(|other| other.does == Does::Devices)
    }

    /// The program whose configuration replaces the measured one: the administrator has written it. What a distribution
    /// ships below /usr is no decision of his.
    pub fn import_from(&self) -> Option<Peer> {
        let mut peers = self.rivals().filter_map(|other| Peer::parse(other.import?));
        peers.find(|peer| self.own.contains(peer))
    }

    /// Sets aside a program whose configuration has no zram device.
    pub fn set_aside(&mut self, peer: Peer) {
        let is_it = |other: &OtherManager| other.does == Does::Devices && other.import == Some(peer.name());
        let (idle, others) = std::mem::take(&mut self.others).into_iter().partition(is_it);
        self.others = others;
        self.idle.extend::<Vec<OtherManager>>(idle);
    }

    /// Proposes a configuration. `imported` is that of [`Machine::import_from`].
    pub fn propose(&self, profile: Option<Profile>, imported: Option<(Peer, &Imported)>) -> Proposal {
        let board = profile.unwrap_or_else(|| self.profile()) == Profile::Board;
        let memory = match self.memory_bytes {
            0 => "How much memory this machine has is not known here: sizes are evaluated when it boots."
                .to_owned(),
            bytes => format!("This machine has {} of memory.", human(bytes)),
        };
        let mut remarks = vec![memory];
        if self.is_on_card() {
            remarks.push("The root file system is on an SD card or eMMC: logs in RAM, which spare it, are proposed as a comment.".to_owned());
        }
        let mut toml = "#:schema /usr/share/zramd/zramd.schema.json\n# Written by `zramdctl init`. zramd.toml(5) explains all keys.\n".to_owned();
        let zswap = imported.is_none() && self.conditions.row().way == Way::Zswap;
        match imported {
            Some((peer, imported)) => {
                remarks.push(format!("Devices are taken over from {}.", peer.name()));
                toml.push_str(&imported.toml);
            }
            None if zswap => toml.push_str(ZSWAP),
            None => toml.push_str(&SWAP.replace("SIZE", &self.swap_size())),
        }
        for (header, section) in REST {
            // Those settings are for swap on zram. An imported section is kept.
            if (zswap && header == "[vm]") || toml.lines().any(|line| line == header) {
                continue;
            }
            let (section, left_out) = self.possible(header, section);
            remarks.extend(left_out.map(str::to_owned));
            // An import offers the section as a comment.
            let offered = format!("\n# {header}\n");
            if toml.contains(&offered) && !section.is_empty() {
                toml = toml.replace(&offered, &format!("{}\n", section.trim_end()));
            } else {
                toml.push_str(section);
            }
        }
        self.override_shipped(imported.is_some(), &mut toml);
        if board {
            toml.push_str(LOGS);
        }
        if imported.is_none() {
            remarks.push(self.conditions.sentence());
        }
        remarks.extend(self.remarks(imported.is_some(), &toml));
        if imported.is_none()
            && [NO_DISK, SMALL].contains(&self.conditions.row())
            && self.conditions.has_shrinker
        {
            remarks.extend(self.commands());
        }
        Proposal { toml, remarks }
    }

    /// What this kernel can do of a section, and what is left out.
    fn possible(&self, header: &str, section: &'static str) -> (&'static str, Option<&'static str>) {
        match header {
            "[vm]" if self.lacks_memory_controller => (WITHOUT_PROTECTION, Some(NO_CONTROLLER)),
            "[maintenance]" if self.lacks_pressure => ("", Some(NO_PRESSURE)),
            _ => (section, None),
        }
    }

    /// The measured size, without memory that is reserved as huge pages.
    fn swap_size(&self) -> String {
        match self.huge_bytes >> 20 {
            0 => MEASURED_SIZE.to_owned(),
            mib => MEASURED_SIZE.replace("ram", &format!("(ram - {mib})")),
        }
    }

    /// The commands that create swap on a disk as large as the memory.
    fn commands(&self) -> Vec<String> {
        let place = Place {
            fs_type: self.root().map(|mount| mount.fs_type.clone()).unwrap_or_default(),
            util_linux: self.util_linux,
            bytes: self.memory_bytes,
        };
        let lines = commands(&place).into_iter().map(|line| format!("    {line}"));
        std::iter::once(before_commands(&place)).chain(lines).collect()
    }

    /// Adds what keeps the devices of packages out: the files are merged key by key.
    fn override_shipped(&self, imports: bool, toml: &mut String) {
        let devices = config::load(&[(PathBuf::new(), toml.clone())], "").settings.devices;
        let has_rivals = self.rivals().next().is_some();
        let shipped = |name: &str| self.yielding.iter().any(|other| other == name);
        if has_rivals && !imports && !shipped("zram0") {
            *toml = toml.replace("\n[zram0]\n", "\n[zram0]\nyield = true\n");
        }
        for name in &self.yielding {
            let header = format!("\n[{name}]\n");
            let device = devices.iter().find(|device| format!("zram{}", device.number) == *name);
            if !toml.contains(&header) {
                toml.push_str(&format!("\n# Shipped by a package, and not part of the imported configuration.{header}enabled = false\n"));
                continue;
            }
            // An import has the key.
            let mut keys = if imports { String::new() } else { format!("yield = {has_rivals}\n") };
            if imports && device.is_some_and(|device| device.algorithms.is_empty()) {
                keys.push_str("# The default of the kernel, as before.\ncompression-algorithm = []\n");
            }
            *toml = toml.replace(&header, &format!("{header}{keys}"));
        }
    }

    /// Active zram swap of another program, and whether a proposal has a section for its device.
    fn foreign(&self, toml: &str) -> impl Iterator<Item = (&SwapLine, u32, bool)> {
        self.swaps.iter().filter_map(move |swap| {
            let number =
                swap.zram_number().filter(|number| !self.managed.contains(&Target::Device(*number)))?;
            let header = format!("[zram{number}]");
            Some((swap, number, toml.lines().any(|line| line == header)))
        })
    }

    /// The device of a proposal that another program uses as swap now, if there is one.
    pub fn taken(&self, toml: &str) -> Option<u32> {
        self.foreign(toml).find(|(_, _, claims)| *claims).map(|(_, number, _)| number)
    }

    fn remarks(&self, imports: bool, toml: &str) -> Vec<String> {
        let mut remarks = Vec::new();
        let zswap = toml.contains(ZSWAP);
        if self.huge_bytes > 0 && !imports && !zswap {
            remarks.push(format!(
                "{} of memory are reserved as huge pages, which are neither swapped nor compressed; the size does not count them.",
                human(self.huge_bytes)
            ));
        }
        let priority = swap_priority(toml);
        for swap in self.swaps.iter().filter(|swap| swap.zram_number().is_none() && !zswap) {
            let size = human(swap.size_kib.saturating_mul(1024));
            remarks.push(if swap.priority < priority {
                format!(
                    "Swap on {} ({size}) stays, and is used when compressed swap is full: for new pages, even those that are used often. `zramdctl doctor` names an alternative.",
                    swap.path
                )
            } else {
                format!(
                    "Swap on {} ({size}) has priority {}, and is used before compressed swap. Give it a priority below {priority}: by pri= in /etc/fstab, or where it is switched on.",
                    swap.path, swap.priority
                )
            });
        }
        // That of a known program is explained below.
        for (swap, number, claims) in self.foreign(toml).filter(|_| self.rivals().next().is_none()) {
            let size = human(swap.size_kib.saturating_mul(1024));
            remarks.push(if claims {
                format!(
                    "Swap on {} ({size}) was set up by hand or by a program unknown to zramd, and keeps [zram{number}] from being set up. Switch that off, then reboot.",
                    swap.path
                )
            } else {
                format!(
                    "Swap on {} ({size}) was set up by hand or by a program unknown to zramd, and stays beside this.",
                    swap.path
                )
            });
        }
        if self.conditions.zswap_is_on && !zswap {
            remarks.push("zswap is on; it is switched off while compressed swap is on.".to_owned());
        }
        if self.conditions.hibernates && !zswap {
            remarks.push(
                "Hibernation is configured; if it fails for lack of memory, run `systemctl enable zramd-drain.service`."
                    .to_owned(),
            );
        }
        for other in &self.idle {
            remarks.push(format!(
                "{} is configured ({}), but sets up no zram device, and is left alone.",
                other.name, other.file
            ));
        }
        for other in &self.others {
            let remark = match (other.does, other.import) {
                (Does::Directories, None) => {
                    format!("{} keeps directories in memory and is left alone.", other.name)
                }
                (Does::Directories, Some(name)) => format!(
                    "{} keeps directories in memory and is left alone; `zramdctl import {name}` shows its configuration for zramd.",
                    other.name
                ),
                _ if !imports && other.import.is_some() => format!(
                    "{} is not taken over, because no file of the administrator configures it ({}). {}",
                    other.name,
                    other.file,
                    until_off(other)
                ),
                _ => format!(
                    "{} takes zram devices here, too ({}). {}",
                    other.name,
                    other.file,
                    until_off(other)
                ),
            };
            remarks.push(remark);
        }
        remarks
    }
}

fn until_off(other: &OtherManager) -> String {
    let off = &other.off;
    if other.enabled {
        format!("Until it is disabled, zramd leaves the device to it: {off}, then reboot.")
    } else {
        format!("Until it is stopped, zramd leaves the device to it: {off}.")
    }
}

/// The lowest priority of compressed swap in a proposal.
fn swap_priority(toml: &str) -> i32 {
    let loaded = config::load(&[(PathBuf::new(), toml.to_owned())], "");
    let priorities = loaded.settings.devices.iter().filter_map(|device| match device.purpose {
        Purpose::Swap { priority, .. } => Some(priority),
        _ => None,
    });
    priorities.min().unwrap_or_default()
}

/// The proposal with those sections switched off that this machine refuses, and one sentence about each.
pub fn without_refused(toml: &str, plan: &Plan) -> (String, Vec<String>) {
    let (mut toml, mut remarks) = (toml.to_owned(), Vec::new());
    for item in plan.items.iter().filter(|item| item.decision == Decision::Refused) {
        let (header, reason) = (format!("\n[{}]\n", item.target), shown(item.reason.as_str()));
        toml = toml
            .replace(&header, &format!("{header}# This machine refuses it: {reason}.\nenabled = false\n"));
        remarks.push(format!("[{}] is switched off: {reason}.", item.target));
    }
    (toml, remarks)
}

/// What the devices of a proposal are on this machine: one sentence each.
pub fn amounts(plan: &Plan) -> Vec<String> {
    plan.items.iter().filter(|item| item.decision == Decision::Planned).filter_map(amount).collect()
}

fn amount(item: &Item) -> Option<String> {
    let Some(Request::Device(request)) = &item.request else { return None };
    let name = &item.target;
    let mut text = format!("Here, {name} can store {}", human(request.disk_size));
    let algorithm = item.algorithm().and_then(|candidate| candidate.algorithm.as_ref());
    match (request.algorithms.first(), algorithm) {
        (Some(Choice::Named(wanted)), Some(found)) if wanted.name == found.name => {
            text.push_str(&format!(", with {}.", found.name));
        }
        (Some(Choice::Named(wanted)), found) => {
            let found = found.map_or("the default of the kernel", |found| &found.name);
            text.push_str(&format!(", with {found}, because this kernel has no {}.", wanted.name));
        }
        (Some(Choice::Auto), Some(found)) => {
            let measured = item.algorithm().is_some_and(|candidate| candidate.measured);
            let until = if measured { "as measured" } else { "until this machine is measured" };
            text.push_str(&format!(", with {} {until}.", found.name));
        }
        _ => text.push('.'),
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peer::{Values, import};
    use logic::config::fragment::Assignment;
    use logic::config::{self, Loaded};
    use logic::device::algorithm::Algorithm;
    use logic::device::attribute::Attribute;
    use logic::facts::{DeviceFacts, Facts};
    use logic::plan::{self, Activation};
    use logic::proc::Memory;

    const PROFILES: [Profile; 2] = [Profile::Standard, Profile::Board];

    fn loaded(toml: &str) -> Loaded {
        config::load(&[("/etc/zramd/zramd.toml".into(), toml.to_owned())], "")
    }

    fn other(name: &'static str, file: &str) -> OtherManager {
        let does = if name == "log2ram" { Does::Directories } else { Does::Devices };
        let import = Peer::parse(name).map(Peer::name);
        OtherManager { name, does, file: file.to_owned(), import, enabled: true, off: "run `off`".to_owned() }
    }

    fn shipped() -> OtherManager {
        other("zram-generator", "/usr/lib/systemd/zram-generator.conf")
    }

    fn root_on(source: &str) -> Vec<MountLine> {
        logic::proc::parse_mountinfo(format!("22 1 8:1 / / rw - ext4 {source} rw\n").as_bytes())
    }

    #[test]
    fn every_proposal_is_a_valid_configuration() {
        for profile in PROFILES {
            let proposal = Machine::default().propose(Some(profile), None);
            // What is only suggested is valid, too.
            let all =
                proposal.toml.replace("\n# [", "\n[").replace("\n# mo", "\nmo").replace("\n# si", "\nsi");
            let all = all.replace("\n# pe", "\npe").replace("\n# sa", "\nsa");
            for text in [&proposal.toml, &all] {
                let loaded = loaded(text);
                assert_eq!(loaded.problems, [], "{text}");
                assert_eq!(loaded.settings.devices.len(), 1);
            }
            assert_eq!(loaded(&all).settings.ramdisks.len(), usize::from(profile == Profile::Board));
        }
    }

    #[test]
    fn a_machine_with_swap_on_a_disk_gets_zswap() {
        let conditions = Conditions {
            memory_bytes: 16 << 30,
            disk_swap_bytes: 16 << 30,
            has_zswap: true,
            has_shrinker: true,
            hibernates: true,
            ..Conditions::default()
        };
        let yielding = vec!["zram0".to_owned()];
        let machine = Machine { conditions, yielding, huge_bytes: 1 << 30, ..Machine::default() };
        let proposal = machine.propose(None, None);
        let loaded = loaded(&proposal.toml);
        assert_eq!((loaded.problems.len(), loaded.settings.devices.len()), (0, 0), "{}", proposal.toml);
        let zswap = loaded.settings.zswap.unwrap();
        assert!(zswap.enabled && zswap.compressors.len() == 3, "{zswap:?}");
        assert!(!proposal.toml.contains("[vm]") && proposal.toml.contains("[zram0]\nenabled = false\n"));
        let said = proposal.remarks.join("\n");
        assert!(said.contains("zswap suits this machine: ") && !said.contains("zramd-drain"), "{said}");
        assert!(!said.contains("For zswap, as root") && !said.contains("huge pages"), "{said}");
        // Without that swap, with how to create it.
        let conditions = Conditions { disk_swap_bytes: 0, ..conditions };
        let machine = Machine {
            conditions,
            memory_bytes: 16 << 30,
            mounts: root_on("/dev/sda1"),
            ..Machine::default()
        };
        let proposal = machine.propose(None, None);
        assert!(proposal.toml.contains("[zram0]") && !proposal.toml.contains("[zswap]"));
        let said = proposal.remarks.join("\n");
        assert!(said.contains("\n    fallocate --length 16G /swapfile\n"), "{said}");
    }

    #[test]
    fn every_machine_gets_what_the_package_of_defaults_has() {
        let values = |toml: &str| -> Vec<String> {
            let sections = loaded(toml).merged.sections;
            let keys = sections.iter().flat_map(|(name, section)| {
                let line = move |(key, found): (&String, &Assignment)| {
                    format!("{name}.{key} = {:?}", found.value.toml())
                };
                section.keys.iter().map(line)
            });
            keys.filter(|line| !line.starts_with("zram0.yield")).collect()
        };
        let packaged = include_str!("../../config/defaults.toml");
        for profile in PROFILES {
            let proposal = Machine::default().propose(Some(profile), None);
            assert_eq!(values(&proposal.toml), values(packaged), "{profile:?}");
        }
    }

    #[test]
    fn sizes_and_a_missing_algorithm_are_told_for_this_machine() {
        let toml = Machine::default().propose(None, None).toml;
        let said_of = |list: &str, algorithms: &[&str]| {
            let loaded = loaded(&toml.replace("\"auto\"", list));
            let algorithms: Vec<String> = algorithms.iter().map(|&name| name.to_owned()).collect();
            let device = DeviceFacts {
                attributes: [Attribute::AlgorithmParams].into(),
                algorithms,
                ..DeviceFacts::default()
            };
            let memory = Memory { total_kib: 4 << 20, ..Memory::default() };
            let facts = Facts { memory, page_size: 4096, devices: [(0, device)].into(), ..Facts::default() };
            amounts(&plan::plan(&loaded.settings, Vec::new(), &facts, Activation::Direct))
        };
        let said = |algorithms: &[&str]| said_of("\"auto\"", algorithms);
        assert_eq!(
            said(&["lzo-rle", "zstd"]),
            ["Here, zram0 can store 12.0 GiB, with zstd until this machine is measured."]
        );
        assert_eq!(
            said(&["lzo-rle", "lzo"]),
            ["Here, zram0 can store 12.0 GiB, with lzo-rle until this machine is measured."]
        );
        assert_eq!(said_of("\"zstd\"", &["lzo-rle", "zstd"]), ["Here, zram0 can store 12.0 GiB, with zstd."]);
        assert_eq!(
            said_of("[\"lz4\", \"auto\"]", &["lzo-rle", "lzo"]),
            ["Here, zram0 can store 12.0 GiB, with lzo-rle, because this kernel has no lz4."]
        );
    }

    #[test]
    fn memory_reserved_as_huge_pages_is_not_counted() {
        let machine = Machine { huge_bytes: 3 << 30, ..Machine::default() };
        let is_told = |remarks: &[String]| {
            remarks.iter().any(|remark| remark.starts_with("3.0 GiB of memory are reserved as huge pages"))
        };
        let Proposal { toml, remarks } = machine.propose(None, None);
        assert!(toml.contains("\nzram-size = \"min(3 * (ram - 3072), 32GiB)\"\n"), "{toml}");
        assert!(is_told(&remarks), "{remarks:?}");
        // The other program counts them.
        let found = import(Peer::PopZram, &[("/etc/pop-zram".into(), String::new())], &Values::default());
        let remarks = machine.propose(None, Some((Peer::PopZram, &found))).remarks;
        assert!(!is_told(&remarks), "{remarks:?}");
    }

    #[test]
    fn only_the_program_without_devices_is_set_aside() {
        let others = ["zram-generator", "rpi-swap", "log2ram"].map(|name| other(name, "/etc/a")).to_vec();
        let mut machine = Machine { others, ..Machine::default() };
        machine.set_aside(Peer::RpiSwap);
        let names = |found: &[OtherManager]| found.iter().map(|other| other.name).collect::<Vec<_>>();
        assert_eq!(names(&machine.idle), ["rpi-swap"]);
        assert_eq!(names(&machine.others), ["zram-generator", "log2ram"]);
    }

    #[test]
    fn what_becomes_of_another_program_is_told() {
        let found = import(Peer::PopZram, &[("/etc/pop-zram".into(), String::new())], &Values::default());
        let folder2ram = OtherManager { does: Does::Directories, ..other("folder2ram", "/etc/a") };
        for (program, imports, expected) in [
            (
                other("log2ram", "/etc/a"),
                false,
                "log2ram keeps directories in memory and is left alone; `zramdctl import log2ram` ",
            ),
            (folder2ram, false, "folder2ram keeps directories in memory and is left alone."),
            (
                shipped(),
                false,
                "zram-generator is not taken over, because no file of the administrator configures it (",
            ),
            (shipped(), true, "zram-generator takes zram devices here, too ("),
            (
                other("zramswap", "/etc/a"),
                false,
                "zramswap takes zram devices here, too (/etc/a). Until it is disabled,",
            ),
        ] {
            let machine = Machine { others: vec![program], ..Machine::default() };
            let remarks = machine.propose(None, imports.then_some((Peer::PopZram, &found))).remarks;
            assert!(remarks.last().unwrap().starts_with(expected), "{expected}: {remarks:?}");
        }
    }

    #[test]
    fn swap_of_an_unknown_program_is_told() {
        let swap = SwapLine { path: "/dev/zram0".into(), size_kib: 1 << 20, used_kib: 0, priority: 5 };
        let machine = Machine { swaps: vec![swap], ..Machine::default() };
        let proposal = machine.propose(None, None);
        assert_eq!(machine.taken(&proposal.toml), Some(0));
        assert!(proposal.remarks[2].contains("keeps [zram0] from being set up"), "{proposal:?}");
        assert_eq!(machine.taken("[zram1]"), None);
        let ours = Machine { managed: vec![Target::Device(0)], ..machine.clone() };
        assert_eq!((ours.taken(&proposal.toml), ours.propose(None, None).remarks.len()), (None, 2));
        let known = Machine { others: vec![shipped()], ..machine };
        assert_eq!(known.propose(None, None).remarks.len(), 3, "said with its name");
    }

    #[test]
    fn the_profile_follows_from_the_machine() {
        let machine = |source| Machine { mounts: root_on(source), ..Machine::default() };
        assert_eq!(machine("/dev/sda1").profile(), Profile::Standard);
        assert_eq!(machine("/dev/mmcblk0p2").profile(), Profile::Board);
        let mut by_kernel = machine("/dev/root");
        assert_eq!(by_kernel.profile(), Profile::Standard);
        by_kernel.mounts[0].device = (MMC_MAJOR, 2);
        assert_eq!(by_kernel.profile(), Profile::Board);
        assert_eq!(Machine::default().profile(), Profile::Standard);
    }

    #[test]
    fn what_this_kernel_cannot_do_is_left_out_with_the_reason() {
        let full = Machine::default().propose(None, None);
        assert!(full.toml.contains("\nprotect-sessions = ") && full.toml.contains("\n[maintenance]\n"));
        let machine = Machine { lacks_memory_controller: true, lacks_pressure: true, ..Machine::default() };
        let Proposal { toml, remarks } = machine.propose(None, None);
        assert!(!toml.contains("\nprotect-sessions") && toml.contains("\n[vm]\ntune = true\n"), "{toml}");
        assert!(!toml.contains("[maintenance]"), "{toml}");
        assert_eq!(loaded(&toml).problems, [], "{toml}");
        assert_eq!(
            remarks.iter().filter(|remark| remark.contains(" is left out: ")).count(),
            2,
            "{remarks:?}"
        );
        // It has a section of its own.
        let imported = ("/etc/pop-zram".into(), "ALGO=lz4\n".to_owned());
        let imported = import(Peer::PopZram, &[imported], &Values::default());
        let remarks = machine.propose(None, Some((Peer::PopZram, &imported))).remarks;
        assert!(!remarks.iter().any(|remark| remark.contains("protect-sessions")), "{remarks:?}");
    }

    #[test]
    fn what_an_administrator_has_written_is_taken_over_and_what_is_shipped_is_not() {
        let own = vec![Peer::ZramGenerator, Peer::RpiSwap];
        let machine =
            |name, file| Machine { own: own.clone(), others: vec![other(name, file)], ..Machine::default() };
        let shipped = Machine { others: vec![shipped()], ..Machine::default() };
        assert_eq!(shipped.import_from(), None);
        let imported = machine("zram-generator", "/etc/systemd/zram-generator.conf").import_from();
        assert_eq!(imported, Some(Peer::ZramGenerator));
        assert_eq!(machine("rpi-swap", "/etc/rpi/swap.conf").import_from(), Some(Peer::RpiSwap));
        let directories = "/etc/systemd/system/sysinit.target.wants/log2ram.service";
        assert_eq!(machine("log2ram", directories).import_from(), None);
        assert_eq!(machine("log2ram", directories).rivals().count(), 0);
        let file = ("/etc/systemd/zram-generator.conf".into(), "[zram3]\nzram-size = 512\n".to_owned());
        let found = import(Peer::ZramGenerator, &[file], &Values::default());
        let machine = machine("zram-generator", "/etc/systemd/zram-generator.conf");
        let toml = machine.propose(None, Some((Peer::ZramGenerator, &found))).toml;
        let loaded = loaded(&toml);
        assert_eq!(loaded.problems, [], "{toml}");
        assert_eq!(loaded.settings.devices.iter().map(|device| device.number).collect::<Vec<_>>(), [3]);
        assert!(loaded.settings.vm.is_some());
    }

    #[test]
    fn a_device_of_the_administrator_does_not_yield() {
        let machine = Machine { yielding: vec!["zram0".to_owned()], ..Machine::default() };
        let packaged =
            ("/usr/lib/zramd/zramd.toml".into(), include_str!("../../config/defaults.toml").to_owned());
        let own = ("/etc/zramd/zramd.toml".into(), machine.propose(None, None).toml);
        let loaded = config::load(&[packaged, own], "");
        assert_eq!(loaded.problems, []);
        assert!(!loaded.settings.devices[0].yields);
        // Until that of the distribution is disabled, one of both sets the device up.
        let machine = Machine { others: vec![shipped()], ..machine };
        let toml = machine.propose(None, None).toml;
        assert_eq!(toml.matches("yield = true").count(), 1, "{toml}");
    }

    #[test]
    fn an_import_keeps_its_meaning_beside_what_a_package_ships() {
        let packaged =
            ("/usr/lib/zramd/zramd.toml".into(), include_str!("../../config/defaults.toml").to_owned());
        let machine = Machine { yielding: vec!["zram0".to_owned()], ..Machine::default() };
        let both = |text: &str| {
            let file = ("/etc/systemd/zram-generator.conf".into(), text.to_owned());
            let found = import(Peer::ZramGenerator, &[file], &Values::default());
            let own = (
                "/etc/zramd/zramd.toml".into(),
                machine.propose(None, Some((Peer::ZramGenerator, &found))).toml,
            );
            let loaded = config::load(&[packaged.clone(), own], "");
            assert_eq!(loaded.problems, []);
            loaded.settings.devices
        };
        let same = both("[zram0]\nzram-size = 512\n");
        assert!(same[0].algorithms.is_empty() && same[0].yields, "{same:?}");
        let named = both("[zram0]\ncompression-algorithm = lz4\n");
        assert_eq!(named[0].algorithms.first(), Some(&Choice::Named(Algorithm::plain("lz4"))));
        let other = both("[zram1]\nzram-size = 512\n");
        assert_eq!(other.iter().map(|device| device.number).collect::<Vec<_>>(), [1]);
    }

    #[test]
    fn the_maintenance_that_an_import_offers_is_in_the_section_of_the_proposal() {
        let text = "[zram0]\nzram-size = 512\ncompression-algorithm = lzo-rle zstd (type=idle)\n".to_owned();
        let file = ("/etc/systemd/zram-generator.conf".into(), text);
        let found = import(Peer::ZramGenerator, &[file], &Values::default());
        let toml = Machine::default().propose(None, Some((Peer::ZramGenerator, &found))).toml;
        let accepted = toml.replace("\n# recompress = true", "\nrecompress = true");
        assert_eq!(loaded(&accepted).problems, [], "{accepted}");
        assert!(loaded(&accepted).settings.maintenance.unwrap().recompress.is_some(), "{accepted}");
    }

    #[test]
    fn an_imported_section_is_not_written_twice() {
        let file = ("/etc/pop-zram".into(), "ALGO=lz4\n".to_owned());
        let found = import(Peer::PopZram, &[file], &Values::default());
        for profile in PROFILES {
            let toml = Machine::default().propose(Some(profile), Some((Peer::PopZram, &found))).toml;
            assert_eq!(loaded(&toml).problems, [], "{toml}");
        }
    }

    #[test]
    fn everything_worth_knowing_is_remarked_on() {
        let disk = SwapLine { path: "/dev/sda3".into(), size_kib: 4 << 20, used_kib: 0, priority: -2 };
        let zram = SwapLine { path: "/dev/zram0".into(), ..disk.clone() };
        let machine = Machine {
            memory_bytes: 4 << 30,
            swaps: vec![disk, zram],
            conditions: Conditions { zswap_is_on: true, hibernates: true, ..Conditions::default() },
            others: vec![shipped(), other("the unrelated older zramd", "/etc/default/zramd")],
            ..Machine::default()
        };
        let remarks = machine.propose(None, None).remarks;
        assert_eq!(remarks.len(), 7, "{remarks:#?}");
        assert!(
            remarks.iter().all(|remark| remark.ends_with('.') && !remark.contains("zram0")),
            "{remarks:#?}"
        );
        assert_eq!(Machine::default().propose(None, None).remarks.len(), 2);
    }
}
