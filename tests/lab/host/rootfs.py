"""Root file systems of guests, small Debian systems in an ext4 image."""

import os
import platform
import shutil
from pathlib import Path

from . import LAB, LabError, cache, command
from .archive import Archive
from .machines import Machine

REVISION = "1"  # part of the cache key: raise it when this file builds differently
SUITE = "trixie"
SIZE = "1G"  # of a sparse file; guests write to a copy-on-write layer
PACKAGES = (
    "btrfs-progs", "cryptsetup-bin", "dbus", "e2fsprogs", "fuse3", "kmod", "libpam-systemd", "mount", "pacman-package-manager", "polkitd", "procps", "python3",
    "rpm", "systemd", "systemd-sysv", "udev", "util-linux",
)
# On emulated machines, which have what a user of zramd has.
MACHINE_PACKAGES = ("dbus", "e2fsprogs", "kmod", "libpam-systemd", "mount", "procps", "python3", "systemd", "systemd-sysv", "udev", "util-linux")
_MERGE = 'for part in bin sbin lib lib64; do mkdir -p "$1/usr/$part"; ln -s "usr/$part" "$1/$part"; done'
_POLKIT = {"bullseye": "policykit-1"}
_SELINUX = ("policycoreutils", "selinux-policy-default")
# For the directory shared with the host, of which the policy knows nothing, and for mounts on directories of any program.
_POLICY = (
    'cd /tmp; echo "(genfscon 9p / (system_u object_r nfs_t ((s0) (s0))))" >lab.cil; semodule -N -i lab.cil; rm lab.cil; '
    "setsebool -N -P allow_mount_anyfile on"
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
    """The image of the lab, from the cache or newly built."""
    customise = _customise()
    inputs = [REVISION, SUITE, SIZE, platform.machine(), *PACKAGES, *PEERS, *INITS, customise.read_text()]

    def build(into: Path) -> None:
        print(f"building the root file system from {SUITE}: a minute, once", flush=True)
        archive = Archive(SUITE)
        peers = into / "peers"
        peers.mkdir()
        for peer in PEERS:
            _download_peer(archive, peer, peers)
        for package in INITS:
            archive.download(package, peers)
        _build(into, archive, PACKAGES, '--customize-hook=mkdir "$1/var/cache/lab"', f"--customize-hook=sync-in '{peers}' /var/cache/lab")
        shutil.rmtree(peers)

    return cache.directory("rootfs", inputs, build) / "root.img"


def machine_image(machine: Machine) -> Path:
    """The image of an emulated machine, from the cache or newly built."""
    packages = (*MACHINE_PACKAGES, _POLKIT.get(machine.suite, "polkitd"), *(_SELINUX if machine.selinux else ()))
    policy = [f"--customize-hook=chroot \"$1\" sh -euc '{_POLICY}'"] if machine.selinux else []
    inputs = [REVISION, machine.suite, SIZE, machine.architecture, *packages, *policy, _customise().read_text()]

    def build(into: Path) -> None:
        print(f"building the root file system from {machine.suite} for {machine.architecture}: minutes, once", flush=True)
        # The installer merges /usr since Debian 10, mmdebstrap since Debian 12.
        merged = ["--setup-hook=" + _MERGE] if machine.suite == "bullseye" else []
        # Lists of unstable are valid for a week, and a mirror may be older.
        options = [f"--architectures={machine.architecture}", '--aptopt=Acquire::Check-Valid-Until "false"', *merged, *policy]
        _build(into, Archive(machine.suite, machine.architecture), packages, *options)

    return cache.directory("machine", inputs, build) / "root.img"


def _customise() -> Path:
    return LAB / "guest" / "image"


def _build(into: Path, archive: Archive, packages: tuple[str, ...], *options: str) -> None:
    tar, root, disk = into / "root.tar", into / "root", into / "root.img"
    command.run(
        "build the root file system", "mmdebstrap", "--variant=minbase", "--mode=auto",
        f"--include={','.join(packages)}", '--aptopt=Apt::Install-Recommends "false"',
        *(f"--dpkgopt=path-exclude={pattern}" for pattern in _UNREAD),
        "--skip=cleanup/reproducible", *options,
        f"--customize-hook='{_customise()}' \"$1\"",
        archive.suite, tar, archive.sources,
    )
    # Unpacked as root because of file ownership; without root, in a user namespace.
    command.run(
        "write the root file system's image", *_as_root(), "sh", "-euc",
        'mkdir "$2"; tar -C "$2" --exclude="./dev/*" -xf "$1"; truncate -s "$4" "$3"; '
        'PATH="$PATH:/usr/sbin:/sbin" mke2fs -q -t ext4 -d "$2" "$3"; rm -r "$1" "$2"',
        "sh", tar, root, disk, SIZE,
    )


def _download_peer(archive: Archive, package: str, into: Path) -> None:
    try:
        archive.download(package, into)
    except LabError as error:
        print(f"{error}\nthe scenarios that need it will be skipped", flush=True)


def _as_root() -> list[str]:
    return [] if os.geteuid() == 0 else ["unshare", "--map-root-user", "--map-auto"]
