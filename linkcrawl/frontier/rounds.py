"""Whether the recheck plan can be met: one round over all links behind a gate against the interval it is wanted in."""

from __future__ import annotations

import math
from collections.abc import Mapping

from attrs import frozen

from linkcrawl.frontier.gates import Gatekeeper
from linkcrawl.frontier.workbench import Gate


@frozen(kw_only=True)
class Round:
    """One round over the `links` of all `hosts` behind a gate, a request each. `gap`: seconds from one answer to the
    next, the server's own time included. `interval`: seconds after which a good link is first asked again."""

    gate: str
    hosts: int
    links: int
    gap: float
    interval: float

    @property
    def seconds(self) -> float:
        """How long the round takes at the delay in force."""
        return self.links * self.gap

    @property
    def can_be_met(self) -> bool:
        """Whether it ends before its first links are due again."""
        return self.seconds <= self.interval


def rounds(links: Mapping[str, int], keeper: Gatekeeper, interval: float) -> list[Round]:
    """The rounds of all gates, the longest first. `links`: by host, whether due or not. `keeper`: one that no crawl
    uses, for it opens gates of its own. `interval`: the plan's, where no policy rule has another."""
    hosts: dict[str, list[str]] = {}
    for host in links:
        name = keeper.name(host)
        hosts.setdefault(name, []).append(host)
        keeper.open(Gate(name, -math.inf), host)
    found = [
        Round(
            gate=gate,
            hosts=len(members),
            links=sum(links[host] for host in members),
            gap=keeper.delay(gate).seconds + (keeper.pace(gate).answer_time or 0.0),
            interval=min(keeper.applied(host).recheck.get("ok", interval) for host in members),
        )
        for gate, members in hosts.items()
    ]
    return sorted(found, key=lambda each: -each.seconds)
