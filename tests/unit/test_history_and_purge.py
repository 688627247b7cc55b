"""`scrapy history` and `scrapy purge`, on a store in a file."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from scrapy.commands import ScrapyCommand
from scrapy.settings import Settings

from linkcrawl.commands import history, purge
from linkcrawl.ingest.ingest import link_entry
from linkcrawl.items import Seed, iso
from linkcrawl.stores.contract import Totals
from linkcrawl.stores.opening import open_store
from tests.contract.making import check

T = 1_790_000_000.0
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def url(tmp_path: Path) -> str:
    """A store: links 1 and 2 of A, 2 and 3 of B, 4 retired from A; each checked twice."""
    url = f"sqlite:///{tmp_path}/links.db"
    with closing(open_store(url)) as store:
        for number, collection in ((1, "A"), (2, "A"), (2, "B"), (3, "B"), (4, "A")):
            seed = Seed(url=f"http://a.example/{number}", collection=collection, record=f"r{number}")
            store.add([link_entry(seed)])
        for at in (T, T + 100):
            store.finish([check(link, at, at + 1000) for link in store.due("a.example", T + 1e6, 9)])
        store.retire_mentions([link_entry(Seed(url="http://a.example/4"))], T + 200)
    return url


@pytest.fixture
def run(url: str, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.chdir(tmp_path)

    def runs(command: ScrapyCommand, *args: str, store: str = url) -> tuple[int, str, str]:
        settings = Settings()
        settings.setmodule("linkcrawl.settings")
        settings.set("LINKCRAWL_STORE", store)
        command.settings, command.exitcode = settings, 0
        parser = argparse.ArgumentParser()
        command.add_options(parser)
        options, rest = parser.parse_known_args(args)
        command.run(rest, options)
        said = capfd.readouterr()
        return command.exitcode, said.out, said.err

    return runs


def books(url: str) -> Totals:
    with closing(open_store(url)) as store:
        return store.books(T + 1e6)


def test_history_as_lines_is_every_record_oldest_first(run: Run) -> None:
    status, out, err = run(history.Command(), "http://A.example/1", "--format", "jsonl")
    assert (status, err) == (0, "")
    assert [json.loads(line)["checked_at"] for line in out.splitlines()] == [iso(T), iso(T + 100)]


def test_history_for_people(run: Run) -> None:
    _, out, _ = run(history.Command(), "http://a.example/2")
    facts, checks = out.split("\n\n")
    assert facts.splitlines()[0].split() == ["url", "http://a.example/2"]
    assert "yes, since" in facts
    assert "collection A, record r2" in facts
    assert "collection B, record r2" in facts
    assert [line.split()[:3] for line in checks.splitlines()[1:]] == [
        [iso(T), "Ok", "ok"],
        [iso(T + 100), "Ok", "ok"],
    ]
    assert "it is retired" in run(history.Command(), "http://a.example/4")[1]


@pytest.mark.parametrize("args", [(), ("http://a.example/1", "http://a.example/2")])
def test_history_is_of_one_url(run: Run, args: tuple[str, ...]) -> None:
    status, out, err = run(history.Command(), *args)
    assert (status, out, err.count("\n")) == (2, "", 1)


def test_an_unknown_url_or_store_is_one_line_without_a_password(run: Run, tmp_path: Path) -> None:
    status, out, err = run(history.Command(), "http://me:secret@b.example/", "--format", "jsonl")
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert "b.example" in err
    assert "secret" not in err
    status, _, err = run(history.Command(), "http://a.example/1", store=f"sqlite:///{tmp_path}/none.db")
    assert (status, err.count("\n")) == (2, 1)
    assert not (tmp_path / "none.db").exists()


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["--yes"], "nothing is chosen"),
        (["--dry-run"], "nothing is chosen"),
        (["--url", "http://a.example/1"], "--yes or --dry-run"),
        (["--url", "http://a.example/1", "--yes", "--dry-run"], "--yes or --dry-run"),
        (["--url", "http://a.example/1", "http://b.example/", "--yes"], "no link 'http://b.example/'"),
        (["--collection", "C*", "--yes"], "no collection matches 'C*'"),
        (["--retired-before", "yesterday", "--yes"], "'yesterday' is not a time"),
        (["http://a.example/1", "--yes"], "--url http://a.example/1 would work"),
    ],
)
def test_what_is_not_said_clearly_deletes_nothing(run: Run, url: str, args: list[str], said: str) -> None:
    before = books(url)
    status, out, err = run(purge.Command(), *args)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert said in err
    assert books(url) == before


@pytest.mark.parametrize(
    ("args", "counts", "links"),
    [
        (
            ["--url", "http://a.example/1", "--url", "http://a.example/3"],
            "2 links {}, with 2 mentions and 4 records",
            2,
        ),
        (["--url", "http://a.example/1", "http://a.example/3"], "2 links {}, with 2 mentions and 4 records", 2),
        (["--retired-before", "2100-01-01"], "1 links {}, with 1 mentions and 2 records", 3),
        (["--retired-before", "2000-01-01"], "0 links {}, with 0 mentions and 0 records", 4),
        (["--collection", "A"], "2 links {}, with 3 mentions and 4 records", 2),
        (["--collection", "?"], "4 links {}, with 5 mentions and 8 records", 0),
    ],
)
def test_a_dry_run_counts_what_is_deleted_then(run: Run, url: str, args: list[str], counts: str, links: int) -> None:
    before = books(url)
    assert run(purge.Command(), *args, "--dry-run") == (0, counts.format("would be deleted") + "\n", "")
    assert books(url) == before
    assert run(purge.Command(), *args, "--yes") == (0, counts.format("deleted") + "\n", "")
    after = books(url)
    assert (after.links, after.active + after.retired) == (links, links)
    assert after.due + after.later == after.active
    again = run(purge.Command(), *args, "--yes")
    assert again[0] == (2 if "--url" in args[0] else 0)


def test_a_purged_collection_leaves_links_of_others(run: Run, url: str) -> None:
    run(purge.Command(), "--collection", "A", "--yes")
    with closing(open_store(url)) as store:
        left = {link.url[-1]: link.collections for link in store.due("a.example", T + 1e6, 9)}
    assert left == {"2": ("B",), "3": ("B",)}
