//! The content of `top`: rows of figures from two snapshots.

use serde_json::{Map, Value};

use super::cell::{Amounts, Cell};
use logic::human::{human, signed};
use logic::psi::Pressure;
use logic::sample::{DeviceView, RamdiskView, Snapshot, StateView};
use logic::table::{self, width};
use logic::zswap::ZswapView;

#[derive(Debug)]
pub struct Column {
    /// Its heading.
    pub name: &'static str,
    /// Its name in JSON.
    json: &'static str,
    /// Order in which columns are left out where there is no room: the highest first.
    rank: u8,
    /// Its meaning, for the help.
    pub meaning: &'static str,
}

const fn column(name: &'static str, json: &'static str, rank: u8, meaning: &'static str) -> Column {
    Column { name, json, rank, meaning }
}

/// The columns in their order.
pub const COLUMNS: [Column; 11] = [
    column("NAME", "name", 0, "device, zswap or RAM disk"),
    column("ALGORITHM", "algorithm", 9, "compression"),
    column("STORED", "stored_bytes", 1, "data, uncompressed"),
    column("MEMORY", "memory_bytes", 2, "memory that it takes"),
    column("RATIO", "ratio", 3, "compression ratio"),
    column("SAVED", "saved_bytes", 4, "memory saved"),
    column("HEADROOM", "headroom_bytes", 8, "data that still fits"),
    column("SWAP USED", "swap_used_bytes", 5, "swap slots in use"),
    column("IN/S", "read_bytes_per_second", 6, "read from it per second"),
    column("OUT/S", "written_bytes_per_second", 7, "written to it per second"),
    column("HUGE", "huge_share", 10, "share that does not compress"),
];
/// Index of the first column with figures, which are aligned to the right.
pub const FIRST_FIGURE: usize = 2;
/// Blanks between columns.
pub const GAP: usize = 2;

/// Cells of one device or RAM disk.
pub type Row = [Cell; COLUMNS.len()];

/// One screen of `top`.
#[derive(Debug, Clone, PartialEq)]
pub struct Look {
    /// Lines about the machine, each as phrases that may be on lines of their own.
    pub head: Vec<Vec<String>>,
    /// Devices by number, then RAM disks by name.
    pub rows: Vec<Row>,
}

impl Look {
    /// The screen for `now`. Rates are relative to `before`; without it there are none.
    pub fn new(before: Option<&Snapshot>, now: &Snapshot, pressure: Option<Pressure>) -> Look {
        let earlier = |name: &str| before.and_then(|before| before.device(name));
        let devices = now.devices.iter().map(|device| row(earlier(&device.name), device));
        let zswap = now.zswap.iter().map(|now| zswap(before.and_then(|before| before.zswap.as_ref()), now));
        let rows = devices.chain(zswap).chain(now.ramdisks.iter().map(disk)).collect();
        Look { head: head(now, pressure), rows }
    }

    /// The screen as plain text.
    pub fn text(&self, clock: &str) -> String {
        let head: Vec<String> = self.head.iter().map(|phrases| phrases.join(", ")).collect();
        let screen = format!("{clock}  {}\n", head.join("\n"));
        if self.rows.is_empty() {
            return screen + NOTHING + "\n";
        }
        let rows: Vec<Vec<String>> = self.rows.iter().map(|row| row.iter().map(text).collect()).collect();
        let figures: Vec<usize> = (FIRST_FIGURE..COLUMNS.len()).collect();
        screen + &table::render(&COLUMNS.each_ref().map(|column| column.name), &figures, &rows)
    }

    /// The rows as JSON objects; null for what has no figure.
    pub fn json(&self) -> Vec<Map<String, Value>> {
        let row = |row: &Row| {
            COLUMNS.iter().zip(row).map(|(column, cell)| (column.json.to_owned(), cell.json())).collect()
        };
        self.rows.iter().map(row).collect()
    }

    /// The lines about the machine for a terminal of this width.
    pub fn head(&self, room: usize) -> Vec<String> {
        let mut lines = Vec::new();
        for phrases in &self.head {
            let mut line = String::new();
            for phrase in phrases {
                if !line.is_empty() && width(&line) + 2 + width(phrase) > room {
                    lines.push(std::mem::take(&mut line));
                }
                if !line.is_empty() {
                    line.push_str(", ");
                }
                line.push_str(phrase);
            }
            lines.push(line);
        }
        lines
    }

    /// The rows in the order of a column; without one, in their own order, which is that of the names.
    pub fn sorted(&self, column: Option<usize>, reversed: bool) -> Vec<&Row> {
        let mut rows: Vec<&Row> = self.rows.iter().collect();
        match column {
            None | Some(0) if reversed => rows.reverse(),
            None | Some(0) => {}
            Some(column) => rows.sort_by(|a, b| a[column].order(&b[column], reversed)),
        }
        rows
    }

    /// The columns that fit into a terminal of this width, with their widths: at least the name, then the one that
    /// determines the order, then the most important ones. A name takes at most half of the width.
    pub fn columns(&self, terminal: usize, sort: Option<usize>) -> Vec<(usize, usize)> {
        let mut ranked: Vec<usize> = (0..COLUMNS.len()).collect();
        ranked.sort_by_key(|column| (*column != 0, Some(*column) != sort, COLUMNS[*column].rank));
        let mut chosen = Vec::new();
        let mut used = 0;
        for column in ranked {
            let cells = self.rows.iter().map(|row| width(&text(&row[column])));
            // One more for the mark of the order.
            let heading = width(COLUMNS[column].name) + 1;
            let widest = cells.max().unwrap_or(0).max(heading);
            let wide = if column == 0 { widest.min((terminal / 2).max(heading)) } else { widest };
            used += wide + if chosen.is_empty() { 0 } else { GAP };
            if !chosen.is_empty() && used > terminal {
                break;
            }
            chosen.push((column, wide));
        }
        // One of both says little without the other.
        let has = |name: &str| chosen.iter().any(|(column, _)| COLUMNS[*column].name == name);
        if has("IN/S") && !has("OUT/S") {
            chosen.retain(|(column, _)| COLUMNS[*column].name != "IN/S" || Some(*column) == sort);
        }
        chosen.sort_unstable();
        chosen
    }
}

/// The text of a cell.
pub fn text(cell: &Cell) -> String {
    cell.text(Amounts::Human)
}

/// What is shown instead of a table.
pub const NOTHING: &str = "no zram device, zswap or RAM disk";

fn head(now: &Snapshot, pressure: Option<Pressure>) -> Vec<Vec<String>> {
    let memory = now.memory;
    let mut first =
        vec![format!("memory {} of {} available", human(memory.available_bytes), human(memory.total_bytes))];
    if memory.swap_total_bytes > 0 {
        let used = memory.swap_total_bytes.saturating_sub(memory.swap_free_bytes);
        first.push(format!("swap {} of {} used", human(used), human(memory.swap_total_bytes)));
    }
    if let Some(Pressure { some, full }) = pressure {
        first.push(format!("pressure some {:.2} % full {:.2} %", some.avg10, full.avg10));
    }
    let zswap = now.zswap.as_ref().map(DeviceView::from);
    let all = || now.devices.iter().chain(&zswap);
    let sum = |amount: fn(&DeviceView) -> u64| -> u64 { all().map(amount).sum() };
    let stored = sum(|device| device.stats.memory.orig_data_size);
    let used = sum(|device| device.stats.memory.mem_used_total);
    let saved = all().map(|device| device.stats.derived.balance()).fold(0, i64::saturating_add);
    let mut head = vec![first];
    if all().count() > 1 {
        head.push(vec![
            format!("stored {} in {}", human(stored), human(used)),
            format!("saved {}", signed(saved, human)),
        ]);
    }
    head
}

fn row(before: Option<&DeviceView>, now: &DeviceView) -> Row {
    let name = Cell::Text(now.name.clone());
    let mut row = [const { Cell::Empty }; COLUMNS.len()];
    if now.state == StateView::Unused {
        row[0] = name;
        return row;
    }
    let (memory, derived) = (&now.stats.memory, &now.stats.derived);
    [
        name,
        Cell::Text(now.algorithm.clone()),
        Cell::Bytes(memory.orig_data_size),
        Cell::Bytes(memory.mem_used_total),
        Cell::ratio(derived.compression_ratio),
        Cell::Difference(derived.balance()),
        Cell::Bytes(derived.headroom_bytes),
        now.swap.map_or(Cell::Empty, |swap| Cell::Bytes(swap.used_bytes)),
        rate(before, now, |device| device.stats.block.read_bytes),
        rate(before, now, |device| device.stats.block.written_bytes),
        Cell::Share(derived.huge_share),
    ]
}

/// zswap, as a device. The kernel does not count what does not compress.
fn zswap(before: Option<&ZswapView>, now: &ZswapView) -> Row {
    let mut row = row(before.map(DeviceView::from).as_ref(), &DeviceView::from(now));
    row[7] = Cell::Bytes(now.swap_used_bytes);
    row[10] = Cell::Empty;
    row
}

/// A RAM disk. The memory of one on zram is that of its device.
fn disk(now: &RamdiskView) -> Row {
    let mut row = [const { Cell::Empty }; COLUMNS.len()];
    row[0] = Cell::Text(now.name.clone());
    if now.mounted {
        row[2] = Cell::Bytes(now.used_bytes);
        if now.device.is_empty() {
            row[3] = Cell::Bytes(now.used_bytes);
        }
        row[6] = Cell::Bytes(now.free_bytes);
    }
    row
}

/// Growth of a counter in bytes per second.
fn rate(before: Option<&DeviceView>, now: &DeviceView, counter: impl Fn(&DeviceView) -> u64) -> Cell {
    let time = |device: &DeviceView| device.stats.timestamp_monotonic_usec;
    let rate = before.and_then(|before| {
        // A counter that shrinks belongs to a device that was recreated.
        let grown = counter(now).checked_sub(counter(before))?;
        let micros = time(now).checked_sub(time(before)).filter(|micros| *micros > 0)?;
        u64::try_from(u128::from(grown) * 1_000_000 / u128::from(micros)).ok()
    });
    rate.map_or(Cell::Empty, Cell::Bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use logic::device::derived::Derived;
    use logic::device::stat::{BlockStat, MmStat};
    use logic::psi::Stall;
    use logic::sample::{MemoryView, Stats, SwapView};

    const MIB: u64 = 1 << 20;

    fn waiting(some: f64, full: f64) -> Pressure {
        let stall = |avg10| Stall { avg10, ..Stall::default() };
        Pressure { some: stall(some), full: stall(full) }
    }

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
            ..MemoryView::default()
        };
        Snapshot { memory, devices, ..Snapshot::default() }
    }

    #[test]
    fn a_screen_is_a_table_below_figures_of_the_machine() {
        let before = snapshot(vec![device("zram0", 1_000_000, 0, MIB)]);
        let unused = DeviceView { name: "zram1".into(), ..DeviceView::default() };
        let now = snapshot(vec![device("zram0", 3_000_000, 4096, 5 * MIB), unused]);
        let look = Look::new(Some(&before), &now, Some(waiting(1.5, 0.25)));
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
            assert_eq!(look.rows[0][8..10], [Cell::Empty, Cell::Empty]);
            assert_eq!(look.head.len(), 1);
        }
        assert!(Look::new(None, &snapshot(Vec::new()), None).text("").ends_with(&format!("{NOTHING}\n")));
    }

    #[test]
    fn a_narrow_terminal_shows_the_most_important_columns() {
        let look = Look::new(None, &snapshot(vec![device("zram0", 1, 0, 0)]), None);
        let names = |width| -> Vec<&str> {
            look.columns(width, None).iter().map(|(column, _)| COLUMNS[*column].name).collect()
        };
        assert_eq!(names(200).len(), COLUMNS.len());
        let of_80 = ["NAME", "STORED", "MEMORY", "RATIO", "SAVED", "HEADROOM", "SWAP USED", "IN/S", "OUT/S"];
        assert_eq!(names(80), of_80);
        for width in 0..200 {
            let shown = names(width);
            assert_eq!(shown.contains(&"IN/S"), shown.contains(&"OUT/S"), "{width}: {shown:?}");
        }
        assert_eq!(names(40), ["NAME", "STORED", "MEMORY", "RATIO", "SAVED"]);
        assert_eq!(names(0), ["NAME"]);
        let sorted = look.columns(40, Some(10));
        assert_eq!(
            COLUMNS[sorted.last().unwrap().0].name,
            "HUGE",
            "the one that determines the order is shown"
        );
    }

    #[test]
    fn phrases_about_the_machine_are_wrapped() {
        let look = Look::new(None, &snapshot(Vec::new()), Some(waiting(1.5, 0.25)));
        let wrapped = look.head(40);
        assert_eq!(wrapped[0], "memory 512.0 MiB of 1.0 GiB available");
        assert_eq!(wrapped.len(), 3);
        assert_eq!(look.head(200).len(), 1);
        assert_eq!(look.head(0).len(), 3);
    }

    #[test]
    fn figures_are_sorted_as_numbers_and_what_is_missing_comes_last() {
        let sized = |name: &str, bytes| {
            let mut device = device(name, 1, 0, 0);
            device.stats.memory.orig_data_size = bytes;
            device
        };
        let unused = DeviceView { name: "zram3".into(), ..DeviceView::default() };
        let devices = vec![sized("zram0", 9 << 10), sized("zram1", 10 << 20), sized("zram2", 0), unused];
        let look = Look::new(None, &snapshot(devices), None);
        let names = |column, reversed| -> Vec<String> {
            look.sorted(column, reversed).iter().map(|row| text(&row[0])).collect()
        };
        assert_eq!(names(Some(2), false), ["zram1", "zram0", "zram2", "zram3"]);
        assert_eq!(names(Some(2), true), ["zram2", "zram0", "zram1", "zram3"]);
        assert_eq!(names(Some(0), false), names(None, false));
        assert_eq!(names(Some(0), true), ["zram3", "zram2", "zram1", "zram0"]);
    }

    #[test]
    fn a_disk_takes_what_it_stores_unless_it_is_on_a_device() {
        let tmpfs = RamdiskView {
            name: "logs".into(),
            mounted: true,
            used_bytes: 5 * MIB,
            free_bytes: 59 * MIB,
            ..RamdiskView::default()
        };
        let zram = RamdiskView { name: "www".into(), device: "zram1".into(), ..tmpfs.clone() };
        let absent = RamdiskView { name: "x".into(), ..RamdiskView::default() };
        let now = Snapshot { ramdisks: vec![tmpfs, zram, absent], ..snapshot(Vec::new()) };
        let rows = Look::new(None, &now, None).rows;
        assert_eq!(rows[0][2..4], [Cell::Bytes(5 * MIB), Cell::Bytes(5 * MIB)]);
        assert_eq!(rows[1][2..4], [Cell::Bytes(5 * MIB), Cell::Empty]);
        assert_eq!(rows[2][1..], [const { Cell::Empty }; 10]);
    }

    #[test]
    fn rows_are_also_json() {
        let now = Snapshot { devices: vec![device("zram0", 1, 0, 0)], ..Snapshot::default() };
        let rows = Look::new(None, &now, None).json();
        assert_eq!((rows.len(), rows[0].len()), (1, COLUMNS.len()));
        assert_eq!((&rows[0]["name"], &rows[0]["stored_bytes"]), (&"zram0".into(), &(9 * MIB).into()));
        // There is no rate without an earlier sample.
        assert_eq!(rows[0]["read_bytes_per_second"], Value::Null);
    }
}
