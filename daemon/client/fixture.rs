//! A machine with one of everything, for tests of the output.

use std::path::Path;

use super::read::Policies;
use logic::device::derived::{Frame, derive};
use logic::device::stat::{BdStat, BlockStat, IoStat, MmStat};
use logic::finding::{Code, Finding, Level};
use logic::maintain::pressure;
use logic::maintain_report::{Action, Budget, Report, Total, Used};
use logic::proc::Memory;
use logic::ramdisk::Persist;
use logic::sample::{
    DeviceView, MemoryView, MountView, RamdiskView, ReasonView, RoleView, SCHEMA_VERSION, Snapshot,
    StateView, Stats, SwapView,
};
use logic::vm::VmView;
use logic::zswap::{Rejected, ZswapView};

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
/// `MemAvailable` of the machine.
const AVAILABLE: u64 = 3 * GIB;

/// Compares a text with its golden file.
pub fn golden(name: &str, found: &str) {
    golden_file(&format!("tests/golden/client/{name}.txt"), found);
}

/// Compares text with a file of the repository.
pub fn golden_file(name: &str, found: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, found).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    let same = found.lines().zip(expected.lines()).take_while(|(new, old)| new == old).count();
    let [new, old] = [found, &expected].map(|text| text.lines().nth(same).unwrap_or("(end)"));
    assert!(
        found == expected,
        "{name}:{}: not current; UPDATE_GOLDEN=1 writes it anew\n  old: {old}\n  new: {new}",
        same + 1
    );
}

fn stats(memory: MmStat, backing: BdStat, free_bytes: u64) -> Stats {
    let frame = Frame { page_size: 4096, free_bytes, available_bytes: AVAILABLE };
    Stats {
        timestamp_monotonic_usec: 1_234_567_890,
        memory,
        io: IoStat::default(),
        backing,
        block: BlockStat {
            reads: 1000,
            read_bytes: 4_096_000,
            writes: 2000,
            written_bytes: 8_192_000,
            discarded_bytes: 12_288,
        },
        derived: derive(&memory, &backing, frame),
    }
}

/// Active swap, set up by zramd.
pub fn swap() -> DeviceView {
    let memory = MmStat {
        orig_data_size: 1_288_490_188,
        compr_data_size: 300 * MIB,
        mem_used_total: 312 * MIB,
        mem_limit: 0,
        mem_used_max: 400 * MIB,
        same_pages: 5000,
        pages_compacted: 17,
        huge_pages: 12_000,
        huge_pages_since: 13_000,
    };
    DeviceView {
        name: "zram0".to_owned(),
        number: 0,
        device_number: 64768,
        managed: true,
        role: RoleView::Swap,
        state: StateView::Active,
        config_section: "zram0".to_owned(),
        disk_size_bytes: 4 * GIB,
        algorithm: "zstd".to_owned(),
        algorithm_reason: ReasonView::Config,
        algorithm_parameters: [("level".to_owned(), "3".to_owned())].into(),
        available_algorithms: ["lzo-rle", "lzo", "lz4", "zstd"].map(str::to_owned).to_vec(),
        recompression_algorithms: vec![(1, "zstd".to_owned())],
        swap: Some(SwapView { priority: 100, size_bytes: 4 * GIB - 4096, used_bytes: 1300 * MIB }),
        stats: stats(memory, BdStat::default(), 4 * GIB - 1300 * MIB),
        ..DeviceView::default()
    }
}

/// A mounted file system with a memory limit, set up by zramd.
pub fn filesystem() -> DeviceView {
    let memory = MmStat {
        orig_data_size: 104 << 10,
        compr_data_size: 958,
        mem_used_total: 120 << 10,
        mem_limit: 64 * MIB,
        mem_used_max: 120 << 10,
        same_pages: 2,
        ..MmStat::default()
    };
    let mut device = DeviceView {
        name: "zram1".to_owned(),
        number: 1,
        device_number: 64769,
        managed: true,
        role: RoleView::Filesystem,
        state: StateView::Mounted,
        config_section: "zram1".to_owned(),
        disk_size_bytes: 128 * MIB,
        memory_limit_bytes: 64 * MIB,
        algorithm: "lz4".to_owned(),
        algorithm_reason: ReasonView::Auto,
        mount: Some(MountView {
            mount_point: "/var/cache/build dir".to_owned(),
            fs_type: "ext4".to_owned(),
            options: "rw,discard".to_owned(),
            size_bytes: 120 * MIB,
            used_bytes: 2 * MIB,
        }),
        stats: stats(memory, BdStat::default(), 128 * MIB - (104 << 10)),
        ..DeviceView::default()
    };
    device.stats.io.failed_writes = 3;
    device
}

/// Swap set up by another program.
fn foreign() -> DeviceView {
    let memory =
        MmStat { orig_data_size: 4096, compr_data_size: 68, mem_used_total: 20480, ..MmStat::default() };
    DeviceView {
        name: "zram2".to_owned(),
        number: 2,
        device_number: 64770,
        role: RoleView::Swap,
        state: StateView::Active,
        disk_size_bytes: 256 * MIB,
        algorithm: "lzo-rle".to_owned(),
        swap: Some(SwapView { priority: -2, size_bytes: 256 * MIB - 4096, used_bytes: 0 }),
        stats: stats(memory, BdStat::default(), 256 * MIB),
        ..DeviceView::default()
    }
}

/// Inactive swap with a backing device and a fallback algorithm.
pub fn written_back() -> DeviceView {
    let memory = MmStat {
        orig_data_size: 600 * MIB,
        compr_data_size: 90 * MIB,
        mem_used_total: 100 * MIB,
        mem_used_max: 300 * MIB,
        huge_pages: 16_000,
        huge_pages_since: 90_000,
        ..MmStat::default()
    };
    let backing = BdStat { used_bytes: 300 * MIB, read_bytes: 10 * MIB, written_bytes: 320 * MIB };
    DeviceView {
        name: "zram10".to_owned(),
        number: 10,
        device_number: 64778,
        managed: true,
        role: RoleView::Swap,
        state: StateView::Ready,
        config_section: "zram10".to_owned(),
        disk_size_bytes: GIB,
        algorithm: "lz4".to_owned(),
        algorithm_reason: ReasonView::Fallback,
        backing_device: "/dev/vdb".to_owned(),
        writeback_limit_bytes: Some(50 * MIB),
        stats: stats(memory, backing, GIB - 600 * MIB),
        ..DeviceView::default()
    }
}

fn zswap() -> ZswapView {
    let mut view = ZswapView {
        enabled: true,
        managed: true,
        algorithm: "zstd".to_owned(),
        memory_limit_bytes: GIB,
        shrinker: Some(true),
        swap_size_bytes: 8 * GIB,
        swap_used_bytes: 700 * MIB,
        rejected: Some(Rejected { limit: 1, compress_poor: 2345, allocation: 0 }),
        timestamp_monotonic_usec: 1_234_567_890,
        ..ZswapView::default()
    };
    let memory = Memory { zswap_kib: 100 << 10, zswapped_kib: 320 << 10, ..Memory::default() };
    view.count(&memory, "zswpin 25600\nzswpout 128000\nzswpwb 12800\n", 4096);
    view
}

pub fn machine() -> Snapshot {
    let action = Action {
        device: "zram0".to_owned(),
        action: "recompress".to_owned(),
        pages: "idle".to_owned(),
        reason: "idle for 2h 9min at 50 % of memory in use".to_owned(),
        result: "12.0 MiB freed in 1.5 s".to_owned(),
        freed_bytes: 12 << 20,
        ..Action::default()
    };
    let maintenance = Report {
        cause: "timer".to_owned(),
        ended_monotonic_usec: 60_000_000,
        actions: vec![action],
        skipped: vec![("zram0".to_owned(), "write-back".to_owned(), "it has no backing device".to_owned())],
        budget: Some(Budget {
            daily_bytes: 1 << 30,
            left_bytes: 700 << 20,
            day_bytes: 324 << 20,
            total_bytes: 3 << 30,
        }),
        memory: vec![Used { device: "zram0".to_owned(), before_bytes: 324 * MIB, after_bytes: 312 * MIB }],
        ..Report::default()
    };
    Snapshot {
        maintenance,
        pressure: pressure::Level::Moderate,
        pressure_reason: "tasks waited for memory: some 31 %, full 2 % of 2.0 s; compressed swap holds 1.2 GiB in 312.0 MiB of memory and has room for 2.7 GiB".to_owned(),
        schema_version: SCHEMA_VERSION,
        timestamp_monotonic_usec: 1_234_567_890,
        memory: MemoryView {
            total_bytes: 8 * GIB,
            available_bytes: AVAILABLE,
            swap_total_bytes: 4 * GIB + 256 * MIB,
            swap_free_bytes: 3 * GIB,
            swapped_in_bytes: 640 * MIB,
            swapped_out_bytes: 2 * GIB,
            stalled_usec: 4_200_000,
        },
        page_size_bytes: 4096,
        capabilities: ["hot-add", "recompress", "writeback", "idle"].map(str::to_owned).to_vec(),
        devices: vec![
            swap(),
            filesystem(),
            foreign(),
            DeviceView {
                name: "zram3".to_owned(),
                number: 3,
                device_number: 64771,
                algorithm: "lzo-rle".to_owned(),
                ..DeviceView::default()
            },
            written_back(),
        ],
        zswap: Some(zswap()),
        ramdisks: vec![
            RamdiskView {
                name: "logs".to_owned(),
                mount_point: "/var/log".to_owned(),
                fs_type: "tmpfs".to_owned(),
                ..RamdiskView::default()
            },
            RamdiskView {
                name: "scratch".to_owned(),
                mount_point: "/var/cache/scratch".to_owned(),
                fs_type: "tmpfs".to_owned(),
                options: "rw,size=65536k".to_owned(),
                mounted: true,
                size_bytes: 64 * MIB,
                used_bytes: 5 * MIB,
                free_bytes: 59 * MIB,
                free_inodes: 99_000,
                persistence: Persist::None,
                ..RamdiskView::default()
            },
        ],
        vm: [("vm.swappiness", "150", "60"), ("vm.page-cluster", "3", "3")]
            .map(|(name, value, before)| VmView {
                name: name.to_owned(),
                value: value.to_owned(),
                set_to: if value == "3" { "0" } else { value }.to_owned(),
                before: before.to_owned(),
            })
            .to_vec(),
        problems: vec![
            Finding::new(
                Level::Error,
                Code::WritesFailed,
                "zram1",
                "3 writes to zram1 failed for lack of memory",
                "raise or remove zram-resident-limit (now 64.0 MiB)",
            ),
            Finding::new(
                Level::Warning,
                Code::ZswapActive,
                "",
                "zswap is on: it compresses pages before they reach any swap device, so zram stays nearly empty",
                logic::vm::ZSWAP_REMEDY,
            ),
        ],
        is_outranked: false,
    }
}

/// The totals of the maintenance policies of the machine.
pub fn policies() -> Policies {
    let recompress = Total {
        runs: 4,
        freed_bytes: 37 * MIB,
        took_usec: 5_250_000,
        last_monotonic_usec: 60_000_000,
        last_result: "done".to_owned(),
        ..Total::default()
    };
    let write_back =
        Total { last_monotonic_usec: 60_000_000, last_result: "skipped".to_owned(), ..Total::default() };
    [("recompress".to_owned(), recompress), ("write-back".to_owned(), write_back)].into()
}
