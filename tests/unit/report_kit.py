"""A store as a catalogue leaves it after a year or two: many collections, a skewed lot of hosts, all kinds of outcome.

`python -m tests.unit.report_kit FILE LINKS` makes one to look at.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from linkcrawl.items import Category, DueLink, Finished, Hop, HostMemory
from linkcrawl.politeness.pacing.persistence import pace_to_row
from linkcrawl.politeness.pacing.state import Pace
from linkcrawl.stores.contract import LinkEntry, Store
from linkcrawl.stores.opening import open_store
from tests.contract.making import FOREVER, check, entry

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC).timestamp()
DAY = 86400.0
BATCH = 2000

#: Weight, then what a record of this kind says.
OUTCOMES: list[tuple[int, dict[str, Any]]] = [
    (840, {"category": Category.OK, "reason": "ok", "status": 200}),
    (20, {"category": Category.BROKEN, "reason": "http_404", "status": 404}),
    (10, {"category": Category.BROKEN, "reason": "http_404", "status": 404, "confirmed": False}),
    (4, {"category": Category.BROKEN, "reason": "dns_not_found", "status": None, "duration_ms": None}),
    (30, {"category": Category.UNDETERMINED, "reason": "http_500", "status": 500}),
    (20, {"category": Category.UNDETERMINED, "reason": "timeout", "status": None, "timeout": True}),
    (6, {"category": Category.UNDETERMINED, "reason": "rate_limited", "status": 429}),
    (30, {"category": Category.RESTRICTED, "reason": "http_403", "status": 403}),
    (14, {"category": Category.RESTRICTED, "reason": "login_redirect", "status": 200}),
    (20, {"category": Category.BLOCKED_BY_ROBOTS, "reason": "robots_disallowed", "status": None, "duration_ms": None}),
    (3, {"category": Category.UNDETERMINED, "reason": "skipped_by_policy", "status": None, "duration_ms": None}),
    (3, {"category": Category.INVALID, "reason": "invalid_url", "status": None, "duration_ms": None}),
]


def fill(store: Store, links: int, chance: random.Random, unchecked: float = 0.05) -> None:
    """Take up so many links and check them, some of them often; `unchecked`: the part that never was."""
    collections = [f"{name} {n}" for n in range(1, 15) for name in ("Corpora of Utrecht", "Lexica", "Museum Portal")]
    hosts = [f"repository{n}.example" for n in range(1, 200)]
    weights = [1 / (n + 1) for n in range(len(hosts))]
    of_host = {host: chance.choice(OUTCOMES[4:])[1] for host in hosts[::17]}  # hosts in trouble have one kind of it
    for first in range(0, links, BATCH):
        numbers = range(first, min(links, first + BATCH))
        names = chance.choices(hosts, weights, k=len(numbers))
        store.add([_entry(n, host, collections, chance) for n, host in zip(numbers, names, strict=True)])
    for host in hosts:
        due = [link for link in store.due(host, FOREVER, links) if chance.random() > unchecked]
        for start in range(0, len(due), BATCH):
            batch = due[start : start + BATCH]
            store.finish([one for link in batch for one in _checks(link, of_host.get(host), chance)])
    store.remember(_memories(hosts))


def _entry(n: int, host: str, collections: list[str], chance: random.Random) -> LinkEntry:
    place = min(int(chance.expovariate(0.15)), len(collections) - 1)
    return entry(
        n,
        host,
        collection=collections[place],
        provider=f"Centre {place % 7}",
        record=str(n // 3),
        expected_mime=chance.choice(["text/html", "application/pdf", None]),
    )


def _checks(link: DueLink, usual: dict[str, Any] | None, chance: random.Random) -> Iterator[Finished]:
    at = NOW - chance.uniform(1, 420) * DAY
    while at < NOW:
        outcome = usual if usual and chance.random() < 0.8 else _outcome(chance)
        next_at = at + chance.uniform(7, 90) * DAY
        yield check(
            link, at, next_at, **({"duration_ms": int(chance.lognormvariate(5.6, 1))} | _facts(link, outcome, chance))
        )
        if chance.random() < 0.4:
            return
        at = next_at


def _outcome(chance: random.Random) -> dict[str, Any]:
    return chance.choices([outcome for _, outcome in OUTCOMES], [weight for weight, _ in OUTCOMES])[0]


def _facts(link: DueLink, outcome: dict[str, Any], chance: random.Random) -> dict[str, Any]:
    facts = dict(outcome)
    if facts["category"] is Category.OK:
        facts["mime_matches"] = None if link.expected_mime is None else link.expected_mime == "text/html"
        if chance.random() < 0.3:
            facts |= moved(link.url, link.url.replace("https://", "https://www."), chance.choice([301, 302, 308]))
    return facts


def moved(url: str, target: str, status: int) -> dict[str, Any]:
    """The facts of a record whose link redirects once, and ends well."""
    facts = {"method": "HEAD", "duration_ms": 90, "ip": "192.0.2.1", "error": None, "at": NOW}
    hops = (
        Hop(url=url, status=status, location=target, **facts),  # type: ignore[arg-type]
        Hop(url=target, status=200, location=None, **facts),  # type: ignore[arg-type]
    )
    return {"redirects": 1, "final_url": target, "hops": hops}


def _memories(hosts: list[str]) -> Iterator[HostMemory]:
    blocked = Pace(blocked_since=NOW - 3 * DAY, good=100)
    slowed = Pace(back_off=40.0, silent_until=NOW + 1800)
    for host, pace in zip(hosts[3:], (blocked, slowed), strict=False):
        yield HostMemory(host=host, pace=pace_to_row(pace))


if __name__ == "__main__":
    made = open_store(f"sqlite:///{sys.argv[1]}")
    fill(made, int(sys.argv[2]), random.Random(7))
    made.close()
