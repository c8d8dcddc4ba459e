"""Debian's own kernels with what QEMU needs to boot them: the modules of guests, and an initramfs that mounts the disk and the shared directory."""

import gzip
import lzma
import re
import shutil
from pathlib import Path

from . import LAB, LabError, cache, command
from .archive import Archive
from .machines import Machine

REVISION = "3"  # part of the cache key: raise it when this file builds differently
INIT = LAB / "kernel" / "stock-init"
# In the initramfs, in addition to what is built in.
_EARLY = ("virtio_pci", "virtio_blk", "virtio_console", "crc32c_generic", "ext4", "9pnet_virtio", "9p")
# For the guest.
_LATER = ("zram", "lz4", "lz4hc", "zstd", "deflate", "lzo", "lzo_rle", "842", "loop", "fuse", "overlay", "dm_mod", "dm_crypt", "xts", "ecb", "aes_generic", "autofs4", "binfmt_misc", "configfs", "virtio_rng",
          "xfs", "btrfs", "dm_log_writes")


def build(machine: Machine) -> Path:
    """A directory with `linux`, `initrd` and `lib/modules`, from the cache or newly built."""
    archive = Archive(machine.kernel_suite or machine.suite, machine.architecture)
    packages = _packages(archive, machine.kernel)
    versions = [f"{package} {archive.show(package)['Version']}" for package in packages]
    inputs = [REVISION, machine.architecture, *versions, *_EARLY, *_LATER, INIT.read_text()]

    def fill(into: Path) -> None:
        print(f"preparing {versions[0]}: a minute, once", flush=True)
        # Not all suites have the shell.
        shell = Archive(machine.suite, machine.architecture)
        _fill([(archive, package) for package in packages] + [(shell, "busybox-static")], into)

    return cache.directory("stock", inputs, fill)


def _packages(archive: Archive, package: str) -> list[str]:
    """The packages with the kernel's files: `linux-image` depends on it without a version in its name, and since Linux 7.2 also with one."""
    depends = archive.show(package).get("Depends", "")
    if parts := re.findall(r"linux-(?:binary|modules)-\d[\w.+-]+", depends):
        return parts
    image = re.search(r"linux-image-\d[\w.+-]+", depends)
    return _packages(archive, image[0]) if image else [package]


def _fill(packages: list[tuple[Archive, str]], into: Path) -> None:
    work = into / "work"
    work.mkdir()
    unpacked = work / "unpacked"
    (unpacked / "usr/lib").mkdir(parents=True)
    (unpacked / "lib").symlink_to("usr/lib")
    for archive, name in packages:
        # Not dpkg-deb -x, which would replace the link above.
        command.run(f"unpack {name}", "sh", "-euc", 'dpkg-deb --fsys-tarfile "$1" | tar -x --keep-directory-symlink -C "$2"', "sh",
                    archive.download(name, work), unpacked)
    # Beside the modules since Linux 7.2.
    kernels = [*unpacked.glob("boot/vmlinu[xz]-*"), *unpacked.glob("usr/lib/modules/*/vmlinu[xz]")]
    if len(kernels) != 1:
        raise LabError(f"{' and '.join(name for _, name in packages)} have {len(kernels)} kernels")
    shutil.copy2(kernels[0], into / "linux")
    modules = next((unpacked / "usr/lib/modules").iterdir())
    command.run("list the modules", "depmod", "-b", unpacked, modules.name)
    busybox = next(path for path in (unpacked / "usr/bin/busybox", unpacked / "bin/busybox") if path.exists())
    _initramfs(modules, busybox, work / "initramfs", into / "initrd")
    own = into / "lib/modules" / modules.name
    for path in _with_dependencies(modules, _EARLY + _LATER):
        (own / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(modules / path, own / path)
    for path in (*modules.glob("modules.builtin*"), *modules.glob("modules.order")):
        shutil.copy2(path, own)
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
    for name in ("bin", "dev", "modules", "proc", "root", "sys"):
        (root / name).mkdir(parents=True)
    shutil.copy2(busybox, root / "bin")
    shutil.copy2(INIT, root / "init")
    for number, path in enumerate(_with_dependencies(modules, _EARLY)):
        raw = (modules / path).read_bytes()
        name = Path(path).name.removesuffix(".xz")
        if not name.endswith(".ko"):
            raise LabError(f"{path} is compressed in a way that the lab does not know")
        (root / "modules" / f"{number:02}-{name}").write_bytes(lzma.decompress(raw) if path.endswith(".xz") else raw)
    archive = into.with_suffix(".cpio")
    command.run("write the initramfs", "sh", "-euc", 'find . | cpio --quiet -o -H newc -R 0:0 >"$1"', "sh", archive, cwd=root)
    into.write_bytes(gzip.compress(archive.read_bytes(), mtime=0))
    archive.unlink()
