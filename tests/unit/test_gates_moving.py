"""Strangers at one server, and hosts that move from server to server.

Crawls on a virtual clock, judged by who was asked when, and by nothing that the gates say of themselves.
"""

from __future__ import annotations

import heapq
import math
from collections import defaultdict
from collections.abc import Iterable
from itertools import pairwise
from typing import Any, cast

from attrs import define, field, frozen
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scrapy.http import Request

from linkcrawl.check.outcome import Failure, Outcome
from linkcrawl.frontier.gates.gatekeeper import Gatekeeper
from linkcrawl.frontier.gates.workbench import Workbench
from linkcrawl.frontier.in_flight import InFlight
from linkcrawl.frontier.ports import LocalOwnership, Task
from linkcrawl.frontier.router import HostRouter
from linkcrawl.frontier.shared_limits import SharedLimits
from linkcrawl.items import DueLink
from linkcrawl.network.resolver import Resolver
from linkcrawl.urls.domains import registered_domain
from tests.unit.frontier_kit import T0, FakeEngine, answer, policies, read_robots_of, request_to, silence
from tests.unit.test_gates_simulated import Surroundings

DAY = 86400.0
ONE, TWO, THREE = "192.0.2.1", "192.0.2.2", "192.0.2.3"
#: Where hosts are at first; "" for a name that can't be looked up, though it is at the server that follows.
PLACES = {
    "victim.org": (ONE, ONE),
    "www.victim.org": (ONE, ONE),
    "late.victim.org": ("", ONE),
    "evil.org": (ONE, ONE),
    "late.evil.org": ("", ONE),
    "other.org": (TWO, TWO),
    "x.group.org": (TWO, TWO),
    "y.group.org": (THREE, THREE),
    "late.org": ("", THREE),
}
CRAWL_DELAYS = {"evil.org": DAY, "other.org": 7.0, "late.org": 4.0}
RULES = '[[policy]]\nname = "group"\nhosts = ["*.group.org"]\ndelay = 2.0\ngroup = true\n'


@frozen
class Asked:
    """One request, as a server would log it."""

    host: str
    server: str
    sent: float
    ended: float


@frozen
class Move:
    """At so many seconds from the start a host's name leads to another server."""

    at: float
    host: str
    server: str


@define(slots=False)
class MovingCrawl:
    """A crawl whose hosts move. What a request finds of its host's address is told to the router as the handler and the
    completion handler tell it."""

    moves: list[Move]
    at: Surroundings = field(factory=lambda: Surroundings(policies=policies(RULES)))
    bench: Workbench[Task] = field(factory=Workbench)
    asked: list[Asked] = field(factory=list)
    silences: list[tuple[str, float, float]] = field(factory=list)
    bounced: int = 0

    def __attrs_post_init__(self) -> None:
        self.servers = {host: server for host, (_, server) in PLACES.items()}
        self.keeper = Gatekeeper(self.at)
        self.in_flight = InFlight(self.bench)
        for host, (address, _) in PLACES.items():
            self.keeper.learn_addresses(host, (address,) if address else ())
        for host, seconds in CRAWL_DELAYS.items():
            read_robots_of(self.at, host, f"User-agent: *\nCrawl-delay: {seconds:g}\n", T0)
        self.router = HostRouter(
            cast(Any, self.at),
            bench=self.bench,
            keeper=self.keeper,
            limits=SharedLimits(cast(Any, self.at), self.bench, self.keeper, LocalOwnership()),
            in_flight=self.in_flight,
            resolver=cast(Resolver, None),
            ownership=LocalOwnership(),
            engine=FakeEngine(),
        )

    def run(self, links: Iterable[DueLink], outcomes: dict[str, list[str]], until: float = 3 * DAY) -> None:
        now, flying = self.at.now, cast(list[tuple[float, int, Request, Asked, Outcome]], [])
        moves = sorted(self.moves, key=lambda move: move.at)
        self.router.place_links(links)
        count = 0
        while now() < T0 + until:
            while (taken := self.bench.take(now())) is not None:
                gate, link = taken[0], cast(DueLink, taken[1])
                server = self.servers[link.host]
                if self.keeper.address_of(link.host) != server:  # as the handler finds before it connects
                    self.bounced += 1
                    self.bench.release(gate, gate.wake)
                    self.router.relocate(link.host, (server,))
                    self.router.place(link, first=True)
                    continue
                request = request_to(link.url, link=link)
                self.in_flight.add(request, gate)
                kinds = outcomes.get(registered_domain(link.host)) or ["200"]
                came, took = outcome(kinds[count % len(kinds)], now())
                count += 1
                heapq.heappush(
                    flying, (now() + took, count, request, Asked(link.host, server, now(), now() + took), came)
                )
            wake = self.bench.next_wake()
            times = [at for at in (wake, flying[0][0] if flying else None) if at is not None]
            times += [T0 + moves[0].at] if moves else []
            following = min(times, default=math.inf)
            if following == math.inf:
                return
            now.at = max(now.at, following)
            while moves and T0 + moves[0].at <= now():
                move = moves.pop(0)
                self.servers[move.host] = move.server
            while flying and flying[0][0] <= now():
                _, _, request, asked, came = heapq.heappop(flying)
                self._end(request, asked, came)

    def _end(self, request: Request, asked: Asked, came: Outcome) -> None:
        self.asked.append(asked)
        left = self.in_flight.pop(request)
        for gate in (gate for gate in left if gate is not None):
            self.bench.release(gate, self.keeper.completed(gate, asked.host, came, 1.0).wake)
        if "retry-after" in came.headers:
            seconds = float(came.headers["retry-after"])
            self.silences.append((asked.host, asked.ended, asked.ended + seconds))
        self.router.relocate(asked.host, (asked.server,))

    def crowded(self) -> list[tuple[Asked, Asked]]:
        """Requests to one server that came before the one before had ended, or within the floor of a second."""
        by_server: dict[str, list[Asked]] = defaultdict(list)
        for asked in sorted(self.asked, key=lambda one: one.sent):
            by_server[asked.server].append(asked)
        return [
            (first, second)
            for requests in by_server.values()
            for first, second in pairwise(requests)
            if second.sent < first.ended + 1.0 - 1e-6
        ]


def outcome(kind: str, began: float) -> tuple[Outcome, float]:
    match kind:
        case "retry":
            return answer(429, at=began + 0.1, took=0.1, retry_after=f"{DAY:g}"), 0.1
        case "slow":
            return answer(200, at=began + 30, took=30.0), 30.0
        case "silence":
            return silence(Failure.TIMEOUT_ANSWER, at=began + 10, took=10.0), 10.0
        case status:
            return answer(int(status), at=began + 0.1, took=0.1), 0.1


def links(*hosts: str) -> list[DueLink]:
    return [DueLink(id=number, url=f"http://{host}/{number}", host=host) for number, host in enumerate(hosts)]


MOVES = st.lists(
    st.builds(
        Move,
        at=st.floats(0.0, 60.0),
        host=st.sampled_from(sorted(PLACES)),
        server=st.sampled_from([ONE, TWO, THREE]),
    ),
    max_size=8,
)
OUTCOMES = st.dictionaries(
    st.sampled_from(["evil.org", "other.org", "late.org", "group.org"]),
    st.lists(st.sampled_from(["200", "200", "403", "503", "retry", "slow", "silence"]), min_size=1, max_size=12),
)


@settings(max_examples=120, deadline=None)
@given(st.lists(st.sampled_from(sorted(PLACES)), min_size=2, max_size=40), MOVES, OUTCOMES)
@example(
    ["evil.org"] * 3 + ["victim.org"] * 21,
    [Move(2.0, "evil.org", TWO), Move(9.0, "evil.org", ONE)],
    {"evil.org": ["retry"]},
)
@example(["late.victim.org", "victim.org", "late.evil.org"] * 5, [Move(3.2, "late.victim.org", TWO)], {})
def test_wherever_hosts_move_no_server_is_asked_too_soon_and_nobody_is_silenced_by_a_stranger(
    hosts: list[str], moves: list[Move], outcomes: dict[str, list[str]]
) -> None:
    crawl = MovingCrawl(moves)
    crawl.run(links(*hosts), outcomes)
    assert crawl.crowded() == []
    for host, since, until in crawl.silences:
        assert [asked for asked in crawl.asked if asked.host == host and since < asked.sent < until] == []
    for host, seconds in CRAWL_DELAYS.items():
        own = [asked for asked in sorted(crawl.asked, key=lambda one: one.sent) if asked.host == host]
        assert all(second.sent - first.ended >= seconds - 1e-6 for first, second in pairwise(own)), host
    victims = [asked for asked in crawl.asked if registered_domain(asked.host) == "victim.org"]
    assert len(victims) == sum(registered_domain(host) == "victim.org" for host in hosts)
    # answers of others take up to 30 s, and the delay follows them, up to AUTOTHROTTLE_MAX_DELAY
    assert max((asked.ended for asked in victims), default=T0) < T0 + 60 + 95 * len(hosts)
