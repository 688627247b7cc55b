"""Entries, records and checks for store tests: plain ones, of which a test names only what it is about."""

from __future__ import annotations

from typing import Any

from attrs import evolve

from linkcrawl.items import Category, DueLink, Finished, Hop, LinkState, Record, Seed
from linkcrawl.stores.contract import LinkEntry, Proxy, Query, Store

#: A moment after which nothing in these tests is due any more.
FOREVER = 1e12


def key(n: int) -> bytes:
    """Ids of links may be made of keys or count on: with these keys both have the order of the numbers."""
    return n.to_bytes(16, "big")


def entry(n: int, host: str = "a.example", **seed: Any) -> LinkEntry:
    """The nth link, at a host, mentioned as the seed fields say."""
    url = f"https://{host}/{n}"
    return LinkEntry(key=key(n), url=url, host=host, seed=Seed(url=url, **seed))


def links(store: Store, host: str = "a.example", now: float = FOREVER) -> list[DueLink]:
    return store.due(host, now, 1_000_000)


def link(store: Store, n: int, host: str = "a.example") -> DueLink:
    """The nth link, as the store gives it out."""
    return next(found for found in links(store, host) if found.url == f"https://{host}/{n}")


def proxies(store: Store, link_id: int | str) -> list[Proxy]:
    """The mentions of one link."""
    return store.proxies([link_id])[link_id]


def record(of: DueLink, at: float, next_at: float, **fields: Any) -> Record:
    plain = Record(
        link_id=of.id,
        url=of.url,
        collections=of.collections,
        checked_at=at,
        category=Category.OK,
        reason="ok",
        confirmed=True,
        status=200,
        method="HEAD",
        redirects=0,
        final_url=of.url,
        hops=(
            Hop(
                url=of.url,
                method="HEAD",
                status=200,
                location=None,
                duration_ms=7,
                ip="192.0.2.1",
                error=None,
                at=at - 0.007,
            ),
        ),
        timeout=False,
        duration_ms=7,
        expected_mime=of.expected_mime,
        mime="text/html",
        mime_matches=None,
        content_length=None,
        error=None,
        attempt=0,
        next_check_at=next_at,
        crawler="linkcrawl/0.1.0 00000000",
    )
    return evolve(plain, **fields)


def check(
    of: DueLink, at: float, next_at: float | None = None, state: LinkState = LinkState(), **fields: Any
) -> Finished:
    """A check of a link that ended `at`, after which it is due `next_at` (a week later); it may be of any program."""
    return Finished(record=record(of, at, at + 604_800 if next_at is None else next_at, **fields), state=state)


def own_check(of: DueLink, at: float, next_at: float | None = None, **fields: Any) -> Finished:
    """A check that was begun on the link as it was given out here."""
    return evolve(check(of, at, next_at, **fields), of=of)


def history(store: Store, **query: Any) -> list[tuple[str, float]]:
    """Records by URL and time, as `Store.records` orders them."""
    return [(found.url, found.checked_at) for found in store.records(Query(**query))]
