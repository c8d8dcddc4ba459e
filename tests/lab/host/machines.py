"""Machines that QEMU emulates: Debian's own kernels and root file systems, and processors of several kinds."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Processor:
    """How QEMU emulates a kind of processor."""

    emulator: str  # a command
    emulator_package: str
    options: tuple[str, ...]
    triplet: str  # of Debian's compiler
    console: str = "ttyS0"
    journal: str = "hvc0"  # the terminal that virtio adds
    bus: str = "pci"  # of virtio's devices
    arguments: tuple[str, ...] = ()  # of the kernel


# By Debian's name of the architecture.
PROCESSORS = {
    "amd64": Processor("qemu-system-x86_64", "qemu-system-x86", ("-M", "pc"), "x86_64-linux-gnu",
                       # On a busy host, old kernels find that the timer does not work, and panic.
                       arguments=("no_timer_check",)),
    "arm64": Processor("qemu-system-aarch64", "qemu-system-arm", ("-M", "virt,gic-version=3", "-cpu", "neoverse-n1"),
                       "aarch64-linux-gnu", console="ttyAMA0"),
    "armhf": Processor("qemu-system-arm", "qemu-system-arm", ("-M", "virt,highmem=off", "-cpu", "cortex-a15"),
                       "arm-linux-gnueabihf", console="ttyAMA0"),
    "riscv64": Processor("qemu-system-riscv64", "qemu-system-misc", ("-M", "virt"), "riscv64-linux-gnu"),
    # Its own console is hvc0.
    "ppc64el": Processor("qemu-system-ppc64", "qemu-system-ppc", ("-M", "pseries", "-cpu", "power9"),
                         "powerpc64le-linux-gnu", console="hvc0", journal="hvc1"),
    "s390x": Processor("qemu-system-s390x", "qemu-system-misc", ("-M", "s390-ccw-virtio", "-cpu", "max"),
                       "s390x-linux-gnu", console="ttysclp0", bus="ccw"),
}


@dataclass(frozen=True)
class Machine:
    """A Debian release on a kind of processor."""

    name: str
    suite: str
    architecture: str
    kernel: str  # a package, possibly one that only depends on the kernel
    kernel_suite: str = ""  # if it is not the one of the root file system
    selinux: str = ""  # "enforcing" or "permissive", with Debian's policy

    @property
    def processor(self) -> Processor:
        """Its kind of processor."""
        return PROCESSORS[self.architecture]

    @property
    def arguments(self) -> tuple[str, ...]:
        """Further arguments of its kernel."""
        if not self.selinux:
            return ()
        # Without a limit for messages of the kernel, no denial is lost.
        return "security=selinux", f"enforcing={int(self.selinux == 'enforcing')}", "sysctl.kernel.printk_ratelimit=0"


# The lab's machines for --kernel.
STOCK = {
    "stock": Machine("stock", "trixie", "amd64", "linux-image-amd64"),
    "backports": Machine("backports", "trixie", "amd64", "linux-image-amd64", "trixie-backports"),
}
MACHINES = (
    Machine("debian-13", "trixie", "amd64", "linux-image-amd64"),
    Machine("debian-12", "bookworm", "amd64", "linux-image-amd64"),
    Machine("debian-11", "bullseye", "amd64", "linux-image-amd64"),
    Machine("debian-unstable", "sid", "amd64", "linux-image-amd64"),
    Machine("debian-13-backports", "trixie", "amd64", "linux-image-amd64", "trixie-backports"),
    Machine("debian-13-selinux", "trixie", "amd64", "linux-image-amd64", selinux="enforcing"),
    Machine("arm64", "trixie", "arm64", "linux-image-arm64"),
    Machine("arm64-16k", "trixie", "arm64", "linux-image-arm64-16k"),
    Machine("armhf", "trixie", "armhf", "linux-image-armmp-lpae"),
    Machine("riscv64", "trixie", "riscv64", "linux-image-riscv64"),
    Machine("ppc64el", "bookworm", "ppc64el", "linux-image-powerpc64le"),
    Machine("s390x", "bookworm", "s390x", "linux-image-s390x"),
)
