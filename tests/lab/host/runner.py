"""Takes one scenario through all its boots and judges what comes out."""

import random
import shutil
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

from . import LAB
from .kernel import Kernel
from .rundir import run_directory
from .scenario import PowerCuts, Scenario
from .uml import Guest

OUT = LAB / "out"
_POLL = 0.02  # seconds
_ATTEMPTS = 3  # at a scenario of which nothing failed but what a busy host can make fail


@dataclass(frozen=True)
class Check:
    """One thing that a scenario found to be so, or not."""

    passed: bool
    description: str
    detail: str
    timed: bool = False  # the host's speed decides it, too


@dataclass
class Outcome:
    """What became of a scenario."""

    scenario: str
    seconds: float = 0.0
    checks: list[Check] = field(default_factory=list)
    figures: dict[str, tuple[str, str]] = field(default_factory=dict)  # name: value, unit
    skipped: str = ""
    late: list[Check] = field(default_factory=list)  # the timed checks that failed in earlier attempts

    @property
    def failures(self) -> list[Check]:
        """The checks that did not pass."""
        return [check for check in self.checks if not check.passed]


class Stopped(Exception):
    """The person asked the lab to stop."""


class _GuestLost(Exception):
    """A boot that did not end the way it should; the message says how it did."""


class _GuestFrozen(_GuestLost):
    """A guest whose kernel does not answer any more."""


def skipped(scenario: Scenario, reason: str) -> Outcome:
    """The outcome of a scenario that is not run at all."""
    return Outcome(scenario.name, skipped=reason)


def run(scenario: Scenario, kernel: Kernel, image: Path, tree: Path | None, seed: int, stop: threading.Event) -> Outcome:
    """Runs a scenario, and again when only timed checks failed: what is too slow fails every time, and a host that others keep busy does
    not."""
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
    """Takes it through all its boots; console, journal, log and results end up in its directory below out/."""
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
            _keep(directory / "share" / "out", OUT / scenario.name)
    outcome = _read(scenario, OUT / scenario.name)
    if lost:
        outcome.checks.append(lost)
    elif not outcome.checks and not outcome.skipped:
        outcome.checks.append(Check(False, "the scenario checked nothing", ""))
    return outcome


class _Boots:
    """The boots of one scenario, one process after the other on the same disks."""

    def __init__(self, scenario: Scenario, kernel: Kernel, directory: Path, stop: threading.Event):
        self._scenario = scenario
        self._kernel = kernel
        self._directory = directory
        self._state = directory / "share" / "state"
        self._stop = stop

    def all_stages(self) -> None:
        """Boots until the last stage has ended."""
        how = ""
        while how != "end":
            how = self._boot_for_stage()

    def with_power_cuts(self, cuts: PowerCuts, moments: random.Random) -> None:
        """Cuts one boot off, lets the next one of the same disk run all stages, and so on."""
        for number in range(1, cuts.count + 1):
            moment = moments.uniform(0, cuts.within)
            self._boot_to_cut(cuts.mark, moment)
            (self._state / "round").write_text(f"cut {number}, {moment:.2f} s after {cuts.mark}")
            (self._state / "stage").unlink(missing_ok=True)
            self.all_stages()

    def _boot_for_stage(self) -> str:
        """Boots until a stage has ended, and returns how it wanted to. A guest whose kernel has stopped answering before its stage began is
        the lab's fault, seldom, and says nothing of zramd: it is switched off and boots again, and the figure `frozen-boots` tells."""
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
        # More than one CPU takes the newer way of running a guest's programs, which this kernel has as well.
        smp = [f"ncpus={self._scenario.cpus}", "seccomp=on"] if self._scenario.cpus > 1 and self._kernel.smp else []
        arguments = [f"lab.kernel={self._kernel.name}", *smp, *self._scenario.kernel_args, *arguments]
        return _WatchedGuest(self._scenario, self._kernel, self._directory, arguments, self._stop)


class _WatchedGuest:
    """A guest that is off when its `with` block is left, whatever the reason."""

    def __init__(self, scenario: Scenario, kernel: Kernel, directory: Path, arguments: list[str], stop: threading.Event):
        self._limit = scenario.time_limit
        self._deadline = time.monotonic() + scenario.time_limit
        self._stop = stop
        # A boot adds to the files of the boots before it. They are in the shared directory: a stage may read what an
        # earlier boot said.
        out = directory / "share" / "out"
        with open(out / "console.txt", "ab") as console, open(out / "journal.txt", "ab") as journal:
            self._guest = Guest(kernel, directory, scenario.memory, arguments, console, journal)

    def __enter__(self) -> "_WatchedGuest":
        return self

    def __exit__(self, *_: object) -> None:
        self._guest.cut_power()

    def is_on(self) -> bool:
        return self._guest.is_on()

    def pause(self) -> None:
        """Waits a moment, unless the guest's time is up or the lab is to stop."""
        if self._stop.wait(_POLL):
            raise Stopped
        if time.monotonic() > self._deadline:
            if not self._guest.answers():
                raise _GuestFrozen(f"the guest's kernel continues ({self._limit:.0f} s)")
            raise _GuestLost(f"the boot and its stage end within {self._limit:.0f} s")


def _keep(out: Path, kept: Path) -> None:
    shutil.rmtree(kept, ignore_errors=True)
    kept.parent.mkdir(exist_ok=True)
    shutil.move(out, kept)


def _read(scenario: Scenario, kept: Path) -> Outcome:
    outcome = Outcome(scenario.name)
    for outcome_word, description, detail in _rows(kept / "checks.tsv"):
        outcome.checks.append(Check(outcome_word == "ok", description, detail.replace("\\n", "\n"), outcome_word == "LATE"))
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
