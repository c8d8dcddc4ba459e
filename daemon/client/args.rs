//! The command line of `zramdctl`. Completions and the man page come from this one definition.
// The comments are texts for users, and [maintenance] in them is a section.
#![allow(rustdoc::broken_intra_doc_links)]

use std::ops::RangeInclusive;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use bench::swap::report::LARGEST_CLUSTER;
use bench::weights::Weights;
use import::init::Profile;
use import::peer::Peer;
use logic::device::algorithm::Algorithm;
use logic::log::Level;
use logic::order::Benchmark;

/// Show and control compressed memory.
#[derive(Debug, Default, Parser)]
#[command(
    name = "zramdctl",
    version,
    about = "Show and control compressed memory",
    long_about = "Show and control compressed memory: zram swap, zram file systems and RAM disks.\n\nRead-only commands need neither root nor the daemon. Changes go through zramd.service.",
    after_help = "Without a command, devices and RAM disks are listed; the options of list and names of devices are understood. So are zramctl's options to set up devices: -f -s SIZE [-a ALGORITHM] sets up an unused device, with nothing on it, and prints its name; DEVICE -s SIZE sets up that one; -f alone prints the first that is unused; -r DEVICE... resets devices that are not in use.\n`zramdctl help COMMAND` explains a command.",
    subcommand_value_name = "COMMAND",
    max_term_width = 100
)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// Colours: always, never, or auto (the default): on a terminal unless NO_COLOR is set
    #[arg(long, global = true, value_enum, hide_possible_values = true, hide_default_value = true, default_value_t = Colour::Auto, value_name = "WHEN")]
    pub color: Colour,
    /// Do not show long output in a pager
    #[arg(long, global = true)]
    pub no_pager: bool,
    /// Print neither notices nor what a change has done
    #[arg(short, long, global = true)]
    pub quiet: bool,
    /// Never ask for a password
    #[arg(long, global = true)]
    pub no_ask_password: bool,
    /// Also print log messages up to this level, for example debug or trace; without it, that of SYSTEMD_LOG_LEVEL counts
    #[arg(long, global = true, value_name = "LEVEL")]
    pub log_level: Option<Level>,
    /// Read this file instead of those below /usr/lib, /etc and /run
    #[arg(short, long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

/// The commands, by what they are for.
pub const GROUPS: [(&str, &[&str]); 5] = [
    ("Figures and problems", &["list", "status", "show", "top", "stats", "monitor", "doctor", "report"]),
    (
        "Configuration",
        &[
            "init",
            "import",
            "check",
            "cat-config",
            "plan",
            "reload",
            "set",
            "unset",
            "edit",
            "overrides",
            "off",
        ],
    ),
    ("Devices", &["create", "remove", "resize", "limit", "swap", "compact", "maintain", "adopt"]),
    ("RAM disks", &["ramdisk"]),
    ("Measurements", &["bench"]),
];

/// The commands of a group, in its order.
pub fn of_group<'a>(all: &'a clap::Command, names: &'a [&str]) -> impl Iterator<Item = &'a clap::Command> {
    names.iter().filter_map(|name| all.find_subcommand(name))
}

/// The help, with the commands in groups, which clap has only for options. Made when it is asked for, because it needs all of them.
pub fn help_template() -> String {
    let all = Command::augment_subcommands(clap::Command::new("zramdctl"));
    let mut out = "{about-with-newline}\n{usage-heading} {usage}\n".to_owned();
    for (heading, names) in GROUPS {
        out.push_str(&format!("\n{heading}:\n"));
        for command in of_group(&all, names) {
            let about = command.get_about().map(ToString::to_string).unwrap_or_default();
            out.push_str(&format!("  {:10}  {about}", command.get_name()));
            for alias in command.get_visible_aliases() {
                out.push_str(&format!(" [alias: {alias}]"));
            }
            out.push('\n');
        }
    }
    out + "\nOptions:\n{options}{after-help}"
}

/// When to use colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Colour {
    /// On a terminal.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// Form of JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Json {
    /// With line breaks.
    Pretty,
    /// On one line.
    Short,
    /// No JSON.
    #[default]
    Off,
}

/// Whether the result is JSON.
#[derive(Debug, Clone, Copy, Default, Args)]
pub struct JsonForm {
    /// JSON: pretty (default) or short, on one line
    #[arg(short = 'J', long, value_enum, hide_possible_values = true, hide_default_value = true, num_args = 0..=1, default_value = "off", default_missing_value = "pretty", require_equals = true)]
    pub json: Json,
}

/// Form of `stats`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum StatsFormat {
    /// Prometheus' text format 0.0.4, which the text-file collector of its node exporter reads.
    Prometheus,
    /// OpenMetrics 1.0, with units.
    Openmetrics,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// List devices and RAM disks, one line each
    #[command(visible_alias = "ls")]
    List(List),
    /// Explain figures, choices and problems
    Status {
        /// Only these, for example zram0
        #[arg(value_name = "NAME")]
        names: Vec<String>,
        /// Form of the result
        #[command(flatten)]
        form: JsonForm,
    },
    /// Print properties as Key=Value, for scripts
    Show {
        /// Device or RAM disk; without it, the machine as a whole
        name: Option<String>,
        /// Only these properties
        #[arg(short, long, value_name = "NAME", value_delimiter = ',')]
        property: Vec<String>,
        /// Only the values
        #[arg(long, conflicts_with = "json")]
        value: bool,
        /// Form of the result
        #[command(flatten)]
        form: JsonForm,
    },
    /// Watch figures, rates and memory pressure
    Top {
        /// Seconds between two samples
        #[arg(short, long, default_value_t = 1.0, value_name = "SECONDS")]
        interval: f64,
        /// Print this many samples as text, then exit
        #[arg(short = 'n', long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
        iterations: Option<u64>,
        /// Form of the result
        #[command(flatten)]
        form: JsonForm,
    },
    /// Print all counters once, for monitoring
    Stats {
        /// Only these devices
        #[arg(value_name = "NAME")]
        names: Vec<String>,
        /// prometheus (also for the text-file collector of its node exporter) or openmetrics
        #[arg(long, value_enum, hide_possible_values = true, default_value_t = StatsFormat::Prometheus, conflicts_with = "json")]
        format: StatsFormat,
        /// Answer HTTP requests on the listening socket on standard input, as zramd-metrics.socket passes it
        #[arg(long, conflicts_with_all = ["names", "format", "json"])]
        http: bool,
        /// Form of the result
        #[command(flatten)]
        form: JsonForm,
    },
    /// Print changes as they happen
    ///
    /// It runs until it is interrupted.
    Monitor {
        /// Form of the result; short is one object a line
        #[command(flatten)]
        form: JsonForm,
        /// Also print the counters, at this interval (milliseconds, at least 100)
        #[arg(long, value_name = "MILLISECONDS")]
        stats: Option<u32>,
    },
    /// Look for problems, and print what to do about each
    ///
    /// Also says which program ends processes when memory runs out, which were ended since boot, and what hibernation lacks. Without root,
    /// only members of the group systemd-journal see their names.
    Doctor(JsonForm),
    /// Write a report about this machine that can be sent to others
    ///
    /// It contains versions, kernel options, figures and the results of `doctor`.
    Report {
        /// New file, or - for standard output; zramd-report.json if none is named
        file: Option<PathBuf>,
    },
    /// Look for mistakes in the configuration, or in other files
    ///
    /// Also for settings without effect, and for what this machine refuses.
    Check {
        /// Files to check instead of the configuration
        #[arg(value_name = "FILE")]
        files: Vec<PathBuf>,
        /// Form of the result
        #[command(flatten)]
        form: JsonForm,
    },
    /// Print the configuration with the origin of each key
    ///
    /// JSON also has the defaults, and what each value comes to on this machine.
    CatConfig(JsonForm),
    /// Show what `reload` would change and refuse
    ///
    /// Also shows which sections are not for this machine.
    Plan {
        /// How
        #[command(flatten)]
        change: Force,
        /// Form of the result
        #[command(flatten)]
        form: JsonForm,
    },
    /// Read the configuration again and apply it
    ///
    /// `plan` shows what that changes.
    Reload(Change),
    /// Show what overrides the configuration until the next boot
    Overrides(JsonForm),
    /// Change keys of a device or RAM disk, now and at every boot
    ///
    /// These are sizes, algorithms, the priority and limits; use `edit` for all others.
    Set(Set),
    /// Remove keys that `set` assigned, or overrides
    ///
    /// Without keys, all that the file of `set` has for this device or RAM disk.
    Unset(Unset),
    /// Edit the file that `set` writes, and apply it
    ///
    /// The editor is $VISUAL or $EDITOR. Needs root.
    Edit(Change),
    /// Create a device, until the next boot
    Create(Create),
    /// Remove a device, until the next boot
    Remove {
        /// Devices
        #[arg(required = true, value_name = "NAME")]
        names: Vec<String>,
        /// How
        #[command(flatten)]
        change: Change,
    },
    /// Change the size of a device, until the next boot
    Resize {
        /// Device
        name: String,
        /// Size, for example 4GiB
        size: String,
        /// How
        #[command(flatten)]
        change: Change,
    },
    /// Switch the swap on a device on or off
    Swap {
        /// On or off
        #[command(subcommand)]
        command: Swap,
    },
    /// Limit the memory of a device, until the next boot
    Limit {
        /// Device
        name: String,
        /// Amount, for example 1GiB, or none
        limit: String,
    },
    /// Take over a device in use whose record is lost or damaged
    ///
    /// The device has to be as configured. Records are in /run/zramd.
    Adopt {
        /// Device
        name: String,
    },
    /// Free memory that the allocator holds in half-empty pages
    Compact {
        /// Devices
        #[arg(required = true, value_name = "NAME")]
        names: Vec<String>,
    },
    /// Run [maintenance] now, and print what it did
    Maintain(Maintain),
    /// Measure algorithms, swap and RAM disks on this machine
    Bench {
        /// What to measure
        #[command(subcommand)]
        command: Bench,
    },
    /// Save, verify and restore RAM disks that persist
    #[command(subcommand)]
    Ramdisk(Ramdisk),
    /// Propose a configuration, and write it after a yes
    Init(Init),
    /// Remove everything that zramd set up, and disable it at boot
    ///
    /// It asks first. Configuration and snapshots are kept.
    Off(Off),
    /// Translate the configuration of another program
    Import(Import),
    /// Set up and reset devices as zramctl does
    #[command(
        hide = true,
        override_usage = "zramdctl -f [-s SIZE [-a ALGORITHM]]\n       zramdctl DEVICE -s SIZE [-a ALGORITHM]\n       zramdctl -r DEVICE..."
    )]
    Zramctl(Zramctl),
    /// Print completions for a shell
    #[command(hide = true)]
    Completions {
        /// Which
        shell: clap_complete::Shell,
    },
    /// Print the man page of zramdctl(1)
    #[command(hide = true)]
    Man,
}

/// `init`.
#[derive(Debug, Args)]
pub struct Init {
    /// Kind of machine; by default, board if the root file system is on an SD card or eMMC
    #[arg(short, long, value_enum)]
    pub profile: Option<ProfileName>,
    /// Write without asking
    #[arg(short, long)]
    pub yes: bool,
    /// Then enable and start zramd.service, and measure which algorithm is best
    #[arg(long, conflicts_with = "root")]
    pub now: bool,
    /// Only print the proposal; needs no rights
    #[arg(short = 'n', long, conflicts_with_all = ["yes", "now"])]
    pub dry_run: bool,
    /// Read, and write, below this directory
    #[arg(long, value_name = "DIR")]
    pub root: Option<PathBuf>,
}

/// `off`.
#[derive(Debug, Args)]
pub struct Off {
    /// Do it without asking
    #[arg(short, long)]
    pub yes: bool,
}

/// What a proposal is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ProfileName {
    /// Desktops, laptops, servers and virtual machines
    #[value(alias = "desktop", alias = "server")]
    Standard,
    /// The same, with logs in RAM as a comment
    Board,
}

impl From<ProfileName> for Profile {
    fn from(name: ProfileName) -> Profile {
        match name {
            ProfileName::Standard => Profile::Standard,
            ProfileName::Board => Profile::Board,
        }
    }
}

/// `import`.
#[derive(Debug, Args)]
pub struct Import {
    /// The other program
    #[arg(value_enum)]
    pub peer: PeerName,
    /// Read only this file, wherever it is
    pub file: Option<PathBuf>,
    /// Read, and write, below this directory
    #[arg(long, value_name = "DIR")]
    pub root: Option<PathBuf>,
    /// Write /etc/zramd/zramd.toml, unless it is there already
    #[arg(long)]
    pub write: bool,
    /// Value of a variable for which zram-generator would run a program (its set! lines)
    #[arg(long, value_name = "NAME=VALUE")]
    pub set: Vec<String>,
    /// Run these programs once, by /bin/sh as zram-generator does, and insert their output
    #[arg(long, conflicts_with = "root")]
    pub run_programs: bool,
}

/// A program whose configuration can be imported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PeerName {
    /// systemd's zram-generator
    ZramGenerator,
    /// Debian's zram-tools
    ZramTools,
    /// log2ram
    Log2ram,
    /// What Pop!_OS ships
    PopZram,
    /// What Raspberry Pi OS ships
    RpiSwap,
    /// Each tmpfs in /etc/fstab
    Fstab,
}

impl PeerName {
    /// The program.
    pub fn peer(self) -> Peer {
        match self {
            PeerName::ZramGenerator => Peer::ZramGenerator,
            PeerName::ZramTools => Peer::ZramTools,
            PeerName::Log2ram => Peer::Log2ram,
            PeerName::PopZram => Peer::PopZram,
            PeerName::RpiSwap => Peer::RpiSwap,
            PeerName::Fstab => Peer::Fstab,
        }
    }
}

/// `list`, in zramctl's habits.
#[derive(Debug, Default, Args)]
#[allow(clippy::struct_excessive_bools)] // Each is a switch of its own.
#[command(after_help = super::columns::help())]
pub struct List {
    /// Only names that match, for example 'zram*'
    #[arg(value_name = "PATTERN")]
    pub patterns: Vec<String>,
    /// Also devices that are not set up
    #[arg(long)]
    pub all: bool,
    /// Columns, separated by commas; +COLUMNS adds to those of the default
    #[arg(short, long, value_name = "COLUMNS")]
    pub output: Option<String>,
    /// All columns
    #[arg(long)]
    pub output_all: bool,
    /// Amounts as plain numbers of bytes
    #[arg(short, long)]
    pub bytes: bool,
    /// No heading
    #[arg(short, long, visible_alias = "no-legend")]
    pub noheadings: bool,
    /// One blank between columns, blanks in names as \x20
    #[arg(long)]
    pub raw: bool,
    /// Format of the result
    #[command(flatten)]
    pub form: JsonForm,
}

/// The options with which zramctl sets up and resets devices.
#[derive(Debug, Default, Args)]
pub struct Zramctl {
    /// Devices
    #[arg(required_unless_present = "find")]
    pub devices: Vec<String>,
    /// The first unused device
    #[arg(short, long, conflicts_with = "devices")]
    pub find: bool,
    /// Uncompressed size: a number of bytes, or with a suffix such as 512M
    #[arg(short, long, required_unless_present_any = ["find", "reset"])]
    pub size: Option<String>,
    /// Compression algorithm
    #[arg(short, long, requires = "size")]
    pub algorithm: Option<String>,
    /// Compression streams; without effect since Linux 4.7
    #[arg(short = 't', long, value_name = "NUMBER", requires = "size")]
    pub streams: Option<u32>,
    /// Reset the devices
    #[arg(short, long, conflicts_with_all = ["find", "size"])]
    pub reset: bool,
}

/// Whether contents may be lost.
#[derive(Debug, Clone, Copy, Default, Args)]
pub struct Force {
    /// Discard contents that would be lost
    #[arg(short, long)]
    pub force: bool,
}

/// How a change is asked for.
#[derive(Debug, Clone, Copy, Default, Args)]
pub struct Change {
    /// Discard contents that would be lost
    #[arg(short, long)]
    pub force: bool,
    /// Do not wait for the job to end
    #[arg(long)]
    pub no_block: bool,
}

/// `set`.
#[derive(Debug, Args)]
pub struct Set {
    /// Device or RAM disk, also a new device, or defaults for all devices
    pub name: String,
    /// Keys of its section with their values, for example zram-size=8GiB
    #[arg(required = true, value_name = "KEY=VALUE")]
    pub assignments: Vec<String>,
    /// Only until the next boot
    #[arg(long)]
    pub runtime: bool,
    /// How
    #[command(flatten)]
    pub change: Change,
}

/// `unset`.
#[derive(Debug, Args)]
pub struct Unset {
    /// Device or RAM disk, then the keys that set assigned; with --runtime, devices and RAM disks
    #[arg(required_unless_present = "all", value_name = "NAME")]
    pub names: Vec<String>,
    /// Remove overrides: those of create, remove, resize, limit, swap off, ramdisk resize and set --runtime
    #[arg(long)]
    pub runtime: bool,
    /// All overrides
    #[arg(long, requires = "runtime", conflicts_with = "names")]
    pub all: bool,
    /// How
    #[command(flatten)]
    pub change: Change,
}

/// `maintain`.
#[derive(Debug, Args)]
pub struct Maintain {
    /// Only these devices
    #[arg(value_name = "NAME")]
    pub names: Vec<String>,
    /// Only say what would be done; needs no rights
    #[arg(short = 'n', long)]
    pub dry_run: bool,
    /// Format of the result
    #[command(flatten)]
    pub form: JsonForm,
}

/// `create`: the keys of a section.
#[derive(Debug, Default, Args)]
pub struct Create {
    /// Device, for example zram5; by default, the first unused number
    pub name: Option<String>,
    /// Uncompressed size, for example 4GiB, or an expression as in the configuration
    #[arg(short, long)]
    pub size: Option<String>,
    /// Compression algorithm, for example zstd(level=3)
    #[arg(short, long)]
    pub algorithm: Option<String>,
    /// Swap priority
    #[arg(short, long, allow_negative_numbers = true)]
    pub priority: Option<i32>,
    /// Mount it here instead of using it as swap
    #[arg(short, long, value_name = "PATH")]
    pub mount_point: Option<String>,
    /// Type of file system
    #[arg(short = 't', long)]
    pub fs_type: Option<String>,
    /// Any other key of a [zramN] section
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
}

/// `ramdisk`.
#[derive(Debug, Subcommand)]
pub enum Ramdisk {
    /// List RAM disks with their last save and the next one
    List(JsonForm),
    /// Explain saves: the last one, the next one, and what was left out
    Status {
        /// Only these
        #[arg(value_name = "NAME")]
        names: Vec<String>,
        /// Format of the result
        #[command(flatten)]
        form: JsonForm,
    },
    /// Save RAM disks now
    Save {
        /// RAM disks
        #[arg(required = true, value_name = "NAME")]
        names: Vec<String>,
        /// How
        #[command(flatten)]
        change: NoBlock,
    },
    /// Save a RAM disk, and fill it from an older snapshot
    Restore {
        /// RAM disk
        name: String,
        /// Snapshot; if none is named, the newest before that save
        #[arg(id = "snapshot", value_name = "SNAPSHOT")]
        generation: Option<u64>,
        /// How
        #[command(flatten)]
        change: NoBlock,
    },
    /// Read a snapshot to its end and compare it with its manifest
    Verify {
        /// RAM disk
        name: String,
        /// Snapshot; the newest if none is named
        #[arg(id = "snapshot", value_name = "SNAPSHOT")]
        generation: Option<u64>,
        /// How
        #[command(flatten)]
        change: NoBlock,
    },
    /// List the snapshots of a RAM disk, newest first
    Snapshots {
        /// RAM disk
        name: String,
        /// Format of the result
        #[command(flatten)]
        form: JsonForm,
    },
    /// Keep a snapshot from being pruned
    Pin {
        /// RAM disk
        name: String,
        /// Snapshot
        #[arg(id = "snapshot", value_name = "SNAPSHOT")]
        generation: u64,
        /// Let it be pruned again
        #[arg(long)]
        off: bool,
    },
    /// Delete a snapshot, but never the only good one
    Delete {
        /// RAM disk
        name: String,
        /// Snapshot
        #[arg(id = "snapshot", value_name = "SNAPSHOT")]
        generation: u64,
    },
    /// Copy a snapshot into an empty or new directory, as root
    Export {
        /// RAM disk
        name: String,
        /// Directory
        directory: PathBuf,
        /// Snapshot; the newest if none is named
        #[arg(id = "snapshot", value_name = "SNAPSHOT")]
        generation: Option<u64>,
    },
    /// Change the size of a RAM disk, until the next boot
    Resize {
        /// RAM disk
        name: String,
        /// Size, for example 512MiB
        size: String,
        /// How
        #[command(flatten)]
        change: NoBlock,
    },
}

/// `swap on` and `swap off`.
#[derive(Debug, Subcommand)]
pub enum Swap {
    /// Switch the swap on
    On {
        /// Device
        name: String,
        /// How
        #[command(flatten)]
        change: NoBlock,
    },
    /// Switch the swap off and free its memory
    Off {
        /// Device
        name: String,
        /// How
        #[command(flatten)]
        change: NoBlock,
    },
}

/// Whether to wait.
#[derive(Debug, Clone, Copy, Default, Args)]
pub struct NoBlock {
    /// Do not wait for the job to end
    #[arg(long)]
    pub no_block: bool,
}

/// `bench`.
#[derive(Debug, Subcommand)]
pub enum Bench {
    /// Measure which algorithm is best here, and keep the verdict for "auto"
    Run(BenchRun),
    /// Show the verdict and its figures
    Show(BenchShow),
    /// Forget the verdict
    Forget,
    /// Recreate nearly empty swap whose algorithm is not that of the verdict
    Adopt,
    /// Compare tmpfs, compressed memory and disks as RAM disks
    Ramdisk(BenchRamdisk),
    /// Swap memory out to a private device and in again, and time the page faults
    Swap(BenchSwap),
}

/// `bench run`.
#[derive(Debug, Default, Args)]
pub struct BenchRun {
    /// Only these algorithms, separated by semicolons, for example 'lz4;zstd(level=1)'; the verdict is not kept then
    #[arg(short, long = "algorithm", alias = "algorithms", value_name = "NAME", value_delimiter = ';', value_parser = algorithm)]
    pub algorithms: Vec<Algorithm>,
    /// Compress the pages of this file instead of those that the configuration says; the verdict is not kept then
    #[arg(long, value_name = "FILE", conflicts_with = "generator")]
    pub data: Option<PathBuf>,
    /// All of that file, instead of 32 MiB of it; it needs four times as much memory
    #[arg(long, requires = "data")]
    pub whole: bool,
    /// Compress generated pages alone instead of those that the configuration says; the verdict is kept
    #[arg(long)]
    pub generator: bool,
    /// Read 2^N pages at once with every algorithm, for each N, for example 0-3
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = clusters)]
    pub page_cluster: Vec<RangeInclusive<u8>>,
    /// Profile: latency, balanced or capacity, instead of that of the configuration; the verdict is not kept if they differ
    #[arg(long, value_name = "NAME", value_parser = ["latency", "balanced", "capacity"], hide_possible_values = true)]
    pub profile: Option<String>,
    /// Threads for the throughput, at most four for each CPU; by default one for each
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u16).range(1..))]
    pub threads: Option<u16>,
    /// Time to measure, 0.5 to 600; longer is more exact
    #[arg(long, value_name = "NUMBER", value_parser = seconds)]
    pub seconds: Option<f64>,
    /// Draw a chart into this file (SVG)
    #[arg(long, value_name = "FILE")]
    pub chart: Option<PathBuf>,
    /// Format of the result
    #[command(flatten)]
    pub form: JsonForm,
}

/// `bench show`.
#[derive(Debug, Default, Args)]
pub struct BenchShow {
    /// Add a weighted sum of latency, ratio and throughput, for example latency=0.4,ratio=0.4,throughput=0.2; it has no effect on the verdict
    #[arg(long, value_name = "WEIGHTS", value_parser = Weights::parse, conflicts_with = "json")]
    pub weights: Option<Weights>,
    /// Draw a chart into this file (SVG)
    #[arg(long, value_name = "FILE")]
    pub chart: Option<PathBuf>,
    /// Format of the result
    #[command(flatten)]
    pub form: JsonForm,
}

/// `bench ramdisk`.
#[derive(Debug, Default, Args)]
pub struct BenchRamdisk {
    /// Directories on disks to compare with
    #[arg(value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    /// Amount to write and read in each pass, for example 128MiB
    #[arg(short, long, value_parser = amount)]
    pub size: Option<u64>,
    /// Take the data from this file; otherwise from files below /usr
    #[arg(long, value_name = "FILE")]
    pub data: Option<PathBuf>,
    /// Compression algorithms, separated by semicolons, for example 'lz4;zstd(level=1)'; otherwise what the kernel selects
    #[arg(short, long, value_name = "NAME", value_delimiter = ';', value_parser = algorithm)]
    pub algorithm: Vec<Algorithm>,
    /// Format of the result
    #[command(flatten)]
    pub form: JsonForm,
}

/// `bench swap`.
#[derive(Debug, Default, Args)]
pub struct BenchSwap {
    /// Amount of memory, for example 128MiB
    #[arg(short, long, value_parser = amount)]
    pub memory: Option<u64>,
    /// Take its contents from this file; otherwise from files below /usr
    #[arg(long, value_name = "FILE")]
    pub data: Option<PathBuf>,
    /// Compression algorithms, separated by semicolons, for example 'lz4;zstd(level=1)'; otherwise those that are worth trying
    #[arg(short, long, value_name = "NAME", value_delimiter = ';', value_parser = algorithm)]
    pub algorithm: Vec<Algorithm>,
    /// Values of vm.page-cluster, for example 0-3 or 0,3; otherwise all of them
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = clusters)]
    pub page_cluster: Vec<RangeInclusive<u8>>,
    /// Compare with swap on a file in this directory, which is written to after a yes and removed again
    #[arg(long, value_name = "PATH")]
    pub disk: Option<PathBuf>,
    /// Write to the disk without asking
    #[arg(short, long, requires = "disk")]
    pub yes: bool,
    /// Format of the result
    #[command(flatten)]
    pub form: JsonForm,
}

/// Seconds of a measurement.
fn seconds(word: &str) -> Result<f64, String> {
    match word.parse() {
        Ok(seconds) if Benchmark::SECONDS.contains(&seconds) => Ok(seconds),
        _ => Err(format!("it takes {} to {}", Benchmark::SECONDS.start(), Benchmark::SECONDS.end())),
    }
}

/// One value of vm.page-cluster, or several as `0-3`.
fn clusters(text: &str) -> Result<RangeInclusive<u8>, String> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    match (first.parse(), last.parse()) {
        (Ok(first), Ok(last)) if first <= last && last <= LARGEST_CLUSTER => Ok(first..=last),
        _ => Err(format!("a number from 0 to {LARGEST_CLUSTER}, or two with - in between")),
    }
}

/// An amount of memory, in bytes.
fn amount(text: &str) -> Result<u64, String> {
    super::amount::amount(text).map_err(|failure| failure.message)
}

/// A compression algorithm with its parameters.
fn algorithm(text: &str) -> Result<Algorithm, String> {
    Algorithm::parse(text).map_err(|error| error.message)
}
