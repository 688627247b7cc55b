"""What the frontier and its neighbours hand to each other: the context of a request, and the parts that they ask."""

from __future__ import annotations

from attrs import define
from scrapy.http import Request

from linkcrawl.check.procedure import Check, Denial
from linkcrawl.items import DueLink
from linkcrawl.network.transport import CONTEXT, Transport
from linkcrawl.politeness.pacing.state import Delay
from linkcrawl.politeness.robots.fetch import Fetching
from linkcrawl.urls import Target


@define(kw_only=True, eq=False)
class RequestContext(Transport):
    """Everything that is known of a request beside what Scrapy's Request says. It stands in `Request.meta` under one
    key (network.transport.CONTEXT), and is made with the request; the scheduler makes it for requests of others.

    What it is for: `link` and `check` of a step of a check; `robots` of a request for a robots.txt; all three are None
    in another component's request. `starts_limits`: it is the first of its check, and has to clear shared limits of
    the link's collections and providers. `lease_epoch`: Session.lease_epoch when the request was made.

    While it waits: `robots_asked_at`, when the robots.txt was read that it has waited for (Unix seconds).

    Handed out: `gate`; `required`, the gap that it keeps to the gate's request before; `handed_out_at` (Unix seconds);
    `cleared`: robots.txt allows it; `spaced_by`: name and delay in seconds of the shared limits that it starts;
    `denial`: why it was dropped unsent.
    """

    target: Target
    link: DueLink | None = None
    check: Check | None = None
    robots: Fetching | None = None
    starts_limits: bool = False
    lease_epoch: int = 0
    robots_asked_at: float | None = None
    gate: str = ""
    required: Delay | None = None
    handed_out_at: float = 0.0
    cleared: bool = False
    spaced_by: tuple[tuple[str, float], ...] = ()
    denial: Denial | None = None

    @property
    def host(self) -> str:
        """The host key that the request goes to."""
        return self.target.host


def context_of(request: Request) -> RequestContext:
    """The context of a request that the scheduler has taken. KeyError for any other."""
    found: RequestContext = request.meta[CONTEXT]
    return found


def anew(request: Request) -> Request:
    """The same request as it was before it was handed out, to be handed out once more: nothing of it has left."""
    before = context_of(request)
    context = RequestContext(
        target=before.target,
        body_limit=before.body_limit,
        link=before.link,
        check=before.check,
        robots=before.robots,
        starts_limits=before.starts_limits,
        lease_epoch=before.lease_epoch,
        robots_asked_at=before.robots_asked_at,
    )
    return request.replace(meta={**request.meta, CONTEXT: context})
