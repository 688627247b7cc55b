"""A crawl's session on a virtual clock, with a store that is real and no crawl around it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from scrapy.http import Request

from linkcrawl import clock, settings, urls
from linkcrawl.audit.log import AuditLog
from linkcrawl.check.outcome import Failure, Outcome
from linkcrawl.check.procedure import Rules
from linkcrawl.check.recheck import Intervals
from linkcrawl.config import Config, read_config
from linkcrawl.frontier.ports import RequestContext
from linkcrawl.items import HostMemory
from linkcrawl.network.transport import CONTEXT
from linkcrawl.politeness.host_state import HostStateCache
from linkcrawl.politeness.policy.file import parse
from linkcrawl.politeness.policy.rules import Policies
from linkcrawl.politeness.robots.cache import RobotsCache, restored
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
        robots=restored(remembered, token=told.product, ttl=told.robots_ttl),
        audit=AuditLog(audit),
    )


def read_robots_of(robots: RobotsCache, host: str, text: str, now: float) -> None:
    """As if robots.txt of a host had just been read."""
    fetched = Fetched(authority=f"http://{host}", standing=RobotsAvailability.FOUND, body=text.encode(), note="200")
    robots.take(fetched, now)


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
