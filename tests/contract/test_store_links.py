"""Links and resource proxies: taking them up, and giving out those that are due."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from linkcrawl.items import Category, DueLink, LinkState, Seed
from linkcrawl.stores.contract import NEVER, AddCounts, HostBacklog, LinkEntry, LinkFilter, Proxy, Store
from linkcrawl.stores.opening import open_store
from tests.contract.making import FOREVER, check, entry, key, link, links, proxies

FRESH = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def test_a_new_store_is_empty(store: Store) -> None:
    assert store.backlog(FOREVER) == []
    assert store.due("a.example", FOREVER, 10) == []
    assert store.next_due_at(0) is None
    assert store.collections() == []
    assert store.add([]) == AddCounts()


def test_a_link_comes_back_with_all_that_its_check_needs(store: Store) -> None:
    seed = {"collection": "C", "provider": "P", "expected_mime": "text/html", "priority": 3}
    assert store.add([entry(1, **seed)]) == AddCounts(new=1, known=0, proxies=1)
    [found] = links(store)
    assert found == DueLink(
        id=found.id,
        url="https://a.example/1",
        host="a.example",
        priority=3,
        next_check_at=NEVER,
        collections=("C",),
        providers=("P",),
        expected_mime="text/html",
    )


def test_a_link_in_many_places_is_one_link_with_sorted_collections(store: Store) -> None:
    places = [("b", "Q"), ("a", "P"), ("a", "Q"), ("B", None), (None, "P")]
    taken = store.add([entry(1, collection=collection, provider=provider) for collection, provider in places])
    assert taken == AddCounts(new=1, known=4, proxies=5)
    [found] = links(store)
    assert (found.collections, found.providers) == (("B", "a", "b"), ("P", "Q"))
    assert store.collections() == ["B", "a", "b"]


DIFFERENT = [
    {"collection": "D"},
    {"record": "r2"},
    {"expected_mime": "text/plain"},
    {"provider": "Q"},
    {"resource_type": "LandingPage"},
]
MENTION = {
    "collection": "C",
    "record": "r1",
    "expected_mime": "text/html",
    "provider": "P",
    "resource_type": "Resource",
}


@pytest.mark.parametrize("change", DIFFERENT, ids=lambda change: next(iter(change)))
def test_a_mention_that_differs_is_another_proxy(store: Store, change: dict[str, str]) -> None:
    store.add([entry(1, **MENTION)])
    assert store.add([entry(1, **MENTION | change)]) == AddCounts(new=0, known=1, proxies=1)


@pytest.mark.parametrize("given_fields", [MENTION, {}, {"collection": "", "record": ""}], ids=["full", "none", "empty"])
def test_the_same_mention_twice_is_one_proxy(store: Store, given_fields: dict[str, str]) -> None:
    mention = entry(1, **given_fields)
    assert store.add([mention, mention]) == AddCounts(new=1, known=1, proxies=1)
    assert store.add([mention]) == AddCounts(new=0, known=1, proxies=0)
    [proxy] = proxies(store, link(store, 1).id)
    assert proxy == Proxy(**{name: given_fields.get(name) or None for name in MENTION})


def test_proxies_keep_unknown_fields_and_stand_in_order(store: Store) -> None:
    extra = {"set": "x", "deep": [{"n": 1.5, "none": None}], "$where": "1", "a.b": {"$gt": ""}}
    store.add([entry(1, collection="b"), entry(1, collection="a", record="2", extra=extra), entry(1, record="9")])
    store.add([entry(1, collection="a", record="1")])
    found = proxies(store, link(store, 1).id)
    assert [(proxy.collection, proxy.record) for proxy in found] == [(None, "9"), ("a", "1"), ("a", "2"), ("b", None)]
    assert found[2].extra == extra
    assert found[0].extra == {}


def test_proxies_of_many_links_are_each_their_own(store: Store) -> None:
    """However often a link is named, and whether it is there or has any."""
    store.add([entry(n, collection="C", record=str(m)) for n in range(1, 600) for m in range(n % 3)] + [entry(600)])
    ids = {int(found.url.rpartition("/")[2]): found.id for found in links(store)}
    nowhere: int | str = "f" * 32 if isinstance(ids[600], str) else 10**9
    found = store.proxies([*ids.values(), nowhere, ids[600], ids[1]])
    assert found[nowhere] == []
    assert {n: [proxy.record for proxy in found[ids[n]]] for n in ids} == {
        n: [None] if n == 600 else [str(m) for m in range(n % 3)] for n in ids
    }
    assert len(found) == len(ids) + 1
    assert store.proxies([]) == {}


def test_priority_only_grows_and_the_first_media_type_stays(store: Store) -> None:
    for priority, mime in [(0, None), (5, "text/html"), (2, "text/plain"), (-1, None)]:
        store.add([entry(1, priority=priority, expected_mime=mime)])
    [found] = links(store)
    assert (found.priority, found.expected_mime) == (5, "text/html")


def test_a_batch_is_taken_whole_or_not_at_all(store: Store) -> None:
    bad = LinkEntry(key=key(2), url="https://a.example/2", host="a.example", seed=None)  # type: ignore[arg-type]
    with pytest.raises(AttributeError):
        store.add([entry(1, collection="C"), bad])
    assert links(store) == []
    assert store.collections() == []
    assert store.add([entry(1, collection="C")]) == AddCounts(new=1, known=0, proxies=1)
    assert links(store)[0].collections == ("C",)


def test_links_that_cannot_be_requested_are_due_too(store: Store) -> None:
    store.add([LinkEntry(key=key(1), url="javascript:void(0)", host="", seed=Seed(url="javascript:void(0)"))])
    assert store.backlog(0.0) == [HostBacklog(host="", due=1)]
    assert [found.url for found in store.due("", 0.0, 5)] == ["javascript:void(0)"]


def test_state_and_category_come_back_after_a_check(store: Store) -> None:
    store.add([entry(1)])
    state = LinkState(attempt=2, interval=86_400.5, hard_since=12.25, hard_count=2, hard_by_get=True)
    store.finish([check(link(store, 1), 100.0, 200.0, state, category=Category.BROKEN, attempt=2)])
    [found] = links(store)
    assert (found.state, found.last_category, found.next_check_at) == (state, Category.BROKEN, 200.0)


LINKS = st.lists(
    st.tuples(st.sampled_from("ab"), st.integers(-2, 2), st.sampled_from([None, 10.0, 20.0, 30.0, 40.0])), max_size=25
)


def _filled(url: str, wanted: list[tuple[str, int, float | None]]) -> Store:
    """A store of links, each with its host, priority, and when it is due next (None: never checked)."""
    store = open_store(url)
    store.add([entry(n, host, priority=priority) for n, (host, priority, _) in enumerate(wanted)])
    by_url = {found.url: found for host in "ab" for found in links(store, host)}
    store.finish(
        [
            check(by_url[f"https://{host}/{n}"], 1.0, next_at)
            for n, (host, _, next_at) in enumerate(wanted)
            if next_at is not None
        ]
    )
    return store


@FRESH
@given(wanted=LINKS, now=st.sampled_from([5.0, 20.0, 25.0, 99.0]), page=st.integers(1, 7))
def test_due_is_ordered_complete_and_can_be_read_in_pages(
    new_url: Callable[[], str], wanted: list[tuple[str, int, float | None]], now: float, page: int
) -> None:
    store = _filled(new_url(), wanted)
    later = [next_at for _, _, next_at in wanted if next_at is not None and next_at > now]
    assert store.next_due_at(now) == (min(later) if later else None)
    expected_backlog = {}
    for host in "ab":
        expected = sorted(
            (-priority, next_at or NEVER, n)
            for n, (at, priority, next_at) in enumerate(wanted)
            if at == host and (next_at is None or next_at <= now)
        )
        read: list[DueLink] = []
        while part := store.due(host, now, page, after=read[-1] if read else None):
            assert len(part) <= page
            read += part
        assert [(-found.priority, found.next_check_at, int(found.url.rpartition("/")[2])) for found in read] == expected
        if expected:
            expected_backlog[host] = len(expected)
    assert {line.host: line.due for line in store.backlog(now)} == expected_backlog
    store.close()


def test_a_cursor_holds_when_its_link_has_moved_on(store: Store) -> None:
    store.add([entry(n, priority=1 if n < 2 else 0) for n in range(6)])
    seen: list[DueLink] = []
    while part := store.due("a.example", 50.0, 2, after=seen[-1] if seen else None):
        store.finish([check(found, 40.0) for found in part])
        seen += part
    assert [found.url[-1] for found in seen] == list("012345")


NARROW = [
    (LinkFilter(), {"a.example": "0123", "b.example": "45"}),
    (LinkFilter(collection="C_1"), {"a.example": "02"}),
    (LinkFilter(collection="C_*"), {"a.example": "0123"}),
    (LinkFilter(collection="?_2"), {"a.example": "23"}),
    (LinkFilter(collection="c_1"), {}),
    (LinkFilter(collection="[C]_1"), {"b.example": "4"}),
    (LinkFilter(collection="%"), {"b.example": "5"}),
    (LinkFilter(collection="*"), {"a.example": "0123", "b.example": "45"}),
    (LinkFilter(collection=""), {}),
    (LinkFilter(host="b.*"), {"b.example": "45"}),
    (LinkFilter(host="B.*"), {}),
    (LinkFilter(host="?.example", collection="C_1"), {"a.example": "02"}),
    (LinkFilter(host=""), {}),
]


@pytest.mark.parametrize(("narrow", "expected"), NARROW, ids=lambda value: str(value)[:60])
def test_a_crawl_can_be_narrowed(store: Store, narrow: LinkFilter, expected: dict[str, str]) -> None:
    store.add(
        [
            entry(0, collection="C_1"),
            entry(1, collection="C_3"),
            entry(2, collection="C_2"),
            entry(2, collection="C_1"),
            entry(3, collection="C_2"),
            entry(4, "b.example", collection="[C]_1"),
            entry(5, "b.example", collection="%"),
        ]
    )
    assert {line.host: line.due for line in store.backlog(1.0, narrow)} == {
        host: len(numbers) for host, numbers in expected.items()
    }
    for host in ("a.example", "b.example"):
        found = store.due(host, 1.0, 10, narrow)
        assert [one.url[-1] for one in found] == list(expected.get(host, ""))
        if found:
            assert store.due(host, 1.0, 10, narrow, after=found[0]) == found[1:]


def test_recheck_takes_what_is_not_due_but_nothing_twice(store: Store) -> None:
    store.add([entry(n) for n in range(4)])
    by_url = {found.url[-1]: found for found in links(store)}
    store.finish(
        [check(by_url["1"], 90.0, 1000.0), check(by_url["2"], 100.0, 1000.0), check(by_url["3"], 101.0, 102.0)]
    )
    narrow = LinkFilter(recheck_before=100.0)
    assert [found.url[-1] for found in store.due("a.example", 110.0, 10, narrow)] == ["0", "1"]
    assert store.backlog(110.0, narrow) == [HostBacklog(host="a.example", due=2)]


def test_a_collection_in_several_matches_counts_a_link_once(store: Store) -> None:
    store.add([entry(1, collection=name) for name in ("C1", "C2", "C3")])
    assert store.backlog(1.0, LinkFilter(collection="C*")) == [HostBacklog(host="a.example", due=1)]
    assert len(store.due("a.example", 1.0, 10, LinkFilter(collection="C*"))) == 1


def test_everything_is_there_after_reopening(url: str, opened: Callable[[str], Store]) -> None:
    first = opened(url)
    first.add([entry(n, collection=f"C{n}", priority=n) for n in range(5)])
    first.finish([check(link(first, 1), 10.0, 20.0)])
    before = links(first), first.books(15.0), first.collections()
    first.close()
    again = opened(url)
    assert (links(again), again.books(15.0), again.collections()) == before


def test_a_narrowed_crawl_sees_collections_that_come_while_it_runs(store: Store) -> None:
    narrow = LinkFilter(collection="C*")
    store.add([entry(1, collection="C1"), entry(2, collection="D")])
    assert [found.url[-1] for found in store.due("a.example", 1.0, 10, narrow)] == ["1"]
    store.add([entry(3, collection="C3"), entry(2, collection="C1")])
    assert [found.url[-1] for found in store.due("a.example", 1.0, 10, narrow)] == ["1", "2", "3"]
    assert [found.url[-1] for found in store.due("a.example", 1.0, 10, LinkFilter(collection="D"))] == ["2"]
