"""A scenario: one bash file with its requirements in comments at the beginning."""

import os
import re
from dataclasses import dataclass, replace
from pathlib import Path

from . import LAB, LabError
from .kernel import VARIANTS

DIRECTORY = LAB / "scenarios"
OUT = LAB / "out"
_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


@dataclass(frozen=True)
class PowerCuts:
    """Cut the power `count` times, at random moments after the guest has signalled this mark."""

    count: int
    within: float  # seconds
    mark: str


@dataclass(frozen=True)
class Scenario:
    """The header of a scenario file."""

    path: Path
    title: str
    kernels: tuple[str, ...]  # kernels it can run on, the preferred one first
    also_on: tuple[str, ...]  # those of them on which a plain run repeats it
    memory: int  # bytes
    disk2: int  # bytes; 0 is no second disk
    disk2_speed: tuple[int, int] | None  # requests and MiB a second, at most
    cpus: int  # if the kernel supports several
    time_limit: float  # seconds for one boot on a quiet machine
    kernel_args: tuple[str, ...]
    credentials: tuple[str, ...]  # NAME=BASE64, which the firmware of an emulated PC hands to systemd (SMBIOS)
    needs_zramd: bool
    power_cuts: PowerCuts | None
    stages: int
    by_name: bool  # only run by name: it needs something that a plain run does not provide
    name: str
    out: Path  # where its output is kept

    def repeated_on(self, variant: str) -> "Scenario":
        """The same scenario on another kernel, with its own output."""
        name = f"{self.name}@{variant}"
        return replace(self, name=name, out=self.out.with_name(name))

    @property
    def longest(self) -> float:
        """Maximum duration in seconds, by which scenarios are ordered."""
        return self.time_limit * (2 * self.power_cuts.count if self.power_cuts else self.stages)


def names() -> list[str]:
    """Names of all scenarios."""
    return sorted(path.name for path in DIRECTORY.iterdir() if not path.name.startswith("."))


def load(name: str) -> Scenario:
    """Reads the header of one scenario."""
    path = DIRECTORY / name
    if name not in names():
        raise LabError(f"there is no scenario {name}; there are: {', '.join(names())}")
    return read(path, name, OUT / name)


def read(path: Path, name: str, out: Path) -> Scenario:
    """Reads the header of a scenario in any directory."""
    text = path.read_text()
    head = _Head(path, text)
    scenario = Scenario(
        path=path,
        title=head.take("title"),
        kernels=tuple(head.take("kernels", "debian newest stock").split()),
        also_on=tuple(head.take("also-on", "").split()),
        memory=head.size("memory", "512M"),
        disk2=head.size("disk2", "0"),
        disk2_speed=_disk2_speed(),
        cpus=int(head.take("cpus", "1")),
        time_limit=head.seconds("time-limit", "120s"),
        kernel_args=tuple(head.take("kernel-args", "").split()),
        credentials=tuple(head.take("credentials", "").split()),
        needs_zramd=head.take("needs", "") == "zramd",
        power_cuts=_power_cuts(head),
        stages=len(re.findall(r"^stage_\d+\(\)", text, re.MULTILINE)),
        by_name=head.take("by-name", "no") == "yes",
        name=name,
        out=out,
    )
    head.nothing_left()
    unknown = set(scenario.kernels + scenario.also_on) - set(VARIANTS)
    if unknown:
        raise LabError(f"{name}: there is no kernel {', '.join(sorted(unknown))}; there are: {', '.join(VARIANTS)}")
    return scenario


def _disk2_speed() -> tuple[int, int] | None:
    value = os.environ.get("LAB_DISK2_SPEED")
    if not value:
        return None
    match = re.fullmatch(r"(\d+):(\d+)", value)
    if not match:
        raise LabError(f"LAB_DISK2_SPEED={value} does not read REQUESTS:MIB, both for a second")
    return int(match[1]), int(match[2])


class _Head:
    """The `# key: value` lines after the first line, up to the first line that is no comment."""

    def __init__(self, path: Path, text: str):
        self._name = path.name
        lines = text.splitlines()[1:]
        end = next((n for n, line in enumerate(lines) if not line.startswith("#")), len(lines))
        pairs = (re.fullmatch(r"# ([a-z0-9-]+): (.*)", line) for line in lines[:end])
        self._values = {pair[1]: pair[2].strip() for pair in pairs if pair}

    def take(self, key: str, default: str | None = None) -> str:
        value = self._values.pop(key, default)
        if value is None:
            raise LabError(f"{self._name}: the head lacks '# {key}: …'")
        return value

    def size(self, key: str, default: str) -> int:
        match = self._match(key, default, r"(\d+)([KMG]?)")
        return int(match[1]) * _UNITS.get(match[2], 1)

    def seconds(self, key: str, default: str) -> float:
        return float(self._match(key, default, r"([\d.]+)s")[1])

    def _match(self, key: str, default: str, pattern: str) -> re.Match[str]:
        value = self.take(key, default)
        match = re.fullmatch(pattern, value)
        if not match:
            raise LabError(f"{self._name}: '# {key}: {value}' does not match {pattern}")
        return match

    def nothing_left(self) -> None:
        if self._values:
            raise LabError(f"{self._name}: the lab does not know '# {next(iter(self._values))}: …'")


def _power_cuts(head: _Head) -> PowerCuts | None:
    value = head.take("power-cuts", "")
    if not value:
        return None
    match = re.fullmatch(r"(\d+) within ([\d.]+)s of (\w+)", value)
    if not match:
        raise LabError(f"'# power-cuts: {value}' does not read 'COUNT within SECONDSs of MARK'")
    return PowerCuts(int(os.environ.get("LAB_CUTS") or match[1]), float(match[2]), match[3])
