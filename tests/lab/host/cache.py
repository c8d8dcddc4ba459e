"""A cache of build results outside of the clone; each is a directory named by a hash of its inputs."""

import fcntl
import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

UNUSED_FOR = 30 * 24 * 3600  # seconds without use after which an entry is removed


def root() -> Path:
    """The cache directory, created if necessary."""
    chosen = os.environ.get("ZRAMD_LAB_CACHE")
    if not chosen:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        chosen = Path(base) / "zramd-lab"
    path = Path(chosen).absolute()
    path.mkdir(parents=True, exist_ok=True)
    return path


@contextmanager
def lock(name: str) -> Iterator[None]:
    """Holds the lock of the cache with this name; concurrent runs wait here."""
    with open(root() / f"{name}.lock", "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def directory(kind: str, inputs: list[str], build: Callable[[Path], None]) -> Path:
    """The cached directory of this kind for these inputs. If it is missing, `build` fills a new one, which gets its final name only
    when it is complete."""
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
        # Files of an interrupted build are removed by the next build.
        shutil.rmtree(unfinished, ignore_errors=True)
        raise


def _discard_leftovers(kind: str) -> None:
    """Removes remains of killed builds (the lock excludes running ones) and entries that were not used lately."""
    for unfinished in root().glob(f".{kind}-*"):
        shutil.rmtree(unfinished)
    for entry in root().glob(f"{kind}-*"):
        if time.time() - entry.stat().st_mtime > UNUSED_FOR:
            shutil.rmtree(entry)
