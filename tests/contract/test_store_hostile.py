"""What strangers write: no text or number of a seed or a server may break the store or mean anything to it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from linkcrawl.items import Hop, HostMemory, Seed
from linkcrawl.stores.contract import AddCounts, LinkEntry, LinkFilter, Query, Store
from linkcrawl.stores.opening import open_store
from tests.contract.making import check, entry, key, link, links, proxies

#: As given, and as a store gives it back.
TEXTS = {
    "NUL": ("a\0b", "a\0b"),
    "emoji": ("\U0001f600 e\u0301", "\U0001f600 e\u0301"),
    "lone surrogate": ("a\ud800b", "a\ufffdb"),
    "surrogate pair in halves": ("\ud83d\ude00", "\U0001f600"),
    "not a character": ("\uffff\ufffe", "\uffff\ufffe"),
    "controls": ("\x01\x1b[31m\r\n\u2028\x85", "\x01\x1b[31m\r\n\u2028\x85"),
    "SQL": ("'; DROP TABLE links; --\"", "'; DROP TABLE links; --\""),
    "wildcards": ("%_*?[a-z]\\", "%_*?[a-z]\\"),
    "operators": ("$where", "$where"),
    "JSON": ('{"$gt": ""}', '{"$gt": ""}'),
    "a megabyte": ("x" * 1_000_000, "x" * 1_000_000),
}


@pytest.mark.parametrize("case", TEXTS)
def test_any_text_of_a_seed_is_kept(store: Store, case: str) -> None:
    given_text, kept = TEXTS[case]
    names = dict.fromkeys(("collection", "record", "expected_mime", "provider", "resource_type"), given_text)
    seed = Seed(url=given_text, extra={given_text: [given_text]}, **names)  # type: ignore[arg-type]
    mention = LinkEntry(key=key(1), url=given_text, host=given_text, seed=seed)
    assert store.add([mention]) == AddCounts(new=1, known=0, proxies=1)
    assert store.add([mention]) == AddCounts(new=0, known=1, proxies=0)
    [found] = store.due(given_text, 1.0, 5)
    assert (found.url, found.host, found.collections, found.providers) == (kept, kept, (kept,), (kept,))
    assert store.due(kept, 1.0, 5) == [found]
    assert store.collections() == [kept]
    [proxy] = proxies(store, found.id)
    assert (proxy.collection, proxy.record, proxy.provider, proxy.extra) == (kept, kept, kept, {kept: [kept]})


@pytest.mark.parametrize("case", TEXTS)
def test_any_text_of_a_server_is_kept(store: Store, case: str) -> None:
    given_text, kept = TEXTS[case]
    store.add([entry(1, collection=given_text)])
    hop = Hop(
        url=given_text, method="GET", status=200, location=given_text, duration_ms=1, ip=None, error=given_text, at=1.0
    )
    found = link(store, 1)
    store.finish([check(found, 10.0, hops=(hop,), final_url=given_text, error=given_text, mime=given_text)])
    [kept_record] = store.records()
    assert (kept_record.final_url, kept_record.error, kept_record.mime) == (kept, kept, kept)
    assert (kept_record.hops[0].location, kept_record.collections) == (kept, (kept,))
    summary = store.summary(11.0)
    assert [(part.name, part.tallies) for part in summary.collections] == [(kept, summary.overall.tallies)]
    store.remember([HostMemory(host=given_text, pace={given_text: given_text}, robots={"text": given_text})])
    [memory] = store.hosts()
    assert (memory.host, memory.pace, memory.robots) == (kept, {kept: kept}, {"text": kept})


@pytest.mark.parametrize("case", [case for case in TEXTS if case != "a megabyte"])
def test_any_text_may_be_a_glob(store: Store, case: str) -> None:
    given_text, kept = TEXTS[case]
    store.add([entry(1, collection=kept), entry(2, collection="a"), entry(3, collection="z")])
    store.finish([check(found, 10.0) for found in links(store)])
    found = [record.collections for record in store.records(Query(collection=kept))]
    assert found == [(kept,)]
    assert store.due("a.example", 1e10, 5, LinkFilter(collection=kept, host="*")) == [link(store, 1)]
    assert len(store.backlog(1e10, LinkFilter(collection=given_text, host=given_text))) == 0


@pytest.mark.parametrize("number", [2**63 - 1, 2**63, 10**30, -(10**30)])
def test_any_number_is_kept_as_near_as_it_can_be(store: Store, number: int) -> None:
    nearest = min(2**63 - 1, max(-(2**63), number))
    store.add([entry(1, priority=number, extra={"n": 10**15})])
    found = link(store, 1)
    assert (found.priority, proxies(store, found.id)[0].extra) == (nearest, {"n": 10**15})
    store.finish([check(found, 10.0, content_length=number, status=number, duration_ms=number)])
    [kept] = store.records()
    assert (kept.content_length, kept.status, kept.duration_ms) == (nearest, nearest, nearest)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(extra=st.dictionaries(st.text(max_size=8), JSON, max_size=4))
def test_unknown_fields_come_back_as_they_were(new_url: Callable[[], str], extra: dict[str, object]) -> None:
    store = open_store(new_url())
    store.add([entry(1, extra=extra)])
    assert proxies(store, link(store, 1).id)[0].extra == extra
    store.close()
