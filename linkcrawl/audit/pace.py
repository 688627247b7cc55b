"""What the audit log says of our pace at one host: numbers for its administrator."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import pairwise

from attrs import frozen

from linkcrawl.audit.log import AuditEntry
from linkcrawl.units import DAY


@frozen(kw_only=True)
class HostPace:
    """Our requests to a host, robots.txt included. `first`, `last`: Unix seconds when the first and last were sent.
    `busiest_day`: the most on one day (UTC). `shortest_gap`: seconds from the end of an answer to the next request, the
    least of all; None for a single request."""

    requests: int
    first: float
    last: float
    busiest_day: int
    shortest_gap: float | None


def pace_at(host: str, entries: Iterable[AuditEntry]) -> HostPace | None:
    """Our pace at a host, by the entries of the audit; None where they have no request to it."""
    found = sorted((entry.sent, entry.ended) for entry in entries if entry.host == host)
    if not found:
        return None
    days = Counter(int(sent // DAY) for sent, _ in found)
    gaps = [after - ended for (_, ended), (after, _) in pairwise(found)]
    return HostPace(
        requests=len(found),
        first=found[0][0],
        last=found[-1][0],
        busiest_day=max(days.values()),
        shortest_gap=max(min(gaps), 0.0) if gaps else None,
    )
