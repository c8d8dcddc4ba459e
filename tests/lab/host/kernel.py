"""Kernels: user-mode Linux, from Debian's own kernel source, and stock kernels."""

import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from . import LAB, LabError, cache, command, stock
from .archive import Archive
from .machines import STOCK, Machine, Processor

REVISION = "1"  # part of the cache key: raise it when this file builds differently


@dataclass(frozen=True)
class Kernel:
    """A kernel ready to boot."""

    name: str
    executable: Path
    modules: Path  # contents of /usr/lib/modules
    smp: bool  # supports several CPUs in the lab
    initrd: Path | None = None  # of a stock kernel
    processor: Processor | None = None  # of the emulated machine that a stock kernel needs


@dataclass(frozen=True)
class Source:
    """A kernel source package and its variants; the first is built in full, the others begin as a copy of it."""

    suite: str
    package: str
    variants: tuple[str, ...]
    patches: tuple[str, ...] = ()  # files beside the configurations


SOURCES = (
    Source("trixie", "linux-source-6.12", ("debian", "plain"), ("killed-fork.patch", "wide-registers.patch")),
    Source("sid", "linux-source", ("newest",)),
)
VARIANTS = [variant for source in SOURCES for variant in source.variants] + [*STOCK]


def kernel(variant: str) -> Kernel:
    """The kernel of this variant, from the cache or newly built."""
    if variant in STOCK:
        return stock_kernel(STOCK[variant])
    source = next(source for source in SOURCES if variant in source.variants)
    archive = Archive(source.suite)
    package, version = _resolve(archive, source.package)
    patches = [LAB / "kernel" / name for name in source.patches]
    inputs = [REVISION, package, version] + [_options(each) for each in source.variants] + [patch.read_text() for patch in patches]

    def build(into: Path) -> None:
        print(f"building {package} {version} for {', '.join(source.variants)}: some minutes, once", flush=True)
        _build(archive, package, source.variants, patches, into)

    built = cache.directory("kernel", inputs, build) / variant
    smp = "CONFIG_SMP=y" in (built / "config").read_text().splitlines()
    return Kernel(variant, built / "linux", built / "lib/modules", smp)


def stock_kernel(machine: Machine) -> Kernel:
    """Debian's own kernel for this machine, from the cache or newly prepared."""
    built = stock.build(machine)
    return Kernel(machine.name, built / "linux", built / "lib/modules", smp=True, initrd=built / "initrd", processor=machine.processor)


def _resolve(archive: Archive, package: str) -> tuple[str, str]:
    """Name and version of the package with the source, on which `linux-source` depends."""
    fields = archive.show(package)
    followed = re.search(r"linux-source-[\d.]+", fields.get("Depends", ""))
    if followed:
        package = followed[0]
        fields = archive.show(package)
    return package, fields["Version"]


def _options(variant: str) -> str:
    """The common options, and those of this variant, which take precedence."""
    base, own = ((LAB / "kernel" / f"{name}.config").read_text() for name in ("base", variant))
    others = [line for line in base.splitlines(keepends=True) if _option(line) not in set(map(_option, own.splitlines())) - {None}]
    return "".join(others) + own


def _option(line: str) -> str | None:
    named = re.match(r"(?:# )?(CONFIG_\w+)(?:=| is not set)", line)
    return named and named[1]


def _build(archive: Archive, package: str, variants: tuple[str, ...], patches: list[Path], into: Path) -> None:
    work = into / "work"
    work.mkdir()
    source = _unpack(archive.download(package, work), work)
    for patch in patches:
        command.run(f"apply {patch.name}", "patch", "-s", "-p1", "-i", patch, cwd=source)
    finished = None
    for variant in variants:
        objects = work / variant
        if finished:
            command.run("copy a built kernel", "cp", "-a", finished, objects)
        else:
            objects.mkdir()
        _compile(source, objects, _options(variant), into / variant)
        finished = objects
    shutil.rmtree(work)


def _unpack(deb: Path, work: Path) -> Path:
    name = deb.name.split("_")[0]
    command.run(f"unpack {name}", "sh", "-euc",
                'dpkg-deb --fsys-tarfile "$1" | tar -xO "./usr/src/$2.tar.xz" | xz -dc | tar -x', "sh", deb, name, cwd=work)
    return work / name


def _compile(source: Path, objects: Path, options: str, into: Path) -> None:
    wanted = objects / "wanted.config"
    wanted.write_text(options)
    make = ["make", "-s", f"-j{os.cpu_count()}", "-C", source, "ARCH=um", f"O={objects}"]
    command.run("configure the kernel", *make, f"KCONFIG_ALLCONFIG={wanted}", "alldefconfig")
    _check_options(wanted, objects / ".config")
    command.run("build the kernel", *make, "linux", "modules")
    command.run("install the modules", *make, f"INSTALL_MOD_PATH={into}", "modules_install")
    for link in into.glob("lib/modules/*/build"):
        link.unlink()
    shutil.copy2(objects / "linux", into / "linux")
    shutil.copy2(objects / ".config", into / "config")


def _check_options(wanted: Path, taken: Path) -> None:
    """kconfig silently drops unknown options and those with missing dependencies; this makes it an error."""
    lines = set(taken.read_text().splitlines())
    on = {line.partition("=")[0] for line in lines if not line.startswith("#")}
    lost = []
    for line in wanted.read_text().splitlines():
        unset = re.fullmatch(r"# (CONFIG_\w+) is not set", line)
        if (unset and unset[1] in on) or (line.startswith("CONFIG_") and line not in lines):
            lost.append(line)
    if lost:
        raise LabError("the kernel does not take these options: " + "; ".join(lost))
