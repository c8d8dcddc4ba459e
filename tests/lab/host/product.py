"""The release build of this tree, installed into a directory as into a root file system, and the packages of a commit."""

import os
import re
import shutil
from pathlib import Path

from . import LAB, REPOSITORY, LabError, cache, command
from .archive import native
from .machines import PROCESSORS

_RELEASED = ("amd64", "arm64", "armhf")


def installed_tree() -> Path:
    """Builds the tree for release and runs its install step."""
    install = REPOSITORY / "packaging" / "install"
    if not install.exists():
        raise LabError(f"{install.relative_to(REPOSITORY)} is missing, so there is no zramd to put into a guest")
    print("building zramd", flush=True)
    command.run("build zramd", REPOSITORY / "packaging" / "build", cwd=REPOSITORY)
    tree = LAB / "out" / "tree"
    shutil.rmtree(tree, ignore_errors=True)
    command.run("install zramd", install, "--destdir", tree, cwd=REPOSITORY)
    return tree


def packages(architecture: str) -> Path:
    """A directory with the package of what is committed, `zramd.deb`, from the cache or newly built."""
    # Others change nothing in it.
    commit = command.run("ask for the commit", "git", "-C", REPOSITORY, "log", "-1", "--format=%H", "--", "Cargo.toml", "Cargo.lock", "daemon",
                         "units", "config", "packaging", ":!packaging/docs").strip()

    def build(into: Path) -> None:
        print(f"building the package of {commit[:7]} for {architecture}: some minutes, once", flush=True)
        made = into / "made"
        # Programs for the architecture run here (see dependencies.py), so the completions need no zramdctl of this machine.
        settings = {} if architecture == native() else {
            "ZRAMDCTL": "target/release/zramdctl", "QEMU_LD_PREFIX": f"/usr/{PROCESSORS[architecture].triplet}"}
        if architecture in _RELEASED:
            command.run("build the package", REPOSITORY / "packaging/build-release", made, architecture, env=os.environ | settings)
        else:
            cpu = PROCESSORS[architecture].triplet.split("-")[0].replace("riscv64", "riscv64gc")
            command.run("install the standard library", "rustup", "target", "add", f"{cpu}-unknown-linux-gnu")
            settings |= {name.upper(): command.run(f"find {name}", "rustup", "which", name).strip() for name in ("cargo", "rustc")}
            if architecture == "riscv64":
                # GNU ld 2.40 of Debian 12 announces text relocations, without having any, and the units allow none. That of Debian 13 does not.
                lld = next(Path(settings["RUSTC"]).parent.parent.glob("lib/rustlib/*/bin/gcc-ld"))
                settings["RUSTFLAGS"] = f"-Clink-arg=-B{lld} -Clink-arg=-fuse-ld=lld"
            command.run("build the package", REPOSITORY / "packaging/build-deb", "--architecture", architecture, made, env=os.environ | settings)
        shutil.move(next(made.glob(f"zramd_*_{architecture}.deb")), into / "zramd.deb")
        shutil.rmtree(made)

    return cache.directory("built", [commit, architecture], build)


def lower_version(package: Path, earlier: Path) -> None:
    """Writes the same package with a lower version."""
    unpacked = earlier.with_suffix(".d")
    command.run("unpack the package", "dpkg-deb", "--raw-extract", package, unpacked)
    control = unpacked / "DEBIAN/control"
    control.write_text(re.sub(r"(?m)^(Version: .*)$", r"\1~earlier", control.read_text()))
    command.run("package it", "dpkg-deb", "--root-owner-group", "-Zgzip", "--build", unpacked, earlier)
    shutil.rmtree(unpacked)
