"""The root file system of guests: a small Debian 13 in an ext4 image."""

import os
import platform
from pathlib import Path

from . import LAB, LabError, cache, command
from .archive import Archive

REVISION = "1"  # part of the cache key: raise it when this file builds differently
SUITE = "trixie"
SIZE = "1G"  # of a sparse file; guests write to a copy-on-write layer
PACKAGES = (
    "cryptsetup-bin", "dbus", "e2fsprogs", "fuse3", "kmod", "libpam-systemd", "mount", "pacman-package-manager", "polkitd", "procps", "python3",
    "rpm", "systemd", "systemd-sysv", "udev", "util-linux",
)
# Not installed: stored in /var/cache/lab for scenarios that compare with them.
PEERS = ("earlyoom", "prometheus", "prometheus-node-exporter", "promtool", "systemd-oomd", "systemd-zram-generator")
# Stored there, too, for scenarios that boot with another init: see guest/inits.sh.
INITS = (
    "getty-run", "initscripts", "insserv", "libeinfo1", "librc1t64", "openrc", "runit", "runit-helper", "runit-init", "startpar",
    "sysuser-helper", "sysv-rc", "sysvinit-core",
)
_UNREAD = ("/usr/share/man/*", "/usr/share/locale/*", "/usr/share/doc/*", "/usr/share/info/*")


def image() -> Path:
    """The image, from the cache or newly built."""
    customise = LAB / "guest" / "image"
    inputs = [REVISION, SUITE, SIZE, platform.machine(), *PACKAGES, *PEERS, *INITS, customise.read_text()]

    def build(into: Path) -> None:
        print(f"building the root file system from {SUITE}: a minute, once", flush=True)
        _build(into, customise)

    return cache.directory("rootfs", inputs, build) / "root.img"


def _build(into: Path, customise: Path) -> None:
    archive = Archive(SUITE)
    tar, root, disk = into / "root.tar", into / "root", into / "root.img"
    peers = into / "peers"
    peers.mkdir()
    for peer in PEERS:
        _download_peer(archive, peer, peers)
    for package in INITS:
        archive.download(package, peers)
    command.run(
        "build the root file system", "mmdebstrap", "--variant=minbase", "--mode=auto",
        f"--include={','.join(PACKAGES)}", '--aptopt=Apt::Install-Recommends "false"',
        *(f"--dpkgopt=path-exclude={pattern}" for pattern in _UNREAD),
        "--skip=cleanup/reproducible", '--customize-hook=mkdir "$1/var/cache/lab"',
        f"--customize-hook=sync-in '{peers}' /var/cache/lab",
        f"--customize-hook='{customise}' \"$1\"",
        SUITE, tar, archive.sources,
    )
    # Unpacked as root because of file ownership; without root, in a user namespace.
    command.run(
        "write the root file system's image", *_as_root(), "sh", "-euc",
        'mkdir "$2"; tar -C "$2" --exclude="./dev/*" -xf "$1"; truncate -s "$4" "$3"; '
        'PATH="$PATH:/usr/sbin:/sbin" mke2fs -q -t ext4 -d "$2" "$3"; rm -r "$1" "$2" "$5"',
        "sh", tar, root, disk, SIZE, peers,
    )


def _download_peer(archive: Archive, package: str, into: Path) -> None:
    try:
        archive.download(package, into)
    except LabError as error:
        print(f"{error}\nthe scenarios that need it will be skipped", flush=True)


def _as_root() -> list[str]:
    return [] if os.geteuid() == 0 else ["unshare", "--map-root-user", "--map-auto"]
