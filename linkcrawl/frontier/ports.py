"""The seams of the frontier: the values that its parts and neighbours pass, and the protocols by which they call each
other.

A request carries a `RequestContext`. The spider is the frontier's `Checks`; its `Ownership` says which gates this
process may use, alone or as a worker of a cluster; Scrapy's engine is behind `Engine`. What the keeper of gates has to
know of a crawl is `frontier.gates.context.CrawlContext`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from attrs import define, frozen
from scrapy.http import Request, Response

from linkcrawl.check.procedure import Check, Denial
from linkcrawl.frontier.gates.workbench import Gate, Lane
from linkcrawl.items import DueLink, Finished
from linkcrawl.network.transport import CONTEXT, Transport
from linkcrawl.politeness.pacing.state import Delay
from linkcrawl.politeness.policy.limits import Quota, SharedLimit
from linkcrawl.politeness.policy.rules import Applied
from linkcrawl.politeness.robots.fetch import Fetching
from linkcrawl.urls import Target


@define(kw_only=True, eq=False)
class RequestContext(Transport):
    """Everything that is known of a request beside what Scrapy's Request says. It stands in `Request.meta` under one
    key (network.transport.CONTEXT), and is made with the request; the router makes it for requests of others.

    What it is for: `link` and `check` of a step of a check; `robots` of a request for a robots.txt; `probe`: it asks a
    host that has answered whether it still does. In another component's request there is none of these.
    `starts_limits`: it is the first of its check, and has to clear shared limits of the link's collections and
    providers. `lease_epoch`: Session.lease_epoch when the request was made.

    While it waits: `robots_asked_at`, when the robots.txt was read that it has waited for (Unix seconds).

    Handed out: `gate`; `required`, the gap that it keeps to the gate's request before; `handed_out_at` (Unix seconds);
    `cleared`: robots.txt allows it; `quotas`: of its gate; `spaced_by`: the shared limits that it starts;
    `denial`: why it was dropped unsent.
    """

    target: Target
    link: DueLink | None = None
    check: Check | None = None
    robots: Fetching | None = None
    probe: bool = False
    starts_limits: bool = False
    lease_epoch: int = 0
    robots_asked_at: float | None = None
    gate: str = ""
    required: Delay | None = None
    handed_out_at: float = 0.0
    cleared: bool = False
    quotas: tuple[Quota, ...] = ()
    spaced_by: tuple[SharedLimit, ...] = ()
    denial: Denial | None = None


def context_of(request: Request) -> RequestContext:
    """The context of a request that the frontier has taken. KeyError for any other."""
    found: RequestContext = request.meta[CONTEXT]
    return found


def anew(request: Request) -> Request:
    """The same request as it was before it was handed out, to be handed out once more: it was never sent."""
    before = context_of(request)
    context = RequestContext(
        target=before.target,
        body_limit=before.body_limit,
        page_limit=before.page_limit,
        link=before.link,
        check=before.check,
        robots=before.robots,
        probe=before.probe,
        starts_limits=before.starts_limits,
        lease_epoch=before.lease_epoch,
        robots_asked_at=before.robots_asked_at,
    )
    return request.replace(meta={**request.meta, CONTEXT: context})


#: What waits at a gate: a due link, whose check begins when it has its turn, or a request.
Task = DueLink | Request


@frozen(kw_only=True)
class RoutedTask:
    """A task on its way to a gate. `first`: it goes ahead of its lane, for it has had its turn before."""

    task: Task
    lane: Lane
    first: bool = False


def host_of(task: Task) -> str:
    """The host key that a task's request goes to."""
    return task.host if isinstance(task, DueLink) else context_of(task).target.host


class Checks(Protocol):
    """Who checks links: the spider."""

    def begin(self, link: DueLink, applied: Applied) -> Request | Finished:
        """The first request of a link's check, or its record where nothing can be requested."""

    def resume(self, link: DueLink, check: Check) -> Request:
        """The next request of a check that another worker has begun."""

    def deny(self, request: Request, denial: Denial) -> Request | Finished:
        """What follows where the next request of a check may not be sent: its record, or, where robots.txt denies it,
        another request, which waits for its gate like any hop."""


class Engine(Protocol):
    """Scrapy's engine, as far as the frontier needs it."""

    @property
    def is_at_limit(self) -> bool:
        """True while as many requests are in flight as may be (CONCURRENT_REQUESTS)."""

    @property
    def downloading(self) -> int:
        """Requests in flight, those of other components included."""

    def wake(self) -> None:
        """Have the engine ask the scheduler for the next request soon."""

    def hold(self, work: Any) -> None:
        """Something is under way: the engine is not idle, and waits for it when it closes."""

    def release(self, work: Any) -> None:
        """What was held has ended."""

    def occupy(self, request: Request) -> None:
        """Count a request as in flight from now on, though `send` comes in a moment."""

    async def send(self, request: Request) -> Response:
        """Send a request that has had its turn. Raises what the downloader raises."""

    async def process_item(self, item: Any) -> None:
        """Give an item to the item pipelines, and wait for them."""

    def close(self, reason: str) -> None:
        """End the crawl; the first reason counts."""


class Ownership(Protocol):
    """Which gates this process may use. A single crawl owns all of them, a worker of a cluster those that it leases.
    `gate` is a gate's name.
    """

    @property
    def may_end(self) -> bool:
        """True where no other worker has work that this crawl should wait for."""

    def may_send(self) -> bool:
        """True while requests may be handed out, and sent, at all."""

    def owns(self, link_id: int | str) -> bool:
        """True where a check of the link is under way here, so that this crawl stores its record."""

    def feeds_host(self, host: str) -> bool:
        """True where due links of the host are to be fetched here."""

    def links_are_due(self) -> None:
        """A reading of the backlog has found hosts with due links that had none before."""

    def keeps_state_of(self, name: str) -> bool:
        """True where this crawl stores the memory of this host or gate."""

    async def place_host(self, host: str) -> bool:
        """Have all workers agree on a host's gate; False where there are none, and the router decides by itself."""

    def relocates(self, host: str, addresses: tuple[str, ...]) -> bool:
        """A host's name leads to these addresses now, or this one has answered. True where all workers have to agree on
        its gate: it is placed again once they have; False where there are none, and the router moves it by itself."""

    def routes_elsewhere(self, gate: str, routed: RoutedTask) -> bool:
        """True where a task for a gate isn't for this process any more: it was passed on, or its link stays due."""

    def regroup(self) -> bool:
        """Hosts may belong to other gates now. True where the router may move what waits at once; else gates are given
        back, and what waits with them."""

    def acquire_permits(self, gate: Gate[Task], task: Task, lane: Lane) -> bool:
        """True where a task has all permits for its shared limits. Else the Ownership keeps the task, and offers it to
        its gate again with the permits."""

    def return_permits(self, task: Task) -> None:
        """Return the permits of a task that isn't sent for now. No-op without any."""

    def begin(self, link: DueLink) -> Denial | None:
        """A link's check begins here; the denial where it may not."""

    def handed_out(self, gate: str, request: Request) -> None:
        """A request is about to be sent."""

    def started(self, request: Request) -> None:
        """A request is being sent: its permits are used. No-op without any."""

    def settled(self, request: Request) -> bool:
        """A request that was handed out has ended. True where its gate is still this crawl's to keep."""

    def ensure_leased(self) -> None:
        """Records are about to be stored. Raises LeaseLost where they aren't this crawl's to store; runs in the store's
        thread."""

    def forget(self, link_id: int | str) -> bool:
        """A check's record is stored, or won't be in this crawl. False where the check was not under way here."""

    def let_go(self, link_id: int | str) -> bool:
        """A check that waits for a paused host ends without a record; False where it must go on waiting instead."""

    def metrics(self) -> Mapping[str, tuple[str, float]]:
        """For Prometheus: by name, what it is and its value. Called in any thread, also before the crawl is open."""


class LocalOwnership:
    """The Ownership of a crawl alone: everything is its own."""

    may_end = True

    async def open(self, frontier: object) -> None:
        """Nothing to join."""

    async def close(self) -> None:
        """Nothing to leave."""

    def may_send(self) -> bool:
        return True

    def owns(self, link_id: int | str) -> bool:
        return True

    def feeds_host(self, host: str) -> bool:
        return True

    def links_are_due(self) -> None:
        pass

    def keeps_state_of(self, name: str) -> bool:
        return True

    async def place_host(self, host: str) -> bool:
        return False

    def relocates(self, host: str, addresses: tuple[str, ...]) -> bool:
        return False

    def routes_elsewhere(self, gate: str, routed: RoutedTask) -> bool:
        return False

    def regroup(self) -> bool:
        return True

    def acquire_permits(self, gate: Gate[Task], task: Task, lane: Lane) -> bool:
        return True

    def return_permits(self, task: Task) -> None:
        pass

    def begin(self, link: DueLink) -> Denial | None:
        return None

    def handed_out(self, gate: str, request: Request) -> None:
        pass

    def started(self, request: Request) -> None:
        pass

    def settled(self, request: Request) -> bool:
        return True

    def ensure_leased(self) -> None:
        pass

    def forget(self, link_id: int | str) -> bool:
        return True

    def let_go(self, link_id: int | str) -> bool:
        return True

    def metrics(self) -> Mapping[str, tuple[str, float]]:
        return {}
