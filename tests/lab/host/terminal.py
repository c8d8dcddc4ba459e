"""A guest on the terminal of the user."""

import sys
import termios
from pathlib import Path

from . import LabError
from .kernel import Kernel
from .rundir import run_directory
from .scenario import Scenario
from .uml import Guest


def boot(scenario: Scenario, kernel: Kernel, image: Path, tree: Path | None) -> None:
    """Boots a guest prepared for this scenario, until its shell ends."""
    if not sys.stdin.isatty():
        raise LabError("the shell needs a terminal")
    before = termios.tcgetattr(sys.stdin)
    with run_directory(scenario, kernel, image, tree) as directory:
        guest = Guest(kernel, directory, scenario, [*scenario.kernel_args, "lab.shell"], None, None)
        try:
            guest.process.wait()
        finally:
            guest.cut_power()
            termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)
