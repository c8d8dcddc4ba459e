"""The release build of this tree, installed into a directory as into a root file system."""

import shutil
from pathlib import Path

from . import LAB, REPOSITORY, LabError, command


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
