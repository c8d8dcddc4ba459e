"""Running build commands: without output on success, with the end of their output on failure."""

import subprocess
from pathlib import Path

from . import LabError

LINES_SHOWN = 40


def run(what: str, *command: str | Path, cwd: Path | None = None, env: dict[str, str] | None = None) -> str:
    """Runs a command and returns its output. `what` completes the message "could not …"."""
    done = subprocess.run(
        [str(word) for word in command], cwd=cwd, env=env, text=True, errors="replace",
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
    )
    if done.returncode != 0:
        tail = "\n".join(done.stdout.splitlines()[-LINES_SHOWN:])
        raise LabError(f"could not {what}: {command[0]} ended with status {done.returncode}\n{tail}")
    return done.stdout
