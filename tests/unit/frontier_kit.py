"""A crawl's session on a virtual clock, with a store that is real and no crawl around it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Protocol

from attrs import define, field
from scrapy.http import Request, Response
from scrapy.settings import Settings
from scrapy.statscollectors import MemoryStatsCollector, StatsCollector

from linkcrawl import clock, settings, urls
from linkcrawl.audit.log import AuditLog
from linkcrawl.check.outcome import Failure, Outcome
from linkcrawl.check.procedure import Check, Denial, Rules
from linkcrawl.check.recheck import Intervals
from linkcrawl.config import Config, read_config
from linkcrawl.frontier.parts import Frontier, build_frontier
from linkcrawl.frontier.ports import Checks, LocalOwnership, Ownership, RequestContext, context_of
from linkcrawl.items import DueLink, Finished, HostMemory
from linkcrawl.network.transport import CONTEXT
from linkcrawl.politeness.host_state import HostStateCache
from linkcrawl.politeness.policy.file import parse
from linkcrawl.politeness.policy.rules import Applied, Policies
from linkcrawl.politeness.robots.cache import RobotsCache
from linkcrawl.politeness.robots.fetch import Fetched, RobotsAvailability
from linkcrawl.session import Arguments, Session
from linkcrawl.stores.opening import open_store
from linkcrawl.stores.worker import StoreWorker

#: A Monday, 2027-01-04 12:00 UTC.
T0 = 1_799_064_000.0


class Clock(clock.Clock):
    """A clock that is set by hand; Unix seconds. `set_by`: by how many the machine's clock has been set since."""

    def __init__(self, at: float = T0):
        self.at, self.set_by = at, 0.0
        super().__init__(wall=lambda: self.at + self.set_by, steady=lambda: self.at)


def config(**changes: Any) -> Config:
    """The settings as they are by default, with these changed."""
    told = {name: value for name, value in vars(settings).items() if name.isupper()}
    return read_config({**told, "LINKCRAWL_CONTACT": "ops@example.org", "LINKCRAWL_AUDIT": "", **changes})


def policies(text: str) -> Policies:
    return parse(text, "policies.toml")


def session(
    folder: Path,
    clock: Clock,
    rules: str = "",
    memories: Iterable[HostMemory] = (),
    clean: bool = True,
    audit: Path | None = None,
    **changes: Any,
) -> Session:
    """A session that begins now, and remembers what is given of hosts."""
    told, remembered = config(**changes), list(memories)
    store = open_store(f"sqlite:///{folder}/links.db")
    return Session(
        config=told,
        arguments=Arguments(),
        store=store,
        worker=StoreWorker(store),
        clock=clock,
        started_at=clock(),
        clean=clean,
        policy_file=None,
        policies=policies(rules),
        rules=Rules(),
        intervals=Intervals(),
        hosts=HostStateCache(remembered),
        robots=RobotsCache(token=told.product, ttl=told.robots_ttl),
        audit=AuditLog(audit),
    )


@define(eq=False)
class FakeEngine:
    """Scrapy's engine without Scrapy. `replies` by URL, what a request ends with: an outcome, which its context gets,
    or an exception; one of the handler's own kind of failure has an outcome too. Unlisted URLs are answered 200."""

    replies: dict[str, Outcome | Exception] = field(factory=dict)
    is_at_limit: bool = False
    woken: int = 0
    held: list[Any] = field(factory=list)
    sent: list[Request] = field(factory=list)
    items: list[Any] = field(factory=list)
    closed: list[str] = field(factory=list)
    in_flight: set[Request] = field(factory=set)

    @property
    def downloading(self) -> int:
        return len(self.in_flight)

    def wake(self) -> None:
        self.woken += 1

    def hold(self, work: Any) -> None:
        self.held.append(work)

    def release(self, work: Any) -> None:
        self.held.remove(work)

    async def idle(self) -> None:
        """Until nothing is under way."""
        while self.held:  # noqa: ASYNC110  # the tasks are the dispatcher's
            await asyncio.sleep(0)

    def occupy(self, request: Request) -> None:
        self.in_flight.add(request)

    async def send(self, request: Request) -> Response:
        self.sent.append(request)
        try:
            await asyncio.sleep(0)
            reply = self.replies.get(request.url, answer())
            if isinstance(reply, Exception):
                raise reply
            context_of(request).outcome = reply
            if reply.status is None:
                raise OSError(reply.error)
            return Response(request.url, status=reply.status)
        finally:
            self.in_flight.remove(request)

    async def process_item(self, item: Any) -> None:
        self.items.append(item)

    def close(self, reason: str) -> None:
        self.closed.append(reason)


@define
class FakeNames:
    """A resolver that is never asked for a host. `works`: whether it may be believed, None where it doesn't say."""

    works: bool | None = True
    forgotten: int = 0

    async def knows_names(self) -> bool:
        while self.works is None:  # noqa: ASYNC110  # a test decides
            await asyncio.sleep(0)
        return self.works

    def forget_faults(self) -> None:
        self.forgotten += 1


@define
class FakeChecks:
    """A spider whose checks end with their first answer. What it yields of one: the request's context."""

    session: Session
    denied: list[tuple[str, Denial]] = field(factory=list)
    after_denial: dict[str, str] = field(factory=dict)  # URLs after which another is asked

    def begin(self, link: DueLink, applied: Applied) -> Request | Finished:
        return self.resume(link, Check(url=link.url, rules=Rules()))

    def resume(self, link: DueLink, check: Check) -> Request:
        url = link.url if check.request is None else check.request.target.url
        made = request_to(url, link=link, check=check, lease_epoch=self.session.lease_epoch)
        return made.replace(callback=self.answered, errback=self.failed)

    def deny(self, request: Request, denial: Denial) -> Request | Finished:
        self.denied.append((request.url, denial))
        if request.url in self.after_denial:
            return request_to(self.after_denial[request.url], link=context_of(request).link)
        return (request.url, denial)  # type: ignore[return-value]

    def answered(self, response: Response) -> Iterator[Any]:
        assert response.request is not None
        yield context_of(response.request)

    def failed(self, failure: Any) -> Iterator[Any]:
        yield context_of(failure.request)


def frontier_of(
    session: Session,
    *,
    engine: FakeEngine | None = None,
    checks: Checks | None = None,
    ownership: Ownership | None = None,
    resolver: Any = None,
    stats: StatsCollector | None = None,
) -> Frontier:
    """The real parts of a frontier, on fakes of what is around it."""
    return build_frontier(
        session,
        engine=engine or FakeEngine(),
        checks=checks or FakeChecks(session),
        ownership=ownership or LocalOwnership(),
        resolver=resolver or FakeNames(),
        stats=stats or MemoryStatsCollector(SimpleNamespace(settings=Settings())),  # type: ignore[arg-type]
    )


class KnowsHosts(Protocol):
    """Whatever has what is remembered of hosts and their robots.txt files."""

    @property
    def hosts(self) -> HostStateCache: ...
    @property
    def robots(self) -> RobotsCache: ...


def read_robots_of(at: KnowsHosts, host: str, text: str, now: float) -> None:
    """As if robots.txt of a host had just been read."""
    authority = f"http://{host}"
    fetched = Fetched(authority=authority, availability=RobotsAvailability.FOUND, body=text.encode(), note="200")
    entry = at.robots.take(fetched, now)
    assert entry.robots is not None
    at.hosts.learn_robots(host, authority, entry.robots.pace)


def request_to(url: str, *, method: str = "GET", **context: Any) -> Request:
    """A request with a context, as the frontier gets it."""
    target = urls.read(url)
    assert isinstance(target, urls.Target)
    return Request(url, method=method, meta={CONTEXT: RequestContext(target=target, **context)})


def answer(status: int = 200, at: float = T0, took: float = 0.1, **headers: str) -> Outcome:
    """An answer that has just ended; header names with _ for -."""
    fields = {name.replace("_", "-"): value for name, value in headers.items()}
    return Outcome(sent_at=at - took, ended_at=at, duration_ms=round(took * 1000), status=status, headers=fields)


def silence(failure: Failure = Failure.TIMEOUT_CONNECT, at: float = T0, took: float = 1.0) -> Outcome:
    return Outcome(sent_at=at - took, ended_at=at, duration_ms=None, failure=failure, error=str(failure))
