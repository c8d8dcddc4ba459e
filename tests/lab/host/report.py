"""Output for users and CI."""

import json
import sys
from pathlib import Path

from .runner import Outcome
from .scenario import OUT

_END_SHOWN = 40  # lines of each log of a failed scenario


def scenario(outcome: Outcome) -> None:
    """One line for a finished scenario; for a failed one also the failed checks and the ends of its logs."""
    checks, failures = len(outcome.checks), len(outcome.failures)
    if outcome.skipped and not failures:
        _say(f"SKIP {outcome.scenario}: {outcome.skipped}")
    elif not failures:
        _say(f"PASS {outcome.scenario} {outcome.seconds:.1f}s ({checks} checks)")
    else:
        _say(f"FAIL {outcome.scenario} {outcome.seconds:.1f}s ({failures} of {checks} checks failed)")
        for failure in outcome.failures:
            _say(f"  not so: {failure.description}")
            for line in failure.detail.splitlines():
                _say(f"    {line}")
    for check in outcome.late:
        _say(f"  not so in an earlier attempt: {check.description}: {' '.join(check.detail.splitlines())}")
    if outcome.failures:
        for name in ("stage.log", "console.txt", "journal.txt"):
            _end_of(outcome.out / name)


def figures(outcomes: list[Outcome]) -> None:
    """Prints the recorded figures as a table, and merges them into figures.json."""
    rows = [
        (outcome.scenario, name, f"{value} {unit}".strip())
        for outcome in outcomes for name, (value, unit) in outcome.figures.items()
    ]
    if not rows:
        return
    widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
    _say("")
    for scenario_name, name, value in rows:
        _say(f"{scenario_name:{widths[0]}}  {name:{widths[1]}}  {value}")
    path = OUT / "figures.json"
    kept = json.loads(path.read_text()) if path.exists() else {}
    for outcome in outcomes:
        if not outcome.figures:
            continue
        kept[outcome.scenario] = {
            name: {"value": _number(value), "unit": unit} for name, (value, unit) in outcome.figures.items()
        }
    path.write_text(json.dumps(kept, indent=2, sort_keys=True) + "\n")


def total(outcomes: list[Outcome]) -> bool:
    """The final line, which CI parses. Returns whether nothing failed."""
    failed = sum(bool(outcome.failures) for outcome in outcomes)
    skipped = sum(bool(outcome.skipped) and not outcome.failures for outcome in outcomes)
    _say("")
    _say(f"{len(outcomes) - failed - skipped} passed, {failed} failed, {skipped} skipped")
    return failed == 0


def _number(value: str) -> float | str:
    try:
        return float(value)
    except ValueError:
        return value


def _end_of(log: Path) -> None:
    lines = log.read_text(errors="replace").replace("\r", "").splitlines() if log.exists() else []
    _say(f"  -- the end of {log.relative_to(Path.cwd()) if log.is_relative_to(Path.cwd()) else log}:")
    for line in lines[-_END_SHOWN:]:
        _say(f"    {line}")


def _say(line: str) -> None:
    print(line)
    sys.stdout.flush()
