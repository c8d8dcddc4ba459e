//! `doctor`: all findings, including those of low priority.

use std::os::fd::AsFd;
use std::path::{Component, Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde::Serialize;

use super::args::{Cli, Json};
use super::conditions;
use super::ended;
use super::out;
use super::problems;
use super::read;
use super::style::Style;
use bench::keep;
use engine::Error;
use engine::gather;
use engine::reload::{Scope, Survey};
use host::linux::ramdisk::Calls;
use host::linux::{LinuxHost, edit, files, process, unit_files};
use host::{Host, MachineFile};
use import::claimed_twice;
use logic::change::Change;
use logic::config::Loaded;
use logic::config::lasting::Transient;
use logic::config::settings::RamdiskSettings;
use logic::exit::ExitStatus;
use logic::finding::{self, Code, Finding, Level, has_errors};
use logic::hibernation::{Lack, Machine, is_set};
use logic::maintain::pressure::UNKNOWN_REMEDY;
use logic::oom::{Killers, SHOW};
use logic::overlay;
use logic::plan::Plan;
use logic::proc::{self, Mounts, SwapLine, kernel_version};
use logic::ramdisk_health::store_nearly_full;
use logic::sample::{DeviceView, SCHEMA_VERSION, Snapshot};
use logic::verdict::Unusable;
use logic::zram_or_zswap::Conditions;
use store;

/// Symbolic links that the kernel follows in a path (path_resolution(7)).
const MOST_LINKS: u32 = 40;
/// Time limit for systemctl, longer than that of its calls on the bus (25 s).
const SYSTEMCTL_LIMIT: Duration = Duration::from_secs(30);
/// Directories in which systemd looks for generators.
const GENERATORS: [&str; 4] = [
    "/run/systemd/system-generators",
    "/etc/systemd/system-generators",
    "/usr/local/lib/systemd/system-generators",
    "/usr/lib/systemd/system-generators",
];

/// The state of zramd on this machine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Standing {
    /// Whether the kernel has zram, or can load it.
    pub has_zram: bool,
    /// Whether the kernel has pressure stall information.
    pub counts_pressure: bool,
    /// Whether the kernel accepts pressure triggers from `zramd.service`: since Linux 5.13, the file's mode allows writing to it.
    pub wakes_for_pressure: bool,
    /// Why RAM disks cannot be loaded on this kernel, if so.
    pub not_loading: Option<String>,
    /// The kind of container that we run in.
    pub container: Option<String>,
    /// The state of systemd, if it runs.
    pub systemd: Option<Systemd>,
    /// Numbers of the swaps that are off for hibernation.
    pub drained: Vec<u32>,
    /// Why changes of the configuration do not last, if so.
    pub transient: Option<Transient>,
}

/// The state of systemd.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Systemd {
    /// Whether the generator is installed.
    pub generator: bool,
    /// Whether `zramd.service` is enabled, or zram is enabled on the kernel command line.
    pub enabled: bool,
    /// Whether `zramd.service` runs.
    pub running: bool,
}

/// The output of `systemctl`, if it succeeds.
pub(super) fn systemctl(words: &[&str]) -> Option<String> {
    let mut command = Command::new("systemctl");
    command.args(words).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let output = process::output(&mut command, "systemctl", SYSTEMCTL_LIMIT, |_| {}).ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Runs `doctor`.
pub fn run(cli: &Cli, json: Json) -> Result<ExitStatus, Error> {
    let Examined { snapshot, loaded, standing, .. } = examine(cli, false)?;
    let found = &snapshot.problems;
    let has_systemd = standing.systemd.is_some();
    let hibernation = standing.container.is_none().then(|| hibernation(&snapshot));
    let oom_killers = has_systemd.then(|| systemctl(&SHOW)).flatten().map(|text| Killers::parse(&text));
    let hibernation_lacks = hibernation.as_ref().map(Machine::lacks);
    let choice =
        standing.container.is_none().then(|| Choice::of(&conditions::look(&read::host(), &loaded.settings)));
    let document = Document {
        schema_version: SCHEMA_VERSION,
        problems: found,
        oom_killers,
        hibernation_lacks,
        choice: choice.as_ref(),
    };
    out::result(json, &document, || {
        let mut text = render(&document, &loaded, Style::stdout(cli.color));
        text.extend(choice.as_ref().map(|choice| format!("{}\n", choice.sentence)));
        let wanted = hibernation.filter(Machine::is_wanted);
        text.extend(wanted.map(|machine| format!("{}\n", machine.sentence())));
        text
    })?;
    Ok(match found.first().map(|finding| finding.level) {
        None | Some(Level::Note) => ExitStatus::Success,
        Some(Level::Warning) => ExitStatus::Inactive,
        Some(Level::Error) => ExitStatus::Failure,
    })
}

/// The machine and all findings.
pub(super) struct Examined {
    /// The machine, with all findings, worst first.
    pub snapshot: Snapshot,
    /// The configuration.
    pub loaded: Loaded,
    /// The plan for it; without what is in use, if that could not be seen.
    pub plan: Plan,
    /// The state of zramd.
    pub standing: Standing,
}

/// Looks for all findings; `patient`: [`Scope::patient`].
pub(super) fn examine(cli: &Cli, patient: bool) -> Result<Examined, Error> {
    let file = read::used_file(cli);
    let (mut snapshot, loaded) = read::snapshot(file.as_ref())?;
    let mut standing = look();
    // Without privileges, a machine that was built from a container image cannot be told from a container.
    let doubtful = standing.container.is_some() && !read::host().is_privileged();
    let survey = if doubtful {
        standing.container = None;
        out::note("Only root can compare the devices with the configuration here.");
        None
    } else {
        compare(file.as_ref(), &loaded, patient)
    };
    let mut found = std::mem::take(&mut snapshot.problems);
    let host = read::host();
    stores(&host, &snapshot, &loaded, &mut found);
    let swaps = gather::swaps(&host).unwrap_or_default();
    let named = names_disk_swap(
        &host.text(MachineFile::Cmdline).unwrap_or_default(),
        &host.text(MachineFile::Resume).unwrap_or_default(),
        &files::read_optional(Path::new("/"), "/etc/fstab").unwrap_or_default(),
    );
    found.extend(disk_swaps(&snapshot.devices, &swaps, named));
    found.extend(drained(&standing));
    found.extend(overlay::findings(&loaded.merged.overrides));
    let remedy = to_bring_in_line(&standing);
    finding::add(&mut found, survey.iter().flat_map(|survey| planned(&loaded, survey, remedy)));
    let followers = survey.iter().flat_map(|survey| survey.followers(&host, &loaded));
    found.extend(followers.filter_map(|follower| follower.finding()));
    found.extend(missing(&standing, &loaded));
    if gather::other_managers(&read::host()).iter().any(|other| other.name == "zram-generator") {
        found.extend(claimed_twice::findings(Path::new("/"), &loaded.settings));
    }
    found.extend(verdict(&loaded));
    if standing.container.is_none() {
        found.extend(ended::look(&host, &snapshot, standing.systemd.is_some()));
    }
    found.sort_by_key(|finding| finding.level);
    snapshot.problems = found;
    let plan = survey.map_or_else(|| engine::check_elsewhere(&host, &loaded), |survey| survey.plan);
    Ok(Examined { snapshot, loaded, plan, standing })
}

/// Whether a server may have to answer for the file system of this path, which could take forever. The symbolic links on the way
/// are followed one by one, because the path behind them may be there, too.
fn may_not_answer(mounts: &Mounts, path: &str) -> bool {
    let mut pending = PathBuf::from(path);
    for _ in 0..MOST_LINKS {
        let mut done = PathBuf::from("/");
        let mut names = pending.components().filter(|name| *name != Component::RootDir);
        let link = loop {
            match names.next() {
                None => return false,
                Some(Component::ParentDir) => drop(done.pop()),
                Some(name) => {
                    let next = done.join(name);
                    let mount = mounts.of_path(next.as_os_str().as_encoded_bytes());
                    if mount.is_none_or(|mount| !proc::is_local(&mount.fs_type)) {
                        return true;
                    }
                    match std::fs::read_link(&next) {
                        Ok(to) => break done.join(to),
                        Err(_) => done = next,
                    }
                }
            }
        };
        pending = names.fold(link, |path, name| path.join(name));
    }
    true
}

/// Looks again at the space in the stores, which others may have filled since the last save. Only root can.
fn stores(host: &LinuxHost, snapshot: &Snapshot, loaded: &Loaded, found: &mut Vec<Finding>) {
    let Ok(mounts) = host.bytes(MachineFile::Mountinfo) else { return };
    let mounts = Mounts::parse(&mounts);
    for settings in &loaded.settings.ramdisks {
        let (Some(keep), Some(disk)) = (&settings.keep, snapshot.ramdisk(&settings.name)) else { continue };
        if may_not_answer(&mounts, &keep.store) {
            continue;
        }
        let Ok(space) = host.space(keep.store.as_bytes()) else { continue };
        let free = space.total_bytes.saturating_sub(space.used_bytes);
        found.retain(|found| found.code != Code::StoreNearlyFull || found.object != disk.name);
        found.extend(store_nearly_full(&disk.name, &disk.status, free));
    }
}

/// The changes that a reload would make, if they can be determined.
fn compare(file: Option<&PathBuf>, loaded: &Loaded, patient: bool) -> Option<Survey> {
    read::survey(file, loaded, Scope { patient, ..Scope::default() })
        .inspect_err(|error| {
            out::note(&format!("The devices could not be compared with the configuration: {error}"));
        })
        .ok()
}

/// Findings about zramd and compressed memory on this machine.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "doctor"))]
pub(super) struct Document<'a> {
    /// Version of this form, incremented when a field is removed or changes its meaning.
    schema_version: u32,
    /// All findings, worst first.
    problems: &'a [Finding],
    /// Programs that end others when memory runs out; null if that is unknown, as without systemd.
    oom_killers: Option<Killers>,
    /// What hibernation lacks; null in a container.
    hibernation_lacks: Option<Vec<Lack>>,
    /// Whether zram or zswap suits this machine; null in a container.
    choice: Option<&'a Choice>,
}

/// Which of zram, zswap and zram with write-back suits this machine.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Choice {
    /// `zram`, `zswap` or `zram with write-back`.
    way: &'static str,
    /// The row of /usr/share/doc/zramd/zram-or-zswap.md that supports it: its first cell.
    row: &'static str,
    /// All of it in words.
    sentence: String,
}

impl Choice {
    fn of(conditions: &Conditions) -> Choice {
        let row = conditions.row();
        Choice { way: row.way.words(), row: row.name, sentence: conditions.sentence() }
    }
}

/// Facts about hibernation.
fn hibernation(snapshot: &Snapshot) -> Machine {
    let host = read::host();
    let root = Path::new("/");
    Machine {
        states: files::read_optional(root, "/sys/power/state").unwrap_or_default(),
        resume: host.text(MachineFile::Resume).unwrap_or_default(),
        is_efi: root.join("sys/firmware/efi").is_dir(),
        swaps: gather::swaps(&host).unwrap_or_default(),
        active_kib: gather::machine(&host).memory.active_anonymous_kib,
        compressed_kib: snapshot.total(|stats| stats.memory.mem_used_total) / 1024,
    }
}

/// The findings with their number, and who ends programs.
fn render(document: &Document<'_>, loaded: &Loaded, style: Style) -> String {
    let found = document.problems;
    let mut text = if !found.is_empty() {
        format!("{}\n{} found\n", problems::render(found, style), problems::count(found))
    } else if has_sections(loaded) {
        format!("{} found\n", style.good("no problems"))
    } else {
        format!(
            "{} found, but nothing is configured either: `zramdctl init --now` proposes a configuration; zramd.toml(5) and \
             /usr/share/doc/zramd/examples help to write one\n",
            style.good("no problems")
        )
    };
    if let Some(killers) = &document.oom_killers {
        text.push_str(&format!("{}\n", killers.sentence()));
    }
    text
}

fn has_sections(loaded: &Loaded) -> bool {
    !loaded.settings.devices.is_empty() || !loaded.settings.ramdisks.is_empty()
}

/// A configured verdict of the benchmark that cannot be read. An outdated one is replaced automatically.
fn verdict(loaded: &Loaded) -> Option<Finding> {
    let settings = &loaded.settings;
    if !settings.uses_verdict() {
        return None;
    }
    let why = keep::stored(&read::host(), settings.benchmark.profile).err()?;
    matches!(why, Unusable::Damaged(_)).then(|| {
        let remedy = "run `zramdctl bench run`, which measures again";
        Finding::new(
            Level::Warning,
            Code::VerdictDamaged,
            "",
            format!("{why}; auto uses its default"),
            remedy,
        )
    })
}

/// What to do about a difference: `reload` needs the daemon.
fn to_bring_in_line(standing: &Standing) -> &'static str {
    match standing.systemd {
        Some(Systemd { running: true, .. }) => "run `zramdctl reload`",
        Some(_) => "run `systemctl start zramd.service`, then `zramdctl reload`",
        None => "run `zramdctl reload`, or, if the daemon does not run, `/usr/lib/zramd/zramd-setup apply`",
    }
}

/// What the planner finds, and what a reload would change; `remedy`: [`to_bring_in_line`].
fn planned(loaded: &Loaded, survey: &Survey, remedy: &str) -> Vec<Finding> {
    let with_remedy = |found: &Finding| match found.remedy.as_str() {
        "" => found.clone().remedy("see `zramdctl plan`"),
        _ => found.clone(),
    };
    let mistakes = survey.plan.findings().filter(|found| !loaded.problems.contains(found)).map(with_remedy);
    if has_errors(&loaded.problems) {
        // A reload refuses a configuration with mistakes, so it would change nothing.
        return mistakes.collect();
    }
    let difference = |found: Finding| match found.code {
        Code::NotSetUp | Code::NotInLine => found.remedy(remedy),
        _ => found,
    };
    mistakes.chain(survey.changes.iter().filter_map(Change::finding).map(difference)).collect()
}

/// Swap on disks that is used after compressed swap; the kernel never moves pages from one to the other. `named`:
/// [`names_disk_swap`].
fn disk_swaps(devices: &[DeviceView], swaps: &[SwapLine], named: bool) -> Vec<Finding> {
    let ours = || devices.iter().filter(|device| device.managed);
    let lowest = ours().filter_map(|device| Some((device.swap?.priority, &device.name))).min();
    let Some((lowest, name)) = lowest.filter(|_| ours().all(|device| device.backing_device.is_empty()))
    else {
        return Vec::new();
    };
    let below = |swap: &&SwapLine| swap.zram_number().is_none() && swap.priority < lowest;
    let as_finding = |swap: &SwapLine| {
        let path = swap.path.to_string();
        let mut remedy = format!("for old pages on the disk instead, write a writeback-file into [{name}]");
        if path.starts_with("/dev/") && !named {
            remedy.push_str(&format!(
                ", or switch this swap off, run `wipefs --all {path}`, and write writeback-device = \"{path}\""
            ));
        }
        let message = format!(
            "when compressed swap is full, new pages go to {path}, even those that are used often, while old ones stay in memory"
        );
        Finding::new(Level::Note, Code::DiskSwapBelow, &path, message, remedy)
    };
    swaps.iter().filter(below).map(as_finding).collect()
}

/// Whether swap on a disk is named for hibernation, or in this fstab, so that its partition has a purpose.
fn names_disk_swap(cmdline: &str, resume: &str, fstab: &str) -> bool {
    let is_swap = |line: &str| !line.starts_with('#') && line.split_whitespace().nth(2) == Some("swap");
    cmdline.split_whitespace().any(|word| word.starts_with("resume="))
        || is_set(resume)
        || fstab.lines().any(is_swap)
}

/// Swap that is still off after hibernation.
fn drained(standing: &Standing) -> Vec<Finding> {
    let of_swap = |number: &u32| {
        Finding::new(
            Level::Warning,
            Code::SwapDrained,
            &format!("zram{number}"),
            format!("the section of zram{number} is switched off for hibernation (zramd-drain.service)"),
            "unless the machine is about to hibernate, run `/usr/lib/zramd/zramd-worker refill` as root",
        )
    };
    standing.drained.iter().map(of_swap).collect()
}

/// Why there can be no zram devices here, if so.
pub(super) fn unsupported(root: &Path, container: Option<&str>) -> Option<Finding> {
    without_zram(container, has_zram(root))
}

fn has_zram(root: &Path) -> bool {
    LinuxHost::new(root).has_control() || can_load(root)
}

fn without_zram(container: Option<&str>, has_zram: bool) -> Option<Finding> {
    match container {
        Some(kind) => Some(Finding::new(
            Level::Warning,
            Code::Container,
            "",
            format!("this is a container ({kind}), which has no zram devices of its own"),
            "configure zramd on the host",
        )),
        None if !has_zram => Some(Finding::new(
            Level::Error,
            Code::ZramMissing,
            "",
            "this kernel has no zram: it is not built in, and there is no module to load",
            "install the rest of the kernel's modules (linux-modules-extra, kernel-modules), or another kernel",
        )),
        None => None,
    }
}

/// What zramd needs and lacks, now and at the next boot.
fn missing(standing: &Standing, loaded: &Loaded) -> Vec<Finding> {
    let mut found: Vec<Finding> =
        without_zram(standing.container.as_deref(), standing.has_zram).into_iter().collect();
    let mut add = |level, code, message: &str, remedy| {
        found.push(Finding::new(level, code, "", message, remedy));
    };
    let is_kept = |disk: &RamdiskSettings| disk.keep.is_some();
    if let Some(why) = &standing.not_loading
        && loaded.settings.ramdisks.iter().any(is_kept)
    {
        add(Level::Error, Code::KernelTooOld, why, "use Linux 5.6 or newer, or write persist = \"none\"");
    }
    let stops = loaded.settings.vm.as_ref().is_some_and(|vm| vm.stops_incompressible);
    let follows = stops || loaded.settings.maintenance.as_ref().is_some_and(|asked| asked.pressure.is_some());
    if follows && !standing.counts_pressure {
        add(
            Level::Warning,
            Code::PressureUnknown,
            "this kernel has no pressure stall information: memory pressure is not reported, and swapping does not stop for pages that do not compress",
            UNKNOWN_REMEDY,
        );
    }
    if follows && standing.counts_pressure && !standing.wakes_for_pressure && standing.systemd.is_some() {
        add(
            Level::Warning,
            Code::PressureNeedsRights,
            "this kernel does not report memory pressure to zramd.service: it is not followed, and swapping does not stop for pages that do not compress",
            "use Linux 5.13 or newer, or write pressure.enabled = false into [maintenance] and incompressible = \"swap\" into [vm]",
        );
    }
    if let Some(transient) = standing.transient.filter(|_| has_sections(loaded)) {
        add(Level::Note, Code::ConfigNotLasting, transient.message(), transient.remedy());
    }
    let Some(systemd) = standing.systemd.filter(|_| has_sections(loaded)) else { return found };
    if !systemd.generator {
        add(
            Level::Warning,
            Code::GeneratorMissing,
            "zramd-generator is not installed where systemd looks for it, so nothing is set up at the next boot",
            "install zramd again, or link /usr/lib/systemd/system-generators/zramd-generator to zramd-setup",
        );
    }
    if !systemd.enabled {
        add(
            Level::Warning,
            Code::NotEnabled,
            "zramd.service is not enabled, so nothing is set up at the next boot",
            "run `systemctl enable --now zramd.service`",
        );
    } else if !systemd.running {
        add(
            Level::Warning,
            Code::DaemonNotRunning,
            "zramd.service is not running: problems are not reported, and devices cannot be changed",
            "run `systemctl start zramd.service`",
        );
    }
    found
}

/// Collects the facts for [`missing`].
fn look() -> Standing {
    let root = Path::new("/");
    let host = read::host();
    let systemd = unit_files::is_booted(root).then(|| Systemd {
        generator: GENERATORS.iter().any(|directory| Path::new(directory).join("zramd-generator").exists()),
        enabled: files::generates(root),
        running: systemctl(&["is-active", "zramd.service"]).is_some(),
    });
    Standing {
        has_zram: has_zram(root),
        counts_pressure: host.text(MachineFile::MemoryPressure).is_ok(),
        wakes_for_pressure: !is_before_5_13(&host.text(MachineFile::KernelRelease).unwrap_or_default()),
        not_loading: not_loading(root),
        container: host.container(),
        systemd,
        drained: host.drained().unwrap_or_default(),
        transient: edit::transient(root),
    }
}

fn not_loading(root: &Path) -> Option<String> {
    let root = std::fs::File::open(root).ok()?;
    store::refuse_kernel(&Calls::new(), root.as_fd()).err().map(|error| error.message)
}

/// Whether this is a release before Linux 5.13.
fn is_before_5_13(osrelease: &str) -> bool {
    matches!(kernel_version(osrelease)[..], [major, minor, ..] if (major, minor) < (5, 13))
}

/// Whether the running kernel has the module.
fn can_load(root: &Path) -> bool {
    let release = files::read_optional(root, "/proc/sys/kernel/osrelease").unwrap_or_default();
    ["modules.dep", "modules.builtin"].iter().any(|list| {
        let path = format!("/lib/modules/{}/{list}", release.trim());
        let text = files::read_optional(root, &path).unwrap_or_default();
        // modules.dep has one line per module: its path, a colon, its dependencies.
        text.lines().filter_map(|line| line.split(':').next()).any(|module| {
            module.rsplit('/').next().is_some_and(|name| name == "zram.ko" || name.starts_with("zram.ko."))
        })
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_store_on_a_server_is_not_looked_at() {
        let directory = tempfile::tempdir().unwrap();
        let (root, far) = (directory.path().canonicalize().unwrap(), directory.path().join("far"));
        std::fs::create_dir(&far).unwrap();
        std::os::unix::fs::symlink("far/store", root.join("link")).unwrap();
        let mounts = |fs_type: &str| {
            let line = format!(
                "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n2 1 0:9 / {}/far rw - {fs_type} s rw\n",
                root.display()
            );
            super::Mounts::parse(line.as_bytes())
        };
        let remote = |mounts: &super::Mounts, path: &str| {
            super::may_not_answer(mounts, root.join(path).to_str().unwrap())
        };
        for path in ["far", "far/store", "link", "link/a", "near/../far"] {
            for fs_type in ["nfs4", "fuse.sshfs", "cifs"] {
                assert!(remote(&mounts(fs_type), path), "{path} {fs_type}");
            }
            assert!(!remote(&mounts("xfs"), path), "{path}");
        }
        assert!(!remote(&mounts("nfs4"), "near"));
    }

    use super::*;
    use crate::fixture;
    use logic::change::Action;
    use logic::config;
    use logic::error::ErrorKind;
    use logic::facts::Facts;
    use logic::origin::Origin;
    use logic::record::Target;
    use logic::sample::SwapView;

    fn loaded(text: &str) -> Loaded {
        config::load(&[("/etc/zramd/zramd.toml".into(), text.to_owned())], "")
    }

    fn codes(found: &[Finding]) -> Vec<String> {
        found.iter().map(|finding| finding.code.to_string()).collect()
    }

    fn document(problems: &[Finding]) -> Document<'_> {
        Document {
            schema_version: SCHEMA_VERSION,
            problems,
            oom_killers: None,
            hibernation_lacks: None,
            choice: None,
        }
    }

    fn change(number: u32, action: Action, detail: &str) -> Change {
        Change::new(&Target::Device(number), action, detail)
    }

    #[test]
    fn a_machine_in_order_has_no_findings() {
        let well = Standing {
            has_zram: true,
            counts_pressure: true,
            wakes_for_pressure: true,
            not_loading: None,
            container: None,
            systemd: Some(Systemd { generator: true, enabled: true, running: true }),
            ..Standing::default()
        };
        assert_eq!(drained(&well), []);
        assert_eq!(codes(&missing(&well, &loaded("[zram0]"))), [""; 0]);
        assert_eq!(codes(&missing(&well, &loaded("[zram0]\n[maintenance]\npressure = true"))), [""; 0]);
        let text = |config: &str| render(&document(&[]), &loaded(config), Style::default());
        assert_eq!(text("[zram0]"), "no problems found\n");
        assert!(text("").contains("nothing is configured") && text("").contains("zramdctl init --now"));
    }

    #[test]
    fn what_is_missing_is_found() {
        let nothing = Standing { systemd: Some(Systemd::default()), ..Standing::default() };
        let expected = ["zram-missing", "generator-missing", "not-enabled"];
        assert_eq!(codes(&missing(&nothing, &loaded("[zram0]"))), expected);
        assert_eq!(codes(&missing(&nothing, &loaded(""))), ["zram-missing"], "nothing to set up");
        let stopped = Systemd { generator: true, enabled: true, running: false };
        let still =
            Standing { container: Some("lxc".to_owned()), systemd: Some(stopped), ..Standing::default() };
        let expected = ["container", "daemon-not-running"];
        assert_eq!(codes(&missing(&still, &loaded("[zram0]"))), expected);
        let without = Standing { has_zram: true, ..Standing::default() };
        assert_eq!(codes(&missing(&without, &loaded("[zram0]"))), [""; 0], "systemd is not needed");
        let image = Standing { transient: Some(Transient::InMemory), ..without.clone() };
        let found = missing(&image, &loaded("[zram0]"));
        assert_eq!((codes(&found), found[0].level), (vec!["config-not-lasting".to_owned()], Level::Note));
        assert_eq!(codes(&missing(&image, &loaded(""))), [""; 0]);
        let kept = "[ramdisk.a]\nmount-point = \"/a\"\nsize = \"1MiB\"\npersist = ";
        let early = Standing { not_loading: Some("too old".to_owned()), ..without.clone() };
        assert_eq!(codes(&missing(&early, &loaded(&format!("{kept}\"snapshot\"")))), ["kernel-too-old"]);
        assert_eq!(codes(&missing(&early, &loaded(&format!("{kept}\"none\"")))), [""; 0]);
        let follows = loaded("[zram0]\n[maintenance]\npressure = true");
        assert_eq!(codes(&missing(&without, &follows)), ["pressure-unknown"]);
        let stops = loaded("[zram0]\n[vm]\ntune = true");
        assert_eq!(codes(&missing(&without, &stops)), ["pressure-unknown"]);
        let old = Standing {
            counts_pressure: true,
            wakes_for_pressure: false,
            systemd: Some(Systemd { generator: true, enabled: true, running: true }),
            ..without
        };
        assert_eq!(codes(&missing(&old, &follows)), ["pressure-needs-rights"]);
        assert_eq!(
            ["5.10.0-35-amd64", "5.9.1", "5.13.0", "6.1.0-31-amd64", "7.2.13", ""].map(is_before_5_13),
            [true, true, false, false, false, false]
        );
    }

    #[test]
    fn swap_on_a_disk_below_compressed_swap_is_found() {
        let swap = |path: &str, priority| SwapLine { path: path.into(), size_kib: 1, used_kib: 0, priority };
        let zram = |number: u32, priority| DeviceView {
            name: format!("zram{number}"),
            managed: true,
            swap: Some(SwapView { priority, size_bytes: 1, used_bytes: 0 }),
            ..DeviceView::default()
        };
        let devices = [zram(0, 100), zram(1, 50)];
        let swaps = [swap("/dev/zram0", 100), swap("/dev/sda2", -2), swap("/swapfile", 60)];
        let found = disk_swaps(&devices, &swaps, false);
        // That between the two is another finding.
        assert_eq!(
            (codes(&found), found[0].object.as_str()),
            (vec!["disk-swap-below".to_owned()], "/dev/sda2")
        );
        assert!(found[0].remedy.contains("[zram1]") && found[0].remedy.contains("writeback-device"));
        assert!(!disk_swaps(&devices, &swaps, true)[0].remedy.contains("writeback-device"));
        let backed = DeviceView { backing_device: "/dev/loop0".to_owned(), ..zram(1, 50) };
        assert_eq!(disk_swaps(&[zram(0, 100), backed], &swaps, false), []);
        assert_eq!(disk_swaps(&[], &swaps, false), []);
        let fstab = |line: &str| names_disk_swap("quiet", "0:0", line);
        assert!(fstab("/dev/sda1 / ext4 defaults 0 1\nUUID=x none\tswap sw 0 0\n"));
        assert!(!fstab("# /dev/sda2 none swap sw 0 0\n\n/dev/sda1 /swap ext4 defaults 0 1\n"));
        assert!(names_disk_swap("quiet resume=/dev/sda2", "0:0", ""));
        assert!(names_disk_swap("noresume resume=/dev/sda2", "0:0", ""));
        assert!(names_disk_swap("quiet", "8:2", ""), "by the initramfs");
    }

    #[test]
    fn swap_that_stays_drained_is_found_and_said_once() {
        let standing = Standing { drained: vec![0, 2], ..Standing::default() };
        let found = drained(&standing);
        assert_eq!(codes(&found), ["swap-drained"; 2]);
        assert_eq!(found[1].object, "zram2");
        let (plan, facts) = (Plan::default(), Facts::default());
        let survey = Survey { plan, changes: vec![change(2, Action::Remove, "not configured")], facts };
        let differences = planned(&loaded("[zram2]"), &survey, "");
        assert_eq!(codes(&differences), ["not-in-line"]);
        let mut all = found.clone();
        finding::add(&mut all, differences);
        assert_eq!(all, found);
    }

    #[test]
    fn differences_are_said_once() {
        let configuration = loaded("[zram0]\n[zram1]\nzram-sise = \"1GiB\"\n");
        let origin = configuration.merged.sections["zram0"].origin.clone();
        let at = |key: &str, message: &str| {
            Finding::warning(Origin { key: key.to_owned(), ..origin.clone() }, message)
        };
        let neighbour =
            |code, object| Finding::new(Level::Warning, code, object, "in other words", "do this");
        let mut problems = configuration.problems.clone();
        problems.push(at("defaults.zram-size", "refused for a reason").about("zram4"));
        let neighbours =
            vec![neighbour(Code::PriorityInverted, "/dev/sda2"), neighbour(Code::ZswapActive, "")];
        let refused =
            Change { kind: Some(ErrorKind::Unsafe), ..change(4, Action::Refuse, "refused for a reason") };
        let survey = Survey {
            plan: Plan { problems, neighbours, ..Plan::default() },
            changes: vec![
                change(0, Action::Create, "4.0 GiB of swap"),
                change(1, Action::Keep, ""),
                change(2, Action::Adapt, "priority 5 → 7"),
                change(3, Action::Refuse, "its contents would be lost"),
                refused,
                change(5, Action::Activate, "swap"),
            ],
            facts: Facts::default(),
        };
        let known = [
            Finding::new(Level::Warning, Code::SwapOff, "zram5", "", ""),
            Finding::new(Level::Warning, Code::PriorityInverted, "/dev/sda2", "", ""),
            Finding::new(Level::Warning, Code::ZswapActive, "", "in other words", "do this"),
        ];
        let mut found = known.to_vec();
        finding::add(&mut found, planned(&configuration, &survey, ""));
        assert_eq!(codes(&found[3..]), ["config-doubtful", "not-set-up", "not-in-line", "refused"]);
        let broken = loaded("[zram0]\nzram-size = \"oops(\"\n");
        let mut found = known.to_vec();
        finding::add(&mut found, planned(&broken, &survey, ""));
        assert!(
            found[3..]
                .iter()
                .all(|finding| [Code::ConfigInvalid, Code::ConfigDoubtful].contains(&finding.code)),
            "{found:?}"
        );
    }

    #[test]
    fn findings_are_as_in_the_golden_file() {
        let mut found = fixture::machine().problems;
        found.extend(missing(
            &Standing { systemd: Some(Systemd::default()), ..Standing::default() },
            &loaded("[zram0]"),
        ));
        found.extend(ended::example(&fixture::machine()));
        let document = Document { oom_killers: Some(Killers::default()), ..document(&found) };
        fixture::golden("doctor", &render(&document, &loaded("[zram0]"), Style::default()));
        let value = serde_json::to_value(document).unwrap();
        assert_eq!(value["schema_version"], 1);
        assert_eq!(value["problems"][1]["code"], "zswap-active");
        assert_eq!(value["problems"][1]["level"], "warning");
    }
}
