"""No question of the store scans a collection that grows with the catalogue, as the server's own profiler saw it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from linkcrawl.items import Category
from linkcrawl.stores.contract import REFUSALS, LinkFilter, Query, Store
from linkcrawl.stores.opening import open_store
from tests.contract.making import check, entry, key, links
from tests.contract.mongodb import database, looking_at, server_url

HOSTS = 4
LINKS = 200
#: Collections that are small in any store, and read whole.
SMALL = ("batches", "collections", "hosts", "meta", "orders", "system.profile")


@pytest.fixture
def filled() -> Iterator[str]:
    with database(server_url()) as url:
        with closing(open_store(url)) as store:
            store.add([entry(n, f"{n % HOSTS}.example", collection=f"C{n % 5}", priority=n % 3) for n in range(LINKS)])
            for host in range(HOSTS):
                found = links(store, f"{host}.example")
                store.finish([check(link, 100.0 + n) for n, link in enumerate(found[:40])])
        yield url


def profiled(url: str, question: str) -> list[dict[str, Any]]:
    """What the server did for a question: the profiler's lines of collections that grow."""
    with looking_at(url) as seen, closing(open_store(url)) as store:
        seen.command("profile", 2)
        ask(store, question)
        seen.command("profile", 0)
        names = "|".join(SMALL)
        lines = list(seen["system.profile"].find({"ns": {"$not": {"$regex": rf"\.({names})$"}}}))
        return [line for line in lines if line.get("planSummary")]


def ask(store: Store, question: str) -> None:
    answer = QUESTIONS[question](store)
    if isinstance(answer, Iterator):
        for _ in answer:
            pass


QUESTIONS: dict[str, Any] = {
    "backlog": lambda store: store.backlog(150.0),
    "backlog of a recheck": lambda store: store.backlog(150.0, LinkFilter(recheck_before=120.0)),
    "backlog of a collection": lambda store: store.backlog(150.0, LinkFilter(collection="C1")),
    "due": lambda store: store.due("1.example", 1e9, 30),
    "due, next page": lambda store: store.due("1.example", 1e9, 30, after=store.due("1.example", 1e9, 3)[-1]),
    "due of a recheck": lambda store: store.due("1.example", 1e9, 30, LinkFilter(recheck_before=120.0)),
    "asked": lambda store: store.asked(10),
    "asked, next page": lambda store: store.asked(10, "00"),
    "progress": lambda store: store.progress("request"),
    "answers": lambda store: store.answers("request"),
    "checks_by_hour": lambda store: store.checks_by_hour(110.0, 120.0),
    "recall_future": lambda store: store.recall_future(150.0, 100.0),
    "next_due_at": lambda store: store.next_due_at(150.0),
    "add": lambda store: store.add([entry(n, "1.example", collection="New", priority=9) for n in range(90, 110)]),
    "finish": lambda store: store.finish([check(link, 900.0) for link in links(store, "2.example")[:9]]),
    "withdraw": lambda store: store.withdraw([link.id for link in links(store, "2.example")], 0.0, "why", "why", 1.0),
    "records": lambda store: store.records(),
    "records of a time": lambda store: store.records(Query(since=110.0, until=120.0)),
    "records of a category": lambda store: store.records(Query(category=Category.OK, history=True)),
    "changes in a collection": lambda store: store.records(Query(changed=True, collection="C1")),
    "refusals": lambda store: store.records(Query(reasons=REFUSALS, history=True)),
    "refusals of a host": lambda store: store.records(Query(reasons=REFUSALS, ended_at=("http://1.example/",))),
    "latest": lambda store: store.latest(key(1)),
    "link": lambda store: store.link(key(1)),
    "proxies": lambda store: store.proxies([key(n).hex() for n in range(200)]),
    "books": lambda store: store.books(150.0),
}


@pytest.mark.parametrize("question", QUESTIONS)
def test_it_is_answered_by_an_index(filled: str, question: str) -> None:
    lines = profiled(filled, question)
    assert lines
    assert [line["planSummary"] for line in lines if "COLLSCAN" in line["planSummary"]] == []
    assert [line["planSummary"] for line in lines if line.get("hasSortStage")] == []


@pytest.mark.parametrize("question", ["backlog", "next_due_at", "books"])
def test_what_is_asked_of_all_links_reads_no_document(filled: str, question: str) -> None:
    assert {line["docsExamined"] for line in profiled(filled, question)} == {0}


def test_refusals_are_read_without_other_records(filled: str) -> None:
    with closing(open_store(filled)) as store:
        for host, reason in (("1.example", "http_403"), ("2.example", "http_403"), ("2.example", "bot_challenge")):
            found = [link for link in links(store, host) if link.last_category is None]
            store.finish([check(link, 500.0, reason=reason, final_url=f"http://{host}/x") for link in found[:3]])
    of_records = [line for line in profiled(filled, "refusals") if line["ns"].endswith(".records")]
    assert sum(line["docsExamined"] for line in of_records) == 9


@pytest.mark.parametrize("limit", [1, 5, 20])
def test_due_reads_what_it_gives(filled: str, limit: int) -> None:
    with looking_at(filled) as seen, closing(open_store(filled)) as store:
        seen.command("profile", 2)
        assert len(store.due("1.example", 1e9, limit)) == limit
        seen.command("profile", 0)
        read = list(seen["system.profile"].find({"ns": {"$regex": r"\.links$"}, "docsExamined": {"$gt": 0}}))
    assert sum(line["docsExamined"] for line in read) <= limit + 1
