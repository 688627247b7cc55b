"""However a command is stopped from outside, it ends with one line, a status, and no traceback."""

from __future__ import annotations

import argparse
import importlib
import os
import pkgutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from scrapy.settings import Settings

from linkcrawl import commands
from linkcrawl.cli.errors import reporting_faults
from linkcrawl.commands import report
from linkcrawl.errors import ConfigError, StoreBusy, StoreError, StoreLost

ENDS: list[tuple[BaseException, int, str]] = [
    (ConfigError("LINKCRAWL_X: no such setting"), 2, "linkcrawl: LINKCRAWL_X: no such setting\n"),
    (StoreError("no store"), 2, "linkcrawl: no store\n"),
    (StoreBusy("another crawl"), 2, "linkcrawl: another crawl\n"),
    (StoreLost("the disk is full"), 1, "linkcrawl: the disk is full\n"),
    (KeyboardInterrupt(), 130, ""),
]


@pytest.mark.parametrize(("fault", "status", "said"), ENDS, ids=lambda value: type(value).__name__)
def test_what_stops_a_command(capsys: pytest.CaptureFixture[str], fault: BaseException, status: int, said: str) -> None:
    command = report.Command()
    with reporting_faults(command):
        raise fault
    assert command.exitcode == status
    assert capsys.readouterr() == ("", said)


def test_sigterm_is_as_ctrl_c_and_only_meanwhile() -> None:
    command, before = report.Command(), signal.getsignal(signal.SIGTERM)
    with reporting_faults(command):
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(60)
    assert command.exitcode == 130
    assert signal.getsignal(signal.SIGTERM) is before


@pytest.mark.parametrize("words", ["print('x' * 9)", "print('x' * 999_999)"])
def test_a_place_without_room_is_reporting_faults(words: str) -> None:
    program = f"""
import sys
from linkcrawl.commands.report import Command
from linkcrawl.cli.errors import reporting_faults
command = Command()
with reporting_faults(command):
    {words}
sys.exit(command.exitcode)
"""
    with Path("/dev/full").open("w") as full:
        ended = subprocess.run(
            [sys.executable, "-c", program], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60
        )
    assert ended.returncode == 2
    assert ended.stderr == "linkcrawl: standard output: No space left on device; a place with room would work\n"


def test_other_faults_of_the_system_are_not_hidden() -> None:
    with pytest.raises(PermissionError), reporting_faults(report.Command()):
        raise PermissionError(13, "Permission denied")


@pytest.mark.parametrize("words", ["print('x' * 9)", "print('x' * 999_999)", "sys.stdout.buffer.write(b'x' * 99)"])
def test_a_reader_that_has_seen_enough_is_no_fault(words: str) -> None:
    """However much Python still holds for it when it goes."""
    program = f"""
import sys
from linkcrawl.commands.report import Command
from linkcrawl.cli.errors import reporting_faults
with reporting_faults(Command()):
    sys.stdin.read()
    {words}
"""
    reading, writing = os.pipe()
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=writing, stderr=subprocess.PIPE
    ) as process:
        os.close(writing)
        os.close(reading)
        assert process.communicate(b"")[1] == b""
    assert process.returncode == 0


def test_a_command_that_is_terminated_leaves_no_half_file(tmp_path: Path) -> None:
    program = f"""
import sys, time
from pathlib import Path
from linkcrawl.commands.report import Command
from linkcrawl.cli.errors import reporting_faults
from linkcrawl.exports.output import written
command = Command()
with reporting_faults(command), written({str(tmp_path / "x.jsonl")!r}) as file:
    file.write(b"half")
    print("begun", flush=True)
    time.sleep(60)
sys.exit(command.exitcode)
"""
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as process:
        assert process.stdout
        assert process.stdout.readline() == b"begun\n"
        process.terminate()
    assert process.returncode == 130
    assert list(tmp_path.iterdir()) == []


def test_a_fault_of_ours_keeps_its_traceback() -> None:
    with pytest.raises(ZeroDivisionError), reporting_faults(report.Command()):
        1 / 0  # noqa: B018


NAMES = sorted(module.name for module in pkgutil.iter_modules(commands.__path__) if module.name != "crawl")


@pytest.mark.parametrize("name", NAMES)
def test_every_command_ends_so(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str) -> None:
    """All but `crawl`, which Scrapy runs and which ends by its spider's reason."""
    module = importlib.import_module(f"linkcrawl.commands.{name}")
    command = module.Command()
    command.settings = Settings()
    command.settings.setmodule("linkcrawl.settings")

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("linkcrawl.cli.options.read_config", interrupted)
    parser = argparse.ArgumentParser(conflict_handler="resolve")
    command.add_options(parser)
    words = {
        "report": ["-o", "x.json"],
        "export": ["-o", "x.jsonl"],
        "purge": ["--url", "http://a.example/", "--yes"],
    }.get(name, [])
    args = {
        "copy-store": ["sqlite:///a.db", "sqlite:///b.db"],
        "explain": ["http://a.example/"],
        "history": ["http://a.example/"],
        "recheck": ["http://a.example/"],
        "migrate-legacy": ["mongodb://h/db"],
        "seed": ["x.txt"],
    }.get(name, [])
    command.run(args, parser.parse_args(words))
    assert command.exitcode == 130
    assert capsys.readouterr() == ("", "")
