#!/usr/bin/env python3
"""Replays the recorded writes of a file system up to each moment at which the power may fail, mounts it, and loads the RAM disk.

Usage: recorded.py DIRECTORY TYPE SEED STATES WORKER   as root, in a mount namespace of its own

DIRECTORY has TYPE.image, the file system before the first write, TYPE.log, written by dm-log-writes, and TYPE.reports by
tests/lab/guest/saves. The states are those at each flush and FUA write, and different random ones between two of them, STATES in total.
WORKER is zramd-worker. Prints each fault, and the numbers of points, states and faults at the end. Continues where it was interrupted.
"""

import contextlib
import ctypes
import fcntl
import io
import itertools
import json
import mmap
import os
import random
import runpy
import shutil
import struct
import subprocess
import sys
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

TREE = Path(__file__).resolve().parent.parent / "support/tree.py"
SECTOR = 512
# Flags of an entry in the log: drivers/md/dm-log-writes.c
FLUSH, FUA, DISCARD, MARK = 1, 2, 4, 8
MAGIC = 0x6A736677736872
BLKFLSBUF = 0x1261
# Of metadata, as on most disks: with a block of it torn, ext4 and xfs may not mount, whatever is stored on them.
METADATA_SECTOR = 4096
PLACE = Path("/run/zramd/ramdisk/data")
CONFIGURATION = """[ramdisk.data]
mount-point = "/data"
size = "16MiB"
persist = "snapshot"
store = "/mnt/snapshots"
keep = 3
"""
KEPT_IMAGES = 3  # of file systems with a fault

libc = ctypes.CDLL(None, use_errno=True)


def mount(source, target, kind, data=None):
    if libc.mount(str(source).encode(), str(target).encode(), kind.encode(), 0, data):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def unmount(target):
    if libc.umount2(str(target).encode(), 0):
        raise OSError(ctypes.get_errno(), f"{target}: {os.strerror(ctypes.get_errno())}")


@dataclass
class Entry:
    """A write, flush or mark in the log."""

    at: int  # bytes
    data: memoryview  # zeros for a discard
    flags: int
    mark: int | None  # number of a report


def read_log(path):
    with open(path, "rb") as file:
        log = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    magic, version, count, sector = struct.unpack_from("<QQQI", log)
    if (magic, version, sector) != (MAGIC, 1, SECTOR):
        sys.exit(f"{path} is no log with sectors of {SECTOR} bytes")
    entries, position = [], SECTOR
    for _ in range(count):
        first, sectors, flags, length = struct.unpack_from("<QQQQ", log, position)
        mark = bytes(log[position + 32:position + 32 + length]).split(b"\0")[0] if flags & MARK else b""
        position += SECTOR
        size = sectors * SECTOR
        if flags & DISCARD:
            data = memoryview(bytes(size))
        else:
            data = log[position:position + size]
            position += size
        entries.append(Entry(first * SECTOR, data, flags, int(mark) if mark.isdigit() else None))
    return entries


def sectors(write):
    """What the disk writes whole or not at all."""
    size = METADATA_SECTOR if write.flags else SECTOR
    end = write.at + len(write.data)
    bounds = [write.at, *range(write.at // size * size + size, end, size), end]
    return [(at, write.data[at - write.at:to - write.at]) for at, to in itertools.pairwise(bounds)]


def torn(chance, write):
    """Some sectors of a write: the first ones, or any."""
    if chance.random() < 0.5:
        return sectors(write)[:chance.randint(0, len(sectors(write)))]
    return [sector for sector in sectors(write) if chance.random() < 0.5]


def left_by_power_cut(chance, writes):
    """What a disk may have written when the power fails before it has answered a flush: writes up to a moment, the last one torn; or some of
    them, some torn, in any order."""
    if chance.random() < 0.3:
        done = chance.randrange(len(writes))
        return [sector for write in writes[:done] for sector in sectors(write)] + torn(chance, writes[done])
    pieces = []
    for write in chance.sample(writes, len(writes)):
        fate = chance.choice(("whole", "whole", "torn", "lost"))
        if fate != "lost":
            pieces += sectors(write) if fate == "whole" else torn(chance, write)
    return pieces


def different(chance, writes, count):
    """At most `count` results of a power cut that differ from each other and from those before and after all writes."""
    def effect(pieces):
        return frozenset({at: bytes(data) for at, data in pieces}.items())

    seen = {effect([]), effect([sector for write in writes for sector in sectors(write)])}
    for _ in range(20 * count):
        pieces = left_by_power_cut(chance, writes)
        if len(seen) < count + 2 and effect(pieces) not in seen:
            seen.add(effect(pieces))
            yield pieces


class Image:
    """An image of the file system as it is on the disk, and a copy of it in a loop device, which is mounted."""

    def __init__(self, path, kind):
        self.kind = kind
        # In memory. The file system is mounted above it, since the product refuses a store that is in memory.
        mount("tmpfs", "/mnt", "tmpfs")
        subprocess.run(["cp", "--sparse=always", path, "/mnt/disk"], check=True)
        self.disk = os.open("/mnt/disk", os.O_RDWR)
        self.size = os.fstat(self.disk).st_size
        self.copy = os.open("/mnt/copy", os.O_RDWR | os.O_CREAT)
        os.ftruncate(self.copy, self.size)
        device = subprocess.run(["losetup", "--find", "--show", "/mnt/copy"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
        self.device = device
        self.open = os.open(device, os.O_RDONLY)
        # It disappears with this process, however that ends.
        subprocess.run(["losetup", "--detach", device], check=True)

    def write(self, write):
        os.pwrite(self.disk, write.data, write.at)

    def prepare(self, pieces):
        """Makes the copy the same as the disk, with further writes."""
        os.ftruncate(self.copy, 0)
        os.ftruncate(self.copy, self.size)
        at = 0
        with contextlib.suppress(OSError):  # at the end of all data
            while True:
                at = os.lseek(self.disk, at, os.SEEK_DATA)
                end = os.lseek(self.disk, at, os.SEEK_HOLE)
                while at < end:
                    at += os.copy_file_range(self.disk, self.copy, end - at, at, at)
        for at, data in pieces:
            os.pwrite(self.copy, data, at)
        fcntl.ioctl(self.open, BLKFLSBUF)

    def mount(self):
        mount(self.device, "/mnt", self.kind)

    def keep(self, path):
        with open(path, "wb") as file:
            file.truncate(self.size)
            at = 0
            with contextlib.suppress(OSError):
                while True:
                    at = os.lseek(self.copy, at, os.SEEK_DATA)
                    end = os.lseek(self.copy, at, os.SEEK_HOLE)
                    os.pwrite(file.fileno(), os.pread(self.copy, end - at, at), at)
                    at = end


def digest(directory):
    argv, sys.argv = sys.argv, [str(TREE), str(directory)]
    with contextlib.redirect_stdout(io.StringIO()) as text:
        runpy.run_path(str(TREE))
    sys.argv = argv
    os.chdir("/")
    return sha256(text.getvalue().encode()).hexdigest()


class Fault(Exception):
    """What is wrong after a power cut."""


class Machine:
    """The machine that boots after the power cut."""

    def __init__(self, worker):
        self.worker = worker
        self.good = set()
        mount("tmpfs", "/run", "tmpfs")
        Path("/run/zramd.toml").write_text(CONFIGURATION)

    def run(self, verb, **options):
        options = json.dumps({**options, "config": "/run/zramd.toml"})
        done = subprocess.run([self.worker, verb, "data", options],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode:
            raise Fault(f"{verb} {options}: {done.stdout}")
        return done.stdout

    def verify(self, number):
        """Once for the same bytes."""
        # It may need contents in any of them.
        files = sorted(path for path in Path("/mnt/snapshots").iterdir() if path.name.startswith(("gen-", "rest-")))
        same = (number, *(sha256(path.read_bytes()).digest() for path in files))
        if same not in self.good:
            self.run("verify", snapshot=int(number))
            self.good.add(same)

    def status(self):
        return json.loads(Path("/run/zramd/ramdisks/data.json").read_text())

    def boot(self, image, before, after):
        """Mounts the file system and loads the RAM disk, as its units do. `before` and `after` are the reports around the power cut."""
        try:
            image.mount()
        except OSError as error:
            raise Fault(f"does not mount: {error}") from error
        try:
            PLACE.mkdir(parents=True)
            PLACE.parent.chmod(0o700)
            mount("tmpfs", PLACE, "tmpfs", b"size=16m")
            try:
                self.check(before, after)
            finally:
                unmount(PLACE)
        finally:
            shutil.rmtree("/run/zramd")
            unmount("/mnt")

    def check(self, before, after):
        said = self.run("load")
        status = self.status()
        found = {str(line["generation"]): line["pinned"] for line in status["snapshots"] if line["good"]}
        old, new = before["snapshots"], after["snapshots"]
        for number in old.keys() & new.keys() - found.keys():
            raise Fault(f"snapshot {number} is lost: {said}")
        for number in found.keys() - old.keys() - new.keys():
            # What a save has pruned may be there again: the next save prunes it.
            if before["after"] not in ("save", "stop", "prepare-restore"):
                raise Fault(f"snapshot {number} had been removed: {said}")
        for number in found.keys() & old.keys() & new.keys():
            if found[number] not in (old[number], new[number]):
                raise Fault(f"snapshot {number} has the pin {found[number]!r}, not {old[number]!r}")
        if status["set_aside"] or status["refused"]:
            raise Fault(f"{status['set_aside']} set aside, refused: {status['refused']}")
        newest = max(map(int, found), default=0)
        if status["generation"] != newest:
            raise Fault(f"{status['generation']} was loaded instead of {newest}: {said}")
        if newest:
            number = str(newest)
            wanted = (before if number in old else after)["trees"][number]
            if digest(PLACE) != wanted:
                raise Fault(f"snapshot {number} has other contents")
        for number in found.keys() - {str(newest)}:
            self.verify(number)
        # What the power cut has left does not prevent the next save.
        (PLACE / "new").write_text("")
        self.run("save")
        if self.status()["snapshots"][0]["generation"] <= newest:
            raise Fault("a save after the load made no snapshot")


def moments(entries):
    """For each flush and FUA write its number, the writes since the one before, and the last report before it."""
    writes, report = [], 0
    for number, entry in enumerate(entries):
        if entry.mark is not None:
            report = entry.mark
        if len(entry.data):
            writes.append(entry)
        if entry.flags & (FLUSH | FUA):
            yield number, writes, report
            writes = []


def main():
    directory, kind, seed, wanted, worker = sys.argv[1:]
    directory = Path(directory).resolve()
    points = list(moments(read_log(directory / f"{kind}.log")))
    # Of few sectors there are only few different states.
    possible = [2 ** min(sum(len(sectors(write)) for write in writes), 16) - 2 if writes else 0 for _, writes, _ in points]
    each = next((each for each in range(1 << 16) if sum(min(each, count) for count in possible) >= int(wanted) - len(points)), 1 << 16)
    reports = [json.loads(line) for line in (directory / f"{kind}.reports").read_text().splitlines()]
    machine, image = Machine(worker), Image(directory / f"{kind}.image", kind)
    progress = directory / f"{kind}.progress"
    first, states, faults = json.loads(progress.read_text()) if progress.exists() else (0, 0, 0)

    def state(name, report, pieces):
        nonlocal states, faults
        image.prepare(pieces)
        states += 1
        try:
            machine.boot(image, reports[report], reports[min(report + 1, len(reports) - 1)])
        except Fault as fault:
            faults += 1
            print(f"{kind}, seed {seed}, {name}, after report {report} ({reports[report]['after']}): {fault}", file=sys.stderr, flush=True)
            if faults <= KEPT_IMAGES:
                image.prepare(pieces)
                image.keep(directory / f"{kind}-{name}.fault")

    for (number, writes, report), count in zip(points, possible):
        if number >= first:
            chance = random.Random(f"{kind} {seed} {number}")
            for choice, pieces in enumerate(different(chance, writes, min(each, count))):
                state(f"{number}-{choice}", report, pieces)
        for write in writes:
            image.write(write)
        if number >= first:
            state(f"{number}", report, [])
            progress.write_text(json.dumps((number + 1, states, faults)))
    print(json.dumps({"file system": kind, "flush points": len(points), "states": states, "lost": faults}))


if __name__ == "__main__":
    main()
