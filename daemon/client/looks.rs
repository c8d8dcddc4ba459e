//! The content of `top`: lines from two snapshots.

use logic::human::human;
use logic::proc::Pressure;
use logic::sample::{DeviceView, Snapshot, StateView};
use logic::table;

/// Column headings.
pub const COLUMNS: [&str; 11] = [
    "NAME",
    "ALGORITHM",
    "STORED",
    "MEMORY",
    "RATIO",
    "SAVED",
    "HEADROOM",
    "SWAP USED",
    "IN/S",
    "OUT/S",
    "HUGE",
];
/// Index of the first column with figures, which are aligned to the right.
pub const FIRST_FIGURE: usize = 2;
/// Blanks between columns.
const GAP: usize = 2;

/// Cells of one device.
pub type Row = [String; 11];

/// One screen of `top`.
#[derive(Debug, Clone, PartialEq)]
pub struct Look {
    /// Lines about the machine.
    pub head: Vec<String>,
    /// One row per device.
    pub rows: Vec<Row>,
}

/// Placeholder for a missing figure.
const NOTHING: &str = "-";

impl Look {
    /// The screen for `now`. Rates are relative to `before`; without it there are none.
    pub fn new(before: Option<&Snapshot>, now: &Snapshot, pressure: Option<Pressure>) -> Look {
        let rows = now
            .devices
            .iter()
            .map(|device| row(before.and_then(|before| before.device(&device.name)), device));
        Look { head: head(now, pressure), rows: rows.collect() }
    }

    /// The screen as plain text.
    pub fn text(&self, clock: &str) -> String {
        let mut text = format!("{clock}  {}\n", self.head.join("\n"));
        if self.rows.is_empty() {
            return text + "no zram device\n";
        }
        let rows: Vec<Vec<String>> = self.rows.iter().map(|row| row.to_vec()).collect();
        let figures: Vec<usize> = (FIRST_FIGURE..COLUMNS.len()).collect();
        text.push_str(&table::render(&COLUMNS, &figures, &rows));
        text
    }

    /// Widths of the columns that fit into a terminal of this width; at least the first.
    pub fn widths(&self, terminal: usize) -> Vec<usize> {
        let mut widths = Vec::new();
        let mut used = 0;
        for (column, heading) in COLUMNS.iter().enumerate() {
            let cells = self.rows.iter().map(|row| row[column].chars().count());
            let width = cells.chain([heading.chars().count()]).max().unwrap_or(0);
            used += width + if column == 0 { 0 } else { GAP };
            if column > 0 && used > terminal {
                break;
            }
            widths.push(width);
        }
        widths
    }
}

fn head(now: &Snapshot, pressure: Option<Pressure>) -> Vec<String> {
    let memory = now.memory;
    let mut first =
        format!("memory {} of {} available", human(memory.available_bytes), human(memory.total_bytes));
    if memory.swap_total_bytes > 0 {
        let used = memory.swap_total_bytes.saturating_sub(memory.swap_free_bytes);
        first.push_str(&format!(", swap {} of {} used", human(used), human(memory.swap_total_bytes)));
    }
    if let Some(Pressure { some, full }) = pressure {
        first.push_str(&format!(", pressure some {some:.2} % full {full:.2} %"));
    }
    let sum = |amount: fn(&DeviceView) -> u64| -> u64 { now.devices.iter().map(amount).sum() };
    let stored = sum(|device| device.stats.memory.orig_data_size);
    let used = sum(|device| device.stats.memory.mem_used_total);
    let saved = sum(|device| device.stats.derived.saved_bytes);
    let mut head = vec![first];
    if now.devices.len() > 1 {
        let all = format!("stored {} in {}, saved {}", human(stored), human(used), human(saved));
        head.push(all);
    }
    head
}

fn row(before: Option<&DeviceView>, now: &DeviceView) -> Row {
    if now.state == StateView::Unused {
        let mut row: Row = std::array::from_fn(|_| NOTHING.to_owned());
        row[0].clone_from(&now.name);
        return row;
    }
    let (memory, derived) = (&now.stats.memory, &now.stats.derived);
    let ratio = if derived.compression_ratio == 0.0 {
        NOTHING.to_owned()
    } else {
        format!("{:.2}", derived.compression_ratio)
    };
    [
        now.name.clone(),
        now.algorithm.clone(),
        human(memory.orig_data_size),
        human(memory.mem_used_total),
        ratio,
        human(derived.saved_bytes),
        human(derived.headroom_bytes),
        now.swap.map_or(NOTHING.to_owned(), |swap| human(swap.used_bytes)),
        rate(before, now, |device| device.stats.block.read_bytes),
        rate(before, now, |device| device.stats.block.written_bytes),
        format!("{:.0} %", derived.huge_share * 100.0),
    ]
}

/// Growth of a counter in bytes per second.
fn rate(before: Option<&DeviceView>, now: &DeviceView, counter: impl Fn(&DeviceView) -> u64) -> String {
    let time = |device: &DeviceView| device.stats.timestamp_monotonic_usec;
    let rate = before.and_then(|before| {
        // A counter that shrinks belongs to a device that was recreated.
        let grown = counter(now).checked_sub(counter(before))?;
        let micros = time(now).checked_sub(time(before)).filter(|micros| *micros > 0)?;
        u64::try_from(u128::from(grown) * 1_000_000 / u128::from(micros)).ok()
    });
    rate.map_or(NOTHING.to_owned(), human)
}

#[cfg(test)]
mod tests {
    use super::*;
    use logic::device::derived::Derived;
    use logic::device::stat::{BlockStat, MmStat};
    use logic::sample::{MemoryView, Stats, SwapView};

    const MIB: u64 = 1 << 20;

    fn device(name: &str, micros: u64, read: u64, written: u64) -> DeviceView {
        DeviceView {
            name: name.to_owned(),
            state: StateView::Active,
            algorithm: "zstd".to_owned(),
            swap: Some(SwapView { priority: 100, size_bytes: 256 * MIB, used_bytes: 10 * MIB }),
            stats: Stats {
                timestamp_monotonic_usec: micros,
                memory: MmStat { orig_data_size: 9 * MIB, mem_used_total: 3 * MIB, ..MmStat::default() },
                block: BlockStat { read_bytes: read, written_bytes: written, ..BlockStat::default() },
                derived: Derived {
                    compression_ratio: 3.0,
                    saved_bytes: 6 * MIB,
                    headroom_bytes: 240 * MIB,
                    huge_share: 0.126,
                    ..Derived::default()
                },
                ..Stats::default()
            },
            ..DeviceView::default()
        }
    }

    fn snapshot(devices: Vec<DeviceView>) -> Snapshot {
        let memory = MemoryView {
            total_bytes: 1024 * MIB,
            available_bytes: 512 * MIB,
            swap_total_bytes: 256 * MIB,
            swap_free_bytes: 246 * MIB,
        };
        Snapshot { memory, devices, ..Snapshot::default() }
    }

    #[test]
    fn a_screen_is_a_table_below_figures_of_the_machine() {
        let before = snapshot(vec![device("zram0", 1_000_000, 0, MIB)]);
        let unused = DeviceView { name: "zram1".into(), ..DeviceView::default() };
        let now = snapshot(vec![device("zram0", 3_000_000, 4096, 5 * MIB), unused]);
        let look = Look::new(Some(&before), &now, Some(Pressure { some: 1.5, full: 0.25 }));
        assert_eq!(
            look.text("12:00:00"),
            "12:00:00  memory 512.0 MiB of 1.0 GiB available, swap 10.0 MiB of 256.0 MiB used, pressure some 1.50 % full 0.25 %\n\
             stored 9.0 MiB in 3.0 MiB, saved 6.0 MiB\n\
             NAME   ALGORITHM   STORED   MEMORY  RATIO    SAVED   HEADROOM  SWAP USED     IN/S    OUT/S  HUGE\n\
             zram0  zstd       9.0 MiB  3.0 MiB   3.00  6.0 MiB  240.0 MiB   10.0 MiB  2.0 KiB  2.0 MiB  13 %\n\
             zram1  -                -        -      -        -          -          -        -        -     -\n"
        );
    }

    #[test]
    fn without_an_earlier_look_there_are_no_rates() {
        let now = snapshot(vec![device("zram0", 3_000_000, 4096, MIB)]);
        let later = snapshot(vec![device("zram0", 4_000_000, 0, 0)]);
        for (before, now) in [(None, &now), (Some(&now), &later), (Some(&now), &now)] {
            let look = Look::new(before, now, None);
            let rates: Vec<&str> = look.rows[0][8..10].iter().map(String::as_str).collect();
            let expected: &[&str] = &["-", "-"];
            assert_eq!(rates, expected);
            assert_eq!(look.head.len(), 1);
        }
        assert!(Look::new(None, &snapshot(Vec::new()), None).text("").ends_with("no zram device\n"));
    }

    #[test]
    fn a_narrow_terminal_shows_the_first_columns() {
        let look = Look::new(None, &snapshot(vec![device("zram0", 1, 0, 0)]), None);
        assert_eq!(look.widths(200).len(), COLUMNS.len());
        assert_eq!(look.widths(17), [5, 9]);
        assert_eq!(look.widths(0), [5]);
    }
}
