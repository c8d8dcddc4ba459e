"""Debian packages needed for building and booting, and how to detect each."""

import os
import shutil
from pathlib import Path

from . import LabError

# package: a command in it, or a file
_PACKAGES = {
    "bc": "bc",
    "bison": "bison",
    "cpio": "cpio",
    "debian-archive-keyring": "/usr/share/keyrings/debian-archive-keyring.gpg",
    "e2fsprogs": "mke2fs",
    "flex": "flex",
    "gcc": "gcc",
    "kmod": "depmod",
    "libc6-dev": "/usr/include/stdio.h",
    "libelf-dev": "/usr/include/libelf.h",
    "make": "make",
    "mmdebstrap": "mmdebstrap",
    "xz-utils": "xz",
}
# Without root, the root file system is built in a user namespace.
_PACKAGES_UNLESS_ROOT = {"uidmap": "newuidmap"}
_SBIN = "/usr/local/sbin:/usr/sbin:/sbin"


def packages() -> list[str]:
    """All required packages."""
    return sorted(_needed())


def check() -> None:
    """Raises one error that names all missing packages."""
    missing = [package for package, probe in sorted(_needed().items()) if not _present(probe)]
    if missing:
        raise LabError(f"packages are missing; install them with: apt-get install {' '.join(missing)}")


def _needed() -> dict[str, str]:
    return _PACKAGES if os.geteuid() == 0 else _PACKAGES | _PACKAGES_UNLESS_ROOT


def _present(probe: str) -> bool:
    if probe.startswith("/"):
        return Path(probe).exists()
    return shutil.which(probe, path=f"{os.environ.get('PATH', '')}:{_SBIN}") is not None
