"""The experiments of the public tables on this machine, with what its kernel has: see tests/bench/published.

Results are lines of tests/long/results/published.tsv: commit, machine, kernel, load, experiment, arm, figure, run, value."""

import contextlib
import fcntl
import hashlib
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent.parent
RESULTS = REPOSITORY / "tests/long/results/published.tsv"
HEADING = "commit\tmachine\tkernel\tload\texperiment\tarm\tfigure\trun\tvalue"
LOCK = Path("/tmp/zramd-tests.lock")
ZSWAP = Path("/sys/module/zswap/parameters")
MIB = 1 << 20
ROUNDS = 3
CLUSTERS = range(4)
# The program that F compiles: that of Debian 12's package ninja-build.
PROGRAM = "http://deb.debian.org/debian/pool/main/n/ninja-build/ninja-build_1.11.1.orig.tar.gz"
PROGRAM_SHA256 = "31747ae633213f1eda3842686f83c2aa1412e0f5691d1c14dbbcc67fe7400cea"
# With 256 MiB, a compiler was killed.
COMPILERS, LIMIT = 6, 320 * MIB
SWAP = 2048 * MIB
SIZES = (64, 256, 1024)  # MiB: growing, because the first write of a large tmpfs shows how memory is found


def run(*words, **more):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, **more)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, words))}: {done.returncode}\n{done.stdout}{done.stderr}")
    return done


def patiently(remove, what):
    """Tries it for ten seconds, as long as that is busy."""
    for _ in range(100):
        with contextlib.suppress(OSError):
            return remove()
        time.sleep(0.1)
    raise RuntimeError(f"{what} stays busy")


class Results:
    """Lines of the table, written after each experiment."""

    def __init__(self):
        commit = run("git", "-C", REPOSITORY, "rev-parse", "--short=8", "HEAD").stdout.strip()
        processor = next((line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")), "unknown")
        self.machine = f"{processor}, {os.cpu_count()} CPUs, {os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE') >> 30} GiB"
        self.head = f"{commit}\t{self.machine}\t{os.uname().release}"
        self.lines = []

    def add(self, experiment, arm, run_number, **figures):
        load = f"{os.getloadavg()[0]:.0f}"
        for figure, value in figures.items():
            value = f"{value:.4g}" if isinstance(value, float) else value
            self.lines.append(f"{self.head}\t{load}\t{experiment}\t{arm}\t{figure}\t{run_number}\t{value}")
            print(f"{experiment}\t{arm}\t{figure}\t{value}", flush=True)

    def write(self, experiment):
        """Replaces the lines of this experiment."""
        old = RESULTS.read_text().splitlines()[1:] if RESULTS.exists() else []
        kept = [line for line in old if line.split("\t")[4] != experiment]
        mine = [line for line in self.lines if line.split("\t")[4] == experiment]
        RESULTS.write_text("\n".join([HEADING, *kept, *mine]) + "\n")


class Zram:
    """A device of its own for one measurement."""

    def __init__(self, algorithm, size):
        self.number = Path("/sys/class/zram-control/hot_add").read_text().strip()
        self.node, self.sys = f"/dev/zram{self.number}", Path(f"/sys/block/zram{self.number}")
        (self.sys / "comp_algorithm").write_text(algorithm)
        (self.sys / "disksize").write_text(str(size))

    def memory(self):
        fields = [int(field) for field in (self.sys / "mm_stat").read_text().split()]
        return {"original": fields[0], "compressed": fields[1], "total": fields[2]}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        def remove():
            (self.sys / "reset").write_text("1")
            Path("/sys/class/zram-control/hot_remove").write_text(self.number)

        # udev may have it open for a moment.
        patiently(remove, self.node)


def algorithms():
    with Zram("lzo-rle", 4 * MIB) as device:
        offered = (device.sys / "comp_algorithm").read_text().replace("[", "").replace("]", "").split()
    # Others of a kernel without their own limits are not measured here.
    return [name for name in ("lzo", "lzo-rle", "lz4", "lz4hc", "zstd", "deflate", "842") if name in offered]


def dd(*words):
    """MB per second of dd's processor time, in which zram compresses: other programs hardly change it. And per second of the clock."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    said = run("dd", "bs=1M", *words, env={"LC_ALL": "C", "PATH": os.environ["PATH"]}).stderr.splitlines()[-1]
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    megabytes = int(said.split()[0]) / 1e6
    return megabytes / processor, megabytes / float(said.split(" s, ")[0].split()[-1])


def part_a(results, data, scratch, _):
    """dd on the device, in requests of 1 MiB with direct I/O."""
    size = data.stat().st_size

    def add(arm, number, write, read, **more):
        results.add("A", arm, number, write=write[0], read=read[0], write_by_clock=write[1], read_by_clock=read[1], **more)

    for number in range(1, ROUNDS + 1):
        for name in algorithms():
            with Zram(name, size) as device:
                write = dd(f"if={data}", f"of={device.node}", "oflag=direct")
                read = dd(f"if={device.node}", "of=/dev/null", "iflag=direct")
                memory = device.memory()
                add(name, number, write, read, ratio=memory["original"] / memory["compressed"])
        with Zram("lzo-rle", size) as device:
            write = dd("if=/dev/zero", f"of={device.node}", "oflag=direct", f"count={size // MIB}")
            add("zero-filled", number, write, dd(f"if={device.node}", "of=/dev/null", "iflag=direct"))
        file = scratch / "copy"
        write = dd("if=/dev/zero", f"of={file}", f"count={size // MIB}")
        add("tmpfs", number, write, dd(f"if={file}", "of=/dev/null"))
        file.unlink()


def part_b(results, data, scratch, _):
    """cp of the tree onto ext4 on zram, with a sync."""
    tree = scratch / "tree"
    tree.mkdir()
    run("tar", "-xf", data, "-C", tree)
    for number in range(1, ROUNDS + 1):
        for name in algorithms():
            with Zram(name, data.stat().st_size * 2) as device, tempfile.TemporaryDirectory() as directory:
                run("mkfs.ext4", "-q", "-F", "-O", "^has_journal", "-E", "lazy_itable_init=0", "-N", "60000", device.node)
                run("mount", "-o", "discard", device.node, directory)
                try:
                    began = time.monotonic()
                    run("cp", "-r", tree, directory)
                    run("sync", "-f", directory)
                    seconds = time.monotonic() - began
                    memory = device.memory()
                finally:
                    run("umount", directory)
                results.add("B", name, number, seconds=seconds, data_mb=memory["original"] / 1e6, compressed_mb=memory["compressed"] / 1e6,
                            total_mb=memory["total"] / 1e6, ratio=memory["original"] / memory["total"])
    shutil.rmtree(tree)


def part_c(results, data, _, ctl):
    """`zramdctl bench run --page-cluster 0-3` with all algorithms that are worth measuring."""
    names = ";".join(name for name in algorithms() if name in ("lzo", "lzo-rle", "lz4", "zstd"))
    words = ["bench", "run", "--page-cluster", "0-3", "--algorithm", names, "--data", data, "--seconds", "60", "--json=short"]
    for number in range(1, ROUNDS + 1):
        report = json.loads(run(ctl, *words).stdout)
        for row in report["page_clusters"]:
            results.add("C", f"{row['algorithm']} {row['page_cluster']}", number, **{
                key: value for key, value in row.items() if isinstance(value, (int, float)) and key != "page_cluster"})


def part_d(results, data, _, ctl):
    """`zramdctl bench ramdisk`: tmpfs, zram and a disk, with growing sizes."""
    for size in SIZES:
        report = json.loads(run(ctl, "bench", "ramdisk", "--size", f"{size}MiB", "--data", data, "--json=short", "/var/tmp").stdout)
        for row in report["results"]:
            if row["contents"] == "real" and row["access"] != "cache":
                times = row["random_read"]
                results.add("D", f"{row['medium']} {size} MiB", 1, first_write=row["first_write"]["bytes_per_second"] / 1e6,
                            second_write=row["second_write"]["bytes_per_second"] / 1e6, read=row["read"]["bytes_per_second"] / 1e6,
                            slowest_write_ms=row["first_write"]["slowest_block_ns"] / 1e6, min_us=times["min_ns"] / 1e3,
                            mean_us=times["mean_ns"] / 1e3, max_us=times["max_ns"] / 1e3)


def part_e(results, data, _, ctl):
    """`zramdctl bench swap --disk PATH`: pages out and in, beside zram."""
    for number in range(1, ROUNDS + 1):
        words = ["bench", "swap", "--memory", "128MiB", "--data", data, "--disk", "/var/tmp", "--yes", "--json=short"]
        report = json.loads(run(ctl, *words).stdout)
        for row in report["results"]:
            arm = f"{row['algorithm'] or 'disk'} {row['page_cluster']}"
            results.add("E", arm, number, out=row["swap_out_per_second"], random_in=row["random_in_per_second"],
                        sequential_in=row["sequential_in_per_second"], pages_per_fault=row["pages_per_fault"],
                        fault_mean_us=row["fault"]["mean_ns"] / 1e3, fault_p99_us=row["fault"]["p99_ns"] / 1e3)


class Limit:
    """A control group with this limit of memory; None is none."""

    def __init__(self, limit):
        old = Path("/sys/fs/cgroup/memory")
        self.directory = (old if old.is_dir() else old.parent) / "zramd-published"
        self.directory.mkdir()
        if limit:
            (self.directory / ("memory.limit_in_bytes" if old.is_dir() else "memory.max")).write_text(str(limit))

    def __enter__(self):
        return self.directory / "cgroup.procs"

    def __exit__(self, *_):
        # The last process may still be on its way out.
        patiently(self.directory.rmdir, self.directory)


@contextlib.contextmanager
def swap(node):
    run("mkswap", node)
    run("swapon", node)
    try:
        yield
    finally:
        run("swapoff", node)


@contextlib.contextmanager
def swap_on_zram(algorithm):
    with Zram(algorithm, SWAP) as device, swap(device.node):
        yield


@contextlib.contextmanager
def swap_on_disk(compressor=None):
    """On a file of /var/tmp; with zswap before it if there is a compressor."""
    parameters = {"compressor": compressor, "enabled": "Y"} if compressor else {}
    before = {name: (ZSWAP / name).read_text().strip() for name in parameters}
    with tempfile.NamedTemporaryFile(dir="/var/tmp") as file:
        os.posix_fallocate(file.fileno(), 0, SWAP)
        try:
            for name, value in parameters.items():
                (ZSWAP / name).write_text(value)
            with swap(file.name):
                yield
        finally:
            for name, value in before.items():
                (ZSWAP / name).write_text(value)


def swapped():
    """Pages since boot, out and in, to devices and to zswap."""
    counters = dict(line.split() for line in Path("/proc/vmstat").read_text().splitlines())
    return [sum(int(counters.get(name, 0)) for name in names) for names in (("pswpout", "zswpout"), ("pswpin", "zswpin"))]


def part_f(results, _data, scratch, _ctl):
    """A compile inside a limit of memory, with each kind of swap alone."""
    if len(Path("/proc/swaps").read_text().splitlines()) > 1:
        sys.exit("F compares kinds of swap: switch off the swap that is on")
    run("curl", "--silent", "--show-error", "--fail", "--output", scratch / "program.tar.gz", PROGRAM)
    if hashlib.sha256((scratch / "program.tar.gz").read_bytes()).hexdigest() != PROGRAM_SHA256:
        sys.exit(f"{PROGRAM} is not what was measured before")
    run("tar", "-xzf", scratch / "program.tar.gz", "-C", scratch, "--strip-components=1")
    sources = [path.name for path in (scratch / "src").glob("*.cc") if not path.stem.endswith(("win32", "test", "browse"))]
    arms = {"no limit": (None, contextlib.nullcontext), **{f"zram, {name}": (LIMIT, lambda name=name: swap_on_zram(name)) for name in algorithms()}}
    if ZSWAP.is_dir():
        arms["zswap before a disk"] = (LIMIT, lambda: swap_on_disk("zstd" if "zstd" in algorithms() else "lzo"))
    arms["disk"] = (LIMIT, swap_on_disk)
    compiler = 'echo $$ >"$0"; exec xargs -P "$1" -I{} g++ -O2 -c -o /dev/null {}'
    for number in range(1, ROUNDS + 1):
        for arm, (limit, kind) in arms.items():
            with kind(), Limit(limit) as group:
                before, began, used = swapped(), time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
                run("sh", "-c", compiler, group, str(COMPILERS), cwd=scratch / "src", input="\n".join(sorted(sources)))
                seconds, now = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
                out, back = (now - before for now, before in zip(swapped(), before))
                processor = now.ru_utime + now.ru_stime - used.ru_utime - used.ru_stime
                results.add("F", arm, number, seconds=seconds, processor_seconds=processor, pages_out=out, pages_in=back)


PARTS = {"A": part_a, "B": part_b, "C": part_c, "D": part_d, "E": part_e, "F": part_f}


def measure(source, ctl, parts):
    if os.geteuid() != 0:
        sys.exit("it needs root: run it with sudo")
    results = Results()
    with LOCK.open("a") as lock, tempfile.TemporaryDirectory(dir="/dev/shm") as directory:
        fcntl.flock(lock, fcntl.LOCK_EX)
        scratch = Path(directory)
        data = scratch / "data.tar"
        shutil.copy(source, data)
        with data.open("r+b") as file:
            file.truncate((data.stat().st_size + MIB - 1) // MIB * MIB)
        for name in parts:
            began = time.monotonic()
            PARTS[name](results, data, scratch, ctl)
            results.write(name)
            print(f"{name}: {time.monotonic() - began:.0f} s", flush=True)


def medians():
    """experiment -> arm -> figure -> median of the runs."""
    found = {}
    for line in RESULTS.read_text().splitlines()[1:]:
        *_, experiment, arm, figure, _, value = line.split("\t")
        found.setdefault(experiment, {}).setdefault(arm, {}).setdefault(figure, []).append(float(value))
    for arms in found.values():
        for figures in arms.values():
            for figure, values in figures.items():
                figures[figure] = sorted(values)[len(values) // 2]
    return found


def tables(say, table, theirs):
    """The figures of the last runs beside the published ones, as Markdown."""
    found = medians()
    if "A" in found:
        say("## A. The device with dd, 1 MiB a request, past the page cache\n")
        rows = []
        for arm, mine in found["A"].items():
            read, write, ratio = theirs["A"].get(arm, (*theirs["A_OTHERS"].get(arm, ("-", "-")), None))
            rows.append([arm, read, f"{mine['read']:.0f}", write, f"{mine['write']:.0f}", ratio or "-", f"{mine['ratio']:.2f}" if "ratio" in mine else "-"])
        table(["", "read MB/s", "ours", "write MB/s", "ours", "ratio", "ours"], rows)
    if "B" in found:
        say("## B. Copying a source tree onto a zram file system\n")
        rows = [[arm, theirs["B"][arm][0], f"{mine['seconds']:.1f}", theirs["B"][arm][1], f"{mine['ratio']:.2f}", f"{mine['data_mb']:.1f}",
                 f"{mine['compressed_mb']:.1f}", f"{mine['total_mb']:.1f}"] for arm, mine in found["B"].items()]
        table(["", "s", "ours", "ratio", "ours", "data MB", "compressed MB", "total MB"], rows)
    if "C" in found:
        say("## C. Page-cluster sweep\n")
        rows = []
        for arm, mine in found["C"].items():
            name, cluster = arm.rsplit(" ", 1)
            _, iops, mean, p99 = theirs["C"][name][int(cluster)]
            rows.append([arm, iops, f"{mine['requests_per_second']:.0f}", mean, f"{mine['mean_ns']:.0f}", p99, f"{mine['p99_ns']:.0f}"])
        table(["", "requests a second", "ours", "mean ns", "ours", "99 % ns", "ours"], rows)
    if "D" in found:
        say("## D. A RAM disk beside a disk, with growing sizes\n")
        rows = [[arm, *(f"{mine[key]:.0f}" for key in ("first_write", "second_write", "read")), f"{mine['slowest_write_ms']:.1f}",
                 *(f"{mine[key]:.1f}" for key in ("min_us", "mean_us", "max_us"))] for arm, mine in found["D"].items()]
        table(["", "first write MB/s", "second", "read", "slowest 1 MiB, ms", "4 KiB min µs", "mean", "max"], rows)
    if "E" in found:
        say("## E. Swap on a disk beside zram\n")
        rows = [[arm, *(f"{mine[key]:.0f}" for key in ("out", "random_in", "sequential_in")),
                 *(f"{mine[key]:.1f}" for key in ("pages_per_fault", "fault_mean_us", "fault_p99_us"))] for arm, mine in found["E"].items()]
        table(["", "pages out a second", "in, random", "in, sequential", "pages a fault", "fault mean µs", "99 %"], rows)
    if "F" in found:
        say("## F. A compile inside a limit of memory\n")
        least = found["F"]["no limit"]["seconds"]
        rows = [[arm, f"{mine['seconds']:.1f}", f"{mine['seconds'] / least:.2f}", f"{mine['processor_seconds']:.1f}", f"{mine['pages_out']:.0f}", f"{mine['pages_in']:.0f}"]
                for arm, mine in found["F"].items()]
        table(["", "s", "× no limit", "processor s", "pages out", "pages in"], rows)
