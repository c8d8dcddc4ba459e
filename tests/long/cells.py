"""What the comparisons of candidates share: programs, results that are continued, and one guest of the lab for each candidate."""

import shutil
import signal
import subprocess
import sys
import tempfile
from operator import itemgetter
from pathlib import Path

LONG = Path(__file__).resolve().parent
REPOSITORY = LONG.parent.parent
LAB = REPOSITORY / "tests/lab"
BUILT = REPOSITORY / "target/pressure"


def build():
    """The program that makes pressure, its pages, which are made once and stay the same, and zramd."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # no guest is left running
    subprocess.run(["cargo", "build", "--quiet", "--locked", "--release", "--manifest-path", LONG / "pressure/Cargo.toml", "--target-dir", BUILT], check=True)
    if not (BUILT / "pages").exists():
        with (BUILT / "pages.new").open("wb") as file:
            for kind in ("heap", "programs", "text"):
                subprocess.run([LAB / "guest/pages", "file", kind, "16"], check=True, stdout=file)
        (BUILT / "pages.new").rename(BUILT / "pages")
    tree = BUILT / "tree"
    shutil.rmtree(tree, ignore_errors=True)
    subprocess.run(["cargo", "build", "--quiet", "--locked", "--release"], cwd=REPOSITORY, check=True)
    subprocess.run([REPOSITORY / "packaging/install", "--destdir", tree], check=True, stdout=subprocess.DEVNULL)


def commit():
    """The commit that is measured: the last one that changed zramd, this command, its scenario, or the programs in it."""
    command = Path(sys.argv[0]).resolve().relative_to(REPOSITORY)
    paths = (command, f"tests/lab/scenarios/*{command.name}", "tests/long/pressure")
    return subprocess.run([LONG / "clean-commit", *paths], check=True, capture_output=True, text=True).stdout.strip()


class Results:
    """A table of results. What is there for a commit is not measured again."""

    def __init__(self, name, fields):
        self.path = LONG / f"results/{name}.tsv"
        self.fields = fields

    def rows(self):
        """Each line, by field."""
        lines = self.path.read_text().splitlines() if self.path.exists() else []
        return [dict(zip(self.fields, line.split("\t"))) for line in lines[1:]]

    def newest(self, *fields):
        """Those of the commit that was measured last, for each combination of these fields: a change of zramd leaves its peers as they are."""
        rows = self.rows()
        key = itemgetter(*fields)
        last = {key(row): row["commit"] for row in rows}
        return [row for row in rows if row["commit"] == last[key(row)]]

    def note(self, row):
        """Adds a line."""
        line = "\t".join(str(row.get(field, "")) for field in self.fields)
        if not self.path.exists():
            self.path.write_text("\t".join(self.fields) + "\n")
        with self.path.open("a") as file:
            file.write(line + "\n")
        print(line, flush=True)


def in_lab(scenario, name, configuration, setup, cells, options=()):
    """Runs a scenario with a configuration of zramd, commands for the rest, cells, which are lines of words, and options of the lab.

    Returns its results."""
    with tempfile.TemporaryDirectory(dir=BUILT) as directory:
        tree = Path(directory) / "tree"
        shutil.copytree(BUILT / "tree", tree, symlinks=True)
        brought = tree / "var/cache/zramd" / scenario
        brought.mkdir(parents=True)
        if configuration:
            (brought / "zramd.toml").write_text(configuration)
        if setup:
            (brought / "setup").write_text(setup + "\n")
        shutil.copy(BUILT / "release/pressure", brought)
        shutil.copy(BUILT / "pages", brought)
        (brought / "cells").write_text("".join(" ".join(cell) + "\n" for cell in cells))
        lab = subprocess.run([LAB / "run", "--tree", tree, *options, scenario], stdout=subprocess.PIPE, text=True)
    cells = LAB / "out" / scenario / "cells.tsv"
    if lab.returncode:
        # What was measured before that counts.
        print(f"{name}: the lab failed\n{lab.stdout}", file=sys.stderr, flush=True)
        if not cells.exists():
            sys.exit(1)
    return [line.split("\t") for line in cells.read_text().splitlines()]
