"""Debian packages needed for building and booting, and how to detect each."""

import os
import shutil
import subprocess
from pathlib import Path

from . import LabError
from .archive import native
from .machines import PROCESSORS, STOCK, Machine

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
_PACKAGES_FOR_STOCK = {PROCESSORS["amd64"].emulator_package: PROCESSORS["amd64"].emulator}
# Without root, the root file system is built in a user namespace.
_PACKAGES_UNLESS_ROOT = {"uidmap": "newuidmap"}
_SBIN = "/usr/local/sbin:/usr/sbin:/sbin"


def packages() -> list[str]:
    """All packages that any kernel needs."""
    return sorted(_needed([*STOCK]))


def check(variants: list[str]) -> None:
    """Raises one error that names all missing packages for these kernels."""
    missing = [package for package, probe in sorted(_needed(variants).items()) if not _present(probe)]
    if missing:
        raise LabError(f"packages are missing; install them with: apt-get install {' '.join(missing)}")


def check_machines(machines: list[Machine]) -> None:
    """Raises one error that names all that is missing for these emulated machines."""
    needed = dict(_needed([*STOCK]))
    for processor, architecture in {(machine.processor, machine.architecture) for machine in machines}:
        needed[processor.emulator_package] = processor.emulator
        if architecture != native():
            compiler = f"{processor.triplet}-gcc"
            needed |= {f"gcc-{processor.triplet.replace('_', '-')}": compiler, f"libc6-dev-{architecture}-cross": f"/usr/{processor.triplet}/include",
                       "arch-test": "arch-test", "debhelper": "dh", "qemu-user-static": "qemu-aarch64-static"}
    missing = [package for package, probe in sorted(needed.items()) if not _present(probe)]
    if missing:
        raise LabError(f"packages are missing; install them with: apt-get install {' '.join(missing)}")
    foreign = [machine.architecture for machine in machines if not _runs_here(machine.architecture)]
    if foreign:
        raise LabError(f"programs for {', '.join(sorted(set(foreign)))} do not run here: mount binfmt_misc and register qemu-user-static, "
                       "as systemd-binfmt.service does")


def _runs_here(architecture: str) -> bool:
    return architecture == native() or subprocess.run(["arch-test", architecture], stdout=subprocess.DEVNULL, check=False).returncode == 0


def _needed(variants: list[str]) -> dict[str, str]:
    return _PACKAGES | (_PACKAGES_FOR_STOCK if STOCK.keys() & set(variants) else {}) | (_PACKAGES_UNLESS_ROOT if os.geteuid() else {})


def _present(probe: str) -> bool:
    if probe.startswith("/"):
        return Path(probe).exists()
    return shutil.which(probe, path=f"{os.environ.get('PATH', '')}:{_SBIN}") is not None
