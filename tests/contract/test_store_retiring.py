"""Mentions that a harvest lacks are retired, and links without a live mention with them; both come back when they are
mentioned again. A plain model of the same calls says what must be there."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from linkcrawl.stores.contract import LinkFilter, Purged, Query, Retired, Store
from linkcrawl.stores.opening import open_store
from tests.contract.making import check, entry, key, link, proxies
from tests.contract.processes import line, process

NOW = 1e9
COLLECTIONS = ("", "A", "B")
MENTIONS = st.lists(st.tuples(st.integers(0, 4), st.sampled_from(COLLECTIONS)), max_size=6)
HARVEST = st.tuples(st.just("harvest"), MENTIONS, st.sets(st.sampled_from(COLLECTIONS)))
ADD = st.tuples(st.just("add"), MENTIONS, st.just(set()))
TAKE_BACK = st.tuples(st.just("take back"), MENTIONS, st.just(set()))
CHECK = st.tuples(st.just("check"), MENTIONS, st.just(set()))


class Model:
    """Live mentions, those that ever were, and when each link was checked last."""

    def __init__(self) -> None:
        self.live: set[tuple[int, str]] = set()
        self.ever: set[tuple[int, str]] = set()
        self.checked: dict[int, float] = {}

    @property
    def active(self) -> set[int]:
        return {n for n, _ in self.live}

    @property
    def links(self) -> set[int]:
        return {n for n, _ in self.ever}


def entries(mentions: list[tuple[int, str]]) -> list:  # type: ignore[type-arg]
    return [entry(n, collection=name or None) for n, name in mentions]


def _apply(store: Store, model: Model, at: float, what: str, mentions: list[tuple[int, str]], names: set[str]) -> None:
    if what == "add":
        store.add(entries(mentions))
        model.live |= set(mentions)
        model.ever |= set(mentions)
    elif what == "take back":
        before = len(model.live), len(model.active)
        # without a collection it says nothing of that, and means all mentions of the link
        gone = {(n, c) for n, c in model.live for m, name in mentions if n == m and name in ("", c)}
        model.live -= gone
        done = store.retire_mentions(entries(mentions), at)
        assert (done.mentions, done.links) == (before[0] - len(model.live), before[1] - len(model.active))
    elif what == "check":
        for n in {n for n, _ in mentions} & model.active:
            store.finish([check(link(store, n), at, at + 1000)])
            model.checked[n] = at
    else:
        harvest = store.begin_harvest(at)
        store.add(entries(mentions), harvest)
        model.live |= set(mentions)
        model.ever |= set(mentions)
        for name in sorted(names):
            gone = {(n, c) for n, c in model.live if c == name and (n, c) not in mentions}
            left = {n for n, _ in model.live - gone}
            assert set(store.lost(harvest, name)) == {key(n) for n, _ in gone if n not in left}
            assert store.links_of(name) == len({n for n, c in model.live if c == name})
            retired = len(model.active) - len(left)
            model.live -= gone
            assert store.retire(harvest, name, at) == Retired(mentions=len(gone), links=retired)
        store.end_harvest(harvest, at)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(HARVEST | ADD | TAKE_BACK | CHECK, max_size=8))
def test_harvests_say_which_links_are_active(
    new_url: Callable[[], str], steps: list[tuple[str, list[tuple[int, str]], set[str]]]
) -> None:
    store, model = open_store(new_url()), Model()
    for number, step in enumerate(steps):
        _apply(store, model, NOW + number, *step)
    now = NOW + 5000
    books = store.books(now)
    assert (books.links, books.active, books.proxies) == (len(model.links), len(model.active), len(model.live))
    assert books.links == books.active + books.retired
    assert books.active == books.checked + books.never_checked == books.due + books.later
    assert books.checked == len(model.active & model.checked.keys())
    assert {one.url for one in store.due("a.example", now, 100)} == {f"https://a.example/{n}" for n in model.active}
    recheck = LinkFilter(recheck_before=now)
    assert sum(line.due for line in store.backlog(now, recheck)) == len(model.active)
    assert {one.url for one in store.due("a.example", now, 100, recheck)} == {
        f"https://a.example/{n}" for n in model.active
    }
    summary = store.summary(now)
    assert {part.name or "": part.links for part in summary.collections} == {
        name: len({n for n, c in model.live if c == name}) for _, name in model.live
    }
    assert summary.overall.links == len(model.active)
    for retired in (False, True):
        wanted = {f"https://a.example/{n}" for n in model.checked if (n not in model.active) is retired}
        assert {one.url for one in store.records(Query(retired=retired))} == wanted
    ids = [found.id for n in model.links if (found := store.link(key(n))) is not None]
    assert len(store.retired_among(ids)) == books.retired
    assert store.retirements() or not books.retired
    store.close()


@pytest.fixture
def store(url: str, opened: Callable[[str], Store]) -> Store:
    return opened(url)


def test_what_comes_back_is_due_at_once_with_its_history(store: Store) -> None:
    store.add([entry(1, collection="A", expected_mime="text/html")])
    store.finish([check(link(store, 1), NOW, NOW + 1000)])
    harvest = store.begin_harvest(NOW)
    assert store.retire(harvest, "A", NOW + 1) == Retired(mentions=1, links=1)
    assert store.next_due_at(NOW) is None
    assert [one.collections for one in store.records(Query(retired=True, collection="A"))] == [("A",)]
    assert list(store.records(Query(retired=True, collection="B"))) == []
    store.add([entry(1, collection="B", expected_mime="application/pdf")])
    back = link(store, 1)
    assert (back.collections, back.expected_mime, back.last_checked_at) == (("B",), "application/pdf", NOW)
    assert back.next_check_at <= NOW
    assert [one.checked_at for one in store.records(Query(history=True))] == [NOW]


def test_a_check_that_was_in_flight_brings_nothing_back(store: Store) -> None:
    store.add([entry(1, collection="A")])
    begun = link(store, 1)
    store.retire(store.begin_harvest(NOW), "A", NOW)
    store.finish([check(begun, NOW + 1, NOW + 2)])
    assert (store.books(NOW + 5).retired, store.backlog(NOW + 5)) == (1, [])
    assert [one.checked_at for one in store.records(Query(retired=True))] == [NOW + 1]


def test_a_seed_that_comes_beside_a_harvest_stays(store: Store) -> None:
    store.add([entry(1, collection="A"), entry(2, collection="A")])
    harvest = store.begin_harvest(NOW)
    store.add([entry(1, collection="A"), entry(3, collection="A")])
    later = store.begin_harvest(NOW)
    store.add([entry(2, collection="A")], later)
    assert store.retire(harvest, "A", NOW) == Retired()
    assert store.retire(later, "A", NOW) == Retired(mentions=2, links=2)


def test_a_dry_run_changes_nothing_and_finds_the_same(store: Store) -> None:
    store.add([entry(n, collection="A") for n in range(4)] + [entry(9, collection="B")])
    books = store.books(NOW)
    harvest = store.begin_harvest(NOW)
    store.mark([entry(n, collection="A") for n in (0, 1, 7)], harvest)
    assert sorted(store.lost(harvest, "A")) == [key(2), key(3)]
    assert store.known({key(0), key(7)}) == {key(0)}
    assert (store.books(NOW), store.collections()) == (books, ["A", "B"])


def test_a_lost_collection_counts_with_those_before_it(store: Store) -> None:
    store.add([entry(1, collection="A"), entry(1, collection="B")])
    harvest = store.begin_harvest(NOW)
    assert list(store.lost(harvest, "B")) == []
    assert list(store.lost(harvest, "B", ["A"])) == [key(1)]


def test_the_media_type_in_force_is_one_that_a_live_mention_claims(store: Store) -> None:
    store.add([entry(1, collection="A", expected_mime="text/html"), entry(1, collection="B", expected_mime="text/xml")])
    assert link(store, 1).expected_mime == "text/html"
    store.retire(store.begin_harvest(NOW), "A", NOW)
    assert (link(store, 1).expected_mime, link(store, 1).collections) == ("text/xml", ("B",))


def test_mentions_are_the_live_ones_and_of_a_retired_link_the_last(store: Store) -> None:
    store.add([entry(1, collection="A"), entry(1, collection="B")])
    of = link(store, 1).id
    store.retire(store.begin_harvest(NOW), "A", NOW)
    assert [mention.collection for mention in proxies(store, of)] == ["B"]
    store.retire(store.begin_harvest(NOW), "B", NOW + 1)
    assert [mention.collection for mention in proxies(store, of)] == ["B"]
    assert store.books(NOW).proxies == 0


def test_history_is_of_one_link_oldest_first(store: Store) -> None:
    store.add([entry(1), entry(2)])
    for at in (NOW, NOW + 5):
        store.finish([check(link(store, n), at, at + 1) for n in (1, 2)])
    assert [(one.url[-1], one.checked_at) for one in store.history(key(1))] == [("1", NOW), ("1", NOW + 5)]
    assert list(store.history(key(3))) == []


def test_a_purge_deletes_links_with_all_that_is_kept_of_them(store: Store) -> None:
    store.add([entry(n, collection="A", provider="P") for n in range(3)])
    store.finish([check(link(store, n), NOW, NOW + 1) for n in range(3)])
    wanted = Purged(links=2, mentions=2, records=2)
    assert store.purge([key(0), key(1), key(7)], dry_run=True) == wanted
    assert store.books(NOW).links == 3
    assert store.purge([key(0), key(1), key(7)]) == wanted
    assert store.purge([key(0), key(1)]) == Purged()
    books = store.books(NOW)
    assert (books.links, books.proxies, books.records, books.due) == (1, 1, 1, 0)
    assert [one.url[-1] for one in store.records(Query(history=True))] == ["2"]
    store.add([entry(0, collection="A")])
    assert link(store, 0).last_checked_at is None


def test_what_a_collection_takes_along(store: Store) -> None:
    store.add([entry(1, collection="A"), entry(2, collection="A"), entry(2, collection="B"), entry(3, collection="B")])
    store.add([entry(4, collection="A"), entry(5, collection="A"), entry(5)])
    store.retire_mentions([entry(4)], NOW)
    assert sorted(store.only_in(["A"])) == [key(1), key(4)]
    assert sorted(store.only_in(["A", "B"])) == [key(1), key(2), key(3), key(4)]
    assert sorted(store.retired_before(NOW + 1)) == [key(4)]
    assert list(store.retired_before(NOW)) == []
    assert store.purge_mentions(["A"], dry_run=True) == 4
    store.retire(2**62, "A", NOW + 2)
    store.purge(list(store.only_in(["A"])))
    assert store.purge_mentions(["A"]) == 2
    left = {one.url[-1]: one.collections for one in store.due("a.example", NOW, 9)}
    assert left == {
        "2": ("B",),
        "3": ("B",),
        "5": (),
    }
    assert store.books(NOW).proxies == 3


#: Retires all of A, and stands still in the middle of it.
STANDS_STILL = """
from linkcrawl.stores.mongo import retiring as of_mongo
from linkcrawl.stores.sqlite import retiring as of_sqlite
def stand_still(*given):
    say('half')
    input()
of_mongo.PAGE = 10
of_mongo._bring_back_mentioned = of_sqlite._follow = stand_still
store.retire(store.begin_harvest(1.0), 'A', 2.0)
"""


def test_a_kill_in_the_middle_of_retiring_leaves_all_or_nothing(url: str, opened: Callable[[str], Store]) -> None:
    before = open_store(url)
    before.add([entry(n, collection="A") for n in range(25)] + [entry(n, collection="B") for n in range(24, 30)])
    before.close()
    with process(url, STANDS_STILL) as running:
        assert line(running) == "half"
        running.kill()
        running.wait()
    store = opened(url)
    books = store.books(NOW)
    assert (books.retired, books.proxies, store.links_of("A")) in [(24, 6, 0), (0, 31, 25)]
    store.retire(store.begin_harvest(3.0), "A", 4.0)
    again = store.books(NOW)
    assert (again.retired, again.active, again.proxies, store.links_of("B")) == (24, 6, 6, 6)
    assert link(store, 24).collections == ("B",)


def test_a_crawl_hears_of_each_collection_that_is_retired_at_the_same_moment(store: Store) -> None:
    store.add([entry(1, collection="A"), entry(2, collection="B")])
    harvest = store.begin_harvest(NOW)
    told = [store.retirements()]
    for name in ("A", "B"):
        store.retire(harvest, name, NOW)
        told.append(store.retirements())
    assert told == sorted(set(told))
    store.purge([key(1)])
    assert store.retirements() > told[-1]
