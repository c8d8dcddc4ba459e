"""Debian packages needed for building and booting, and how to detect each."""

import os
import shutil
from pathlib import Path

from . import LabError
from .kernel import STOCK
from .qemu import COMMAND

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
    "patch": "patch",
    "xz-utils": "xz",
}
_PACKAGES_FOR_STOCK = {"qemu-system-x86": COMMAND}
# Without root, the root file system is built in a user namespace.
_PACKAGES_UNLESS_ROOT = {"uidmap": "newuidmap"}
_SBIN = "/usr/local/sbin:/usr/sbin:/sbin"


def packages() -> list[str]:
    """All packages that any kernel needs."""
    return sorted(_needed([STOCK]))


def check(variants: list[str]) -> None:
    """Raises one error that names all missing packages for these kernels."""
    missing = [package for package, probe in sorted(_needed(variants).items()) if not _present(probe)]
    if missing:
        raise LabError(f"packages are missing; install them with: apt-get install {' '.join(missing)}")


def _needed(variants: list[str]) -> dict[str, str]:
    return _PACKAGES | (_PACKAGES_FOR_STOCK if STOCK in variants else {}) | (_PACKAGES_UNLESS_ROOT if os.geteuid() else {})


def _present(probe: str) -> bool:
    if probe.startswith("/"):
        return Path(probe).exists()
    return shutil.which(probe, path=f"{os.environ.get('PATH', '')}:{_SBIN}") is not None
