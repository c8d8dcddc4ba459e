//! The columns of `list`. Names are those of zramctl(8) where the meaning is the same; the name that the figure has elsewhere
//! ([`Figure::label`]) is understood, too.

use super::cell::Cell;
use logic::figure::{FIGURES, Figure, Unit, Value, named};
use logic::sample::{DeviceView, RamdiskView, Snapshot};
use logic::zswap::{self, ZswapView};

/// One line of the list.
#[derive(Debug, Clone, Copy)]
pub enum Row<'a> {
    /// A zram device.
    Device(&'a DeviceView),
    /// zswap.
    Zswap(&'a ZswapView),
    /// A tmpfs.
    Ramdisk(&'a RamdiskView),
}

impl<'a> Row<'a> {
    /// Devices by number, zswap, then RAM disks by name.
    pub fn all(snapshot: &'a Snapshot) -> Vec<Row<'a>> {
        let devices = snapshot.devices.iter().map(Row::Device);
        devices
            .chain(snapshot.zswap.iter().map(Row::Zswap))
            .chain(snapshot.ramdisks.iter().map(Row::Ramdisk))
            .collect()
    }

    /// The devices and the RAM disks among these rows.
    pub fn split(rows: &[Row<'a>]) -> (Vec<&'a DeviceView>, Vec<&'a RamdiskView>) {
        let (mut devices, mut disks) = (Vec::new(), Vec::new());
        for row in rows {
            match row {
                Row::Device(device) => devices.push(*device),
                Row::Zswap(_) => {}
                Row::Ramdisk(disk) => disks.push(*disk),
            }
        }
        (devices, disks)
    }

    /// Its name, without directories.
    pub fn name(self) -> &'a str {
        match self {
            Row::Device(device) => &device.name,
            Row::Zswap(_) => zswap::NAME,
            Row::Ramdisk(disk) => &disk.name,
        }
    }

    /// zswap, if it is that.
    pub fn zswap(self) -> Option<&'a ZswapView> {
        match self {
            Row::Zswap(zswap) => Some(zswap),
            Row::Device(_) | Row::Ramdisk(_) => None,
        }
    }

    /// Whether zramd set it up.
    pub fn managed(self) -> bool {
        match self {
            Row::Device(device) => device.managed,
            Row::Zswap(zswap) => zswap.managed,
            Row::Ramdisk(_) => true,
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub struct Column {
    /// Its heading.
    pub name: &'static str,
    /// Alternative names.
    pub alias: &'static [&'static str],
    /// Whether it is shown by default.
    pub default: bool,
    /// Whether it is aligned to the right, as numbers are.
    pub right: bool,
    /// Its description, a sentence.
    meaning: &'static str,
    device: Source,
    disk: fn(&RamdiskView) -> Cell,
}

/// The cell of a figure.
fn of_figure(figure: &Figure, device: &DeviceView) -> Cell {
    match (figure.metric.value)(device) {
        None => Cell::Empty,
        Some(Value::Real(ratio)) => Cell::ratio(ratio),
        Some(Value::Count(bytes)) if figure.metric.unit == Unit::Bytes => Cell::Bytes(bytes),
        Some(Value::Count(count)) => Cell::count(count),
    }
}

/// Where the cells of devices come from.
#[derive(Debug, Clone, Copy)]
enum Source {
    Figure(&'static Figure),
    Other(fn(&DeviceView) -> Cell),
}

impl Column {
    /// The name of the figure that it has, if it has one.
    pub fn figure(&self) -> Option<&'static str> {
        FIGURES.iter().find(|figure| figure.metric.help == self.meaning).map(|figure| figure.name)
    }

    /// Its cell in a row.
    pub fn cell(&self, row: Row<'_>) -> Cell {
        match row {
            // A device that is not set up has no figures; zeros would be misleading.
            Row::Device(device) if device.disk_size_bytes == 0 && self.right => Cell::Empty,
            Row::Device(device) => self.of_device(device),
            Row::Zswap(zswap) => match self.name {
                "NAME" => Cell::word(zswap::NAME),
                "MOUNTPOINT" => Cell::word("[SWAP]"),
                "ALGORITHM" | "DISKSIZE" | "DATA" | "TOTAL" | "COMP-RATIO" | "STATE" | "ROLE" | "MANAGED"
                | "SAVED" | "HEADROOM" | "MEM-LIMIT" => self.of_device(&DeviceView::from(zswap)),
                _ => Cell::Empty,
            },
            Row::Ramdisk(disk) if !disk.mounted && self.right => Cell::Empty,
            Row::Ramdisk(disk) => (self.disk)(disk),
        }
    }

    fn of_device(&self, device: &DeviceView) -> Cell {
        match self.device {
            Source::Figure(figure) => of_figure(figure, device),
            Source::Other(cell) => cell(device),
        }
    }

    /// Name and meaning, for the help.
    pub fn entry(&self) -> (String, String) {
        let mark = if self.default { "*" } else { "" };
        let also = match self.alias {
            [] => String::new(),
            names => format!(" (also {})", names.join(", ")),
        };
        (format!("{}{mark}", self.name), format!("{}{also}.", self.meaning.trim_end_matches('.')))
    }
}

const fn text(
    name: &'static str,
    device: fn(&DeviceView) -> Cell,
    disk: fn(&RamdiskView) -> Cell,
    meaning: &'static str,
) -> Column {
    Column { name, alias: &[], default: false, right: false, meaning, device: Source::Other(device), disk }
}

const fn number(
    name: &'static str,
    device: fn(&DeviceView) -> Cell,
    disk: fn(&RamdiskView) -> Cell,
    meaning: &'static str,
) -> Column {
    Column { right: true, ..text(name, device, disk, meaning) }
}

/// A figure of the table, by its name there.
const fn figure(name: &'static str, figure: &str, disk: fn(&RamdiskView) -> Cell) -> Column {
    let figure = named(figure);
    Column {
        name,
        alias: &[],
        default: false,
        right: true,
        meaning: figure.metric.help,
        device: Source::Figure(figure),
        disk,
    }
}

const fn default(column: Column) -> Column {
    Column { default: true, ..column }
}

const fn also(alias: &'static [&'static str], column: Column) -> Column {
    Column { alias, ..column }
}

fn none(_: &RamdiskView) -> Cell {
    Cell::Empty
}

fn yes_no(yes: bool) -> Cell {
    Cell::word(if yes { "yes" } else { "no" })
}

fn mount_point(device: &DeviceView) -> Cell {
    match (&device.swap, &device.mount) {
        (Some(_), _) => Cell::word("[SWAP]"),
        (None, Some(mount)) => Cell::word(&mount.mount_point),
        (None, None) => Cell::Empty,
    }
}

/// All columns, in the order of `--output-all`.
pub const COLUMNS: &[Column] = &[
    default(text(
        "NAME",
        |device| Cell::Text(format!("/dev/{}", device.name)),
        |disk| Cell::word(&disk.name),
        "Device node, or name of the RAM disk.",
    )),
    default(text("ALGORITHM", |device| Cell::word(&device.algorithm), none, "Compression algorithm.")),
    default(number(
        "DISKSIZE",
        |device| Cell::Bytes(device.disk_size_bytes),
        |disk| Cell::Bytes(disk.size_bytes),
        "Capacity, uncompressed.",
    )),
    default(also(&["STORED"], figure("DATA", "OriginalDataBytes", |disk| Cell::Bytes(disk.used_bytes)))),
    default(also(&["COMPRESSED"], figure("COMPR", "CompressedDataBytes", none))),
    default(also(&["MEMORY"], figure("TOTAL", "MemoryUsedBytes", none))),
    default(number(
        "STREAMS",
        |device| device.streams.map_or(Cell::Empty, |count| Cell::Number(count.into())),
        none,
        "Concurrent compressions; empty since Linux 6.15, which has no such limit.",
    )),
    default(text("MOUNTPOINT", mount_point, |disk| Cell::word(&disk.mount_point), "Where it is used.")),
    also(&["RATIO"], figure("COMP-RATIO", "CompressionRatio", none)),
    text(
        "STATE",
        |device| Cell::word(device.state.word()),
        |disk| Cell::word(if disk.mounted { "mounted" } else { "gone" }),
        "State: active, mounted, ready (set up, not in use), unfinished, unused or gone.",
    ),
    text(
        "ROLE",
        |device| Cell::word(device.role.word()),
        |disk| Cell::word(&disk.fs_type),
        "Role: swap, filesystem, raw, unused or tmpfs.",
    ),
    text("MANAGED", |device| yes_no(device.managed), |_| yes_no(true), "Whether zramd set it up."),
    number(
        "PRIORITY",
        |device| device.swap.map_or(Cell::Empty, |swap| Cell::Number(swap.priority.into())),
        none,
        "Priority of the swap.",
    ),
    figure("SWAP-USED", "SwapUsedBytes", none),
    // A loss is negative.
    Column {
        device: Source::Other(|device| Cell::Difference(device.stats.derived.balance())),
        ..figure("SAVED", "SavedBytes", none)
    },
    figure("HEADROOM", "HeadroomBytes", |disk| Cell::Bytes(disk.free_bytes)),
    also(&["ZERO-PAGES"], figure("SAME", "SamePages", none)),
    figure("HUGE", "HugePages", none),
    number(
        "MEM-LIMIT",
        |device| Cell::Bytes(device.stats.memory.mem_limit),
        none,
        "Limit of TOTAL; 0 is none.",
    ),
    also(&["MEM-USED", "MEMORY-PEAK"], figure("MEM-PEAK", "MemoryPeakBytes", none)),
    figure("MIGRATED", "PagesCompacted", none),
    number(
        "FAILED",
        |device| Cell::count(device.stats.io.failed_reads.saturating_add(device.stats.io.failed_writes)),
        none,
        "Reads and writes that failed.",
    ),
    figure("WB-SIZE", "BackingBytes", none),
];

/// A column, with the name by which it was selected.
#[derive(Debug, Clone, Copy)]
pub struct Chosen {
    pub column: &'static Column,
    pub heading: &'static str,
}

impl Chosen {
    const fn plain(column: &'static Column) -> Chosen {
        Chosen { column, heading: column.name }
    }
}

/// The selected columns: those named, the default ones and others after a `+`, or all. The error is the unknown name.
pub fn choose(output: Option<&str>, all: bool) -> Result<Vec<Chosen>, String> {
    let base = COLUMNS.iter().filter(|column| all || column.default).map(Chosen::plain);
    let Some(output) = output else { return Ok(base.collect()) };
    let (mut chosen, names) = match output.strip_prefix('+') {
        Some(names) => (base.collect(), names),
        None => (Vec::new(), output),
    };
    for name in names.split(',').map(str::trim) {
        chosen.push(find(name).ok_or_else(|| name.to_owned())?);
    }
    Ok(chosen)
}

fn find(name: &str) -> Option<Chosen> {
    COLUMNS.iter().find_map(|column| {
        let heading = if name.eq_ignore_ascii_case(column.name) {
            column.name
        } else {
            column.alias.iter().find(|alias| name.eq_ignore_ascii_case(alias))?
        };
        Some(Chosen { column, heading })
    })
}

/// All columns with their descriptions, for the help.
pub fn help() -> String {
    let mut out = String::from("Columns (those with * are the default):\n");
    for (name, meaning) in COLUMNS.iter().map(Column::entry) {
        out.push_str(&format!("  {name:11} {meaning}\n"));
    }
    out.truncate(out.trim_end().len());
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::Amounts;
    use crate::top_rows;

    fn headings(output: Option<&str>, all: bool) -> Result<Vec<&'static str>, String> {
        choose(output, all).map(|chosen| chosen.iter().map(|chosen| chosen.heading).collect())
    }

    #[test]
    fn the_default_is_that_of_zramctl() {
        // util-linux 2.41.
        let expected = ["NAME", "ALGORITHM", "DISKSIZE", "DATA", "COMPR", "TOTAL", "STREAMS", "MOUNTPOINT"];
        assert_eq!(headings(None, false).unwrap(), expected);
        assert_eq!(headings(Some("+Huge"), false).unwrap().last(), Some(&"HUGE"));
        assert_eq!(headings(Some("+name"), false).unwrap().len(), expected.len() + 1);
    }

    #[test]
    fn names_of_zramctl_keep_their_heading() {
        assert_eq!(
            headings(Some("name, zero-pages,MEM-USED"), false).unwrap(),
            ["NAME", "ZERO-PAGES", "MEM-USED"]
        );
        assert_eq!(headings(Some("same"), false).unwrap(), ["SAME"]);
        assert_eq!(headings(None, true).unwrap().len(), COLUMNS.len());
    }

    /// zramctl's names are the exception: `list` has them, and understands the others.
    #[test]
    fn a_figure_has_one_name_everywhere() {
        for figure in FIGURES.iter().filter(|figure| !figure.label.is_empty()) {
            let found = find(&figure.label.replace(' ', "-")).unwrap_or_else(|| panic!("{}", figure.label));
            assert_eq!(found.column.meaning, figure.metric.help, "{}", figure.label);
        }
        let is_label = |name: &str| FIGURES.iter().any(|figure| figure.label.eq_ignore_ascii_case(name));
        for column in &top_rows::COLUMNS[top_rows::FIRST_FIGURE..] {
            assert!(is_label(column.name) || column.name.ends_with("/S"), "{} of top", column.name);
        }
    }

    #[test]
    fn an_unknown_column_is_returned() {
        assert_eq!(headings(Some("NAME,stream"), false).unwrap_err(), "stream");
        assert_eq!(headings(Some(""), false).unwrap_err(), "");
        assert_eq!(headings(Some("+"), false).unwrap_err(), "");
    }

    #[test]
    fn what_is_not_set_up_has_no_figures() {
        let device = DeviceView { name: "zram3".to_owned(), ..DeviceView::default() };
        let texts: Vec<String> =
            COLUMNS.iter().map(|column| column.cell(Row::Device(&device)).text(Amounts::Short)).collect();
        assert!(COLUMNS.iter().zip(&texts).all(|(column, text)| !column.right || text == "-"), "{texts:?}");
        assert_eq!(texts[0], "/dev/zram3");
    }
}
