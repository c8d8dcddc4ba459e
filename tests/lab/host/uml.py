"""One user-mode Linux process tree: a guest while it is switched on."""

import ctypes
import os
import signal
import socket
import struct
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from .kernel import Kernel

_libc = ctypes.CDLL(None)
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36

# arch/um/drivers/mconsole.h
_MCONSOLE_MAGIC = 0xCAFEBABE
_MCONSOLE_VERSION = 2
_ANSWER = 10  # seconds; it comes at once

# On reboot the kernel executes its own argv[0] again. Given this name it ends instead, and whoever waits for it decides
# about the next boot.
_REBOOT_COMMAND = "/bin/false"


class Guest:
    """A running guest. Its power is the life of its process group."""

    def __init__(self, kernel: Kernel, run: Path, memory: int, arguments: list[str],
                 console: BinaryIO | None, journal: BinaryIO | None):
        """Switches it on. `run` has the disks and the shared directory; without a console it gets our terminal."""
        streams = {"stdin": subprocess.DEVNULL, "stdout": console, "stderr": subprocess.STDOUT} if console else {}
        self.process = subprocess.Popen(
            [_REBOOT_COMMAND, *_command_line(run, memory, console, journal), *arguments],
            executable=kernel.executable, env=os.environ | {"TMPDIR": str(run), "HOME": str(run)},
            pass_fds=[journal.fileno()] if journal else [],
            start_new_session=console is not None, preexec_fn=_die_with_parent, **streams,
        )
        self._own_session = console is not None
        self._mconsole = run / "guest" / "mconsole"

    def answers(self) -> bool:
        """Whether its kernel still answers the host, whatever its programs do (user-mode Linux' management console)."""
        request = b"version"
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as console, suppress(OSError):
            console.bind("")
            console.settimeout(_ANSWER)
            console.sendto(struct.pack("III512s", _MCONSOLE_MAGIC, _MCONSOLE_VERSION, len(request) + 1, request), str(self._mconsole))
            return bool(console.recv(4096))
        return False

    def is_on(self) -> bool:
        """Whether it still runs."""
        return self.process.poll() is None

    def cut_power(self) -> None:
        """Kills every process of the guest and returns when all are gone. Does nothing to one that is off."""
        if not self._own_session:
            self.process.kill()
            self.process.wait()
            return
        group = self.process.pid
        with suppress(ProcessLookupError):
            os.killpg(group, signal.SIGKILL)
        self.process.wait()
        with suppress(ChildProcessError):
            while True:
                os.waitpid(-group, 0)


def adopt_orphans() -> None:
    """Makes a dead guest's processes our children, which `cut_power` awaits: init need not be one that does."""
    _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _die_with_parent() -> None:
    """Even a lab that is killed leaves no guest behind."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _command_line(run: Path, memory: int, console: BinaryIO | None, journal: BinaryIO | None) -> list[str]:
    return [
        f"mem={memory}",
        f"ubd0={run / 'disk.cow'},{(run / 'disk.base').resolve()}",
        *([f"ubd1={run / 'disk2'}"] if (run / "disk2").exists() else []),
        f"hostfs={run / 'share'}",
        f"uml_dir={run}",
        "umid=guest",
        "con=null",
        "con0=null,fd:1" if console else "con0=fd:0,fd:1",
        *([f"con1=null,fd:{journal.fileno()}"] if journal else []),
        "root=/dev/ubda",
        "rw",
        "init=/lab-init",
        # In the console's file go the kernel's messages, and those of whatever runs before the journal does.
        *(["loglevel=7", "printk.time=1", "printk.devkmsg=on", "systemd.show_status=no"] if console else ["quiet"]),
    ]
