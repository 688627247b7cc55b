"""Watches our own network for a crawl, and asks those who may know better before it is said to have failed.

When many hosts fall silent at once, some hosts that answered in this crawl are asked once more, each by a request that
waits at its gate and obeys its robots.txt like any other; where names could not be looked up, the resolver is asked for
one that is known to exist. What our own failure has taught caches is forgotten.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Protocol

from scrapy.http import Request

from linkcrawl import urls
from linkcrawl.check.outcome import Failure, Outcome
from linkcrawl.check.verdict import reason_of_failure
from linkcrawl.errors import StoreLost
from linkcrawl.frontier.gates.workbench import Workbench
from linkcrawl.frontier.in_flight import InFlight
from linkcrawl.frontier.ports import Engine, RequestContext, Task, context_of
from linkcrawl.frontier.router import HostRouter
from linkcrawl.frontier.tasks import start_task
from linkcrawl.frontier.withdrawals import SETTLED
from linkcrawl.items import Record
from linkcrawl.network.transport import CONTEXT
from linkcrawl.politeness.outage import NetworkChange, OutageDetector
from linkcrawl.politeness.own_network import NAMES
from linkcrawl.politeness.portal import Page, Run, note_answer, page_of
from linkcrawl.session import Session
from linkcrawl.stores.retry import retry_while_store_lost
from linkcrawl.urls import Target
from linkcrawl.urls.domains import registered_domain

if TYPE_CHECKING:
    from scrapy.statscollectors import StatsCollector

logger = logging.getLogger(__name__)

#: Hosts that are asked whether they still answer, and how many of those that answered last are remembered.
WITNESSES, REMEMBERED = 3, 64
#: Seconds within which a host's gate must open for it to be asked.
SOON = 30.0
#: Whom the detector awaits while the resolver is asked; no gate has this name.
RESOLVER = "the resolver"


#: Stat that is 1 where a crawl has come to its end and nothing has answered in it.
NOTHING_ANSWERED = "linkcrawl/nothing_answered"


class Names(Protocol):
    """What is asked of the resolver."""

    async def knows_names(self) -> bool:
        """True where what it says of names may be believed."""

    def forget_faults(self) -> None:
        """Ask anew for names that could not be looked up."""


class NetworkWatch:
    """Takes note of every end for the detector, and does what follows."""

    def __init__(
        self,
        session: Session,
        *,
        outage: OutageDetector,
        bench: Workbench[Task],
        in_flight: InFlight,
        router: HostRouter,
        names: Names,
        engine: Engine,
        stats: StatsCollector,
    ):
        self._session = session
        self._outage = outage
        self._bench = bench
        self._in_flight = in_flight
        self._router = router
        self._names = names
        self._engine = engine
        self._stats = stats
        self._answered: OrderedDict[str, Request] = OrderedDict()  # by gate, the last request that was answered
        self._is_over = False
        self._run = Run()
        self._is_portal = False
        self._asked_of: Page | None = None  # the page that some hosts are asked for their robots.txt because of
        self._alike = self._asked = 0
        self._honest: OrderedDict[Page, None] = OrderedDict()
        self._spoilt: set[int | str] = set()  # links whose check a portal has answered
        self._withdrawal: asyncio.Task[None] | None = None

    @property
    def is_over(self) -> bool:
        """True once the crawl ends because our network has not come back."""
        return self._is_over

    def may_send(self) -> bool:
        """True where a request may be sent: always while our network works, else a probe now and then. Where it has
        not come back in LINKCRAWL_PATIENCE the crawl ends, with `network_lost`."""
        down = self._outage.down_since
        if down is None:
            return True
        if self._session.now() - down > self._session.config.patience:
            self._give_up()
            return False
        if not self._outage.may_send():
            return False
        self._names.forget_faults()
        return True

    def came_to_nothing(self) -> None:
        """A request has ended without an outcome: it was not sent, as where its host's name leads elsewhere by now."""
        self._outage.probe_again()

    def note(self, gate: str, request: Request) -> None:
        """Take note of a request that has an outcome, before its host's pace learns of it."""
        context, hosts = context_of(request), self._session.hosts
        outcome, host = context.outcome, context.target.host
        assert outcome is not None
        if outcome.status is not None and not context.probe:
            self._answered[gate] = request
            self._answered.move_to_end(gate)
            if len(self._answered) > REMEMBERED:
                self._answered.popitem(last=False)
        if self._is_portals(context, outcome):
            return
        silence = hosts.silence(host)
        since = None if silence is None else silence.since
        self._follow(self._outage.note(gate, hosts.has_answered(gate), outcome, since))

    async def confirm(self, record: Record) -> bool:
        """True where a record may be kept; False where it is of a check that our own network has spoilt."""
        if self._outage.down_since is None and record.link_id in self._spoilt:
            self._spoilt.discard(record.link_id)
            return False
        return await self._outage.confirm(record)

    def _is_portals(self, context: RequestContext, outcome: Outcome) -> bool:
        """True where an end says nothing of the host, for something on our way has answered in its place."""
        before, link = self._run, None if context.link is None else context.link.id
        self._run = note_answer(before, context.target, outcome, link)
        if self._is_portal:
            if self._run.page == before.page:
                if link is not None:
                    self._spoilt.add(link)
                return True
            self._is_portal = False
            self._session.robots.expire(before.since)
            self._follow(self._outage.leave_portal())
            return False
        if self._asked_of is None:
            if self._run.is_suspect and self._run.page not in self._honest:
                self._ask_for_robots()
            return False
        return context.probe and self._is_robots_alike(self._asked_of, context.target, outcome)

    def _is_robots_alike(self, page: Page, target: Target, outcome: Outcome) -> bool:
        """A host has been asked for its robots.txt because many give this page. True where all that were asked, and
        nobody else meanwhile, have answered with it."""
        self._asked -= 1
        if outcome.status is not None and page_of(target, outcome) != page:
            self._asked_of = None
            self._honest[page] = None
            if len(self._honest) > REMEMBERED:
                self._honest.popitem(last=False)
            return False
        self._alike += outcome.status is not None
        if self._asked > 0:
            return False
        self._asked_of = None
        if self._alike < WITNESSES or self._run.page != page:
            return False
        self._meet_portal()
        return True

    def _ask_for_robots(self) -> None:
        """Many hosts give one answer: ask some of them for their robots.txt, by their gates."""
        soon, hosts = self._session.now() + SOON, list[str]()
        for _, target in self._run.domains.values():
            robots = urls.read(f"{target.authority}/robots.txt")
            if len(hosts) < WITNESSES and isinstance(robots, Target) and self._router.gate(target.host).wake <= soon:
                hosts.append(target.host)
                self._router.place(self._probe(robots, "HEAD"), first=True)
        if len(hosts) == WITNESSES:
            self._asked_of, self._alike, self._asked = self._run.page, 0, len(hosts)
            logger.info("Many hosts give one answer; asked for their robots.txt: %s", ", ".join(hosts))

    def _meet_portal(self) -> None:
        self._is_portal = True
        self._spoilt |= self._run.links
        self._withdrawal = start_task("taking back what a portal answered", self._withdraw_soon(self._run))
        self._session.robots.expire(self._run.since)
        self._follow(self._outage.meet_portal(self._run))

    async def _withdraw_soon(self, run: Run) -> None:
        await asyncio.sleep(SETTLED)
        try:
            await self._withdraw(run)
        except StoreLost as fault:
            logger.error("What a captive portal has answered can't be taken back: %s", fault)

    async def _withdraw(self, run: Run) -> None:
        """Records that are stored already become Undetermined, and their links are due."""
        session, error = self._session, "a captive portal has answered in the host's place"
        count = await retry_while_store_lost(
            session,
            session.store.withdraw,
            sorted(run.links, key=str),
            run.since - 1.0,
            reason_of_failure(Failure.UNREACHABLE),
            error,
            session.now(),
        )
        logger.warning("%d records taken back: a captive portal had answered in the hosts' place", count)

    async def finish(self) -> None:
        """Wait until what a portal has answered is taken back."""
        if self._withdrawal is not None:
            await self._withdrawal

    def close(self) -> None:
        """The crawl has come to its end: say so where nothing has answered in it. That is a fault (NOTHING_ANSWERED in
        the stats), though the hosts were too few to tell whose."""
        if self._outage.nothing_answered and not self._is_over:
            self._stats.inc_value(NOTHING_ANSWERED)
            logger.error("Nothing has answered in this crawl. It looks as if %s.", self._outage.cause)

    def _follow(self, change: NetworkChange | None) -> None:
        if change is NetworkChange.SUSPECTED:
            self._follow(self._outage.expect(self._hear()))
        elif change is not None:
            since = self._outage.down_since
            self._names.forget_faults()
            if since is not None:
                self._session.robots.forget_failures(since)
            self._engine.wake()

    def _hear(self) -> set[str]:
        """Those whose next end may show that our network works: gates with a request in flight, some that answered in
        this crawl and are asked again, and the resolver."""
        expected = self._in_flight.gates() | self._ask_witnesses()
        if self._outage.state.names_failed():
            start_task("asking the resolver", self._ask_resolver())
            expected.add(RESOLVER)
        return expected

    def _ask_witnesses(self) -> set[str]:
        silent, soon = self._outage.state.silent, self._session.now() + SOON
        gates = [self._bench.gate(name) for name in self._answered if name not in silent]
        asked: dict[str, str] = {}  # by registered domain
        for gate in sorted(gates, key=lambda gate: gate.wake):
            domain = registered_domain(gate.name)
            if gate.wake <= soon and domain not in asked and len(asked) < WITNESSES:
                asked[domain] = gate.name
                self._router.place(
                    self._probe(context_of(self._answered[gate.name]).target, self._answered[gate.name].method),
                    first=True,
                )
        if asked:
            logger.info("Many hosts have fallen silent at once; asked if they answer: %s", ", ".join(asked.values()))
        return set(asked.values())

    def _probe(self, target: Target, method: str) -> Request:
        """A request of which nothing follows but what its end shows."""
        return Request(
            target.url,
            method=method,
            callback=_done,
            errback=_done,
            dont_filter=True,
            meta={
                CONTEXT: RequestContext(target=target, probe=True, lease_epoch=self._session.lease_epoch),
                "dont_redirect": True,
                "handle_httpstatus_all": True,
                "verbatim_url": True,
            },
        )

    async def _ask_resolver(self) -> None:
        known = await self._names.knows_names()
        self._follow(self._outage.explain(NAMES) if known else self._outage.heard(RESOLVER))

    def _give_up(self) -> None:
        if not self._is_over:
            self._is_over = True
            logger.error(
                "Our own network did not come back in LINKCRAWL_PATIENCE, the crawl ends and its links stay due. It "
                "looks as if %s.",
                self._outage.cause,
            )
            self._engine.close("network_lost")


def _done(_: Any) -> None:
    """A probe's callback and errback."""
