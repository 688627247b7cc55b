"""Links that somebody has asked for are due until a record of theirs is stored, which answers all who have asked."""

from __future__ import annotations

from linkcrawl.stores.contract import ASKED, CheckRequest, Store
from tests.contract.making import check, entry, link

NOW = 1e9


def request(name: str = "one") -> CheckRequest:
    return CheckRequest(id=name, asked_at=NOW, by="somebody", reason="a letter came")


def _checked(store: Store, *numbers: int) -> None:
    """These links are in the store, were checked at NOW - 100, and are due much later."""
    store.add([entry(n) for n in numbers])
    store.finish([check(link(store, n), NOW - 100, NOW + 1e6) for n in numbers])


def test_asked_links_are_due_first_until_their_record_is_stored(store: Store) -> None:
    _checked(store, 1, 2, 3)
    store.add([entry(4)])
    host = link(store, 2).host
    assert store.asked(10) == []
    assert store.ask(request(), [link(store, 2).id]) == 1
    assert [found.id for found in store.asked(10)] == [link(store, 2).id]
    assert link(store, 2).next_check_at == ASKED
    assert [found.id for found in store.due(host, NOW, 10)] == [link(store, 2).id, link(store, 4).id]
    assert sum(line.due for line in store.backlog(NOW)) == 2
    books = store.books(NOW)
    assert (books.due, books.later, books.never_checked) == (2, 2, 1)
    store.finish([check(link(store, 2), NOW + 5, NOW + 2e6)])
    assert store.asked(10) == []
    assert link(store, 2).next_check_at == NOW + 2e6


def test_one_record_answers_everybody(store: Store) -> None:
    _checked(store, 1, 2)
    ids = [link(store, n).id for n in (1, 2)]
    store.ask(request("one"), ids)
    store.ask(request("two"), ids[:1])
    assert store.progress("one").done == 0
    store.finish([check(link(store, 1), NOW + 5, NOW + 2e6)])
    one, two = store.progress("one"), store.progress("two")
    assert (one.asked, one.done, two.asked, two.done) == (2, 1, 1, 1)
    assert [(line.host, line.due) for line in one.waiting] == [(link(store, 2).host, 1)]
    for name in ("one", "two"):
        assert [(record.link_id, record.checked_at) for record in store.answers(name)] == [(ids[0], NOW + 5)]
    store.finish([check(link(store, 1), NOW + 50, NOW + 3e6)])
    assert [record.checked_at for record in store.answers("two")] == [NOW + 5]  # the first after the request


def test_asking_again_changes_nothing(store: Store) -> None:
    _checked(store, 1, 2)
    ids = [link(store, n).id for n in (1, 2)]
    assert store.ask(request(), ids) == store.ask(request(), ids) == 2
    store.finish([check(link(store, 1), NOW + 5, NOW + 2e6)])
    assert store.ask(request(), ids) == 2
    assert link(store, 1).next_check_at == NOW + 2e6
    assert store.progress("one").done == 1
    assert store.check_request("one") == request()
    assert store.check_request("none") is None
    assert store.progress("none").asked == 0


def test_retired_links_are_not_asked_and_wait_no_more(store: Store) -> None:
    _checked(store, 1, 2)
    ids = [link(store, n).id for n in (1, 2)]
    store.retire_mentions([entry(1)], NOW)
    assert store.ask(request(), ids) == 1
    assert [found.id for found in store.asked(10)] == ids[1:]
    store.retire_mentions([entry(2)], NOW + 1)
    assert store.asked(10) == []
    progress = store.progress("one")
    assert (progress.asked, progress.done, list(store.answers("one"))) == (1, 1, [])


def test_many_are_read_in_pages(store: Store) -> None:
    numbers = range(60)
    store.add([entry(n) for n in numbers])
    ids = [link(store, n).id for n in numbers]
    assert store.ask(request("one"), ids) == 60
    assert store.ask(request("two"), ids[:40]) == 40
    first = store.asked(25)
    rest = [*(second := store.asked(25, first[-1].id)), *store.asked(25, second[-1].id)]
    assert (len(first), len(second)) == (25, 25)
    assert sorted(map(str, ids)) == sorted(str(found.id) for found in (*first, *rest))


def test_whether_a_crawl_has_the_store(store: Store) -> None:
    assert not store.is_claimed()
    store.claim()
    assert store.is_claimed()
