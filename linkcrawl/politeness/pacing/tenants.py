"""Strangers behind one gate: what the server bears binds them all, what one of them asks for binds nobody else. Pure.

A *tenant* of a gate is a registered domain, or the policy group that the gate is named after. Most gates have a single
one, and then nothing of this applies. The gate's own tenant (that of the host or group that it is named after) is
called OWN, and has its state in the gate's Pace; each of the others has a Pace of its own in `Pace.strangers`.

    of the gate    floor, quotas, one request in flight, answer times, the end of its last request
    of a tenant    Crawl-delay, Request-rate, agreed delay, Retry-After, back-off, ban, the end of its own last request

A request may go when both the gate and its tenant may.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from attrs import evolve

from linkcrawl.politeness.pacing.delay import after_answer
from linkcrawl.politeness.pacing.persistence import merge
from linkcrawl.politeness.pacing.state import Event, Pace, PaceSample, PacingLimits
from linkcrawl.politeness.pacing.strictest import strictest
from linkcrawl.politeness.policy.limits import merge_counts

#: The tenant of the host or group that a gate is named after.
OWN = ""

#: What a tenant's answers say of the tenant alone.
_TENANTS = (
    "back_off",
    "good_streak",
    "silent_until",
    "shut_ends",
    "recent",
    "good",
    "refused",
    "blocked_since",
    "refused_links",
)
#: What they say of the server.
_SERVERS = ("answer_time", "last_time", "samples", "trend", "baseline", "slowdown")


def tenant_pace(pace: Pace, tenant: str = OWN) -> Pace:
    """The pace of a gate as one tenant has it: the server's answer times, and the tenant's own last request and
    wishes."""
    if tenant != OWN:
        own = pace.strangers.get(tenant, Pace())
        return evolve(
            pace, **_of(own, _TENANTS), last_end=own.last_end, last_cost=own.last_cost, own_end=None, strangers={}
        )
    if not pace.strangers and pace.own_end is None:
        return pace
    if pace.own_end is None:
        return evolve(pace, strangers={})
    return evolve(pace, last_end=pace.own_end or None, last_cost=pace.own_cost, own_end=None, strangers={})


def server_pace(pace: Pace) -> Pace:
    """The pace of a gate without the wishes of any tenant."""
    return evolve(pace, **_of(Pace(), _TENANTS), own_end=None, strangers={})


def keep_tenant(pace: Pace, tenant: str, view: Pace) -> Pace:
    """The pace of a gate after a tenant's view of it (`tenant_pace`) has changed; the server's part stays."""
    if tenant == OWN:
        return evolve(pace, **_of(view, _TENANTS))
    own = Pace(**_of(view, (*_TENANTS, "last_end", "last_cost")))
    return evolve(pace, strangers={**pace.strangers, tenant: own})


def without_tenants(pace: Pace, present: Collection[str]) -> Pace:
    """The pace of a gate that only these tenants are left at."""
    if all(tenant in present for tenant in pace.strangers):
        return pace
    return evolve(pace, strangers={tenant: own for tenant, own in pace.strangers.items() if tenant in present})


def after_tenants_answer(
    pace: Pace, tenant: str, limits: PacingLimits, answer: PaceSample
) -> tuple[Pace, tuple[Event, ...]]:
    """The pace of a gate after the answer of a tenant, and the events that people should know of. `limits`: the
    tenant's."""
    if tenant == OWN and not pace.strangers and pace.own_end is None:
        return after_answer(pace, limits, answer)
    view, events = after_answer(tenant_pace(pace, tenant), limits, answer)
    if tenant == OWN:
        return evolve(view, strangers=pace.strangers), events
    own_end, own_cost = (pace.own_end, pace.own_cost) if pace.own_end is not None else (pace.last_end, pace.last_cost)
    pace = keep_tenant(pace, tenant, view)
    server = _of(view, (*_SERVERS, "last_end", "last_cost", "counts"))
    return evolve(pace, **server, own_end=own_end or 0.0, own_cost=own_cost), events


def bring(pace: Pace, tenant: str, brought: Pace) -> Pace:
    """The pace of a gate that a tenant's host comes to. `brought`: as the tenant had it at the gate before
    (`tenant_pace`). What it has still to keep it keeps; strangers are bound by when it was asked last, and by nothing
    that it has been asked for. Bringing the same twice changes nothing."""
    if tenant == OWN and not pace.strangers and pace.own_end is None:
        return merge(pace, brought)
    known = tenant_pace(pace, tenant)
    joined = brought if known.last_end is None and not known.recent else merge(known, brought)
    last = max(pace, brought, key=lambda one: one.last_end or 0.0)
    changes: dict[str, Any] = {
        "last_end": last.last_end,
        "last_cost": last.last_cost,
        "counts": merge_counts(pace.counts, brought.counts),
        "asked_at": max(pace.asked_at or 0.0, brought.asked_at or 0.0) or None,
    }
    if not pace.samples:
        changes |= _of(brought, _SERVERS)
    if tenant == OWN:
        changes |= {"own_end": joined.last_end or 0.0, "own_cost": joined.last_cost}
    elif pace.own_end is None:
        changes |= {"own_end": pace.last_end or 0.0, "own_cost": pace.last_cost}
    return evolve(keep_tenant(pace, tenant, joined), **changes)


def bound_by_gate(own: PacingLimits, gate: PacingLimits) -> PacingLimits:
    """What a tenant has to keep. `own`: the strictest of its hosts; `gate`: of all hosts there, whose floor and quotas
    bind it too."""
    return evolve(own, floor=gate.floor, floor_from=gate.floor_from, quotas=gate.quotas)


def servers_limits(tenants: Collection[PacingLimits]) -> PacingLimits:
    """What a gate has to keep from any request to the next, whoever they go to: floor and quotas."""
    return evolve(
        strictest(list(tenants)), crawl_delay=None, request_rate_delay=None, agreed_delay=None, agreed_from="agreement"
    )


def _of(pace: Pace, names: Collection[str]) -> dict[str, Any]:
    return {name: getattr(pace, name) for name in names}
