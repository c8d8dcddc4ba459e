"""A process tree of user-mode Linux: a running guest."""

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
from .scenario import Scenario

_libc = ctypes.CDLL(None)
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36

# arch/um/drivers/mconsole.h
_MCONSOLE_MAGIC = 0xCAFEBABE
_MCONSOLE_VERSION = 2
_ANSWER = 10  # seconds; the reply is immediate

# To reboot, the kernel executes its argv[0]. With this program it exits instead, and the caller starts the next boot.
_REBOOT_COMMAND = "/bin/false"


class Guest:
    """A running guest: a process group."""

    def __init__(self, kernel: Kernel, run: Path, scenario: Scenario, arguments: list[str],
                 console: BinaryIO | None, journal: BinaryIO | None):
        """Starts it. `run` has the disks and the shared directory; without a console it uses our terminal."""
        streams = {"stdin": subprocess.DEVNULL, "stdout": console, "stderr": subprocess.STDOUT} if console else {}
        self.process = subprocess.Popen(
            [_REBOOT_COMMAND, *_command_line(kernel, run, scenario, console, journal), *arguments],
            executable=kernel.executable, env=os.environ | {"TMPDIR": str(run), "HOME": str(run)},
            pass_fds=[journal.fileno()] if journal else [],
            start_new_session=console is not None, preexec_fn=die_with_parent, **streams,
        )
        self._own_session = console is not None
        self._mconsole = run / "guest" / "mconsole"

    def answers(self) -> bool:
        """Whether its kernel responds to the management console of user-mode Linux, independent of its programs."""
        request = b"version"
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as console, suppress(OSError):
            console.bind("")
            console.settimeout(_ANSWER)
            console.sendto(struct.pack("III512s", _MCONSOLE_MAGIC, _MCONSOLE_VERSION, len(request) + 1, request), str(self._mconsole))
            return bool(console.recv(4096))
        return False

    def is_on(self) -> bool:
        """Whether it is running."""
        return self.process.poll() is None

    def cut_power(self) -> None:
        """Kills all processes of the guest and waits for their end. No effect on a guest that is off."""
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
    """Makes processes of a dead guest our children, for which `cut_power` waits; init may not reap them."""
    _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def die_with_parent() -> None:
    """Kills the guest if the lab is killed."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _command_line(kernel: Kernel, run: Path, scenario: Scenario, console: BinaryIO | None, journal: BinaryIO | None) -> list[str]:
    return [
        f"mem={scenario.memory}",
        # With several CPUs, seccomp is used to run the guest's programs, which this kernel supports.
        *([f"ncpus={scenario.cpus}", "seccomp=on"] if scenario.cpus > 1 and kernel.smp else []),
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
        # The console file gets the messages of the kernel and of programs before the journal is started.
        *(["loglevel=7", "printk.time=1", "printk.devkmsg=on", "systemd.show_status=no"] if console else ["quiet"]),
    ]
