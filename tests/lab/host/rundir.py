"""The directory of one running guest, in memory if there is space: disks, shared directory, RAM of the guest."""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from . import LAB, command
from .kernel import Kernel
from .scenario import Scenario

_PREFIX = "zramd-lab-"
_ROOM_FOR_FILES = 256 << 20  # bytes: more than a guest writes to its disks


@contextmanager
def run_directory(scenario: Scenario, kernel: Kernel, image: Path, tree: Path | None) -> Iterator[Path]:
    """A directory with everything that a guest of this scenario needs; removed afterwards."""
    disk = image.stat().st_blocks * 512 if kernel.initrd else 0
    place = _place(scenario.memory + scenario.disk2 + disk + _ROOM_FOR_FILES)
    with _alone(place):
        _sweep(place)
        run = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=place))
        alive = open(run / "alive", "w")
        fcntl.flock(alive, fcntl.LOCK_EX)
    try:
        with alive:
            _fill(run, scenario, kernel, image, tree)
            yield run
    finally:
        shutil.rmtree(run)


@contextmanager
def _alone(place: Path) -> Iterator[None]:
    """Locks a new directory; before that, it cannot be told from one of a killed run."""
    directory = os.open(place, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(directory, fcntl.LOCK_EX)
        yield
    finally:
        os.close(directory)


def _place(room: int) -> Path:
    memory = Path("/dev/shm")
    if memory.is_dir() and os.access(memory, os.W_OK):
        state = os.statvfs(memory)
        if state.f_bavail * state.f_frsize >= room and not state.f_flag & os.ST_NOEXEC:
            return memory
    return Path(tempfile.gettempdir())


def _sweep(place: Path) -> None:
    """Removes directories of killed runs, which are not locked."""
    for run in place.glob(f"{_PREFIX}*"):
        try:
            with open(run / "alive") as alive:
                fcntl.flock(alive, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(run)
        except OSError:
            continue  # in use, or another program's


def _fill(run: Path, scenario: Scenario, kernel: Kernel, image: Path, tree: Path | None) -> None:
    if kernel.initrd:
        command.run("copy the disk", "cp", "--sparse=always", image, run / "disk")
    else:
        (run / "disk.base").symlink_to(image)
    if scenario.disk2:
        with open(run / "disk2", "wb") as disk:
            disk.truncate(scenario.disk2)
    share = run / "share"
    for directory in ("state", "out"):
        (share / directory).mkdir(parents=True)
    shutil.copytree(LAB / "guest", share / "guest")
    shutil.copytree(kernel.modules, share / "modules", symlinks=True)
    shutil.copy(scenario.path, share / "scenario")
    if tree:
        shutil.copytree(tree, share / "tree", symlinks=True)
