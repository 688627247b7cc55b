"""Holds requests against robots.txt, and fetches robots.txt through the gates like any other request.

A request whose authority's robots.txt is not known gives its turn to the request for that file, and waits here. So the
file is fetched once however many links wait, and is counted and spaced by the gate of the server that it goes to; its
redirects go through theirs. If the store has the file from an earlier crawl, that is used first.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Protocol

from scrapy.http import Request, Response
from twisted.python.failure import Failure as TwistedFailure

from linkcrawl import urls
from linkcrawl.check.outcome import Failure, Outcome
from linkcrawl.check.procedure import Denial
from linkcrawl.errors import StoreLost
from linkcrawl.frontier.ports import RequestContext, context_of
from linkcrawl.network.transport import CONTEXT
from linkcrawl.politeness.redirect_names import RedirectNames
from linkcrawl.politeness.robots.cache import Access, RobotsEntry
from linkcrawl.politeness.robots.fetch import Fetched, Fetching, RobotsAvailability, begin, step
from linkcrawl.politeness.robots.middleware import denial_of, verdict_on
from linkcrawl.politeness.robots.parser import MAX_BYTES
from linkcrawl.session import Session
from linkcrawl.stores.retry import retry_while_store_lost
from linkcrawl.text import one_line

logger = logging.getLogger(__name__)

#: Lines of a robots.txt that are logged one by one.
LOGGED = 5
#: Seconds until a robots.txt that was there before is asked for again when it can't be had, each time that it can't.
PAUSES = (30.0, 60.0)


class RobotsWaiters(Protocol):
    """Where requests wait, for their gate or for a robots.txt: the router. `authority`: `scheme://host[:port]`."""

    def enqueue(self, request: Request) -> bool:
        """A request for a robots.txt has to wait for its own gate."""

    def resume(self, authority: str, waiting: list[Request]) -> None:
        """robots.txt of an authority is known; these requests waited for it."""

    def postpone(self, authority: str, until: float, waiting: list[Request]) -> None:
        """robots.txt of an authority is asked for again at `until` (Unix seconds); these requests waited for it."""


class NetworkState(Protocol):
    """What is known of our own network."""

    @property
    def down_since(self) -> float | None:
        """Since when it is taken to be down (Unix seconds); None while it isn't."""


class RobotsFetcher:
    """Asks the robots cache, and fetches what it lacks."""

    def __init__(self, session: Session, waiters: RobotsWaiters, network: NetworkState):
        self._session = session
        self._waiters = waiters
        self._network = network
        self._waiting: dict[str, list[Request]] = {}
        self._failed_lately: dict[str, int] = {}  # fetches in a row, by authority, of a file that was there before
        self._lookups: set[asyncio.Task[None]] = set()
        self._names = RedirectNames(session.hosts.is_known, session.now)

    @property
    def is_looking_up(self) -> bool:
        """True while the store is asked for a robots.txt."""
        return bool(self._lookups)

    def close(self) -> None:
        """Look up nothing more."""
        for lookup in self._lookups:
            lookup.cancel()

    def waits_for(self, host: str) -> bool:
        """True while requests to a host wait for its robots.txt."""
        return f"http://{host}" in self._waiting or f"https://{host}" in self._waiting

    def clear(self) -> None:
        """Forget all requests that wait."""
        self._waiting.clear()
        self._failed_lately.clear()

    def let_go(self, authority: str) -> list[Request]:
        """Remove the requests that wait for a robots.txt, and return them."""
        return self._waiting.pop(authority, [])

    def check(self, request: Request, now: float) -> Request | Denial | None:
        """Returns the request itself where it may go; a request for robots.txt, to be sent in its place; the denial
        that ends its check; or None where it waits for a robots.txt that is under way, or looked up in the store."""
        context = context_of(request)
        authority = context.target.authority
        if authority in self._waiting:
            self._waiting[authority].append(request)
            return None
        verdict = verdict_on(self._session.robots, context, now)
        if verdict.access is Access.UNKNOWN:
            self._waiting[authority] = [request]
            if self._session.robots.get(authority) is None and self._session.hosts.is_known(context.target.host):
                self._begin_lookup(authority)
                return None
            return self._request(begin(authority))
        return denial_of(verdict) or request

    def _begin_lookup(self, authority: str) -> None:
        lookup = asyncio.get_running_loop().create_task(self._look_up(authority))
        self._lookups.add(lookup)
        lookup.add_done_callback(self._lookups.discard)

    async def _look_up(self, authority: str) -> None:
        """Read what the store has of a robots.txt; have it fetched where that isn't fresh."""
        session, epoch = self._session, self._session.lease_epoch
        try:
            session.robots.restore(
                await retry_while_store_lost(session, session.store.robots, [authority]), session.now()
            )
        except StoreLost:
            return  # the crawl ends, and who waits stays due
        except Exception:
            logger.exception("robots.txt of %s can't be read from the store: it is fetched", authority)
        if epoch != session.lease_epoch or authority not in self._waiting:
            return
        entry = session.robots.get(authority)
        if entry is not None and entry.is_fresh(session.now()):
            self._waiters.resume(authority, self._waiting.pop(authority))
        else:
            self._waiters.enqueue(self._request(begin(authority)))

    def _request(self, fetching: Fetching) -> Request:
        target = urls.read(fetching.url)
        assert isinstance(target, urls.Target)  # it came from one
        return Request(
            target.url,
            callback=self._answered,
            errback=self._failed,
            dont_filter=True,
            meta={
                CONTEXT: RequestContext(
                    target=target, body_limit=MAX_BYTES, robots=fetching, lease_epoch=self._session.lease_epoch
                ),
                "dont_obey_robotstxt": True,
                "verbatim_url": True,
            },
        )

    def _answered(self, response: Response) -> None:
        assert response.request is not None
        self._go_on(response.request, response.body, cut="dataloss" in response.flags)

    def _failed(self, failure: TwistedFailure) -> None:
        self._go_on(failure.request, b"")  # type: ignore[attr-defined]

    def _go_on(self, request: Request, body: bytes, *, cut: bool = False) -> None:
        context = context_of(request)
        if context.lease_epoch != self._session.lease_epoch:
            return  # the gates are another worker's by now
        now = self._session.now()
        outcome = context.outcome or Outcome(
            sent_at=now, ended_at=now, duration_ms=None, failure=Failure.PROTOCOL, error="internal error: no outcome"
        )
        fetching = context.robots
        assert fetching is not None
        try:
            stepped = self._within_names(step(fetching, outcome, body, cut=cut))
            if isinstance(stepped, Fetching):
                self._waiters.enqueue(self._request(stepped))
            else:
                self._settle(stepped)
        except Exception as fault:  # what waits for the file must not wait for ever
            logger.exception("robots.txt of %s can't be read", fetching.authority)
            note = f"{fetching.url}: internal error: {type(fault).__name__}"
            closed = Fetched(authority=fetching.authority, availability=RobotsAvailability.UNREACHABLE, note=note)
            self._settle(closed)

    def _within_names(self, stepped: Fetching | Fetched) -> Fetching | Fetched:
        """The step, unless it goes to one new name too many: then the file can't be had."""
        if isinstance(stepped, Fetched):
            return stepped
        target = urls.read(stepped.url)
        if isinstance(target, urls.Refused) or target.authority == stepped.authority or self._names.admit(target.host):
            return stepped
        note = f"{stepped.asked[-1]} redirects to {target.host}, one of too many new names of its registered domain"
        return Fetched(authority=stepped.authority, availability=RobotsAvailability.UNREACHABLE, note=note)

    def _settle(self, fetched: Fetched) -> None:
        """Keep what came of it, also over restarts, and let those that waited have their turn."""
        session, authority = self._session, fetched.authority
        unreachable = fetched.availability is RobotsAvailability.UNREACHABLE
        if unreachable and self._network.down_since is not None:  # it says nothing of the file
            self._waiters.resume(authority, self._waiting.pop(authority, []))
            return
        if self._may_come_back(fetched):
            return
        self._failed_lately.pop(authority, None)
        entry = session.robots.take(fetched, session.now())
        _log(fetched, entry, session.now())
        owner = urls.read(authority)
        if isinstance(owner, urls.Target) and entry.robots is not None:
            session.hosts.learn_robots(owner.host, authority, entry.robots.pace)
        waiting = self._waiting.pop(authority, [])
        for request in waiting:
            context_of(request).robots_asked_at = entry.asked_at
        self._waiters.resume(authority, waiting)

    def _may_come_back(self, fetched: Fetched) -> bool:
        """A robots.txt that was there before and can't be had is asked for again before anything is said: else a server
        that is started anew would have all its links, a million of them, judged within a minute and without a request.
        """
        session, authority = self._session, fetched.authority
        entry, failed = session.robots.get(authority), self._failed_lately.get(authority, 0)
        was_there = entry is not None and entry.robots is not None and entry.failing_since is None
        if fetched.availability is not RobotsAvailability.UNREACHABLE or not was_there or failed == len(PAUSES):
            return False
        self._failed_lately[authority] = failed + 1
        pause = min(PAUSES[failed], session.config.patience / 2)  # the crawl must not end for it
        logger.info("robots.txt of %s: %s; it is requested again in %.0f s", authority, fetched.note, pause)
        self._waiters.postpone(authority, session.now() + pause, self._waiting.pop(authority, []))
        return True


def _log(fetched: Fetched, entry: RobotsEntry, now: float) -> None:
    """Log what is known of an authority's robots.txt; at level INFO where we made a choice that its owner may not have
    had in mind."""
    authority, remarks = fetched.authority, []
    if fetched.availability is RobotsAvailability.UNAVAILABLE and not fetched.absent:
        remarks.append(f"{fetched.note}: taken as having none, everything is allowed")
    if entry.failing_since is not None and entry.in_force(now) is not None:
        remarks.append(entry.verdict("/", now).note or "")
    ignored = entry.robots.ignored if entry.robots is not None and entry.failing_since is None else ()
    if ignored:
        more = f" and {len(ignored) - LOGGED} more" if len(ignored) > LOGGED else ""
        remarks.append(f"ignored, as it means nothing: {one_line('; '.join(ignored[:LOGGED]))}{more}")
    for remark in remarks:
        logger.info("robots.txt of %s: %s", authority, remark)
    if not remarks:
        logger.debug("robots.txt of %s: %s (%s)", authority, fetched.availability, fetched.note)
