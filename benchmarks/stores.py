"""What the stores cost: seeds taken up, checks finished, links given out, sums; SQLite beside MongoDB.

    python scripts/servers.py python -m benchmarks.stores [--links N] [--batch N]

Needs TEST_MONGODB_URL for the MongoDB half (scripts/servers.py sets it). Prints one Markdown table; what was measured
is in benchmarks/RESULTS.md. Every number is of one run on one thread, as a crawl uses its store.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path
from uuid import uuid4

from linkcrawl.items import Category, DueLink, Finished, Hop, LinkState, Record, Seed
from linkcrawl.stores.contract import LinkEntry, Query, Store
from linkcrawl.stores.opening import open_store

NOW = 1_800_000_000.0
WEEK = 604_800.0
HOSTS = 200
COLLECTIONS = 100
#: One check in five is not Ok, as in the catalogue.
OUTCOMES = [(Category.OK, "ok", 200)] * 4 + [(Category.BROKEN, "http_404", 404)]


def entry(n: int) -> LinkEntry:
    """The nth link, with a mention as a harvest gives it."""
    host = f"repository{n % HOSTS}.example.org"
    url = f"https://{host}/handle/20.500.12345/{n}/metadata?format=cmdi"
    seed = Seed(
        url=url,
        collection=f"Collection_{n % COLLECTIONS}",
        record=f"Collection_{n % COLLECTIONS}/oai_{host}_{n}.xml",
        expected_mime="application/x-cmdi+xml",
        resource_type="Metadata",
    )
    return LinkEntry(key=n.to_bytes(16, "big"), url=url, host=host, seed=seed)


def finished(link: DueLink, n: int, at: float) -> Finished:
    """A check of a link: a redirect and an answer, which is about the mean."""
    category, reason, status = OUTCOMES[n % len(OUTCOMES)]
    hops = tuple(
        Hop(
            url=url,
            method="HEAD",
            status=hop_status,
            location=location,
            duration_ms=120,
            ip="192.0.2.17",
            error=None,
            at=at - 1 + place,
        )
        for place, (url, hop_status, location) in enumerate(
            [(link.url, 302, f"{link.url}/landing"), (f"{link.url}/landing", status, None)]
        )
    )
    record = Record(
        link_id=link.id,
        url=link.url,
        collections=link.collections,
        checked_at=at,
        category=category,
        reason=reason,
        confirmed=True,
        status=status,
        method="HEAD",
        redirects=1,
        final_url=f"{link.url}/landing",
        hops=hops,
        timeout=False,
        duration_ms=240 + n % 500,
        expected_mime=link.expected_mime,
        mime="text/html",
        mime_matches=False,
        content_length=5120,
        error=None,
        attempt=0,
        next_check_at=at + WEEK,
        crawler="linkcrawl/0.1.0 00000000",
    )
    return Finished(record=record, state=LinkState(interval=WEEK))


def batches(items: Iterator[object], size: int) -> Iterator[list]:  # type: ignore[type-arg]
    while batch := list(islice(items, size)):
        yield batch


def timed(what: str, count: int, work: Callable[[], object]) -> tuple[str, str]:
    """A line of the table: seconds for questions, a rate for streams."""
    began = time.perf_counter()
    work()
    seconds = time.perf_counter() - began
    return what, f"{count / seconds:,.0f}/s" if count else f"{seconds * 1000:,.0f} ms"


def measure(store: Store, links: int, batch: int) -> list[tuple[str, str]]:
    """All lines of one store, which is empty before."""

    def add() -> None:
        for entries in batches(map(entry, range(links)), batch):
            store.add(entries)

    def given_out() -> list[DueLink]:
        return [link for host in store.backlog(NOW) for link in _all_due(store, host.host)]

    def finish(at: float) -> None:
        checks = (finished(link, n, at + n / 1000) for n, link in enumerate(due))
        for checked in batches(checks, batch):
            store.finish(checked)

    lines = [
        timed("seeds taken up, new", links, add),
        timed("seeds taken up, known", links, add),
        timed("links given out, 32 at a time", links, given_out),
    ]
    due = given_out()
    lines += [
        timed("records stored, first check", links, lambda: finish(NOW)),
        timed("records stored, recheck", links, lambda: finish(NOW + WEEK)),
        timed("records read, latest", links, lambda: sum(1 for _ in store.records())),
        timed("records read, history", 2 * links, lambda: sum(1 for _ in store.records(Query(history=True)))),
        timed("backlog, all due", 0, lambda: store.backlog(NOW + 10 * WEEK)),
        timed("summary", 0, lambda: store.summary(NOW)),
        timed("books", 0, lambda: store.books(NOW)),
    ]
    return lines


def _all_due(store: Store, host: str) -> Iterator[DueLink]:
    after = None
    while part := store.due(host, NOW, 32, after=after):
        yield from part
        after = part[-1]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--links", type=int, default=100_000)
    parser.add_argument("--batch", type=int, default=1000)
    options = parser.parse_args()
    columns = {}
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:  # /tmp may be in memory, where nothing is durable
        urls = {"SQLite": f"sqlite:///{folder}/store.db"}
        if server := os.environ.get("TEST_MONGODB_URL"):
            urls["MongoDB"] = f"{server}/linkcrawl_bench_{uuid4().hex}"
        for name, url in urls.items():
            with closing(open_store(url)) as store:
                columns[name] = measure(store, options.links, options.batch)
            if name == "MongoDB":
                _drop(url)
    print(f"{options.links:,} links, batches of {options.batch:,}\n")
    print(f"| | {' | '.join(columns)} |\n|---|{'---:|' * len(columns)}")
    for lines in zip(*columns.values(), strict=True):
        print(f"| {lines[0][0]} | {' | '.join(value for _, value in lines)} |")


def _drop(url: str) -> None:
    import pymongo

    with pymongo.MongoClient(url) as client:  # type: ignore[var-annotated]
        client.drop_database(client.get_default_database().name)


if __name__ == "__main__":
    main()
