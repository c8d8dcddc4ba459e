"""The commands `run` and `shell`."""

import argparse
import os
import random
import signal
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from . import LabError, dependencies, report, rootfs, runner, scenario, terminal, uml
from .kernel import VARIANTS, Kernel, kernel
from .product import installed_tree
from .runner import Outcome
from .scenario import Scenario

_DESCRIPTION = "Boots a real systemd with every zram feature and runs scenarios in it. See tests/lab/README.md."


def run() -> int:
    """tests/lab/run"""
    parser = argparse.ArgumentParser(prog="tests/lab/run", description=_DESCRIPTION)
    parser.add_argument("scenarios", nargs="*", metavar="SCENARIO", help="all if none is named; 'list' lists them")
    parser.add_argument("--build-only", action="store_true", help="fill the cache, boot nothing")
    parser.add_argument("--dependencies", action="store_true", help="print the Debian packages that the lab needs")
    arguments = _parsed(parser)
    if arguments.dependencies:
        print(" ".join(dependencies.packages()))
        return 0
    if arguments.scenarios == ["list"]:
        return _guarded(_list)
    return _guarded(lambda: _run(arguments))


def shell() -> int:
    """tests/lab/shell"""
    parser = argparse.ArgumentParser(
        prog="tests/lab/shell", description="Boots a guest prepared for a scenario and opens a shell in it.")
    parser.add_argument("scenario", nargs="?", default="smoke", metavar="SCENARIO")
    arguments = _parsed(parser)

    def boot() -> int:
        chosen = scenario.load(arguments.scenario)
        dependencies.check([arguments.kernel or chosen.kernels[0]])
        tree = _tree(arguments, [chosen])
        terminal.boot(chosen, kernel(arguments.kernel or chosen.kernels[0]), rootfs.image(), tree)
        return 0

    return _guarded(boot)


def _parsed(parser: argparse.ArgumentParser) -> argparse.Namespace:
    """Parses the command line, with the options common to `run` and `shell`."""
    parser.add_argument("--kernel", default=os.environ.get("LAB_KERNEL") or None, metavar="|".join(VARIANTS),
                        help="instead of the one that each scenario prefers (also: LAB_KERNEL)")
    parser.add_argument("--tree", type=Path, metavar="DIR",
                        help="an installed zramd to test instead of building this tree's own")
    arguments = parser.parse_args()
    if arguments.kernel not in (None, *VARIANTS):
        parser.error(f"there is no kernel {arguments.kernel}; there are: {', '.join(VARIANTS)}")
    return arguments


def _guarded(work: Callable[[], int]) -> int:
    """Runs a command; no process is left running after any kind of end."""
    for ending in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(ending, signal.default_int_handler)
    uml.adopt_orphans()
    try:
        return work()
    except LabError as error:
        print(f"lab: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("lab: stopped", file=sys.stderr)
        return 130


def _list() -> int:
    every = [scenario.load(name) for name in scenario.names()]
    width = max(len(each.name) for each in every)
    for each in every:
        print(f"{each.name:{width}}  {each.title} [{', '.join(each.kernels)}]")
    return 0


def _run(arguments: argparse.Namespace) -> int:
    every = [scenario.load(name) for name in arguments.scenarios or scenario.names()]
    chosen = [each for each in every if arguments.scenarios or not each.by_name]
    runnable, outcomes = [], []
    for each in chosen:
        variant = arguments.kernel or each.kernels[0]
        if variant in each.kernels:
            runnable.append((each, variant))
        else:
            outcomes.append(runner.skipped(each, f"it is not for the kernel {variant}"))
        if not arguments.kernel and not arguments.scenarios:
            runnable += [(each.repeated_on(other), other) for other in each.also_on]
    variants = sorted({variant for _, variant in runnable})
    dependencies.check(variants)
    kernels = {variant: kernel(variant) for variant in variants}
    image = rootfs.image()
    if arguments.build_only:
        return 0
    tree = _tree(arguments, [each for each, _ in runnable])

    seed = int(os.environ.get("LAB_SEED") or random.SystemRandom().randrange(1_000_000))
    print(f"seed {seed} (LAB_SEED={seed} repeats the random moments of this run)", flush=True)
    for outcome in outcomes:
        report.scenario(outcome)
    outcomes += _run_all([(each, kernels[variant]) for each, variant in runnable], image, tree, seed)
    report.figures(outcomes)
    return 0 if report.total(outcomes) else 1


def _run_all(runnable: list[tuple[Scenario, Kernel]], image: Path, tree: Path | None, seed: int) -> list[Outcome]:
    # One more than CPUs: guests also wait.
    jobs = int(os.environ.get("LAB_JOBS") or (os.cpu_count() or 1) + 1)
    stop = threading.Event()
    outcomes = []
    # Longest first, so that all cores are used until the end.
    runnable = sorted(runnable, key=lambda pair: -pair[0].longest)
    with ThreadPoolExecutor(jobs) as pool:
        running = [pool.submit(runner.run, each, kernel_, image, tree, seed, stop) for each, kernel_ in runnable]
        try:
            for done in as_completed(running):
                outcomes.append(done.result())
                report.scenario(outcomes[-1])
        except BaseException:
            stop.set()
            pool.shutdown(cancel_futures=True)
            raise
    return sorted(outcomes, key=lambda outcome: outcome.scenario)


def _tree(arguments: argparse.Namespace, chosen: list[Scenario]) -> Path | None:
    if not any(each.needs_zramd for each in chosen):
        return None
    return arguments.tree.resolve() if arguments.tree else installed_tree()
