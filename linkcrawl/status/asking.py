"""Requests that links be checked now: which links are meant, when they may be asked at the earliest, and what stands
in the way. `scrapy recheck` asks so, and so may any other program. Nothing is sent here: a crawl takes requests up."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from secrets import token_hex

from attrs import frozen

from linkcrawl import urls
from linkcrawl.config import Config
from linkcrawl.items import RETIRED, DueLink
from linkcrawl.politeness.host_state import HostStateCache
from linkcrawl.politeness.policy.rules import Policies
from linkcrawl.politeness.robots.middleware import denial_of
from linkcrawl.status.hosts import HostStatusReport, State
from linkcrawl.status.snapshot import StoreSnapshot
from linkcrawl.stores.contract import CheckRequest, LinkFilter, Store

#: A time by which every active link is due.
EVER = 1e12
#: Links that are read from the store, and robots.txt files that are, in one call.
PAGE = 1000


@frozen(kw_only=True)
class Selection:
    """The links that are meant. `unknown`, `retired`: URLs as they were given that the store doesn't have, or whose
    links aren't asked any more."""

    links: tuple[DueLink, ...]
    unknown: tuple[str, ...] = ()
    retired: tuple[str, ...] = ()


def find_urls(store: Store, texts: Iterable[str]) -> Selection:
    """The links of these URLs, read as seeds are. Raises StoreLost."""
    links: dict[int | str, DueLink] = {}
    unknown, retired = [], []
    for text in texts:
        url = urls.tidy(text)
        link = store.link(urls.key(url, urls.read_tidy(url)))
        if link is None:
            unknown.append(text)
        elif link.next_check_at >= RETIRED:
            retired.append(text)
        else:
            links[link.id] = link
    return Selection(links=tuple(links.values()), unknown=tuple(unknown), retired=tuple(retired))


def find_matching(store: Store, *, collection: str | None = None, host: str | None = None) -> Selection:
    """The active links of these collections and hosts (globs). Raises StoreLost."""
    wanted = LinkFilter(collection=collection, host=host)
    return Selection(
        links=tuple(link for line in store.backlog(EVER, wanted) for link in _links_of_host(store, line.host, wanted))
    )


def _links_of_host(store: Store, host: str, wanted: LinkFilter) -> Iterator[DueLink]:
    after = None
    while page := store.due(host, EVER, PAGE, wanted, after):
        yield from page
        after = page[-1]


def request_checks(
    store: Store, links: Sequence[DueLink], now: float, *, by: str = "", reason: str = ""
) -> CheckRequest:
    """Ask for a check of these links. `now`: Unix seconds. Raises StoreLost."""
    name = f"{time.strftime('%Y%m%d%H%M%S', time.gmtime(now))}-{token_hex(6)}"
    request = CheckRequest(id=name, asked_at=now, by=by, reason=reason)
    store.ask(request, [link.id for link in links])
    return request


@frozen(kw_only=True)
class HostOutlook:
    """What the links of a request wait for at one host. `opens_at`: none of them is asked before (Unix seconds), None
    where no time opens the host; `done_at`: not all of them can have a record before, None as for `opens_at`. `why`:
    what stands in the way, "" where nothing does. `disallowed`: how many of them robots.txt forbids, as it was read
    last; they get their record without a request."""

    host: str
    links: int
    opens_at: float | None
    done_at: float | None
    why: str
    disallowed: int = 0


def outlook(
    store: Store, config: Config, policies: Policies, links: Sequence[DueLink], now: float
) -> list[HostOutlook]:
    """What the links wait for, by host; links without one (they can't be requested) wait for nothing. True lower
    bounds: what other links, answer times and hops add is left out. Raises StoreLost."""
    by_host: dict[str, list[DueLink]] = {}
    for link in links:
        if link.host:
            by_host.setdefault(link.host, []).append(link)
    snapshot = StoreSnapshot.remembered(
        config, policies, HostStateCache(store.hosts(), now=lambda: now), now, orders=store.orders(), due={}
    )
    targets = {link.id: target for link in links if isinstance(target := urls.read_tidy(link.url), urls.Target)}
    authorities = sorted({target.authority for target in targets.values()})
    for first in range(0, len(authorities), PAGE):
        snapshot.robots.restore(store.robots(authorities[first : first + PAGE]), now)
    report = HostStatusReport(snapshot, *by_host)
    return [_of_host(snapshot, report, host, by_host[host], targets) for host in sorted(by_host)]


def _of_host(
    snapshot: StoreSnapshot,
    report: HostStatusReport,
    host: str,
    links: list[DueLink],
    targets: dict[int | str, urls.Target],
) -> HostOutlook:
    status, now = report.host(host), snapshot.now()
    opens_at: float | None = max(status.wake or now, now)
    why = status.why if status.state in (State.BLOCKED, State.QUIET, State.WAITING) else ""
    if status.state in (State.BLOCKED, State.QUIET) and status.wake is None:
        opens_at = None
    disallowed, gaps = 0, []
    for link in links:
        applied = snapshot.policies.of_link(host, link.collections, link.providers)
        target = targets.get(link.id)
        if target is None:
            continue
        verdict = snapshot.robots.verdict(target.authority, target.url, now)
        if applied.skipped_by(target.url) is not None or denial_of(verdict) is not None:
            disallowed += denial_of(verdict) is not None
            continue
        if applied.paused_by is not None:
            opens_at, why = None, why or f"paused by policy {applied.paused_by}"
        floor = snapshot.config.delay if applied.floor is None else applied.floor
        gaps.append(floor * min(1.0, applied.cost(target.url)))
    done_at = opens_at
    if opens_at is not None and gaps:
        done_at = opens_at + (len(gaps) - 1) * min(gaps)
    return HostOutlook(host=host, links=len(links), opens_at=opens_at, done_at=done_at, why=why, disallowed=disallowed)


def earliest_done(outlooks: Iterable[HostOutlook], now: float) -> float | None:
    """Before this time (Unix seconds) not all of a request is done; None behind a block without an end."""
    times = [each.done_at for each in outlooks]
    return None if None in times else max([now, *(at for at in times if at is not None)])
