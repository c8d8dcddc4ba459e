//! `status`: figures explained, reasons of choices, and problems.

use std::time::Duration;

use std::cmp::Ordering;
use std::collections::BTreeMap;

use super::args::{Cli, Json};
use super::columns::Row;
use super::doctor::Examined;
use super::problems::{self, plural};
use super::read::{self, Policies};
use super::style::Style;
use super::{doctor, out, select};
use engine::Error;
use logic::config::Loaded;
use logic::config::merge::Merged;
use logic::config::settings::Settings;
use logic::device::algorithm::Algorithm;
use logic::exit::ExitStatus;
use logic::finding::Finding;
use logic::human::human;
use logic::maintain::pressure::Level;
use logic::maintain::span;
use logic::overlay::{Override, Standing};
use logic::plan::{Decision, Plan};
use logic::ramdisk::status::RamdiskStatus;
use logic::record::Target;
use logic::render;
use logic::sample::{DeviceView, RamdiskView, ReasonView, RoleView, Snapshot, StateView};
use logic::text::shown;
use logic::vm::{Tunable, VmView};
use logic::zswap::{self, Rejected, ZswapView};

/// Minimum size in bytes for a meaningful ratio.
const WORTH_JUDGING: u64 = 16 << 20;

/// Bytes below which the headline does not mention what is stored.
const WORTH_MENTIONING: u64 = 1 << 20;

/// Runs `status`.
pub fn run(cli: &Cli, names: &[String], json: Json) -> Result<ExitStatus, Error> {
    let Examined { snapshot, loaded, plan, .. } = doctor::examine(cli, true)?;
    let style = Style::stdout(cli.color);
    let (rows, unknown) = select::select(Row::all(&snapshot), names);
    let policies = names.is_empty().then(read::policies);
    out::result(json, &document(&snapshot, &rows, names.is_empty()), || {
        render(&snapshot, &rows, &loaded, &plan, policies.as_ref(), style)
    })?;
    let mut status = if names.is_empty() || rows.iter().all(|row| is_active(*row)) {
        ExitStatus::Success
    } else {
        ExitStatus::Inactive
    };
    for word in unknown {
        let device = word.strip_prefix("/dev/").unwrap_or(word);
        let off = |found: &&Override| found.object == device && found.switches_off();
        let off = loaded.merged.overrides.iter().find(off);
        if off.is_none() && !is_configured(word, &loaded.settings) {
            status = select::report(&[word]);
            continue;
        }
        out::error(&match off {
            Some(found) => format!("{device} is switched off until the next boot; {}", found.remedy()),
            None => format!("{word} is configured, but not set up (see `zramdctl plan`)"),
        });
        if status == ExitStatus::Success {
            status = ExitStatus::Inactive;
        }
    }
    Ok(status)
}

/// The JSON form: the snapshot with these rows, and the problems about them.
fn document(snapshot: &Snapshot, rows: &[Row<'_>], whole: bool) -> Snapshot {
    let mut document = snapshot.clone();
    document
        .devices
        .retain(|view| rows.iter().any(|row| matches!(row, Row::Device(_)) && row.name() == view.name));
    document.zswap = document.zswap.filter(|_| rows.iter().any(|row| row.zswap().is_some()));
    document
        .ramdisks
        .retain(|view| rows.iter().any(|row| matches!(row, Row::Ramdisk(_)) && row.name() == view.name));
    document.problems.retain(|finding| is_about(finding, rows, whole));
    document
}

fn is_about(finding: &Finding, rows: &[Row<'_>], whole: bool) -> bool {
    whole || rows.iter().any(|row| select::is(&finding.object, *row))
}

/// Whether it is a device of which there is nothing to say: loading the module creates those.
fn is_unused(row: Row<'_>) -> bool {
    matches!(row, Row::Device(view) if view.state == StateView::Unused && !view.managed)
}

/// Whether a device or RAM disk is in its intended use.
fn is_active(row: Row<'_>) -> bool {
    match row {
        Row::Device(device) => match device.state {
            StateView::Active | StateView::Mounted => true,
            // Users of a raw device cannot be seen here.
            StateView::Ready => device.role == RoleView::Raw,
            StateView::Unfinished | StateView::Unused => false,
        },
        Row::Zswap(zswap) => zswap.enabled,
        Row::Ramdisk(disk) => disk.mounted,
    }
}

fn is_configured(word: &str, settings: &Settings) -> bool {
    let device = word.strip_prefix("/dev/").unwrap_or(word);
    let disk = word.strip_prefix("ramdisk.").unwrap_or(word);
    settings.devices.iter().any(|section| format!("zram{}", section.number) == device)
        || settings.ramdisks.iter().any(|section| section.name == disk)
}

/// Paragraphs about these rows, then problems; with `policies`, also about the machine.
pub fn render(
    snapshot: &Snapshot,
    rows: &[Row<'_>],
    loaded: &Loaded,
    plan: &Plan,
    policies: Option<&Policies>,
    style: Style,
) -> String {
    let config = &loaded.merged;
    let whole = policies.is_some();
    let mut parts = Vec::new();
    if whole {
        parts.push(summary(snapshot, config) + "\n");
    }
    let (unused, others): (Vec<Row<'_>>, Vec<Row<'_>>) =
        rows.iter().partition(|row| whole && is_unused(**row));
    parts.extend(others.iter().map(|row| match row {
        Row::Device(view) => device(view, snapshot, config, plan, style),
        Row::Zswap(view) => zswap(view, style),
        Row::Ramdisk(view) => disk(view, config, style),
    }));
    if !unused.is_empty() {
        let names: Vec<String> = unused.iter().map(|row| row.name().to_owned()).collect();
        parts.push(Paragraph::new(&render::listed(&names), "not set up", false, style).render());
    }
    if whole {
        parts.extend(absent(rows, loaded, plan, style));
    }
    if whole && !snapshot.vm.is_empty() {
        parts.push(settings(&snapshot.vm, style));
    }
    parts.extend(policies.and_then(|policies| maintenance(snapshot, policies, style)));
    let about = snapshot.problems.iter().filter(|finding| is_about(finding, rows, whole));
    let found = problems::render(about, style);
    if !found.is_empty() {
        parts.push(found);
    }
    parts.join("\n")
}

/// Kernel settings while compressed swap is in use.
fn settings(all: &[VmView], style: Style) -> String {
    let mut paragraph = Paragraph::new("vm", "settings for compressed swap", true, style);
    // Where the kernel had enabled it before, only the other parameters were set.
    let switch = all.iter().find(|view| view.name == Tunable::Zswap.name());
    let zswap = switch.is_none_or(|view| view.set_to == "Y");
    for view in all {
        let text = if view.is_changed() {
            format!(
                "{} is {}: zramd set it to {}, another program has changed it",
                view.name, view.value, view.set_to
            )
        } else {
            let until = if zswap && view.name.starts_with("zswap.") { "[zswap]" } else { "compressed swap" };
            format!("{} is {}, and is set back to {} without {until}", view.name, view.value, view.before)
        };
        paragraph.line("Set", text);
    }
    paragraph.render()
}

/// Maintenance so far, and memory pressure.
fn maintenance(snapshot: &Snapshot, policies: &Policies, style: Style) -> Option<String> {
    let report = &snapshot.maintenance;
    if report.ended_monotonic_usec == 0 && snapshot.pressure == Level::None {
        return None;
    }
    let pressure = format!("memory pressure: {}", snapshot.pressure.word());
    let mut paragraph = Paragraph::new("maintenance", &pressure, true, style);
    if !snapshot.pressure_reason.is_empty() {
        paragraph.line("Because", &snapshot.pressure_reason);
    }
    if report.ended_monotonic_usec > 0 {
        let ago = snapshot.timestamp_monotonic_usec.saturating_sub(report.ended_monotonic_usec);
        let ago = span(Duration::from_micros(ago));
        paragraph.line("Last", format!("{ago} ago ({}): {}", report.cause, report.summary()));
    }
    for (policy, total) in policies {
        let since = snapshot.timestamp_monotonic_usec.saturating_sub(total.last_monotonic_usec);
        let written = match total.written_bytes {
            0 => String::new(),
            bytes => format!(", {} written", human(bytes)),
        };
        paragraph.line(
            "Since boot",
            format!(
                "{policy}: {} freed{written} in {}; last {} ago: {}",
                human(total.freed_bytes),
                plural(usize::try_from(total.runs).unwrap_or(usize::MAX), "run"),
                span(Duration::from_micros(since)),
                total.last_result
            ),
        );
    }
    if let Some(budget) = report.budget {
        paragraph.line("Write-back", written(budget.day_bytes, budget.daily_bytes, budget.total_bytes));
    }
    Some(paragraph.render())
}

/// What was written in 24 hours, the budget for that (0: none), and what was written in all.
pub fn written(day: u64, budget: u64, total: u64) -> String {
    let day = if day == u64::MAX { "an unknown amount".to_owned() } else { human(day) };
    let budget = if budget == 0 { String::new() } else { format!(" (budget {})", human(budget)) };
    format!("{day} written in 24 hours{budget}, {} in all", human(total))
}

/// The memory that is saved, and the number of devices, RAM disks and problems.
fn summary(snapshot: &Snapshot, config: &Merged) -> String {
    let count = |wanted: fn(&DeviceView) -> bool| snapshot.devices.iter().filter(|view| wanted(view)).count();
    let disks = match snapshot.ramdisks.len() {
        0 => String::new(),
        disks => format!(", {}", plural(disks, "RAM disk")),
    };
    let problems = problems::count(&snapshot.problems);
    let devices = count(|view| view.disk_size_bytes > 0);
    let zswap = snapshot.zswap.as_ref().map(DeviceView::from);
    let gain = || {
        let all: Vec<DeviceView> = snapshot.devices.iter().chain(&zswap).cloned().collect();
        gain(&all)
    };
    if let Some(ZswapView { enabled: true, .. }) = snapshot.zswap
        && devices == 0
    {
        return format!("{}\nzswap is on, and no zram device is in use{disks}; {problems}.", gain());
    }
    if devices == 0 {
        let start = if config.sections.is_empty() && config.broken.is_empty() {
            "\nNothing is configured; `zramdctl init --now` proposes a configuration."
        } else {
            ""
        };
        return format!("No zram device is in use{disks}; {problems}.{start}");
    }
    let others = match count(|view| !view.managed && view.disk_size_bytes > 0) {
        0 => String::new(),
        others => format!(" ({others} not by zramd)"),
    };
    let devices = plural(devices, "zram device");
    let beside = if zswap.is_some() { ", and zswap" } else { "" };
    format!("{}\n{devices} in use{others}{beside}{disks}; {problems}.", gain())
}

/// What is stored in how much memory, in one sentence.
fn gain(devices: &[DeviceView]) -> String {
    let in_memory =
        |view: &DeviceView| view.stats.memory.orig_data_size.saturating_sub(view.stats.backing.used_bytes);
    let kinds =
        [(RoleView::Swap, "programs"), (RoleView::Filesystem, "files"), (RoleView::Raw, "other data")];
    let stored = kinds.iter().filter_map(|(role, kind)| {
        let bytes = devices.iter().filter(|view| view.role == *role).map(in_memory).sum();
        (bytes >= WORTH_MENTIONING).then(|| format!("{} of {kind}", human(bytes)))
    });
    let stored = stored.collect::<Vec<_>>().join(" and ");
    if stored.is_empty() {
        return "Next to nothing is stored in compressed memory yet.".to_owned();
    }
    let used: u64 = devices.iter().map(|view| view.stats.memory.mem_used_total).sum();
    match devices.iter().map(in_memory).sum::<u64>().saturating_sub(used) {
        0 => format!("{stored} are in {} of memory, which saves nothing.", human(used)),
        saved => format!("{stored} are in {} of memory, which saves {}.", human(used), human(saved)),
    }
}

/// A headline with a bullet, and labelled lines below it.
struct Paragraph {
    headline: String,
    lines: Vec<(&'static str, String)>,
}

impl Paragraph {
    fn new(name: &str, what: &str, active: bool, style: Style) -> Paragraph {
        let dot = if active { style.good("●") } else { style.dim("○") };
        let headline = format!("{dot} {}: {}", style.bold(&shown(name)), shown(what));
        Paragraph { headline, lines: Vec::new() }
    }

    fn line(&mut self, label: &'static str, text: impl Into<String>) {
        self.lines.push((label, shown(text)));
    }

    fn render(&self) -> String {
        let mut out = format!("{}\n", self.headline);
        for (label, text) in &self.lines {
            out.push_str(&format!("{label:>16}: {text}\n"));
        }
        out
    }
}

fn zswap(view: &ZswapView, style: Style) -> String {
    let what =
        if view.enabled { "compresses pages before swap on a disk" } else { "is off, but still holds pages" };
    let mut paragraph = Paragraph::new(zswap::NAME, what, view.enabled, style);
    paragraph.line(
        "Set up by",
        if view.managed { "zramd, from [zswap]" } else { "the kernel, or another program" },
    );
    let shrinker = match view.shrinker {
        Some(true) => "; cold pages leave before it is full",
        Some(false) => "; pages leave only when it is full",
        None => "",
    };
    paragraph.line("Algorithm", &view.algorithm);
    paragraph.line("Limit", format!("{} of memory{shrinker}", human(view.memory_limit_bytes)));
    paragraph.line(
        "Stored",
        format!("{} in {} of memory", human(view.original_data_bytes), human(view.memory_used_bytes)),
    );
    if view.original_data_bytes >= WORTH_JUDGING {
        paragraph.line("Ratio", format!("{:.2}", view.compression_ratio));
        paragraph.line("Saved", human(view.saved_bytes));
    }
    let places =
        format!("{} of {} of swap on disks", human(view.swap_used_bytes), human(view.swap_size_bytes));
    paragraph.line("Swap used", places);
    paragraph
        .line("Write-back", format!("{} written to the disk since boot", human(view.backing_written_bytes)));
    if let Some(Rejected { limit, compress_poor, allocation }) = view.rejected {
        let text = format!(
            "{compress_poor} pages did not compress, {allocation} found no memory, {limit} found the pool full"
        );
        paragraph.line("Rejected", text);
    }
    paragraph.render()
}

fn device(view: &DeviceView, snapshot: &Snapshot, config: &Merged, plan: &Plan, style: Style) -> String {
    let mut paragraph = Paragraph::new(&view.name, &purpose(view), is_active(Row::Device(view)), style);
    overridden(&view.name, config, &mut paragraph);
    if view.disk_size_bytes == 0 && !view.managed {
        return paragraph.render();
    }
    paragraph.line("Set up by", owner(view, config));
    contents(view, snapshot, &mut paragraph);
    if let Some(swap) = view.swap {
        paragraph.line(
            "Swap used",
            slots(swap.used_bytes, view.stats.memory.orig_data_size, snapshot.page_size_bytes),
        );
    }
    if let Some(mount) = &view.mount {
        paragraph.line(
            "File system",
            format!(
                "{} of {} used, as {} counts",
                human(mount.used_bytes),
                human(mount.size_bytes),
                mount.fs_type
            ),
        );
    }
    paragraph.line("Algorithm", algorithm(view, plan));
    if !view.recompression_algorithms.is_empty() {
        let all: Vec<String> = view
            .recompression_algorithms
            .iter()
            .map(|(priority, name)| format!("{name} with priority {priority}"))
            .collect();
        paragraph.line("Recompression", all.join(", "));
    }
    if !view.backing_device.is_empty() {
        let more = match view.writeback_limit_bytes {
            Some(bytes) => format!("{} more may be written", human(bytes)),
            None => "no limit".to_owned(),
        };
        paragraph.line(
            "Written back",
            format!(
                "{} to {}, no longer in memory; {more}",
                human(view.stats.backing.used_bytes),
                view.backing_device
            ),
        );
    }
    let io = view.stats.io;
    if io.failed_reads > 0 || io.failed_writes > 0 {
        let failed = |count: u64, name: &str| plural(usize::try_from(count).unwrap_or(usize::MAX), name);
        paragraph.line(
            "Failed",
            format!("{}, {}", failed(io.failed_reads, "read"), failed(io.failed_writes, "write")),
        );
    }
    paragraph.render()
}

/// Overrides of a section until the next boot.
fn overridden(section: &str, config: &Merged, paragraph: &mut Paragraph) {
    for found in config.overrides.iter().filter(|found| found.object == section) {
        if found.standing == Standing::Created {
            paragraph.line("Created", format!("until the next boot; {} removes it", found.remedy()));
            return;
        }
        let text = format!("{}; {}", found.sentence(), found.remedy());
        paragraph.line("Overridden", text);
    }
}

/// Paragraphs about devices and RAM disks that are configured or overridden, but not there.
fn absent(rows: &[Row<'_>], loaded: &Loaded, plan: &Plan, style: Style) -> Vec<String> {
    let config = &loaded.merged;
    let shown = |object: &str| {
        rows.iter().any(|row| match row {
            Row::Device(view) => view.name == object,
            Row::Zswap(_) => false,
            Row::Ramdisk(view) => object.strip_prefix("ramdisk.") == Some(&view.name),
        })
    };
    let planned = plan.items.iter().filter(|item| !matches!(item.target, Target::Vm | Target::Zswap));
    let planned = planned.map(|item| match item.decision {
        Decision::Planned => (item.target.to_string(), "configured, not set up".to_owned()),
        Decision::Skipped => (item.target.to_string(), format!("skipped: {}", item.reason)),
        Decision::Refused => (item.target.to_string(), format!("refused: {}", item.reason)),
    });
    let left_out = plan.left_out(loaded).map(|(name, is_off)| {
        let why = if is_off { "switched off" } else { "not used because of a mistake" };
        (name.to_owned(), why.to_owned())
    });
    let overridden_only =
        config.overrides.iter().map(|found| (found.object.clone(), "not in use".to_owned()));
    let objects: BTreeMap<String, String> = overridden_only.chain(left_out).chain(planned).collect();
    let paragraph = |(object, what): (String, String)| {
        let mut paragraph = Paragraph::new(&object, &what, false, style);
        overridden(&object, config, &mut paragraph);
        paragraph.render()
    };
    objects.into_iter().filter(|(object, _)| !shown(object)).map(paragraph).collect()
}

/// Role and state of a device.
fn purpose(view: &DeviceView) -> String {
    let size = human(view.disk_size_bytes);
    if view.state == StateView::Unfinished {
        return "being set up, or its set-up was interrupted".to_owned();
    }
    match (view.swap, &view.mount, view.role) {
        (Some(swap), _, _) => format!("{size} of swap with priority {}, active", swap.priority),
        (None, Some(mount), _) => format!("{size} of {} on {}, mounted", mount.fs_type, mount.mount_point),
        (None, None, RoleView::Swap) => format!("{size} of swap, switched off"),
        (None, None, RoleView::Filesystem) => format!("{size} of file system, not mounted"),
        (None, None, RoleView::Raw) => format!("{size}, neither swap nor mounted"),
        (None, None, RoleView::Unused) => "not set up".to_owned(),
    }
}

fn owner(view: &DeviceView, config: &Merged) -> String {
    if !view.taken_over.is_empty() {
        return format!("another program, since zramd set it up: {}", view.taken_over);
    }
    if !view.managed {
        return "another program; zramd does not change it".to_owned();
    }
    let section = &view.config_section;
    match config.sections.get(section) {
        Some(found) => format!("zramd, from [{section}] in {}", found.origin.place()),
        None if config.broken.contains(section) => {
            format!("zramd, from [{section}], which has a mistake now")
        }
        None => format!("zramd, from [{section}], which is not in the configuration now"),
    }
}

/// Stored data, and the memory that it needs.
fn contents(view: &DeviceView, snapshot: &Snapshot, paragraph: &mut Paragraph) {
    let (memory, derived) = (&view.stats.memory, &view.stats.derived);
    let stored = memory.orig_data_size;
    paragraph.line(
        "Stored",
        format!(
            "{} of {} ({})",
            human(stored),
            human(view.disk_size_bytes),
            percent(stored, view.disk_size_bytes)
        ),
    );
    let limit = match memory.mem_limit {
        0 => "no limit".to_owned(),
        limit => format!("limited to {}", human(limit)),
    };
    paragraph.line(
        "Memory",
        format!("{}, {} at its peak, {limit}", human(memory.mem_used_total), human(memory.mem_used_max)),
    );
    if derived.compression_ratio > 0.0 {
        let mut text = format!(
            "{:.2}, that is {} in {} of memory",
            derived.compression_ratio,
            human(derived.compressible_bytes),
            human(memory.mem_used_total)
        );
        if derived.compressible_bytes < WORTH_JUDGING {
            text.push_str("; too little to judge by");
        } else if derived.compressible_bytes < stored {
            let without = match (memory.same_pages > 0, view.stats.backing.used_bytes > 0) {
                (true, true) => "same-filled and written-back",
                (true, false) => "same-filled",
                (false, _) => "written-back",
            };
            text.push_str(&format!("; {without} pages do not count"));
        }
        paragraph.line("Ratio", text);
    }
    if derived.loss_bytes > 0 {
        let text = format!("nothing: it takes {} more than without compression", human(derived.loss_bytes));
        paragraph.line("Saved", text);
    } else if derived.compression_ratio > 0.0 {
        let saved = match derived.saved_bytes {
            0 => "nothing".to_owned(),
            bytes => format!("{} of memory", human(bytes)),
        };
        paragraph.line("Saved", saved);
    }
    let share = |pages: u64, what: &str| {
        let bytes = pages.saturating_mul(snapshot.page_size_bytes);
        format!("{} ({}) {what}", human(bytes), percent(bytes, stored))
    };
    if memory.same_pages > 0 {
        paragraph
            .line("Same", share(memory.same_pages, "in pages of one repeated word, which need no memory"));
    }
    if memory.huge_pages > 0 {
        paragraph.line("Huge", share(memory.huge_pages, "in pages that do not compress"));
    }
    if view.state != StateView::Unused {
        paragraph.line("Headroom", headroom(view, snapshot));
    }
}

/// Data that still fits, and what limits it.
fn headroom(view: &DeviceView, snapshot: &Snapshot) -> String {
    let memory = &view.stats.memory;
    let room = view.stats.derived.headroom_bytes;
    let free = match view.swap {
        Some(swap) => swap.size_bytes.saturating_sub(swap.used_bytes),
        None => view.disk_size_bytes.saturating_sub(memory.orig_data_size),
    };
    let available = snapshot.memory.available_bytes;
    let bound = if room >= free {
        "the rest of its size".to_owned()
    } else if memory.mem_limit > 0 && memory.mem_limit.saturating_sub(memory.mem_used_total) < available {
        "at this ratio, until its limit is reached".to_owned()
    } else {
        format!("at this ratio, until the {} of available memory are used up", human(available))
    };
    format!("{} more: {bound}", human(room))
}

/// Why the usage of the swap differs from that of the device.
fn slots(used: u64, stored: u64, page: u64) -> String {
    let difference = human(used.abs_diff(stored));
    let why = match used.cmp(&stored) {
        Ordering::Greater => {
            format!(", {difference} more than stored: a page that was read back keeps its slot")
        }
        Ordering::Less if stored - used <= page => "; its header is stored too".to_owned(),
        Ordering::Less => format!(", {difference} less than stored: freed pages go later"),
        Ordering::Equal => String::new(),
    };
    let used = if used == 0 { "none".to_owned() } else { human(used) };
    used + &why
}

fn algorithm(view: &DeviceView, plan: &Plan) -> String {
    let parameters = view.algorithm_parameters.clone().into_iter().collect();
    let used = Algorithm { name: view.algorithm.clone(), parameters };
    let verdict = ", the verdict of the benchmark (see `zramdctl bench show`)";
    let why = match view.algorithm_reason {
        ReasonView::Config => ", the first choice of the configuration",
        ReasonView::Benchmark => verdict,
        ReasonView::Auto => ", chosen by zramd because the configuration says \"auto\"",
        ReasonView::Fallback => ", because this kernel lacks the preferred algorithm, or it failed",
        ReasonView::KernelDefault => ", the default of the kernel",
        ReasonView::Unknown => "",
    };
    let item = plan.items.iter().find(|item| item.target.to_string() == view.name);
    let first = item.and_then(|item| item.candidates.first()).filter(|candidate| candidate.measured);
    match first.and_then(|candidate| candidate.algorithm.as_ref()) {
        Some(best) if *best != used => {
            format!("{used}{why}; from the next boot on {best}, the verdict of the benchmark")
        }
        // It was set up before there was a verdict.
        Some(_) => format!("{used}{verdict}"),
        None => format!("{used}{why}"),
    }
}

fn disk(view: &RamdiskView, config: &Merged, style: Style) -> String {
    let what = if view.mounted {
        format!("{} of {} on {}, mounted", human(view.size_bytes), view.fs_type, view.mount_point)
    } else {
        format!("{} on {}, not mounted", view.fs_type, view.mount_point)
    };
    let mut paragraph = Paragraph::new(&view.name, &what, view.mounted, style);
    overridden(&format!("ramdisk.{}", view.name), config, &mut paragraph);
    if view.mounted {
        paragraph.line(
            "Used",
            format!(
                "{} of {} ({})",
                human(view.used_bytes),
                human(view.size_bytes),
                percent(view.used_bytes, view.size_bytes)
            ),
        );
        let files = view.files_left().map_or_else(String::new, |left| format!(" and {left} files"));
        paragraph.line("Headroom", format!("{}{files} more", human(view.free_bytes)));
    }
    if view.is_kept() {
        let RamdiskStatus { written_day_bytes, daily_budget_bytes, written_total_bytes, .. } = view.status;
        paragraph.line("Saves", written(written_day_bytes, daily_budget_bytes, written_total_bytes));
    }
    paragraph.render()
}

/// A share as text.
fn percent(part: u64, whole: u64) -> String {
    if part == 0 || whole == 0 {
        return "0%".to_owned();
    }
    // Rounded to nearest; u128 because both factors may be large.
    let percent = (u128::from(part) * 100 + u128::from(whole) / 2) / u128::from(whole);
    if percent == 0 { "under 1%".to_owned() } else { format!("{percent}%") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ended, fixture};
    use logic::change::{Action, Change};
    use logic::config;
    use logic::facts::Facts;
    use logic::figure::FIGURES;
    use logic::plan::{self, Activation};
    use logic::proc::Memory;

    #[test]
    fn a_section_with_a_mistake_is_not_absent() {
        let text = "[zram10]\nzram-size =\n".to_owned();
        let broken = config::load(&[("/etc/zramd/zramd.toml".into(), text)], "").merged;
        let machine = fixture::machine();
        let view = machine.devices.iter().find(|view| view.config_section == "zram10").unwrap();
        assert_eq!(owner(view, &broken), "zramd, from [zram10], which has a mistake now");
    }

    fn loaded() -> Loaded {
        let text =
            "[zram0]\nzram-size = \"4GiB\"\n\n[zram1]\n[zram8]\nenabled = false\n[zram9]\nzram-size = 0\n"
                .to_owned();
        config::load(&[("/etc/zramd/zramd.toml".into(), text)], "")
    }

    fn planned() -> Plan {
        let memory = Memory { total_kib: 8 << 20, ..Memory::default() };
        let facts = Facts { memory, page_size: 4096, ..Facts::default() };
        plan::plan(&loaded().settings, Vec::new(), &facts, Activation::Direct)
    }

    #[test]
    fn the_status_is_as_in_the_golden_files() {
        let mut machine = fixture::machine();
        machine.problems.extend(ended::example(&machine));
        let rows = Row::all(&machine);
        fixture::golden(
            "status",
            &render(&machine, &rows, &loaded(), &planned(), Some(&fixture::policies()), Style::default()),
        );
        fixture::golden(
            "status-one",
            &render(&machine, &rows[1..2], &loaded(), &planned(), None, Style::default()),
        );
        fixture::golden(
            "status-colour",
            &render(&machine, &rows[2..5], &loaded(), &planned(), None, Style::new(true)),
        );
        let missing = Change::new(&Target::Device(0), Action::Create, "4.0 GiB of swap");
        let problems = missing.finding().into_iter().collect();
        let nothing = Snapshot { problems, ..Snapshot::default() };
        fixture::golden(
            "status-nothing",
            &render(&nothing, &[], &loaded(), &planned(), Some(&Policies::new()), Style::default()),
        );
        let begun = render(
            &nothing,
            &[],
            &Loaded::default(),
            &Plan::default(),
            Some(&Policies::new()),
            Style::default(),
        );
        assert!(begun.contains("zramdctl init --now"), "{begun}");
    }

    #[test]
    fn figures_have_their_names() {
        let machine = fixture::machine();
        let (config, plan) = (loaded(), planned());
        let text = render(&machine, &Row::all(&machine), &config, &plan, None, Style::default());
        // The compressed payload and the peak have no line of their own.
        let shown =
            FIGURES.iter().filter(|figure| !["", "Compressed", "Memory peak"].contains(&figure.label));
        for figure in shown {
            assert!(
                text.lines().any(|line| line.trim().starts_with(&format!("{}: ", figure.label))),
                "{}",
                figure.label
            );
        }
    }

    #[test]
    fn what_bounds_the_headroom_is_named() {
        let mut machine = fixture::machine();
        let mut view = fixture::swap();
        assert_eq!(headroom(&view, &machine), "2.7 GiB more: the rest of its size");
        view.stats.derived.headroom_bytes = 1 << 30;
        assert_eq!(
            headroom(&view, &machine),
            "1.0 GiB more: at this ratio, until the 3.0 GiB of available memory are used up"
        );
        view.stats.memory.mem_limit = 1 << 30;
        assert_eq!(headroom(&view, &machine), "1.0 GiB more: at this ratio, until its limit is reached");
        machine.memory.available_bytes = 1 << 20;
        assert!(headroom(&view, &machine).ends_with("the 1.0 MiB of available memory are used up"));
    }

    #[test]
    fn slots_are_compared_with_what_is_stored() {
        assert_eq!(slots(0, 4096, 4096), "none; its header is stored too");
        assert_eq!(slots(4096, 4096, 4096), "4.0 KiB");
        assert_eq!(slots(0, 12288, 4096), "none, 12.0 KiB less than stored: freed pages go later");
    }

    #[test]
    fn devices_in_their_intended_use_are_active() {
        let machine = fixture::machine();
        let active: Vec<&str> =
            Row::all(&machine).into_iter().filter(|row| is_active(*row)).map(Row::name).collect();
        assert_eq!(active, ["zram0", "zram1", "zram2", "zswap", "scratch"]);
        let raw = DeviceView { role: RoleView::Raw, state: StateView::Ready, ..DeviceView::default() };
        assert!(is_active(Row::Device(&raw)));
    }

    #[test]
    fn small_shares_are_not_rounded_to_zero() {
        let texts =
            [(0, 5), (1, 1000), (5, 1000), (1, 3), (7, 7), (1, 0)].map(|(part, whole)| percent(part, whole));
        assert_eq!(texts, ["0%", "under 1%", "1%", "33%", "100%", "0%"]);
    }
}
