"""The terms of several hosts behind one gate, and those of a limit. Pure."""

from __future__ import annotations

from attrs import evolve

from linkcrawl.politeness.pacing.state import PacingLimits
from linkcrawl.politeness.policy.rules import SharedLimit


def limits_between_starts(limit: SharedLimit) -> PacingLimits:
    """What a limit of a collection, a provider or a group keeps between two starts."""
    return PacingLimits(floor=limit.delay, floor_from=f"policy {limit.rule}", k=0.0, max_per_day=limit.max_per_day)


def strictest(terms: list[PacingLimits]) -> PacingLimits:
    """The terms of several hosts behind one gate. What was agreed on for one host binds where no other host's own
    word is larger; the floor of the slowest is the gate's."""
    if len(terms) == 1:
        return terms[0]
    floor = max(terms, key=lambda each: each.floor)
    asked = max(terms, key=_asked)
    limits = [each.max_per_day for each in terms if each.max_per_day is not None]
    return evolve(
        floor,
        max_per_day=min(limits, default=None),
        crawl_delay=asked.crawl_delay,
        request_rate_delay=asked.request_rate_delay,
        agreed_delay=asked.agreed_delay,
        agreed_from=asked.agreed_from,
    )


def _asked(terms: PacingLimits) -> float:
    if terms.agreed_delay is not None:
        return terms.agreed_delay
    return max(terms.crawl_delay or 0.0, terms.request_rate_delay or 0.0)
