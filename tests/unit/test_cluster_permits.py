"""Permits for shared limits: a task waits for Redis' word with its gate, and every permit is reported or given back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import redis
from scrapy.http import Request

from linkcrawl.cluster import rate_permits
from linkcrawl.cluster.rate_permits import UNUSED
from linkcrawl.frontier.gates.workbench import GateState, Lane
from linkcrawl.frontier.ports import context_of
from linkcrawl.items import DueLink
from tests.unit.cluster_kit import Cluster, run, settled
from tests.unit.frontier_kit import request_to

HOST = "a.example"
RULES = '[[policy]]\nname = "c"\ncollections = ["north"]\ndelay = 9\n'


def taken(cluster: Cluster, **about: Any) -> tuple[Any, DueLink]:
    """A gate of ours, and its link that has just had its turn there."""
    cluster.lease(HOST)
    link = cluster.link(1, HOST, collections=("north",), **about)
    cluster.frontier.router.place(link)
    cluster.clock.at += 60  # unknown limits open one full delay after they are met first
    found = cluster.frontier.bench.take(cluster.clock())
    assert found is not None
    return found


def test_what_has_no_limits_needs_no_permit(tmp_path: Path) -> None:
    async def act(cluster: Cluster) -> None:
        cluster.lease(HOST)
        gate = cluster.frontier.bench.gates[HOST]
        assert cluster.worker.permits.acquire(gate, cluster.link(1, HOST), Lane.LINK)
        assert cluster.coordinator.told("acquire") == []

    run(tmp_path, act, RULES)


def test_a_task_comes_back_to_its_gate_with_its_permit(tmp_path: Path) -> None:
    async def act(cluster: Cluster) -> None:
        gate, link = taken(cluster)
        permits, wake = cluster.worker.permits, gate.wake
        assert not permits.acquire(gate, link, Lane.LINK)
        cluster.frontier.bench.release(gate, gate.wake)
        assert permits.is_asking(HOST)
        assert cluster.frontier.bench.take(cluster.clock() + 60) is None, "the gate waits with it"
        await settled(cluster)
        assert not permits.is_asking(HOST)
        assert cluster.engine.woken > 0
        assert gate.wake == wake
        assert cluster.frontier.bench.take(cluster.clock()) == (gate, link)
        assert permits.acquire(gate, link, Lane.LINK)
        permits.settle(link, used=True)
        permits.settle(link, used=True)  # no-op without a permit
        await settled(cluster)
        (name,) = cluster.coordinator.told("acquire")
        assert cluster.coordinator.told("settle") == [(name, True)]

    run(tmp_path, act, RULES)


def test_a_task_that_has_to_wait_is_told_how_long(tmp_path: Path) -> None:
    async def act(cluster: Cluster) -> None:
        gate, link = taken(cluster)
        assert not cluster.worker.permits.acquire(gate, link, Lane.LINK)
        cluster.frontier.bench.release(gate, gate.wake)
        await settled(cluster)
        assert cluster.frontier.bench.take(cluster.clock() + 29.9) is None
        assert cluster.frontier.bench.take(cluster.clock() + 30) == (gate, link)
        assert cluster.coordinator.told("settle") == []

    run(tmp_path, act, RULES, wait=30.0)


def test_where_the_answer_is_lost_the_permit_is_given_back(tmp_path: Path) -> None:
    """Redis may have granted it all the same."""

    async def act(cluster: Cluster) -> None:
        gate, link = taken(cluster)
        cluster.coordinator.fault = redis.ConnectionError("gone")
        assert not cluster.worker.permits.acquire(gate, link, Lane.LINK)
        cluster.frontier.bench.release(gate, gate.wake)
        await settled(cluster)
        (name,) = cluster.coordinator.told("acquire")
        assert cluster.coordinator.told("settle") == [(name, False)]
        assert len(gate) == 1

    run(tmp_path, act, RULES)


def test_a_report_is_repeated_until_redis_has_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rate_permits, "RETRY", 0.0)

    async def act(cluster: Cluster) -> None:
        gate, link = taken(cluster)
        cluster.worker.permits.acquire(gate, link, Lane.LINK)
        await settled(cluster)
        cluster.worker.permits.acquire(gate, link, Lane.LINK)
        cluster.coordinator.fault = redis.TimeoutError("slow")
        cluster.worker.permits.settle(link, used=True)
        await settled(cluster)
        (name,) = cluster.coordinator.told("acquire")
        assert cluster.coordinator.told("settle") == [(name, True)] * 2

    run(tmp_path, act, RULES)


def test_a_link_whose_gate_closed_meanwhile_is_the_next_holders(tmp_path: Path) -> None:
    async def act(cluster: Cluster) -> None:
        gate, link = taken(cluster)
        assert not cluster.worker.permits.acquire(gate, link, Lane.LINK)
        cluster.worker.table.closing[HOST] = cluster.clock()
        cluster.frontier.bench.release(gate, gate.wake)
        await settled(cluster)
        (name,) = cluster.coordinator.told("acquire")
        assert cluster.coordinator.told("settle") == [(name, False)]
        assert (len(gate), gate.state) == (0, GateState.IDLE)

    run(tmp_path, act, RULES)


def test_a_permit_that_is_not_used_is_given_back_soon(tmp_path: Path) -> None:
    async def act(cluster: Cluster) -> None:
        gate, link = taken(cluster)
        cluster.worker.permits.acquire(gate, link, Lane.LINK)
        await settled(cluster)
        cluster.worker.permits.return_unused()
        await settled(cluster)
        assert cluster.coordinator.told("settle") == []
        cluster.clock.at += UNUSED + 0.1
        cluster.worker.permits.return_unused()
        await settled(cluster)
        assert [used for _, used in cluster.coordinator.told("settle")] == [False]

    run(tmp_path, act, RULES)


def test_nothing_is_said_of_permits_of_a_session_that_was_lost(tmp_path: Path) -> None:
    async def act(cluster: Cluster) -> None:
        gate, link = taken(cluster)
        assert not cluster.worker.permits.acquire(gate, link, Lane.LINK)
        cluster.worker.drop_session("as a test will have it")
        await settled(cluster)
        assert (len(gate), cluster.coordinator.told("settle"), cluster.coordinator.told("acquire")) == (0, [], [])
        assert not cluster.worker.permits.is_asking(HOST)

    run(tmp_path, act, RULES)


def test_the_first_request_of_a_check_has_the_permit_of_its_link(tmp_path: Path) -> None:
    async def act(cluster: Cluster) -> None:
        gate, link = taken(cluster)
        cluster.worker.permits.acquire(gate, link, Lane.LINK)
        await settled(cluster)
        cluster.worker.permits.acquire(gate, link, Lane.LINK)
        first: Request = request_to(link.url, link=link)
        cluster.worker.permits.settle(first, used=True)
        assert cluster.coordinator.told("settle") == [], "a later hop of the check"
        context_of(first).starts_limits = True
        cluster.worker.permits.settle(first, used=True)
        await settled(cluster)
        assert [used for _, used in cluster.coordinator.told("settle")] == [True]

    run(tmp_path, act, RULES)
