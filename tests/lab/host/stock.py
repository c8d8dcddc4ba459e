"""Debian's own kernel with what QEMU needs to boot it: the modules of guests, and an initramfs that mounts the disk and the shared directory."""

import gzip
import lzma
import re
import shutil
from pathlib import Path

from . import LAB, cache, command
from .archive import Archive

REVISION = "1"  # part of the cache key: raise it when this file builds differently
SUITE = "trixie"
PACKAGE = "linux-image-amd64"
INIT = LAB / "kernel" / "stock-init"
# In the initramfs, in addition to what is built in.
_EARLY = ("virtio_pci", "virtio_blk", "crc32c_generic", "ext4", "9pnet_virtio", "9p")
# For the guest.
_LATER = ("zram", "lz4", "lz4hc", "zstd", "deflate", "lzo", "lzo_rle", "842", "loop", "fuse", "overlay", "dm_mod", "dm_crypt", "xts", "autofs4", "binfmt_misc", "configfs", "virtio_rng",
          "xfs", "btrfs")


def build() -> Path:
    """A directory with `linux`, `initrd` and `lib/modules`, from the cache or newly built."""
    archive = Archive(SUITE)
    package = re.search(r"linux-image-[\w.+-]+", archive.show(PACKAGE)["Depends"])[0]
    version = archive.show(package)["Version"]
    inputs = [REVISION, package, version, *_EARLY, *_LATER, INIT.read_text()]

    def fill(into: Path) -> None:
        print(f"preparing {package} {version}: a minute, once", flush=True)
        _fill(archive, package, into)

    return cache.directory("stock", inputs, fill)


def _fill(archive: Archive, package: str, into: Path) -> None:
    work = into / "work"
    work.mkdir()
    for name in (package, "busybox-static"):
        command.run(f"unpack {name}", "dpkg-deb", "-x", archive.download(name, work), work / name)
    modules = next((work / package / "usr/lib/modules").iterdir())
    shutil.copy2(next((work / package / "boot").glob("vmlinuz-*")), into / "linux")
    (work / package / "lib").symlink_to("usr/lib")
    command.run("list the modules", "depmod", "-b", work / package, modules.name)
    _initramfs(modules, work / "busybox-static" / "usr/bin/busybox", work / "initramfs", into / "initrd")
    own = into / "lib/modules" / modules.name
    for path in _with_dependencies(modules, _EARLY + _LATER):
        (own / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(modules / path, own / path)
    for path in modules.glob("modules.builtin*"):
        shutil.copy2(path, own)
    shutil.copy2(modules / "modules.order", own)
    command.run("list the modules of guests", "depmod", "-b", into, modules.name)
    shutil.rmtree(work)


def _with_dependencies(modules: Path, names: tuple[str, ...]) -> list[str]:
    """Paths of the modules with these names, each after those that it needs. A name of what is built in has none."""
    needs = {}
    for line in (modules / "modules.dep").read_text().splitlines():
        path, _, others = line.partition(":")
        needs[path] = others.split()
    by_name = {Path(path).name.split(".")[0].replace("-", "_"): path for path in needs}
    ordered: list[str] = []
    for name in names:
        if path := by_name.get(name):
            ordered += [each for each in [*reversed(needs[path]), path] if each not in ordered]
    return ordered


def _initramfs(modules: Path, busybox: Path, root: Path, into: Path) -> None:
    for name in ("bin", "dev", "modules", "root"):
        (root / name).mkdir(parents=True)
    shutil.copy2(busybox, root / "bin")
    shutil.copy2(INIT, root / "init")
    for number, path in enumerate(_with_dependencies(modules, _EARLY)):
        raw = (modules / path).read_bytes()
        name = Path(path).name.removesuffix(".xz")
        (root / "modules" / f"{number:02}-{name}").write_bytes(lzma.decompress(raw) if path.endswith(".xz") else raw)
    archive = into.with_suffix(".cpio")
    command.run("write the initramfs", "sh", "-euc", 'find . | cpio --quiet -o -H newc -R 0:0 >"$1"', "sh", archive, cwd=root)
    into.write_bytes(gzip.compress(archive.read_bytes(), mtime=0))
    archive.unlink()
