"""Debian's archive, seen through apt with a state of its own: the machine's lists and sources stay as they are."""

import re
import time
from pathlib import Path

from . import LabError, cache, command

KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
LISTS_FRESH_FOR = 7 * 24 * 3600  # seconds; a warm run asks nobody


class Archive:
    """The packages of one suite."""

    def __init__(self, suite: str):
        self.suite = suite
        self._home = cache.root() / f"apt-{suite}"
        self.sources = self._home / "sources.list"
        with cache.lock(f"apt-{suite}"):
            self._refresh()

    def show(self, package: str) -> dict[str, str]:
        """The fields of a package's newest version."""
        text = command.run(f"find {package} in {self.suite}", "apt-cache", *self._options(),
                           "show", "--no-all-versions", package)
        return dict(re.findall(r"^([\w-]+): (.*)$", text, re.MULTILINE))

    def download(self, package: str, into: Path) -> Path:
        """Puts a package's .deb into a directory and returns its path."""
        command.run(f"download {package} from {self.suite}", "apt-get", *self._options(), "download", package, cwd=into)
        return next(into.glob(f"{package}_*.deb"))

    def download_all(self, packages: list[str], into: Path) -> list[Path]:
        """Puts packages and all that they depend on into a directory and returns the paths of the .deb files."""
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
        return [word for name, value in settings.items() for word in ("-o", f"{name}={value}")]


def _base_uri() -> str:
    """Where this machine gets Debian's main archive from, whatever suite it follows itself."""
    targets = command.run("read the machine's apt configuration", "apt-get", "indextargets",
                          "--format", "$(LABEL) $(COMPONENT) $(RELEASE) $(REPO_URI)", "Created-By: Packages")
    for line in targets.splitlines():
        label, component, release, uri = line.split(" ", 3)
        if (label, component) == ("Debian", "main") and "-" not in release:
            return uri
    raise LabError("this machine's apt configuration has no Debian archive (run apt-get update if it is only empty)")
