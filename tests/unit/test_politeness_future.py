"""Host memory that a crawl with a clock ahead has left shuts no host: it counts as of now, and people are told."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Any

import pytest

from linkcrawl.frontier.gates.gatekeeper import Gatekeeper
from linkcrawl.frontier.maintenance import MaintenanceLoop
from linkcrawl.items import Act, HostMemory, Order
from linkcrawl.politeness.future import not_of_the_future
from linkcrawl.politeness.host_state import HostStateCache
from linkcrawl.politeness.pacing.persistence import GATE, pace_from_row, pace_to_row
from linkcrawl.politeness.pacing.state import Pace
from linkcrawl.politeness.robots.pace import RobotsPace
from tests.unit.frontier_kit import T0, Clock, session

DAY = 86400.0
HOST = "a.example"


def memory(ahead: float, **pace: Any) -> HostMemory:
    """What a crawl remembers whose clock is ahead by so much, a second after an answer."""
    at = T0 + ahead - 1
    known = Pace(last_end=at, asked_at=at, counts={"day": (int(at // DAY), 5)}, recent=((at, True, False),), **pace)
    return HostMemory(
        host=HOST,
        last_end=at,
        failing_since=at,
        failing_days=(at,),
        head_useless_since=at,
        pace=pace_to_row(known),
        robots={f"http://{HOST}": RobotsPace(crawl_delay=2.0).to_row()},
    )


def test_what_is_past_stays_as_it_is() -> None:
    known = memory(0, silent_until=T0 + 3600)
    assert not_of_the_future(known, T0) == (known, 0.0)
    empty = HostMemory(host=HOST)
    assert not_of_the_future(empty, T0) == (empty, 0.0)


@pytest.mark.parametrize("ahead", [5.0, DAY, 20 * 365 * DAY])
def test_what_is_of_the_future_counts_as_now(ahead: float) -> None:
    healed, found = not_of_the_future(memory(ahead, silent_until=T0 + ahead + 599), T0)
    assert found == pytest.approx(ahead - 1)
    assert (healed.last_end, healed.failing_since, healed.head_useless_since) == (T0, T0, T0)
    assert healed.failing_days == (T0,)
    pace = pace_from_row(healed.pace)
    assert (pace.last_end, pace.asked_at, pace.counts) == (T0, T0, {"day": (int(T0 // DAY), 5)})
    assert pace.silent_until == pytest.approx(T0 + 600)  # as long as the server had asked for
    assert pace.recent == ((T0, True, False),)
    assert healed.robots == memory(ahead).robots


def test_a_block_of_the_future_stands_from_now_on() -> None:
    healed, _ = not_of_the_future(memory(DAY, blocked_since=T0 + DAY - 5), T0)
    assert pace_from_row(healed.pace).blocked_since == T0


def test_waits_longer_than_anybody_can_ask_for_are_cut() -> None:
    known = memory(0, silent_until=T0 + 30 * DAY)
    healed, ahead = not_of_the_future(known, T0)
    assert ahead > 0
    assert pace_from_row(healed.pace).silent_until == T0 + DAY


def test_a_host_that_shares_a_gate_only_names_it() -> None:
    known = HostMemory(host=HOST, last_end=T0 + DAY, pace={GATE: "b.example"})
    healed, _ = not_of_the_future(known, T0)
    assert healed.pace == {GATE: "b.example"}
    assert healed.last_end == T0


def test_a_gate_of_the_future_opens_after_one_delay(tmp_path: Path) -> None:
    clock = Clock()
    crawl = session(tmp_path, clock, memories=[memory(DAY)])
    crawl.hosts = HostStateCache([memory(DAY)], now=clock)
    keeper = Gatekeeper(crawl)
    assert keeper.wait(HOST, clock()).at == T0 + keeper.delay(HOST).seconds
    assert [changed.host for changed in crawl.hosts.take_changed()] == [HOST]  # and so it is stored
    crawl.worker.close()


def test_orders_are_for_the_future_as_people_say() -> None:
    assert Order(host=HOST, act=Act.BLOCK, at=T0, until=T0 + 400 * DAY).blocks(T0 + 300 * DAY)


class NobodyAsks:
    """No link was asked for."""

    async def take_up(self) -> None:
        pass


@pytest.mark.parametrize(("ahead", "told"), [(DAY, 1), (30.0, 0)])
def test_people_are_told_once(tmp_path: Path, caplog: pytest.LogCaptureFixture, ahead: float, told: int) -> None:
    clock = Clock()
    crawl = session(tmp_path, clock)
    crawl.hosts = HostStateCache([memory(ahead)], now=clock)
    keeper = Gatekeeper(crawl)
    nothing: Any = None
    requested: Any = NobodyAsks()

    async def run() -> None:
        watch = MaintenanceLoop(
            crawl,
            bench=nothing,
            keeper=keeper,
            router=nothing,
            queue=nothing,
            feeder=nothing,
            postponed=nothing,
            requested=requested,
            host_states=nothing,
            clock_follower=nothing,
            engine=nothing,
            give_up=nothing,
        )
        await watch.start()
        watch._warn_of_the_future()
        watch.close()

    with caplog.at_level(logging.WARNING):
        asyncio.run(run())
    assert len([line for line in caplog.messages if "1 hosts is from the future (up to 24 h ahead)" in line]) == told
    crawl.worker.close()
