"""Finished directories outside the clone, each named by a hash of what went into it."""

import fcntl
import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

UNUSED_FOR = 30 * 24 * 3600  # seconds after which an entry is taken for an old tree's


def root() -> Path:
    """The cache directory, made if need be."""
    chosen = os.environ.get("ZRAMD_LAB_CACHE")
    if not chosen:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        chosen = Path(base) / "zramd-lab"
    path = Path(chosen).absolute()
    path.mkdir(parents=True, exist_ok=True)
    return path


@contextmanager
def lock(name: str) -> Iterator[None]:
    """Holds the cache's lock of this name; a second run waits here."""
    with open(root() / f"{name}.lock", "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def directory(kind: str, inputs: list[str], build: Callable[[Path], None]) -> Path:
    """The directory of this kind for these inputs. If the cache lacks it, `build` fills a new one, which then
    appears under its final name complete or not at all."""
    key = hashlib.sha256("\0".join(inputs).encode()).hexdigest()[:16]
    path = root() / f"{kind}-{key}"
    if not path.is_dir():
        with lock(kind):
            if not path.is_dir():
                _discard_leftovers(kind)
                _build(kind, path, build)
    os.utime(path)
    return path


def _build(kind: str, path: Path, build: Callable[[Path], None]) -> None:
    unfinished = Path(tempfile.mkdtemp(prefix=f".{kind}-", dir=root()))
    try:
        build(unfinished)
        unfinished.chmod(0o755)
        unfinished.rename(path)
    except BaseException:
        # What is still being written by a build that was stopped is the next build's to remove.
        shutil.rmtree(unfinished, ignore_errors=True)
        raise


def _discard_leftovers(kind: str) -> None:
    """Removes what killed builds left behind (nobody else builds: the lock is held) and what no run has used lately."""
    for unfinished in root().glob(f".{kind}-*"):
        shutil.rmtree(unfinished)
    for entry in root().glob(f"{kind}-*"):
        if time.time() - entry.stat().st_mtime > UNUSED_FOR:
            shutil.rmtree(entry)
