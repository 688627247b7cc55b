"""When a harvest is believed, and what is retired by it. The store is a real one, in a file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from linkcrawl import sources
from linkcrawl.ingest.harvest import MOST_REJECTED, HarvestNotes, RetireRules, Scope, SeenLinks, reconcile
from linkcrawl.ingest.ingest import ingest, link_entry
from linkcrawl.items import Reject, Retraction, Seed, Unread
from linkcrawl.sources.files import read
from linkcrawl.stores.contract import AddCounts, Store
from linkcrawl.stores.opening import open_store

NOW = 1e9


def seed(number: int, collection: str | None = "A") -> Seed:
    return Seed(url=f"http://a.example/{number}", collection=collection)


def bad(line: int) -> Reject:
    return Reject(source="x.jsonl", line=line, why="not JSON")


def notes(*rows: Seed | Reject, source: str = "x.jsonl") -> HarvestNotes:
    made = HarvestNotes()
    assert list(made.watch(source, rows)) == list(rows)
    return made


def test_a_whole_harvest_leaves_no_doubt() -> None:
    assert notes(*map(seed, range(9)), bad(10)).doubts() == []


def test_more_than_a_tenth_rejected() -> None:
    assert MOST_REJECTED == 0.1
    assert notes(*map(seed, range(8)), bad(9)).doubts() == ["1 of 9 lines were rejected, more than a tenth"]


def test_an_empty_source_beside_a_full_one() -> None:
    made = notes(*map(seed, range(9)))
    list(made.watch("y.jsonl", []))
    assert made.doubts() == ["y.jsonl is empty"]


def test_a_source_that_breaks_off() -> None:
    torn = Unread(source="x.jsonl.gz", line=0, why="can't be read further: it ends early")
    assert notes(*map(seed, range(99)), torn).doubts() == ["x.jsonl.gz can't be read further: it ends early"]


@pytest.mark.parametrize("make", ["cut off", "a link to itself"])
def test_what_files_can_not_give_is_unread(tmp_path: Path, make: str) -> None:
    folder = tmp_path / "harvest"
    folder.mkdir()
    if make == "cut off":
        (folder / "a.jsonl.gz").write_bytes(b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03")
    else:
        (folder / "a.jsonl").symlink_to(folder / "a.jsonl")
    assert [type(row) for row in read(str(folder))] == [Unread]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with closing(open_store(f"sqlite:///{tmp_path}/x.db")) as opened:
        opened.add([link_entry(seed(n)) for n in range(10)])
        opened.add([link_entry(seed(n, "B")) for n in range(8, 20)])
        opened.add([link_entry(seed(99, None))])
        yield opened


Harvest = Callable[..., tuple[dict[str, int], tuple[str, ...]]]


@pytest.fixture
def harvest(store: Store) -> Harvest:
    def harvested(*rows: Seed, limit: float = 0.2, scope: Scope = Scope.COLLECTIONS, **how: bool) -> object:
        made, entries = notes(*rows), [link_entry(row) for row in rows]
        number, seen = store.begin_harvest(NOW), None
        if how.get("dry_run"):
            seen = SeenLinks()
            seen.add(entries)
            store.mark(entries, number)
        else:
            store.add(entries, number)
        done = reconcile(store, number, made, RetireRules(scope=scope, limit=limit, **how), NOW, seen)
        return {name: one.links for name, one in done.retired.items()}, done.refused

    return harvested  # type: ignore[return-value]


def test_only_collections_that_occur_are_reconciled(harvest: Harvest, store: Store) -> None:
    assert harvest(*map(seed, range(1, 10))) == ({"A": 1}, ())
    assert store.books(NOW).retired == 1


def test_the_guard_is_of_links_that_would_be_left_without_a_mention(harvest: Harvest) -> None:
    # A loses 0, 1, and 8 and 9, which are in B too
    assert harvest(*map(seed, range(2, 8))) == ({"A": 2}, ())


def test_a_collection_that_loses_too_much_stays_whole(harvest: Harvest, store: Store) -> None:
    retired, refused = harvest(*map(seed, range(3, 10)), *(seed(n, "B") for n in range(10, 20)))
    assert retired == {"B": 0}  # two mentions, of links that A keeps
    (why,) = refused
    assert "'A'" in why
    assert "3 of its 10 links" in why
    assert "LINKCRAWL_RETIRE_LIMIT (0.2)" in why
    assert store.books(NOW).retired == 0


def test_one_collections_guard_leaves_others_alone(harvest: Harvest) -> None:
    retired, refused = harvest(*map(seed, range(5, 10)), *(seed(n, "B") for n in range(8, 19)))
    assert (retired, len(refused)) == ({"B": 1}, 1)


def test_force_passes_over_the_guard(harvest: Harvest) -> None:
    assert harvest(seed(0), force=True) == ({"A": 7}, ())


def test_a_renamed_collection_loses_no_link(harvest: Harvest, store: Store) -> None:
    rows = [seed(n, "A2") for n in range(10)] + [seed(n, "B") for n in range(8, 20)] + [seed(99, None)]
    retired, refused = harvest(*rows, scope=Scope.CATALOGUE)
    assert (retired, refused) == ({"A": 0}, ())  # its mentions are gone, none of its links
    assert [part.name for part in store.summary(NOW).collections] == ["B", "A2", None]


def test_links_without_a_collection_are_one_too(harvest: Harvest) -> None:
    assert harvest(seed(98, None), limit=0.6) == ({"": 1}, ())


@pytest.mark.parametrize("scope", list(Scope))
def test_a_dry_run_says_what_would_come_of_it_and_changes_nothing(harvest: Harvest, store: Store, scope: Scope) -> None:
    rows = [seed(n, "A2") for n in range(1, 10)] + [seed(n, "B") for n in range(9, 20)] + [seed(99, None)]
    before = store.books(NOW)
    dry = harvest(*rows, scope=scope, dry_run=True)
    assert (store.books(NOW), store.collections()) == (before, ["A", "B"])
    really = harvest(*rows, scope=scope)
    assert {name: links for name, links in really[0].items() if links} == dry[0]
    assert dry[1] == really[1] == ()


def test_a_doubtful_harvest_retires_nothing(store: Store) -> None:
    doubtful = notes(seed(1), bad(2))
    rules = RetireRules(scope=Scope.CATALOGUE, limit=1.0)
    done = reconcile(store, store.begin_harvest(NOW), doubtful, rules, NOW)
    assert done.retired == {}
    assert done.refused == (
        "nothing is retired: 1 of 2 lines were rejected, more than a tenth; a whole harvest would work",
    )


def test_a_dry_run_takes_no_pushed_seed_and_takes_none_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url = "http://a.example/"
    monkeypatch.setattr(sources, "check_source", lambda source: None)
    monkeypatch.setattr(sources, "peek", lambda source, leave_out: iter([Seed(url=url), Retraction(url=url)]))
    no_store: Any = None
    counts = ingest(
        ["redis://a.example/0/key"],
        no_store,
        tmp_path / "rejects.jsonl",
        add=lambda store, entries: AddCounts(new=len(entries)),
        dry_run=True,
    )
    assert counts.new == 1
