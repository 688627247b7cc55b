"""`scripts/browser.py`: takes what is on PATH, installs as root, else says what is missing; on CI that is a failure."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts import browser

APT = """#!/bin/sh
echo "$@" >> {folder}/asked
case "$1" in install) {done} ;; esac
"""
INSTALLS = "for name in chromium chromedriver; do echo > {folder}/$name; chmod +x {folder}/$name; done"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder on PATH; the tests are root, and not on CI."""
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/sbin/none")
    monkeypatch.setattr(browser.os, "geteuid", lambda: 0)
    monkeypatch.delenv("CI", raising=False)
    return tmp_path


def program(folder: Path, name: str, text: str = "") -> None:
    path = folder / name
    path.write_text(text)
    path.chmod(0o755)


def apt(folder: Path, done: str) -> None:
    """An apt-get with this way of installing. It runs without PATH's help: the shell is named in full."""
    installs = done.replace("{folder}", str(folder)).replace("chmod", "/bin/chmod")
    program(folder, "apt-get", APT.replace("{folder}", str(folder)).replace("{done}", installs))


@pytest.mark.parametrize("name", ["chromium", "chromium-browser", "google-chrome"])
def test_what_is_on_path_is_taken(folder: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    program(folder, name)
    program(folder, "chromedriver")
    assert browser.main() == 0
    assert browser.found() == {"chromium": str(folder / name), "chromedriver": str(folder / "chromedriver")}
    assert capsys.readouterr().out == ""


def test_root_gets_what_is_missing(folder: Path) -> None:
    program(folder, "chromium")
    apt(folder, INSTALLS)
    assert browser.main() == 0
    assert browser.found().keys() == browser.PROGRAMS.keys()
    assert (folder / "asked").read_text().splitlines() == ["update -qq", "install -y -qq chromium chromium-driver"]


@pytest.mark.parametrize("ci", [True, False])
@pytest.mark.parametrize(
    ("kind", "why"),
    [
        ("no apt", "there is no apt-get"),
        ("no root", "only root may install packages"),
        ("fails", "`apt-get install -y -qq chromium chromium-driver` failed: no space left"),
        ("empty", "the packages hold no such program"),
    ],
)
def test_what_cannot_be_had_is_said_and_fails_on_ci(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], kind: str, why: str, ci: bool
) -> None:
    if kind != "no apt":
        apt(folder, {"fails": "echo no space left >&2; exit 100"}.get(kind, ":"))
    if kind == "no root":
        monkeypatch.setattr(browser.os, "geteuid", lambda: 1000)
    if ci:
        monkeypatch.setenv("CI", "true")
    assert browser.main() == int(ci)
    told = capsys.readouterr().err
    assert told.startswith(f"Missing on PATH: chromedriver, chromium ({why}).")
    assert told.count("\n") == 1
