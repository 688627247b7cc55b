"""However a command is stopped from outside, it ends with one line, a status, and no traceback."""

from __future__ import annotations

import argparse
import importlib
import pkgutil

import pytest
from scrapy.settings import Settings

from linkcrawl import commands
from linkcrawl.commands import report
from linkcrawl.config import ConfigError
from linkcrawl.exits import one_line
from linkcrawl.stores import StoreBusy, StoreError, StoreLost

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
    with one_line(command):
        raise fault
    assert command.exitcode == status
    assert capsys.readouterr() == ("", said)


def test_a_fault_of_ours_keeps_its_traceback() -> None:
    with pytest.raises(ZeroDivisionError), one_line(report.Command()):
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

    for reads in ("read_config", "config_of"):
        if hasattr(module, reads):
            monkeypatch.setattr(module, reads, interrupted)
    parser = argparse.ArgumentParser(conflict_handler="resolve")
    command.add_options(parser)
    words = {"report": ["-o", "x.json"], "export": ["-o", "x.jsonl"]}.get(name, [])
    args = {"explain": ["http://a.example/"], "seed": ["x.txt"], "migrate-legacy": ["mongodb://h/db"]}.get(name, [])
    command.run(args, parser.parse_args(words))
    assert command.exitcode == 130
    assert capsys.readouterr() == ("", "")
