"""Ingesting seeds: what reaches the store, what is counted, and where rejected rows go."""

from __future__ import annotations

import itertools
import json
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import pytest

from linkcrawl import urls
from linkcrawl.errors import ConfigError, StoreLost
from linkcrawl.ingest import ingest as module
from linkcrawl.ingest.ingest import IngestCounts, ingest, link_entry, read_batches, reject_text
from linkcrawl.items import Reject, Seed
from linkcrawl.stores.contract import AddCounts, LinkEntry, Store

SAMPLES = Path(__file__).parents[2] / "seeds"


class MemoryStore:
    """The part of a store that seeds need, in memory."""

    def __init__(self) -> None:
        self.links: dict[bytes, LinkEntry] = {}
        self.batches: list[int] = []

    def add(self, entries: Sequence[LinkEntry], harvest: int = 0) -> AddCounts:
        new = {entry.key: entry for entry in entries if entry.key not in self.links}
        self.links.update(new)
        self.batches.append(len(entries))
        return AddCounts(new=len(new), known=len(entries) - len(new), proxies=len(entries))


def as_store(memory: MemoryStore) -> Store:
    return cast(Store, memory)


@pytest.fixture
def rejects(tmp_path: Path) -> Path:
    return tmp_path / "rejects.jsonl"


def written(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.parametrize(
    ("url", "kept", "host"),
    [
        ("HTTP://Example.org:80/a", "HTTP://Example.org:80/a", "example.org"),
        ("http://example.org:81/a", "http://example.org:81/a", "example.org:81"),
        (" hdl:1/2 ", "https://hdl.handle.net/1/2", "hdl.handle.net"),
        ("http://me:secret@example.org/", "http://example.org/", "example.org"),
        ("ftp://example.org/", "ftp://example.org/", ""),
        ("http://example.org:25/", "http://example.org:25/", ""),
        ("http://a..b/", "http://a..b/", ""),
    ],
)
def test_entry(url: str, kept: str, host: str) -> None:
    seed = Seed(url=url, collection="c")
    assert link_entry(seed) == LinkEntry(key=urls.identity(url), url=kept, host=host, seed=seed)


def test_counts_and_rejects_of_several_sources(tmp_path: Path, rejects: Path) -> None:
    first, second = tmp_path / "1.txt", tmp_path / "2.jsonl"
    first.write_text("http://a.example/\nno url\nhttp://A.example/\n")
    second.write_text(
        '{"url": "http://a.example:80/"}\n{"url": "http://me:secret@b.example/", "priority": "x"}\n{"url": "ftp://c/"}'
    )
    store = MemoryStore()
    seen: list[IngestCounts] = []
    counts = ingest([str(first), str(second)], as_store(store), rejects, seen.append)
    assert counts == IngestCounts(read=6, new=2, known=2, rejected=2)
    assert seen[-1] == counts
    assert [(row["source"], row["line"], row["why"]) for row in written(rejects)] == [
        (str(first), 2, "url has no scheme"),
        (str(second), 2, "priority is 'x', not an integer"),
    ]
    assert "secret" not in rejects.read_text()


def test_rejects_are_added_to_the_file(tmp_path: Path, rejects: Path) -> None:
    source = tmp_path / "1.txt"
    source.write_text("no url\n")
    for _ in range(2):
        ingest([str(source)], as_store(MemoryStore()), rejects)
    assert len(written(rejects)) == 2


@pytest.mark.parametrize("name", ["rejects.jsonl", "below/rejects.jsonl", "zz/rejects.txt"])
@pytest.mark.parametrize("begun", [False, True])
def test_rejects_within_the_folder_are_not_read_as_seeds(tmp_path: Path, name: str, begun: bool) -> None:
    """They would be rejected again, into the file that is being read, until the disk is full."""
    (tmp_path / "seeds.txt").write_text("http://a.example/\nno url\n")
    within = tmp_path / name
    within.parent.mkdir(exist_ok=True)
    if begun:
        within.write_text("no url\n")
    found = list(itertools.islice(read_batches([str(tmp_path)], within), 2))
    assert [(len(batch.entries), batch.rejected) for batch in found] == [(1, 1)]


def test_the_rejects_file_itself_is_no_source(tmp_path: Path, rejects: Path) -> None:
    rejects.write_text("no url\n")
    (tmp_path / "another-name.jsonl").symlink_to(rejects)
    for name in (rejects, tmp_path / "another-name.jsonl"):
        with pytest.raises(ConfigError, match="LINKCRAWL_REJECTS"):
            read_batches([str(name)], rejects)


def test_without_rejects_there_is_no_file(tmp_path: Path, rejects: Path) -> None:
    source = tmp_path / "1.txt"
    source.write_text("http://a.example/\n")
    ingest([str(source)], as_store(MemoryStore()), rejects)
    assert not rejects.exists()


def test_batches_are_bounded_by_number(tmp_path: Path, rejects: Path) -> None:
    source = tmp_path / "1.txt"
    source.write_text("".join(f"http://a.example/{number}\n" for number in range(2 * module.BATCH + 1)))
    assert [len(batch.entries) for batch in read_batches([str(source)], rejects)] == [module.BATCH, module.BATCH, 1]


def test_batches_are_bounded_by_size(tmp_path: Path, rejects: Path) -> None:
    source = tmp_path / "1.jsonl"
    half = module.BATCH_TEXT // 8
    source.write_text(f'{{"url": "http://a.example/{"a" * half}", "note": "{"b" * half}"}}\n' * 8)
    sizes = [len(batch.entries) for batch in read_batches([str(source)], rejects)]
    assert sizes == [4, 4]


def test_nothing_but_rejects_still_makes_progress(tmp_path: Path, rejects: Path) -> None:
    source = tmp_path / "1.txt"
    source.write_text("no url\n" * (module.BATCH + 1))
    found = list(read_batches([str(source)], rejects))
    assert [(len(batch.entries), batch.rejected) for batch in found] == [(0, module.BATCH), (0, 1)]
    assert len(written(rejects)) == module.BATCH + 1


def test_nothing_is_taken_where_one_source_is_unusable(tmp_path: Path, rejects: Path) -> None:
    source = tmp_path / "1.txt"
    source.write_text("http://a.example/\n")
    store = MemoryStore()
    with pytest.raises(ConfigError, match=r"missing\.txt"):
        ingest([str(source), str(tmp_path / "missing.txt")], as_store(store), rejects)
    assert store.links == {}
    with pytest.raises(ConfigError):
        read_batches([str(tmp_path / "missing.txt")], rejects)


def test_a_rejects_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    source = tmp_path / "1.txt"
    source.write_text("no url\n")
    with pytest.raises(ConfigError, match=r"LINKCRAWL_REJECTS: .*Is a directory"):
        ingest([str(source)], as_store(MemoryStore()), tmp_path)


def test_a_lost_store_keeps_what_was_rejected(tmp_path: Path, rejects: Path) -> None:
    class Lost(MemoryStore):
        def add(self, entries: Sequence[LinkEntry], harvest: int = 0) -> AddCounts:
            raise StoreLost("gone")

    source = tmp_path / "1.txt"
    source.write_text("no url\nhttp://a.example/\n")
    with pytest.raises(StoreLost):
        ingest([str(source)], as_store(Lost()), rejects)
    assert len(written(rejects)) == 1


def test_the_first_rejects_are_logged(tmp_path: Path, rejects: Path, caplog: pytest.LogCaptureFixture) -> None:
    source = tmp_path / "1.txt"
    source.write_text("no url\n" * 100)
    with caplog.at_level(logging.WARNING, "linkcrawl.ingest.ingest"):
        ingest([str(source)], as_store(MemoryStore()), rejects)
    messages = [record.getMessage() for record in caplog.records]
    assert messages[0] == f"rejected {source}:1: url has no scheme"
    assert messages[-1] == f"more rejected lines are in {rejects}"
    assert len(messages) == module.LOGGED_REJECTS + 1


@pytest.mark.parametrize(
    ("reject", "text"),
    [
        (Reject(source="a.txt", line=3, why="no url"), "a.txt:3: no url"),
        (Reject(source="a.txt", line=0, why="can't be read"), "a.txt: can't be read"),
        (Reject(source="a\n\x1b[31m.txt", line=3, why="x\ny"), "'a\\n\\x1b[31m.txt':3: 'x\\ny'"),
    ],
)
def test_describe_is_one_printable_line(reject: Reject, text: str) -> None:
    assert reject_text(reject) == text


@pytest.mark.parametrize(
    "path", sorted(path for path in SAMPLES.iterdir() if path.name != "README.md"), ids=lambda path: path.name
)
def test_samples_are_taken_up_whole(path: Path, rejects: Path) -> None:
    counts = ingest([str(path)], as_store(MemoryStore()), rejects)
    assert counts.rejected == 0
    assert counts.new > 0


class Picky(MemoryStore):
    """A store that fails over some entries, alone or with others."""

    def __init__(self, *bad: str) -> None:
        super().__init__()
        self.bad = bad

    def add(self, entries: Sequence[LinkEntry], harvest: int = 0) -> AddCounts:
        if any(entry.url in self.bad for entry in entries):
            raise MemoryError
        return super().add(entries)


def test_an_entry_that_the_store_cant_take_costs_that_entry_only(
    tmp_path: Path, rejects: Path, caplog: pytest.LogCaptureFixture
) -> None:
    source = tmp_path / "seeds.txt"
    source.write_text("".join(f"http://{name}.example/\n" for name in "abc"))
    store = Picky("http://b.example/")
    counts = ingest([str(source)], as_store(store), rejects)
    assert counts == IngestCounts(read=3, new=2, known=0, rejected=1)
    assert [record.getMessage() for record in caplog.records][1:] == [
        "rejected http://b.example/: the store can't keep it: internal error: MemoryError"
    ]


def test_a_store_that_takes_nothing_ends_the_ingest(tmp_path: Path, rejects: Path) -> None:
    source = tmp_path / "seeds.txt"
    source.write_text("http://a.example/\nhttp://b.example/\n")
    with pytest.raises(MemoryError):
        ingest([str(source)], as_store(Picky("http://a.example/", "http://b.example/")), rejects)
