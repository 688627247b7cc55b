"""`scrapy audit` and `scrapy hosts` as an operator types them: exit statuses, and lines that say what would work."""

from __future__ import annotations

import argparse
import json
from contextlib import closing
from pathlib import Path

import pytest
from scrapy.settings import Settings

from linkcrawl import settings as defaults
from linkcrawl.audit.log import AuditEntry
from linkcrawl.commands import audit, explain, hosts
from linkcrawl.ingest.ingest import link_entry
from linkcrawl.items import Seed
from linkcrawl.stores.opening import open_store

KEPT = [
    AuditEntry(0, 1, "a", "a", 1.0, "DOWNLOAD_DELAY", (), "HEAD", 200),
    AuditEntry(2.5, 3, "a", "a", 1.0, "x", (), "GET", 200),
]
BROKEN = [*KEPT, AuditEntry(3.5, 4, "a", "a", 1.0, "back-off", (), "HEAD", 200)]


def run(module: object, folder: Path, *typed: str, **changes: object) -> int:
    """The command's exit status."""
    made = module.Command()  # type: ignore[attr-defined]
    told = {name: value for name, value in vars(defaults).items() if name.isupper()}
    store = {"LINKCRAWL_STORE": f"sqlite:///{folder}/links.db", "LINKCRAWL_AUDIT": str(folder / "audit.jsonl")}
    made.settings = Settings({**told, **store, **changes})
    parser = argparse.ArgumentParser(conflict_handler="resolve")
    made.add_options(parser)
    options, arguments = parser.parse_known_args(typed)
    made.run(arguments, options)
    return int(made.exitcode)


@pytest.mark.parametrize(
    ("lines", "typed", "delay", "status", "said"),
    [
        (KEPT, [], 1.0, 0, "2 requests, 0 violations"),
        (BROKEN, [], 1.0, 1, "3 requests, 1 violations"),
        (KEPT, ["--rules"], 1.5, 0, "0 violations"),
        (KEPT, ["--rules"], 2.0, 1, "1 violations"),
        (KEPT, ["--format", "json"], 1.0, 0, '"smallest_gap": 1.5'),
    ],
)
def test_audit(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    lines: list[AuditEntry],
    typed: list[str],
    delay: float,
    status: int,
    said: str,
) -> None:
    (tmp_path / "audit.jsonl").write_text("".join(line.text() + "\n" for line in lines))
    assert run(audit, tmp_path, *typed, DOWNLOAD_DELAY=delay) == status
    assert said in capsys.readouterr().out


def test_audit_of_what_is_no_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(audit, tmp_path) == 2
    assert "audit.jsonl: No such file or directory" in capsys.readouterr().err
    (tmp_path / "other").write_text("x\n")
    assert run(audit, tmp_path, str(tmp_path / "other")) == 2
    assert "other:1: not a line of an audit log: 'x'" in capsys.readouterr().err
    assert run(audit, tmp_path, LINKCRAWL_AUDIT="") == 2
    assert "LINKCRAWL_AUDIT: is empty" in capsys.readouterr().err


def test_audit_reads_on_past_torn_lines_and_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    torn = "".join(f'[{number},"half\n' for number in range(9))
    text = f"{BROKEN[0].text()}\n{torn}" + "".join(line.text() + "\n" for line in BROKEN[1:])
    (tmp_path / "audit.jsonl").write_text(text)
    assert run(audit, tmp_path, "--format", "json") == 1
    told = capsys.readouterr()
    assert [row["requests"] for row in json.loads(told.out)] == [3]
    lines = told.err.splitlines()
    assert len(lines) == 6
    assert "audit.jsonl:2: not a line of an audit log: '[0,\"half'" in lines[0]
    assert lines[-1] == "linkcrawl: requests of 9 lines are missing from this proof"


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (["blok", "a"], "'blok' is not known; list, show, block, unblock, letter would work"),
        (["show"], "needs one host"),
        (["list", "a"], "takes no host"),
        (["show", "a b"], "is not a host"),
        (["show", "a", "--collection", "x"], "--collection is for list"),
        (["show", "a", "--reason", "x"], "--reason and --until are for block"),
        (["block", "a"], "--reason 'asked by their administrator' would work"),
        (["block", "a", "--reason", "\x1b[31m"], "is not a line of text"),
        (["block", "a", "--reason", "x", "--until", "2001-01-01"], "is over; a later time would work"),
        (["block", "a", "--reason", "x", "--until", "soon"], "is not a time"),
        (["list"], "there is no store"),
    ],
)
def test_what_hosts_can_not_do(tmp_path: Path, capsys: pytest.CaptureFixture[str], typed: list[str], said: str) -> None:
    assert run(hosts, tmp_path, *typed) == 2
    told = capsys.readouterr()
    assert said in told.err
    assert told.out == ""
    assert len(told.err.splitlines()) == 1


def test_a_host_may_be_blocked_before_the_first_crawl(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(hosts, tmp_path, "block", "a.example", "--reason", "asked", "--until", "2999-01-01") == 0
    told = capsys.readouterr().out
    assert "a.example is blocked until 2999-01-01T00:00:00.000Z: asked" in told
    assert "is it spelt right?" in told
    assert run(hosts, tmp_path) == 0
    assert capsys.readouterr().out.splitlines()[1].split()[:2] == ["a.example", "blocked"]
    assert run(hosts, tmp_path, "unblock", "a.example") == 0
    assert "a.example is open again" in capsys.readouterr().out
    assert run(hosts, tmp_path, "unblock", "a.example") == 0
    assert "a.example was not blocked" in capsys.readouterr().out


def test_explain_needs_one_url(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(explain, tmp_path) == 2
    assert "one URL is needed" in capsys.readouterr().err


def test_hosts_of_a_collection_and_when_its_links_can_all_have_been_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with closing(open_store(f"sqlite:///{tmp_path}/links.db")) as store:
        places = [("large.example", "one", 100), ("large.example", "two", 3), ("small.example", "two", 5)]
        for host, collection, links in places:
            urls = [f"http://{host}/{collection}/{number}" for number in range(links)]
            store.add([link_entry(Seed(url=url, collection=collection)) for url in urls])
    settings = {"LINKCRAWL_STORE": f"sqlite:///{tmp_path}/links.db", "DOWNLOAD_DELAY": "2"}
    assert run(hosts, tmp_path, "list", "--collection", "two", **settings) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[1:3]] == ["large.example", "small.example"]
    assert "8 links of two are due; the last is asked not before 3.4 min from now" in lines[-1]
    assert run(hosts, tmp_path, "list", "--collection", "two", "--format", "json", **settings) == 0
    assert [(row["host"], row["due"]) for row in json.loads(capsys.readouterr().out)] == [
        ("large.example", 3),
        ("small.example", 5),
    ]
    assert run(hosts, tmp_path, "list", "--collection", "three", **settings) == 0
    assert "no such links" in capsys.readouterr().out
