"""Debian's archive, accessed through apt with a separate state: the machine's package lists and sources are not changed."""

import re
import time
from pathlib import Path

from . import LabError, cache, command

KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
LISTS_FRESH_FOR = 7 * 24 * 3600  # seconds; fresh lists are not downloaded again


class Archive:
    """The packages of one suite, for this machine's architecture or another one."""

    def __init__(self, suite: str, architecture: str = ""):
        self.suite = suite
        self._architecture = architecture if architecture != native() else ""
        name = f"apt-{suite}-{architecture}" if self._architecture else f"apt-{suite}"
        self._home = cache.root() / name
        self.sources = self._home / "sources.list"
        with cache.lock(name):
            self._refresh()

    def show(self, package: str) -> dict[str, str]:
        """The control fields of the newest version of a package."""
        text = command.run(f"find {package} in {self.suite}", "apt-cache", *self._options(),
                           "show", "--no-all-versions", package)
        return dict(re.findall(r"^([\w-]+): (.*)$", text, re.MULTILINE))

    def download(self, package: str, into: Path) -> Path:
        """Downloads a package into a directory and returns the path of the .deb file."""
        command.run(f"download {package} from {self.suite}", "apt-get", *self._options(), "download", package, cwd=into)
        return next(into.glob(f"{package}_*.deb"))

    def download_all(self, packages: list[str], into: Path) -> list[Path]:
        """Downloads packages and their dependencies into a directory and returns the paths of the .deb files."""
        (into / "partial").mkdir()
        command.run(f"download {packages[0]} of {self.suite} and what it depends on", "apt-get", *self._options(),
                    "-o", f"Dir::Cache::Archives={into}", "install", "--yes", "--no-install-recommends", "--download-only",
                    *packages)
        return sorted(into.glob("*.deb"))

    def _refresh(self) -> None:
        stamp = self._home / "refreshed"
        if stamp.exists() and time.time() - stamp.stat().st_mtime < LISTS_FRESH_FOR:
            return
        for part in ("lists/partial", "cache/archives/partial"):
            (self._home / part).mkdir(parents=True, exist_ok=True)
        (self._home / "status").touch()
        self.sources.write_text(f"deb [signed-by={KEYRING}] {_base_uri()} {self.suite} main\n")
        try:
            command.run(f"fetch the package lists of {self.suite}", "apt-get", *self._options(), "update",
                        "--error-on=any")
        except LabError as error:
            if not stamp.exists():
                raise
            print(f"{error}\ngoing on with the lists of {time.ctime(stamp.stat().st_mtime)}")
            return
        stamp.touch()

    def _options(self) -> list[str]:
        settings = {
            "Dir::Etc::SourceList": self.sources,
            "Dir::Etc::SourceParts": "-",
            "Dir::Etc::Preferences": "-",
            "Dir::Etc::PreferencesParts": "-",
            "Dir::State::Lists": self._home / "lists",
            "Dir::State::status": self._home / "status",
            "Dir::Cache": self._home / "cache",
            "Acquire::Languages": "none",
            "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled": "false",
            "APT::Sandbox::User": "root",
        }
        if self._architecture:
            settings |= {"APT::Architecture": self._architecture, "APT::Architectures": self._architecture}
        return [word for name, value in settings.items() for word in ("-o", f"{name}={value}")]


def native() -> str:
    """Debian's name of this machine's architecture."""
    return command.run("ask for the architecture", "dpkg", "--print-architecture").strip()


def _base_uri() -> str:
    """The mirror of Debian's main archive that this machine uses, with any suite."""
    targets = command.run("read the machine's apt configuration", "apt-get", "indextargets",
                          "--format", "$(LABEL) $(COMPONENT) $(RELEASE) $(REPO_URI)", "Created-By: Packages")
    for line in targets.splitlines():
        label, component, release, uri = line.split(" ", 3)
        if (label, component) == ("Debian", "main") and "-" not in release:
            return uri
    raise LabError("this machine's apt configuration has no Debian archive (run apt-get update if it is only empty)")
