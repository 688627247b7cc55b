"""`scrapy report` as an analyst types it; and the commands that its page tells yield as many rows as a number says."""

from __future__ import annotations

import gzip
import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from lxml import html

from linkcrawl.items import Category
from linkcrawl.stores.contract import Store
from linkcrawl.stores.opening import open_store
from tests.contract.making import check, entry, link
from tests.crawl.harness import LIMIT, Crawler, environment
from tests.unit.report_kit import NOW, fill, moved

NAME = """it's "q" $(touch run) `x` \\ & ; #"""


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = open_store(f"sqlite:///{tmp_path}/links.db")
    yield opened
    opened.close()


def operator(folder: Path) -> dict[str, str]:
    """An operator's environment, `scrapy` on its PATH."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return environment() | {"LINKCRAWL_STORE": f"sqlite:///{folder}/links.db", "PATH": path}


def run(folder: Path, arguments: Sequence[str]) -> subprocess.CompletedProcess[bytes]:
    command = ["scrapy", "report", *arguments]
    return subprocess.run(command, cwd=folder, env=operator(folder), capture_output=True, timeout=LIMIT)


def test_a_page_a_json_file_and_a_stream(store: Store, tmp_path: Path) -> None:
    fill(store, 200, random.Random(1))
    for name in ("report.html", "report.json", "report.json.gz"):
        done = run(tmp_path, ["-o", name])
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert (tmp_path / "report.html").read_bytes().startswith(b"<!DOCTYPE html>")
    assert json.loads((tmp_path / "report.json").read_bytes())["overall"]["links"] == 200
    assert json.loads(gzip.decompress((tmp_path / "report.json.gz").read_bytes()))["balanced"] is True
    assert json.loads(run(tmp_path, ["-o", "-", "--format", "json"]).stdout)["books"]["links"] == 200


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["-o", "report.pdf"],
            "--format: not given, and 'report.pdf' has no suffix that names one; .html, .htm, .json would work",
        ),
        (["-o", "-"], "--format: not given"),
        (["-o", "no/such/folder.json"], "-o no/such/folder.json"),
        (["-o", "a.json", "b.json"], "'b.json' is not an option"),
        (["-o", "a.json", "-s", "LINKCRAWL_STORE=sqlite:///no/folder/x.db"], "LINKCRAWL_STORE"),
        (["-o", "a.json", "-s", "LINKCRAWL_STROE=x"], "LINKCRAWL_STROE: no such setting"),
    ],
)
def test_what_can_not_be_used_is_said_in_one_line(tmp_path: Path, arguments: list[str], said: str) -> None:
    open_store(f"sqlite:///{tmp_path}/links.db").close()
    done = run(tmp_path, arguments)
    assert done.returncode == 2
    assert done.stderr.decode().count("\n") == 1
    assert said in done.stderr.decode()
    assert not list(tmp_path.glob("*.json"))


def small(store: Store) -> None:
    """A few links of every kind that has a filter of its own, in a collection with a name that a shell may misread."""
    late = {"category": Category.UNDETERMINED, "reason": "timeout", "status": None}
    gone = {"category": Category.BROKEN, "reason": "http_404", "status": 404}
    robots = {"category": Category.BLOCKED_BY_ROBOTS, "reason": "robots_disallowed", "status": None}
    trap = 'https://a.example/"reason": "http_404", "confirmed": false, "status": 404, "mime_matches": false,'
    kinds = [
        *[{}] * 3,
        *[gone] * 2,
        gone | {"confirmed": False},
        late,
        *[robots] * 2,
        {"mime_matches": False, "mime": "text/html"},
        moved("https://a.example/10", "https://b.example/", 301),
        {"final_url": trap, "error": trap},
    ]
    for n, kind in enumerate(kinds):
        names = {"collection": NAME if n % 4 else None, "provider": f"{NAME} P", "expected_mime": "application/pdf"}
        store.add([entry(n, **names)])
        next_at = NOW - 5 if n % 3 == 0 else 4e9
        store.finish([check(link(store, n), NOW - 100 - n, next_at, **kind)])


# A shell function in the place of the command: it tells its arguments, and gives the rows.
SHELL = r"""scrapy() { printf '%s\0' "$@" > arguments; cat rows; }
"""


def test_the_commands_of_the_page_yield_the_rows_of_its_numbers(store: Store, crawler: Crawler, tmp_path: Path) -> None:
    small(store)
    assert run(tmp_path, ["-o", "report.html"]).returncode == 0
    document = html.document_fromstring((tmp_path / "report.html").read_bytes())
    # Hosts and single links have commands of another kind.
    buttons = document.xpath("//button[starts-with(@data-command, 'scrapy export') and not(ancestor::details)]")
    said: dict[str, set[int]] = {}
    for button in buttons:
        said.setdefault(button.get("data-command"), set()).add(int(button.text_content().replace(",", "")))
    assert len(said) > 20

    def rows(command: str, scrapy: str = "") -> int:
        done = subprocess.run(
            ["sh", "-c", scrapy + command], cwd=tmp_path, env=operator(tmp_path), capture_output=True, timeout=LIMIT
        )
        assert done.stderr == b""
        return len([json.loads(line) for line in done.stdout.splitlines()])

    def rows_of_this_process(command: str) -> int:
        """A shell reads and filters, this process exports: a start of Python costs a second."""
        (tmp_path / "rows").write_text("")
        rows(command, SHELL)
        told = crawler.tell(*(tmp_path / "arguments").read_text().split("\0")[:-1])
        assert (told.status, told.stderr) == (0, "")
        (tmp_path / "rows").write_text(told.stdout)
        return rows(command, SHELL)

    assert {command: {rows_of_this_process(command)} for command in said} == said
    assert not [command for command in said if "grep" in command or "awk" in command]
    longest = max(said, key=len)
    assert {rows(longest)} == said[longest]
    assert not (tmp_path / "run").exists()
