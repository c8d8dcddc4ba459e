"""A machine emulated by QEMU, which boots a stock kernel: a running guest."""

import os
import subprocess
from pathlib import Path
from typing import BinaryIO

from . import LabError
from .kernel import Kernel
from .machines import PROCESSORS
from .scenario import Scenario
from .uml import die_with_parent


class Guest:
    """A running guest: a process."""

    def __init__(self, kernel: Kernel, run: Path, scenario: Scenario, arguments: list[str],
                 console: BinaryIO | None, journal: BinaryIO | None):
        """Starts it. `run` has the disks and the shared directory."""
        if not console or not journal:
            raise LabError("the shell is only for kernels of user-mode Linux")
        self.process = subprocess.Popen(
            _command_line(kernel, run, scenario, arguments, console, journal), stdin=subprocess.DEVNULL, stdout=console, stderr=subprocess.STDOUT,
            pass_fds=[console.fileno(), journal.fileno()], start_new_session=True, preexec_fn=die_with_parent,
        )

    def answers(self) -> bool:
        """Whether its kernel responds: an emulated one always does."""
        return True

    def is_on(self) -> bool:
        """Whether it is running."""
        return self.process.poll() is None

    def cut_power(self) -> None:
        """Kills it and waits for its end. No effect on a guest that is off."""
        self.process.kill()
        self.process.wait()


def _command_line(kernel: Kernel, run: Path, scenario: Scenario, arguments: list[str], console: BinaryIO, journal: BinaryIO) -> list[str]:
    processor = kernel.processor
    disks = [(path, speed) for path, speed in ((run / "disk", None), (run / "disk2", scenario.disk2_speed)) if path.exists()]
    words = [f"console={processor.console}", "panic=-1", "loglevel=7", "printk.devkmsg=on", "systemd.show_status=no", "mitigations=off",
             # With random addresses, the emulator translates the code of each process again, and stands still for seconds once such a page
             # gets other contents.
             "norandmaps", "random.trust_cpu=on", f"lab.journal={processor.journal}", f"lab.ramdisks={len(disks)}", *processor.arguments, *arguments]
    bus = processor.bus
    firmware = [word for credential in scenario.credentials if kernel.processor is PROCESSORS["amd64"]
                for word in ("-smbios", f"type=11,value=io.systemd.credential.binary:{credential}")]
    first, second = (f"file,id={name},path=/proc/self/fd/{file.fileno()},append=on" for name, file in (("console", console), ("journal", journal)))
    return [
        # In one thread: with a thread for each processor, one may run code that another has just patched, and the kernel stops with "int3".
        processor.emulator, "-accel", "tcg,thread=single", *processor.options, "-smp", str(scenario.cpus), "-m", str(scenario.memory >> 20),
        "-nodefaults", "-no-user-config", "-display", "none", *firmware,
        # A reboot ends it, and the caller starts the next boot.
        "-no-reboot",
        "-kernel", str(kernel.executable), "-initrd", str(kernel.initrd), "-append", " ".join(words),
        *(word for number, (path, speed) in enumerate(disks) for word in (
            "-drive", f"file={path},format=raw,if=none,id=disk{number},cache=unsafe{_limits(speed)}",
            "-device", f"virtio-blk-{bus},drive=disk{number},serial=disk{number}")),
        "-fsdev", f"local,id=lab,path={run / 'share'},security_model=none,multidevs=remap",
        "-device", f"virtio-9p-{bus},fsdev=lab,mount_tag=lab",
        "-device", f"virtio-rng-{bus}",
        "-chardev", first, *(("-device", "sclpconsole,chardev=console") if bus == "ccw" else ("-serial", "chardev:console")),
        "-chardev", second, "-device", f"virtio-serial-{bus}", "-device", "virtconsole,chardev=journal",
    ]


def _limits(speed: tuple[int, int] | None) -> str:
    if not speed:
        return ""
    requests, mib = speed
    return f",throttling.iops-total={requests},throttling.bps-total={mib << 20}"
