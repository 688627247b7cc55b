"""`make demo`, a newcomer's first command: it ends well, shows what it promises, and the servers confirm the pauses."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from tests.docs.pages import ROOT

SLACK = 0.005  # seconds; the servers' clock readings and ours are not taken at the same instant


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The demo run from a copy of its own, so that nobody's output is overwritten: its folder and what it printed."""
    folder = tmp_path_factory.mktemp("checkout")
    shutil.copytree(ROOT / "demo", folder / "demo", ignore=shutil.ignore_patterns("out", "__pycache__"))
    shutil.copy(ROOT / "scrapy.cfg", folder)
    # The settings of a crawl of one's own must not reach the demo.
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "LINKCRAWL_STORE": "sqlite:////nowhere/at/all.db"}
    run = subprocess.run(
        [sys.executable, str(folder / "demo" / "run.py")],
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert run.stderr == ""
    return folder / "demo" / "out", run.stdout


def json_lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_every_link_has_one_record(demo: tuple[Path, str]) -> None:
    out, _ = demo
    rejected = {json.loads(row["text"])["url"] for row in json_lines(out / "rejects.jsonl")}
    asked = {row["url"] for row in json_lines(out / "seeds.jsonl")} - rejected
    assert sorted(row["url"] for row in json_lines(out / "checks.jsonl")) == sorted(asked)
    assert len(rejected) == 1


def test_each_category_is_met_and_shown(demo: tuple[Path, str]) -> None:
    out, printed = demo
    met = {row["category"] for row in json_lines(out / "checks.jsonl")}
    assert met == {"Ok", "Broken", "Undetermined", "Restricted_Access", "Blocked_By_Robots_txt", "Invalid_URL"}
    assert all(f" {category} " in printed for category in met)


def test_the_servers_confirm_the_pauses(demo: tuple[Path, str]) -> None:
    """By their own log: from the end of an answer to the next request, the first one after robots.txt included."""
    out, _ = demo
    visits: dict[object, list[tuple[float, float]]] = {}
    for row in json_lines(out / "site.jsonl"):
        visits.setdefault(row["host"], []).append((row["started"], row["ended"]))
    assert len(visits) == 11
    for host, times in visits.items():
        promised = 1.0 if host == "127.0.10.10" else 0.3
        pauses = [after[0] - before[1] for before, after in pairwise(sorted(times))]
        assert min(pauses) >= promised - SLACK, host
