"""Sees to it that tests have the programs that judge what is no Python: `python scripts/programs.py`.

Chromium shows the report; systemd, logrotate and Prometheus read their own files of deploy/. What is on PATH is taken.
What is missing comes from Debian's or Ubuntu's packages: root gets it installed, a package that would start a server is
only unpacked, into `.servers/`. What can't be had is said, and with CI=true the exit status is 1.
"""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from attrs import field, frozen

SERVERS = Path(__file__).resolve().parent.parent / ".servers"
#: Where programs are that only root has on PATH.
FOR_ROOT = "/usr/sbin"


class Missing(Exception):
    """A package can't be had. Its text says why."""


@frozen(kw_only=True)
class Program:
    """A program and its package in Debian. `names`: what else distributions call it. `inside`: its place in a package
    that is only unpacked."""

    name: str
    package: str
    names: tuple[str, ...] = field(default=())
    inside: str | None = None

    def path(self) -> str | None:
        """Where it is, or None."""
        names = (self.name, *self.names)
        known = [shutil.which(name) or shutil.which(name, path=FOR_ROOT) for name in names]
        if self.inside is not None and (SERVERS / self.inside).exists():
            known.append(str(SERVERS / self.inside))
        return next(filter(None, known), None)


ALL = (
    Program(name="chromium", package="chromium", names=("chromium-browser", "google-chrome")),
    Program(name="chromedriver", package="chromium-driver"),
    Program(name="systemd-analyze", package="systemd"),
    Program(name="logrotate", package="logrotate"),
    Program(name="promtool", package="prometheus", inside="usr/bin/promtool"),
)


def path_of(name: str) -> str | None:
    """The path of one of these programs, or None where it is missing."""
    (program,) = [program for program in ALL if program.name == name]
    return program.path()


def install(packages: list[str]) -> None:
    """Install packages; raises Missing."""
    _run("apt-get", "update", "-qq")
    if packages:
        _run("apt-get", "install", "-y", "-qq", *packages)


def unpack(program: Program) -> None:
    """Put a program of a package into `.servers/`, and nothing else of it; raises Missing."""
    assert program.inside is not None
    with tempfile.TemporaryDirectory() as folder:
        _run("apt-get", "download", "-qq", "-o", "APT::Sandbox::User=root", program.package, cwd=folder)
        (package,) = Path(folder).glob("*.deb")
        packed = _run("dpkg-deb", "--fsys-tarfile", str(package))
        with tarfile.open(fileobj=io.BytesIO(packed)) as files:
            inside = files.extractfile(f"./{program.inside}")
            assert inside is not None
            path = SERVERS / program.inside
            path.parent.mkdir(parents=True, exist_ok=True)
            part = path.with_suffix(".part")  # who is interrupted leaves no half program behind
            part.write_bytes(inside.read())
            part.chmod(0o755)
            part.replace(path)


def _run(*command: str, cwd: str | None = None) -> bytes:
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    try:
        done = subprocess.run(command, cwd=cwd, env=environment, stdin=subprocess.DEVNULL, capture_output=True)
    except FileNotFoundError:
        raise Missing(f"there is no {command[0]}") from None
    if done.returncode != 0:
        words = " ".join(done.stderr.decode(errors="replace").split())[-300:]
        raise Missing(f"`{' '.join(command)}` failed: {words}")
    return done.stdout


def get(missing: list[Program]) -> list[str]:
    """Install or unpack them; why that was not possible."""
    why = []
    installed = [program.package for program in missing if program.inside is None]
    try:
        if os.geteuid() == 0:
            install(installed)
        elif installed:
            why.append("only root may install packages")
        for program in missing:
            if program.inside is not None:
                unpack(program)
    except Missing as lack:
        why.append(str(lack))
    return why


def main() -> int:
    missing = [program for program in ALL if program.path() is None]
    if not missing:
        return 0
    print(f"Getting {', '.join(program.package for program in missing)} …", flush=True)
    why = get(missing)
    missing = [program for program in missing if program.path() is None]
    if not missing:
        return 0
    print(
        f"Missing on PATH: {', '.join(program.name for program in missing)} "
        f"({'; '.join(why) or 'the packages hold no such program'}). "
        f"`apt-get install {' '.join(program.package for program in missing)}` would work; "
        "until then the tests that need them are skipped.",
        file=sys.stderr,
    )
    return 1 if os.environ.get("CI") == "true" else 0


if __name__ == "__main__":
    sys.exit(main())
