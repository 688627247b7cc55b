"""`scripts/programs.py`: takes what is on PATH, installs or unpacks, else says what is missing, and fails on CI."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from scripts import programs

APT = """#!/bin/sh
echo "$@" >> {folder}/asked
case "$1" in install) {install} ;; download) {download} ;; esac
"""
#: As dpkg-deb gives a package's files: with a program of the package, and one that nobody wants.
PACKED = "#!/bin/sh\n/bin/cat {folder}/files.tar\n"
INSTALLED = ("chromedriver", "chromium", "logrotate", "systemd-analyze")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder on PATH; the tests are root, and not on CI."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(programs, "FOR_ROOT", str(tmp_path / "none"))
    monkeypatch.setattr(programs, "SERVERS", tmp_path / "servers")
    monkeypatch.setattr(programs.os, "geteuid", lambda: 0)
    monkeypatch.delenv("CI", raising=False)
    return tmp_path


def program(folder: Path, name: str, text: str = "") -> None:
    path = folder / name
    path.write_text(text)
    path.chmod(0o755)


def apt(folder: Path, install: str = ":", download: str = ":") -> None:
    """An apt-get with these ways of doing things. PATH is no help to it: the shell's programs are named in full."""
    program(folder, "apt-get", APT.format(folder=folder, install=install, download=download))
    inside = folder / "package/usr/bin"
    inside.mkdir(parents=True)
    program(inside, "promtool")
    program(inside, "prometheus")
    subprocess.run(["/bin/tar", "-cf", folder / "files.tar", "-C", folder / "package", "."], check=True)
    program(folder, "dpkg-deb", PACKED.format(folder=folder))


def brings(folder: Path, *names: str) -> str:
    return "; ".join(f"echo > {folder}/{name}; /bin/chmod +x {folder}/{name}" for name in names)


DOWNLOADS = "echo > prometheus_1.deb"


@pytest.mark.parametrize("name", ["chromium", "chromium-browser", "google-chrome"])
def test_what_is_on_path_is_taken(folder: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    for each in (name, "chromedriver", "logrotate", "systemd-analyze", "promtool"):
        program(folder, each)
    assert programs.main() == 0
    assert programs.path_of("chromium") == str(folder / name)
    assert programs.path_of("promtool") == str(folder / "promtool")
    assert capsys.readouterr().out == ""


def test_what_only_root_has_on_path_is_taken(folder: Path) -> None:
    (folder / "none").mkdir()
    program(folder / "none", "logrotate")
    assert programs.path_of("logrotate") == str(folder / "none/logrotate")


def test_root_gets_what_is_missing(folder: Path) -> None:
    program(folder, "chromium")
    apt(folder, brings(folder, *INSTALLED), DOWNLOADS)
    assert programs.main() == 0
    asked = [line.split(" -o ")[0] for line in (folder / "asked").read_text().splitlines()]
    assert asked == [
        "update -qq",
        "install -y -qq chromium-driver systemd logrotate",
        "download -qq",
    ]
    assert programs.path_of("promtool") == str(folder / "servers/usr/bin/promtool")
    assert [path.name for path in (folder / "servers/usr/bin").iterdir()] == ["promtool"]
    assert programs.main() == 0
    assert len((folder / "asked").read_text().splitlines()) == 3, "it asks again for what is there"


def test_nobody_needs_root_to_unpack(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for each in INSTALLED:
        program(folder, each)
    apt(folder, download=DOWNLOADS)
    monkeypatch.setattr(programs.os, "geteuid", lambda: 1000)
    assert programs.main() == 0
    assert programs.path_of("promtool") == str(folder / "servers/usr/bin/promtool")


@pytest.mark.parametrize("ci", [True, False])
@pytest.mark.parametrize(
    ("kind", "why"),
    [
        ("no apt", "there is no apt-get"),
        ("no root", "only root may install packages"),
        ("fails", "`apt-get install -y -qq chromium chromium-driver systemd logrotate` failed: no space left"),
        ("empty", "the packages hold no such program"),
    ],
)
def test_what_cannot_be_had_is_said_and_fails_on_ci(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], kind: str, why: str, ci: bool
) -> None:
    if kind != "no apt":
        apt(folder, {"fails": "echo no space left >&2; exit 100"}.get(kind, ":"), DOWNLOADS)
    if kind == "no root":
        monkeypatch.setattr(programs.os, "geteuid", lambda: 1000)
    if ci:
        monkeypatch.setenv("CI", "true")
    assert programs.main() == int(ci)
    told = capsys.readouterr().err
    assert told.startswith("Missing on PATH: chromium, chromedriver, systemd-analyze, logrotate")
    assert why in told
    assert told.count("\n") == 1
