"""The limits of several hosts behind one gate as one, and those of a shared limit. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import evolve

from linkcrawl.politeness.pacing.state import PacingLimits
from linkcrawl.politeness.policy.limits import SharedLimit, strictest_quotas


def pacing_limits_of(limit: SharedLimit) -> PacingLimits:
    """What the checks of a collection, a provider or a group keep, from start to start."""
    return PacingLimits(floor=limit.delay, floor_from=f"policy {limit.rule}", k=0.0, quotas=limit.quotas)


def strictest(hosts: Sequence[PacingLimits]) -> PacingLimits:
    """The limits of a gate from those of its hosts: the largest floor, the smallest quotas, and the largest of the
    delays that robots.txt files ask for or that were agreed on in their place."""
    if len(hosts) == 1:
        return hosts[0]
    slowest = max(hosts, key=lambda limits: limits.floor)
    asking = max(hosts, key=_asked)
    return evolve(
        slowest,
        quotas=strictest_quotas(quota for limits in hosts for quota in limits.quotas),
        crawl_delay=asking.crawl_delay,
        request_rate_delay=asking.request_rate_delay,
        agreed_delay=asking.agreed_delay,
        agreed_from=asking.agreed_from,
    )


def _asked(limits: PacingLimits) -> float:
    if limits.agreed_delay is not None:
        return limits.agreed_delay
    return max(limits.crawl_delay or 0.0, limits.request_rate_delay or 0.0)
