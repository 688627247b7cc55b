"""One link, asked for by its key."""

from __future__ import annotations

from linkcrawl.stores.contract import Store
from tests.contract.making import check, entry, key, link


def test_a_link_is_found_by_its_key_due_or_not(store: Store) -> None:
    store.add([entry(0, collection="b", provider="p"), entry(0, collection="a"), entry(1, host="")])
    assert store.link(key(0)) == link(store, 0)
    store.finish([check(link(store, 0), 100.0, next_at=5000.0)])
    found = store.link(key(0))
    assert found is not None
    assert (found.next_check_at, found.collections, found.providers) == (5000.0, ("a", "b"), ("p",))
    nowhere = store.link(key(1))
    assert nowhere is not None
    assert nowhere.host == ""
    assert store.link(key(2)) is None
