"""Hosts that turn us away: which wall, or which status, since when, and how many links of which collection that costs.

A refusal belongs to the host that gave it, which may be another than the link's own: a resolver of persistent
identifiers leads to walls and has none.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

from attrs import frozen

from linkcrawl import urls
from linkcrawl.items import Record
from linkcrawl.stores.contract import REFUSALS, Query, Store

#: Reason of a record that shows a wall.
CHALLENGED = "bot_challenge"
#: What a wall is called that no product could be named for.
UNNAMED = "unnamed"
#: Records whose mentions are read together.
TOGETHER = 1000


@frozen(kw_only=True)
class Refusal:
    """One way in which a host turns us away. `wall`: the product, for a challenge. `links`: whose latest check ended
    so; `collections`: how many of those each collection has, most first (a link in several counts in each). `first`,
    `last`: Unix seconds of the first and last such answer, as far back as history is kept."""

    reason: str
    status: int | None
    wall: str | None
    links: int
    collections: tuple[tuple[str, int], ...]
    first: float
    last: float


@frozen
class _Kind:
    reason: str
    status: int | None
    wall: str | None

    @classmethod
    def of(cls, record: Record) -> _Kind:
        return cls(record.reason, record.status, record.wall)


@frozen(kw_only=True)
class WalledHost:
    """A host that shows a wall, and how many links are behind it."""

    host: str
    links: int


@frozen(kw_only=True)
class WallCount:
    """Links whose latest check ended at walls of one product, and at how many hosts; `hosts`: most links first."""

    wall: str
    links: int
    host_count: int
    hosts: tuple[WalledHost, ...]


def refusing_host(record: Record) -> str:
    """The key of the host whose answer ended the check; "" where there is none."""
    target = urls.read(record.final_url or record.url)
    return target.host if isinstance(target, urls.Target) else ""


def walls_by_host(store: Store) -> dict[str, Counter[str]]:
    """Links behind walls, by the host that shows the wall and by product."""
    found: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for record in store.records(Query(reasons=(CHALLENGED,))):
        found[refusing_host(record)][record.wall or UNNAMED] += 1
    return dict(found)


def walls_by_product(by_host: Mapping[str, Counter[str]]) -> tuple[WallCount, ...]:
    """The same by product, most links first."""
    hosts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for host, walls in by_host.items():
        for wall, links in walls.items():
            hosts[wall][host] += links
    counts = [
        WallCount(
            wall=wall,
            links=of_hosts.total(),
            host_count=len(of_hosts),
            hosts=tuple(WalledHost(host=host, links=links) for host, links in _most_first(of_hosts)),
        )
        for wall, of_hosts in hosts.items()
    ]
    return tuple(sorted(counts, key=lambda count: (-count.links, count.wall)))


def refusals_of(store: Store, host: str) -> tuple[Refusal, ...]:
    """How a host turns us away by now, most links first; empty where it doesn't."""
    at = _urls_of(host)
    links: defaultdict[_Kind, list[int | str]] = defaultdict(list)
    for record in _at(host, store.records(Query(reasons=REFUSALS, ended_at=at))):
        links[_Kind.of(record)].append(record.link_id)
    times: dict[_Kind, tuple[float, float]] = {}
    for record in _at(host, store.records(Query(reasons=REFUSALS, ended_at=at, history=True))) if links else ():
        kind = _Kind.of(record)
        times[kind] = times.get(kind, (record.checked_at, 0.0))[0], record.checked_at
    found = [
        Refusal(
            reason=kind.reason,
            status=kind.status,
            wall=kind.wall,
            links=len(ids),
            collections=_most_first(_collections(store, ids)),
            first=times[kind][0],
            last=times[kind][1],
        )
        for kind, ids in links.items()
        if kind in times  # else it was pruned between the two questions
    ]
    return tuple(sorted(found, key=lambda refusal: (-refusal.links, refusal.reason, refusal.status or 0)))


def _urls_of(host: str) -> tuple[str, ...]:
    """How the URLs of a host (key) begin, with and without the root's dot."""
    name, port = re.fullmatch(r"(.*?)(:[0-9]+)?", host, re.DOTALL).groups("")  # type: ignore[union-attr]
    return tuple(f"{scheme}://{name}{dot}{port}/" for scheme in ("http", "https") for dot in ("", "."))


def _at(host: str, records: Iterable[Record]) -> Iterable[Record]:
    return (record for record in records if refusing_host(record) == host)


def _collections(store: Store, ids: list[int | str]) -> Counter[str]:
    counts = Counter[str]()
    for start in range(0, len(ids), TOGETHER):
        for mentions in store.proxies(ids[start : start + TOGETHER]).values():
            counts.update({mention.collection for mention in mentions if mention.collection is not None})
    return counts


def _most_first(counts: Counter[str]) -> tuple[tuple[str, int], ...]:
    return tuple(sorted(counts.items(), key=lambda item: (-item[1], item[0])))
