"""Runs one scenario through all its boots and evaluates it."""

import os
import random
import re
import shutil
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

from . import LAB, qemu, uml
from .kernel import Kernel
from .rundir import run_directory
from .scenario import OUT, PowerCuts, Scenario

# A busy machine, as those of CI are at times, takes up to this many times the time limit, which is for a quiet one.
_PATIENCE = 3
_POLL = 0.02  # seconds
_ATTEMPTS = 3  # runs of a scenario of which only timed checks failed
# What PID 1 says of a unit of zramd that crashed or was silent. No scenario expects it, and the unit may be started again at once.
_BROKEN = re.compile(r"zramd\S*: (?:Failed with result 'watchdog'|[A-Z]\w+ process exited, .*/(?:ILL|ABRT|BUS|FPE|SEGV|SYS)\b)")


@dataclass(frozen=True)
class Check:
    """A check of a scenario."""

    passed: bool
    description: str
    detail: str
    timed: bool = False  # also depends on the speed of the host


@dataclass
class Outcome:
    """The result of a scenario."""

    scenario: str
    out: Path  # console, journal, log and results
    seconds: float = 0.0
    checks: list[Check] = field(default_factory=list)
    figures: dict[str, tuple[str, str]] = field(default_factory=dict)  # name: value, unit
    skipped: str = ""
    late: list[Check] = field(default_factory=list)  # timed checks that failed in earlier attempts

    @property
    def failures(self) -> list[Check]:
        """The failed checks."""
        return [check for check in self.checks if not check.passed]


class Stopped(Exception):
    """The user interrupted the lab."""


class _GuestLost(Exception):
    """A boot that did not end as expected; the message says how."""


class _GuestFrozen(_GuestLost):
    """A guest whose kernel no longer responds."""


def skipped(scenario: Scenario, reason: str) -> Outcome:
    """The result of a skipped scenario."""
    return Outcome(scenario.name, scenario.out, skipped=reason)


def run(scenario: Scenario, kernel: Kernel, image: Path, tree: Path | None, seed: int, stop: threading.Event) -> Outcome:
    """Runs a scenario, repeatedly if only timed checks fail: a regression fails every time, a busy host does not."""
    began = time.monotonic()
    late: list[Check] = []
    for attempt in range(1, _ATTEMPTS + 1):
        outcome = _attempt(scenario, kernel, image, tree, seed, stop)
        if attempt == _ATTEMPTS or not outcome.failures or not all(check.timed for check in outcome.failures):
            break
        late += outcome.failures
    outcome.late = late
    outcome.seconds = time.monotonic() - began
    return outcome


def _attempt(scenario: Scenario, kernel: Kernel, image: Path, tree: Path | None, seed: int, stop: threading.Event) -> Outcome:
    """Runs all boots; console, journal, log and results are stored in its directory below out/."""
    with run_directory(scenario, kernel, image, tree if scenario.needs_zramd else None) as directory:
        boots = _Boots(scenario, kernel, directory, stop)
        lost = None
        try:
            if scenario.power_cuts:
                boots.with_power_cuts(scenario.power_cuts, random.Random(f"{seed} {scenario.name}"))
            else:
                boots.all_stages()
        except _GuestLost as error:
            lost = Check(False, str(error), "")
        finally:
            _keep(directory / "share" / "out", scenario.out)
    outcome = _read(scenario)
    if lost:
        outcome.checks.append(lost)
    elif not outcome.checks and not outcome.skipped:
        outcome.checks.append(Check(False, "the scenario checked nothing", ""))
    return outcome


class _Boots:
    """The boots of one scenario, each a new process on the same disks."""

    def __init__(self, scenario: Scenario, kernel: Kernel, directory: Path, stop: threading.Event):
        self._scenario = scenario
        self._kernel = kernel
        self._directory = directory
        self._state = directory / "share" / "state"
        self._stop = stop
        if rounds := os.environ.get("LAB_ROUNDS"):
            (self._state / "rounds").write_text(rounds)

    def all_stages(self) -> None:
        """Boots until the last stage has ended."""
        how = ""
        while how != "end":
            how = self._boot_for_stage()

    def with_power_cuts(self, cuts: PowerCuts, moments: random.Random) -> None:
        """Cuts off one boot, then runs all stages on the same disk, repeatedly."""
        for number in range(1, cuts.count + 1):
            moment = moments.uniform(0, cuts.within)
            self._boot_to_cut(cuts.mark, moment)
            (self._state / "round").write_text(f"cut {number}, {moment:.2f} s after {cuts.mark}")
            (self._state / "stage").unlink(missing_ok=True)
            self.all_stages()

    def _boot_for_stage(self) -> str:
        """Boots until a stage has ended, and returns how it ends the boot. Rarely, the guest's kernel stops responding before the
        stage begins, which is a fault of the lab: the guest is then booted again, and counted in the figure `frozen-boots`."""
        begun = self._stages_begun()
        try:
            return self._boot_once()
        except _GuestFrozen:
            if self._stages_begun() != begun:
                raise
            with open(self._directory / "share" / "out" / "figures.tsv", "a") as figures:
                figures.write("frozen-boots\t1\t\n")
            return self._boot_once()

    def _stages_begun(self) -> str:
        stage = self._state / "stage"
        return stage.read_text() if stage.exists() else ""

    def _boot_once(self) -> str:
        left = self._state / "left"
        left.unlink(missing_ok=True)
        with self._guest([]) as guest:
            while guest.is_on() and not (left.exists() and left.read_text().startswith("end ")):
                guest.pause()
        if guest.panicked():
            raise _GuestLost("the guest's kernel panicked (see console.txt)")
        if not left.exists():
            raise _GuestLost("the guest died before its stage came to an end")
        how, since = left.read_text().split()
        (self._state / "shutdown-seconds").write_text(f"{time.time() - float(since):.2f}\n")
        return how

    def _boot_to_cut(self, mark: str, moment: float) -> None:
        sign = self._state / f"mark-{mark}"
        sign.unlink(missing_ok=True)
        with self._guest(["lab.cut"]) as guest:
            while not sign.exists():
                if not guest.is_on():
                    raise _GuestLost(f"the guest died before its mark {mark}")
                guest.pause()
            time.sleep(moment)

    def _guest(self, arguments: list[str]) -> "_WatchedGuest":
        added = self._state / "kernel-args"
        arguments = [f"lab.kernel={self._kernel.name}", *self._scenario.kernel_args, *arguments]
        if added.exists():
            arguments += added.read_text().split()
        return _WatchedGuest(self._scenario, self._kernel, self._directory, arguments, self._stop)


class _WatchedGuest:
    """A guest that is switched off at the end of its `with` block."""

    def __init__(self, scenario: Scenario, kernel: Kernel, directory: Path, arguments: list[str], stop: threading.Event):
        self._limit = _PATIENCE * scenario.time_limit
        self._deadline = time.monotonic() + self._limit
        self._stop = stop
        # Each boot appends to the files of previous ones, which are in the shared directory so that a stage can read them.
        out = directory / "share" / "out"
        self._console = out / "console.txt"
        self._begun = self._console.stat().st_size if self._console.exists() else 0
        with open(self._console, "ab") as console, open(out / "journal.txt", "ab") as journal:
            guest = qemu.Guest if kernel.initrd else uml.Guest
            self._guest = guest(kernel, directory, scenario, arguments, console, journal)

    def __enter__(self) -> "_WatchedGuest":
        return self

    def __exit__(self, *_: object) -> None:
        self._guest.cut_power()

    def is_on(self) -> bool:
        return self._guest.is_on()

    def panicked(self) -> bool:
        return b"Kernel panic" in self._console.read_bytes()[self._begun:]

    def pause(self) -> None:
        """Waits briefly; fails after the time limit of the guest, or if the lab is interrupted."""
        if self._stop.wait(_POLL):
            raise Stopped
        if time.monotonic() > self._deadline:
            if not self._guest.answers():
                raise _GuestFrozen(f"the guest's kernel continues ({self._limit:.0f} s)")
            raise _GuestLost(f"the boot and its stage end within {self._limit:.0f} s")


def _keep(out: Path, kept: Path) -> None:
    shutil.rmtree(kept, ignore_errors=True)
    kept.parent.mkdir(parents=True, exist_ok=True)
    shutil.move(out, kept)


def _read(scenario: Scenario) -> Outcome:
    kept = scenario.out
    outcome = Outcome(scenario.name, kept)
    for outcome_word, description, detail in _rows(kept / "checks.tsv"):
        outcome.checks.append(Check(outcome_word == "ok", description, detail.replace("\\n", "\n"), outcome_word == "LATE"))
    journal = kept / "journal.txt"
    broken = _BROKEN.findall(journal.read_text(errors="replace")) if journal.exists() else []
    if broken:
        outcome.checks.append(Check(False, "no program of zramd crashes or is silent", "\n".join(broken)))
    for name, value, unit in _rows(kept / "figures.tsv"):
        outcome.figures[name] = (value, unit)
    reason = kept / "skipped"
    if reason.exists():
        outcome.skipped = reason.read_text().strip()
    return outcome


def _rows(path: Path) -> list[list[str]]:
    if not path.exists():
        return []
    return [line.split("\t") for line in path.read_text(errors="replace").split("\n") if line]
