"""What the server's log says of a crawl's manners."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from itertools import pairwise

from linkcrawl.audit.log import AuditEntry
from linkcrawl.audit.verify import read_lines
from tests.crawl.harness import Crawler
from tests.site.client import Request

#: Seconds that a clock may be read late on a busy machine.
LATE = 0.005
#: Seconds by which gaps of a log may be short, whose times are rounded to a tenth of a millisecond.
ROUNDED = 0.001


def by_host(requests: Iterable[Request]) -> dict[str, list[Request]]:
    """Requests by address, in the order in which they came."""
    hosts = defaultdict(list)
    for request in requests:
        hosts[request.host].append(request)
    return dict(hosts)


def successive(requests: Iterable[Request]) -> list[tuple[Request, Request]]:
    """Requests that followed each other at one address, robots.txt, retries and redirects included."""
    return [pair for mine in by_host(requests).values() for pair in pairwise(mine)]


def too_close(requests: Iterable[Request], delay: float) -> list[tuple[Request, Request]]:
    """Those that started less than `delay` seconds apart.

    No slow server can make a gap look shorter than it was: a delay runs from the end of an answer, which is after the
    request was seen, and the next request is seen after it was sent.
    """
    return [(first, second) for first, second in successive(requests) if second.started - first.started < delay - LATE]


def overlapping(requests: Iterable[Request]) -> list[tuple[Request, Request]]:
    """Requests that came before the one before had ended. Where the client gave up, the server learns of it a little
    later: a tenth of a second is let pass."""
    return [(first, second) for first, second in successive(requests) if second.started < first.ended - 0.1]


def sent(crawler: Crawler, judged: Callable[[AuditEntry], bool]) -> list[float]:
    """When these requests were sent, by the crawl's own log. Gaps between hosts are judged by it: over connections of
    their own, a busy server may see the earlier of two late, and is only good for half of a gap."""
    return sorted(line.sent for line in read_lines([crawler.folder / "audit.jsonl"]) if judged(line))


def smallest(moments: Iterable[float]) -> float:
    """The smallest gap between moments that follow each other."""
    return min(after - before for before, after in pairwise(moments))


def pages(requests: Iterable[Request]) -> list[Request]:
    """All but robots.txt."""
    return [request for request in requests if request.target != "/robots.txt"]
