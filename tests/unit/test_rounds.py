"""A recheck plan that can't be met is seen before anybody waits for it."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from scrapy.settings import Settings

from linkcrawl.config import read_config
from linkcrawl.frontier.gates.eta import recheck_cycles
from linkcrawl.frontier.gates.gatekeeper import Gatekeeper
from linkcrawl.politeness.host_state import HostStateCache
from linkcrawl.politeness.policy.file import parse
from linkcrawl.politeness.robots.cache import RobotsCache
from linkcrawl.settings import BOT_NAME
from linkcrawl.status.snapshot import StoreSnapshot

DAY = 86400.0


def keeper(policies: str, delay: float = 1.0) -> Gatekeeper:
    settings = Settings()
    settings.setmodule(f"{BOT_NAME}.settings")
    settings.set("DOWNLOAD_DELAY", delay)
    outlook = StoreSnapshot(
        config=read_config(settings, need_contact=False),
        policies=parse(policies, "policies.toml"),
        hosts=HostStateCache(),
        robots=RobotsCache(token="linkcrawl", ttl=3600.0),
        orders={},
        due={},
        started_at=0.0,
        now=lambda: 0.0,
    )
    return Gatekeeper(outlook)


def test_a_host_with_too_many_links_can_not_meet_a_week() -> None:
    found = recheck_cycles({"large.example": 1_800_000, "small.example": 100}, keeper(""), 7 * DAY)
    assert [(each.gate, each.can_be_met) for each in found] == [("large.example", False), ("small.example", True)]
    assert found[0].seconds == pytest.approx(1_800_000)


GROUP = """
[[policy]]
name = "museum"
hosts = ["*.museum.example"]
delay = 2.0
group = true
recheck = { ok = "1d" }
"""


@pytest.mark.parametrize(("each", "met"), [(500, True), (600, False)])
def test_hosts_of_a_group_share_one_round_and_a_rule_has_its_own_interval(each: int, met: bool) -> None:
    links: Mapping[str, int] = {f"h{n}.museum.example": each for n in range(80)}
    (one,) = recheck_cycles(links, keeper(GROUP), 7 * DAY)
    assert (one.gate, one.hosts, one.links) == ("policy museum", 80, 80 * each)
    assert one.gap == 2.0
    assert one.interval == DAY
    assert one.can_be_met is met
