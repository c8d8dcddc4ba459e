//! The columns of `list`. Names are those of zramctl(8) where the meaning is the same.

use logic::human::short;
use logic::sample::{DeviceView, DiskView, Snapshot};

/// One line of the list.
#[derive(Debug, Clone, Copy)]
pub enum Row<'a> {
    /// A zram device.
    Device(&'a DeviceView),
    /// A tmpfs.
    Disk(&'a DiskView),
}

impl<'a> Row<'a> {
    /// Devices by number, then disks by name.
    pub fn all(snapshot: &'a Snapshot) -> Vec<Row<'a>> {
        let devices = snapshot.devices.iter().map(Row::Device);
        devices.chain(snapshot.disks.iter().map(Row::Disk)).collect()
    }

    /// Its name, without directories.
    pub fn name(self) -> &'a str {
        match self {
            Row::Device(device) => &device.name,
            Row::Disk(disk) => &disk.name,
        }
    }

    /// Whether zramd set it up.
    pub fn managed(self) -> bool {
        match self {
            Row::Device(device) => device.managed,
            Row::Disk(_) => true,
        }
    }
}

/// Content of a cell.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    /// Nothing to say.
    Empty,
    /// A word.
    Text(String),
    /// An amount.
    Bytes(u64),
    /// A number.
    Number(i64),
    /// A quotient.
    Ratio(f64),
}

impl Cell {
    fn count(count: u64) -> Cell {
        Cell::Number(i64::try_from(count).unwrap_or(i64::MAX))
    }

    fn word(text: &str) -> Cell {
        if text.is_empty() { Cell::Empty } else { Cell::Text(text.to_owned()) }
    }

    /// The printed form; with `exact`, amounts are plain numbers of bytes.
    pub fn text(&self, exact: bool) -> String {
        match self {
            Cell::Empty => "-".to_owned(),
            Cell::Text(text) => text.clone(),
            Cell::Bytes(bytes) if exact => bytes.to_string(),
            Cell::Bytes(bytes) => short(*bytes),
            Cell::Number(number) => number.to_string(),
            Cell::Ratio(ratio) => format!("{ratio:.2}"),
        }
    }
}

/// One column.
#[derive(Debug, Clone, Copy)]
pub struct Column {
    /// Its heading.
    pub name: &'static str,
    /// An alternative name.
    pub alias: Option<&'static str>,
    /// Whether it is shown by default.
    pub default: bool,
    /// Whether it is aligned to the right, as numbers are.
    pub right: bool,
    /// Its description.
    pub meaning: &'static str,
    device: fn(&DeviceView) -> Cell,
    disk: fn(&DiskView) -> Cell,
}

impl Column {
    /// Its cell in a row.
    pub fn cell(&self, row: Row<'_>) -> Cell {
        match row {
            // A device that is not set up has no figures; zeros would be misleading.
            Row::Device(device) if device.disk_size_bytes == 0 && self.right => Cell::Empty,
            Row::Device(device) => (self.device)(device),
            Row::Disk(disk) if !disk.mounted && self.right => Cell::Empty,
            Row::Disk(disk) => (self.disk)(disk),
        }
    }
}

const fn text(
    name: &'static str,
    device: fn(&DeviceView) -> Cell,
    disk: fn(&DiskView) -> Cell,
    meaning: &'static str,
) -> Column {
    Column { name, alias: None, default: false, right: false, meaning, device, disk }
}

const fn number(
    name: &'static str,
    device: fn(&DeviceView) -> Cell,
    disk: fn(&DiskView) -> Cell,
    meaning: &'static str,
) -> Column {
    Column { right: true, ..text(name, device, disk, meaning) }
}

const fn default(column: Column) -> Column {
    Column { default: true, ..column }
}

const fn alias(alias: &'static str, column: Column) -> Column {
    Column { alias: Some(alias), ..column }
}

fn none(_: &DiskView) -> Cell {
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

fn ratio(device: &DeviceView) -> Cell {
    match device.stats.derived.compression_ratio {
        0.0 => Cell::Empty,
        ratio => Cell::Ratio(ratio),
    }
}

fn written_back(device: &DeviceView) -> Cell {
    if device.backing_device.is_empty() { Cell::Empty } else { Cell::Bytes(device.stats.backing.used_bytes) }
}

/// All columns, in the order of `--output-all`.
pub const COLUMNS: &[Column] = &[
    default(text("NAME", |device| Cell::word(&device.name), |disk| Cell::word(&disk.name), "name")),
    text("PATH", |device| Cell::Text(format!("/dev/{}", device.name)), none, "device node"),
    default(text("ALGORITHM", |device| Cell::word(&device.algorithm), none, "compression algorithm")),
    default(number(
        "DISKSIZE",
        |device| Cell::Bytes(device.disk_size_bytes),
        |disk| Cell::Bytes(disk.size_bytes),
        "capacity, uncompressed",
    )),
    default(number(
        "DATA",
        |device| Cell::Bytes(device.stats.memory.orig_data_size),
        |disk| Cell::Bytes(disk.used_bytes),
        "data stored, uncompressed",
    )),
    default(number(
        "COMPR",
        |device| Cell::Bytes(device.stats.memory.compr_data_size),
        none,
        "the same, compressed",
    )),
    default(number(
        "TOTAL",
        |device| Cell::Bytes(device.stats.memory.mem_used_total),
        none,
        "memory used, including allocator overhead",
    )),
    default(number(
        "COMP-RATIO",
        ratio,
        none,
        "DATA without same-filled and written-back pages, divided by TOTAL",
    )),
    default(text(
        "STATE",
        |device| Cell::word(device.state.word()),
        |disk| Cell::word(if disk.mounted { "mounted" } else { "gone" }),
        "active, mounted, ready (set up, not in use), unfinished, unused or gone",
    )),
    default(text("MOUNTPOINT", mount_point, |disk| Cell::word(&disk.mount_point), "where it is used")),
    text(
        "ROLE",
        |device| Cell::word(device.role.word()),
        |disk| Cell::word(&disk.fs_type),
        "swap, filesystem, raw, unused or tmpfs",
    ),
    text("MANAGED", |device| yes_no(device.managed), |_| yes_no(true), "whether zramd set it up"),
    number(
        "PRIORITY",
        |device| device.swap.map_or(Cell::Empty, |swap| Cell::Number(swap.priority.into())),
        none,
        "priority of the swap",
    ),
    number(
        "SWAP-USED",
        |device| device.swap.map_or(Cell::Empty, |swap| Cell::Bytes(swap.used_bytes)),
        none,
        "swap slots in use",
    ),
    number(
        "SAVED",
        |device| Cell::Bytes(device.stats.derived.saved_bytes),
        none,
        "memory that compression saves",
    ),
    number(
        "HEADROOM",
        |device| Cell::Bytes(device.stats.derived.headroom_bytes),
        |disk| Cell::Bytes(disk.free_bytes),
        "remaining capacity, uncompressed",
    ),
    alias(
        "ZERO-PAGES",
        number(
            "SAME",
            |device| Cell::count(device.stats.memory.same_pages),
            none,
            "same-filled pages, which need no memory",
        ),
    ),
    number("HUGE", |device| Cell::count(device.stats.memory.huge_pages), none, "pages that do not compress"),
    number(
        "MEM-LIMIT",
        |device| Cell::Bytes(device.stats.memory.mem_limit),
        none,
        "limit of TOTAL; 0 is none",
    ),
    alias(
        "MEM-USED",
        number("MEM-PEAK", |device| Cell::Bytes(device.stats.memory.mem_used_max), none, "peak of TOTAL"),
    ),
    number(
        "MIGRATED",
        |device| Cell::count(device.stats.memory.pages_compacted),
        none,
        "pages freed by compaction",
    ),
    number(
        "FAILED",
        |device| Cell::count(device.stats.io.failed_reads.saturating_add(device.stats.io.failed_writes)),
        none,
        "reads and writes that failed",
    ),
    number("WB-SIZE", written_back, none, "data on the backing device"),
];

/// A column, with the name by which it was selected.
#[derive(Debug, Clone, Copy)]
pub struct Chosen {
    /// The column.
    pub column: &'static Column,
    /// Its heading.
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
            column.alias.filter(|alias| name.eq_ignore_ascii_case(alias))?
        };
        Some(Chosen { column, heading })
    })
}

/// All columns with their descriptions, for the help.
pub fn help() -> String {
    let mut out = String::from("Columns (those with * are the default):\n");
    for column in COLUMNS {
        let mark = if column.default { '*' } else { ' ' };
        let also = column.alias.map_or_else(String::new, |alias| format!(" (also {alias})"));
        out.push_str(&format!("  {:10} {mark} {}{also}\n", column.name, column.meaning));
    }
    out.truncate(out.trim_end().len());
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headings(output: Option<&str>, all: bool) -> Result<Vec<&'static str>, String> {
        choose(output, all).map(|chosen| chosen.iter().map(|chosen| chosen.heading).collect())
    }

    #[test]
    fn the_default_begins_as_zramctl_does() {
        let expected =
            ["NAME", "ALGORITHM", "DISKSIZE", "DATA", "COMPR", "TOTAL", "COMP-RATIO", "STATE", "MOUNTPOINT"];
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

    #[test]
    fn an_unknown_column_is_returned() {
        assert_eq!(headings(Some("NAME,streams"), false).unwrap_err(), "streams");
        assert_eq!(headings(Some(""), false).unwrap_err(), "");
        assert_eq!(headings(Some("+"), false).unwrap_err(), "");
    }

    #[test]
    fn what_is_not_set_up_has_no_figures() {
        let device = DeviceView { name: "zram3".to_owned(), ..DeviceView::default() };
        let texts: Vec<String> =
            COLUMNS.iter().map(|column| column.cell(Row::Device(&device)).text(false)).collect();
        assert!(COLUMNS.iter().zip(&texts).all(|(column, text)| !column.right || text == "-"), "{texts:?}");
        assert_eq!(&texts[..2], ["zram3", "/dev/zram3"]);
    }
}
