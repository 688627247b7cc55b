"""`scrapy seed` as an operator runs it: a process of its own, with a store of its own."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

import pytest
from scrapy.settings import Settings

from linkcrawl.commands.seed import Command
from linkcrawl.errors import StoreLost
from linkcrawl.stores.contract import Store

ROOT = Path(__file__).parents[2]


def seed(folder: Path, *args: str, stdin: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("LINKCRAWL_")}
    settings = {"LINKCRAWL_STORE": f"sqlite:///{folder / 'links.db'}", "SCRAPY_SETTINGS_MODULE": "linkcrawl.settings"}
    return subprocess.run(
        [sys.executable, "-m", "scrapy", "seed", *args, "-s", f"LINKCRAWL_REJECTS={folder / 'rejects.jsonl'}"],
        cwd=folder,
        env=kept | {"PYTHONPATH": str(ROOT)} | settings | environment,
        input=stdin,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_counts_are_printed_and_known_links_are_known(tmp_path: Path) -> None:
    (tmp_path / "1.txt").write_text("http://a.example/\nno url\nhttp://b.example/\nhttp://A.example/\n")
    first = seed(tmp_path, "1.txt")
    assert (first.returncode, first.stdout) == (
        0,
        "4 read, 2 new, 1 known, 1 rejected\n"
        f"rejected lines are in {tmp_path / 'rejects.jsonl'}, with file, line number and reason\n",
    )
    assert first.stderr == "rejected 1.txt:2: url has no scheme\n"
    second = seed(tmp_path, "-", stdin='{"url": "http://a.example/"}\n')
    assert (second.returncode, second.stdout, second.stderr) == (0, "1 read, 0 new, 1 known, 0 rejected\n", "")


@pytest.mark.parametrize(
    ("args", "environment", "said"),
    [
        (["missing.txt"], {}, "seeds: 'missing.txt' can't be read: No such file or directory"),
        (["other.json"], {}, "seeds: 'other.json' has no suffix that is understood"),
        (["mysql://me:secret@host/x"], {}, "seeds: 'mysql://host/x' is not understood"),
        (["1.txt"], {"LINKCRAWL_STORE": "nonsense"}, "LINKCRAWL_STORE: 'nonsense' is not understood"),
        (["1.txt"], {"LINKCRAWL_STOER": "x"}, "LINKCRAWL_STOER: no such setting"),
    ],
)
def test_unusable_input_is_one_line_and_status_2(
    tmp_path: Path, args: list[str], environment: dict[str, str], said: str
) -> None:
    (tmp_path / "1.txt").write_text("http://a.example/\n")
    (tmp_path / "other.json").write_text("{}")
    done = seed(tmp_path, *args, **environment)
    assert done.returncode == 2
    assert done.stderr.startswith(f"linkcrawl: {said}")
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""


def test_no_source_is_a_usage_error(tmp_path: Path) -> None:
    done = seed(tmp_path)
    assert done.returncode == 2
    assert "SOURCE" in done.stderr


def test_a_lost_store_is_status_1(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def lost(url: str) -> Store:
        raise StoreLost("the disk is full")

    monkeypatch.setattr("linkcrawl.commands.seed.open_store", lost)
    command = Command()
    command.settings = Settings()
    command.settings.setmodule("linkcrawl.settings")
    command.run(["-"], argparse.Namespace(complete=None, dry_run=False, force=False))
    assert command.exitcode == 1
    assert capsys.readouterr().err == "linkcrawl: the disk is full\n"
