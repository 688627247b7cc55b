"""Hosts that block us or ask us to slow down, by host memory and orders, with the links that this concerns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from linkcrawl.items import HostMemory, Order
from linkcrawl.politeness.pacing.persistence import pace_from_row
from linkcrawl.politeness.robots.pace import robots_pace_from_row
from linkcrawl.reports.model import HostTrouble
from linkcrawl.stores.contract import Store, SummaryPart

#: Reasons of records by which the host turned us away, which says nothing of the link.
REFUSED = frozenset({"host_blocked", "rate_limited", "bot_challenge", "robots_unreachable"})


def troubles(store: Store, parts: Iterable[SummaryPart], now: float, floor: float) -> tuple[HostTrouble, ...]:
    """Hosts in trouble: blocked ones first, then silenced ones, then by the links that were turned away. `floor`:
    DOWNLOAD_DELAY in seconds. A gate that several hosts share has host memory of its own, and no links."""
    by_name = {part.name or "": part for part in parts}
    orders = store.orders()
    found = {}
    for memory in store.hosts():
        trouble = _trouble(memory.host, by_name.get(memory.host), memory, orders.get(memory.host), now, floor)
        if trouble is not None:
            found[memory.host] = trouble
    for name in (by_name.keys() | orders.keys()) - found.keys():
        trouble = _trouble(name, by_name.get(name), HostMemory(host=name), orders.get(name), now, floor)
        if trouble is not None:
            found[name] = trouble
    return tuple(sorted(found.values(), key=_weight))


def _weight(trouble: HostTrouble) -> tuple[bool, bool, int, float, str]:
    blocked = trouble.blocked_since is not None or trouble.ordered is not None
    wait = max(trouble.back_off, trouble.crawl_delay or 0.0)
    return not blocked, trouble.silent_until is None, -trouble.refused, -wait, trouble.host


def _trouble(
    host: str, part: SummaryPart | None, memory: HostMemory, order: Order | None, now: float, floor: float
) -> HostTrouble | None:
    """The host's trouble; None where it has none."""
    pace = pace_from_row(memory.pace)
    blocked_since = None if order is not None and order.reopens(pace.blocked_since) else pace.blocked_since
    refusals = Counter[str]()
    for tally in part.tallies if part else ():
        refusals[tally.reason] += tally.count if tally.reason in REFUSED else 0
    trouble = HostTrouble(
        host=host,
        links=part.links if part else 0,
        due=part.due if part else 0,
        refused=refusals.total(),
        reasons=tuple(reason for reason, count in refusals.most_common() if count),
        blocked_since=blocked_since,
        ordered=order.reason if order is not None and order.blocks(now) else None,
        silent_until=pace.silent_until if pace.silent_until > now else None,
        back_off=pace.back_off,
        crawl_delay=_crawl_delay(memory, now, floor),
    )
    facts = (trouble.blocked_since, trouble.ordered, trouble.silent_until, trouble.crawl_delay)
    return trouble if trouble.refused or trouble.back_off or any(fact is not None for fact in facts) else None


def _crawl_delay(memory: HostMemory, now: float, floor: float) -> float | None:
    """The largest delay, in seconds, that a host's robots.txt files ask for now, where it is more than `floor`."""
    delays = [floor]
    for row in memory.robots.values():
        pace = robots_pace_from_row(row)
        delays += [seconds for seconds in (pace.crawl_delay, pace.request_delay(now)) if seconds is not None]
    return max(delays) if max(delays) > floor else None
