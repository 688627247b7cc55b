"""Hosts by which a crawl's manners are judged: what they ask for, when they turn slow, and when they turn a crawler
away. Each has an address of its own; their own log is the judge."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator
from email.utils import formatdate

from tests.site.behaviours import answer, in_turn, redirect, reset, robots, silence
from tests.site.misbehaviour import Ports
from tests.site.wire import Behaviour, Exchange, Host

#: Hosts of the policy group, and hosts that a collection's links are spread over.
GROUPED, SPREAD = 40, 5
#: Requests to `ban` that are answered well before it turns a crawler away, and how many it then refuses.
WELL, REFUSED = 12, 16
#: Seconds that `degrading` takes for an answer when it is left in peace, and the requests a second that would stop it.
BASE, CAPACITY = 0.1, 4.0


def grouped(number: int) -> str:
    """The address of a host of the group."""
    return f"127.62.{number}.1"


def spread(number: int) -> str:
    """The address of a host that a collection has links at."""
    return f"127.63.{number}.1"


def degrading(base: float, capacity: float) -> Behaviour:
    """Answers slower the more it is asked."""
    asked: list[float] = []

    async def behave(exchange: Exchange) -> None:
        asked.append(time.monotonic())
        *_, after = degraded(asked, base, capacity)
        await answer(after=after)(exchange)

    return behave


def degraded(asked: Iterable[float], base: float, capacity: float) -> Iterator[float]:
    """Seconds that the answers to requests at these moments take: base / (1 - rate / capacity), the rate a mean over
    two seconds or so."""
    rate, seen = 0.0, -math.inf
    for now in asked:
        rate, seen = rate * math.exp((seen - now) / 2.0) + 0.5, now
        yield base / (1 - min(rate / capacity, 0.95))


def throttled(status: int, until: float) -> Behaviour:
    """A Retry-After as an HTTP date, so many whole seconds ahead."""

    async def behave(exchange: Exchange) -> None:
        now = time.time()
        date = formatdate(math.ceil(now) + until, usegmt=True)
        await answer(status, headers=[("Retry-After", date), ("Date", formatdate(now, usegmt=True))])(exchange)

    return behave


def _refusing() -> Behaviour:
    return in_turn(*[answer()] * WELL, *[answer(403)] * REFUSED, answer())


def _asking(text: str) -> Behaviour:
    return robots(f"User-agent: *\n{text}\n")


#: By name: what a host does with pages, and with /robots.txt (None: there is none).
HOSTS: dict[str, tuple[Behaviour, Behaviour | None]] = {
    "eleven": (answer(), None),
    "crawl-delay": (answer(), _asking("Crawl-delay: 1.5")),
    "request-rate": (answer(), _asking("Request-rate: 1/1")),
    "agreed": (answer(), _asking("Crawl-delay: 30")),
    "paused": (answer(), None),
    "quiet": (answer(), None),
    "skip": (answer(), None),
    "expensive": (answer(), None),
    "few-a-day": (answer(), None),
    "get": (answer(), None),
    "retry-seconds": (in_turn(answer(429, headers=[("Retry-After", "3")]), answer()), None),
    "retry-long": (in_turn(answer(429, headers=[("Retry-After", "14")]), answer()), None),
    "retry-date": (in_turn(throttled(503, 3), answer()), None),
    "retry-redirect": (in_turn(redirect("/1", 302, [("Retry-After", "3")]), answer()), None),
    "ratelimit": (in_turn(answer(headers=[("RateLimit", '"default";r=0;t=3')]), answer()), None),
    "ratelimit-left": (answer(headers=[("RateLimit", '"default";r=5;t=3')]), None),
    "retry-malformed": (in_turn(answer(429, headers=[("Retry-After", "soon")]), answer()), None),
    "retry-past": (in_turn(answer(429, headers=[("Retry-After", "Mon, 01 Jan 2001 00:00:00 GMT")]), answer()), None),
    "overloaded": (in_turn(answer(503), answer()), None),
    **{f"status-{status}": (in_turn(answer(status), answer()), None) for status in (420, 430, 509, 529)},
    "challenge": (answer(403, headers=[("cf-mitigated", "challenge")]), None),
    "fifty": (answer(), robots("User-agent: *\nAllow: /\n")),
    "ban": (_refusing(), None),
    "degrading": (degrading(BASE, CAPACITY), None),
    "rules-elsewhere": (answer(), None),  # its robots.txt is a redirect to one of `rules`
    "rules": (answer(), None),
    "hanging": (silence(), None),
    "edited": (answer(), None),
    "ordered": (answer(), None),
    "retry-hour": (in_turn(answer(429, headers=[("Retry-After", "3600")]), answer()), None),
    "rules-come-back": (answer(), in_turn(_asking("Allow: /"), answer(503), reset(), reset(), _asking("Disallow: /5"))),
    "silent": (answer(429, headers=[("Retry-After", "3600")]), None),
    "resolver": (answer(), None),  # redirects all to `silent`
    "rules-go-away": (answer(), in_turn(_asking("Allow: /"), answer(503))),
}
_NUMBERS = {name: number for number, name in enumerate(HOSTS)}


def where(name: str) -> str:
    """The address of the host with this name."""
    return f"127.61.{_NUMBERS[name]}.1"


def manners(ports: Ports) -> list[Host]:
    """All hosts of this page."""
    free = answer(404, b"", mime="text/plain")
    files = {name: file or free for name, (_, file) in HOSTS.items()}
    files["rules-elsewhere"] = redirect(f"http://{where('rules')}:{ports.plain}/rules.txt", 301)
    behaviours = {name: page for name, (page, _) in HOSTS.items()}
    behaviours["resolver"] = redirect(f"http://{where('silent')}:{ports.plain}/")
    hosts = [
        Host(address=where(name), routes={"*": page, "/robots.txt": files[name], "/rules.txt": _asking("Disallow: /x")})
        for name, page in behaviours.items()
    ]
    addresses = [*map(grouped, range(GROUPED)), *map(spread, range(SPREAD))]
    return [*hosts, *(Host(address=each, routes={"*": answer(), "/robots.txt": free}) for each in addresses)]
