"""Hosts of a cluster whose names lead elsewhere: no worker sends to one through a gate that it has left."""

from __future__ import annotations

import asyncio
from pathlib import Path

from linkcrawl.cluster.coordinator import LeaseResult
from linkcrawl.frontier.due_queue import HostQueue
from linkcrawl.frontier.gates.workbench import Lane
from tests.unit.cluster_kit import ONE, Cluster, run, settled

A, B, FAR = "a.example", "b.example", "far.example"


def test_a_host_that_has_moved_leaves_its_gate_and_its_hops_wait_for_the_new_one(tmp_path: Path) -> None:
    """Its links stay due; nothing more of it is sent through the gate of before."""

    async def act(cluster: Cluster) -> None:
        cluster.coordinator.gates = {A: A, B: A}
        await cluster.worker.leases.placement.locate([A, B])
        worker, bench = cluster.worker, cluster.frontier.bench
        await worker.leases._open({A: {A, B}}, {A: LeaseResult(standing="taken", wait=0.0, deaths={})})
        hop, others = cluster.hop(cluster.link(1, A), B), cluster.hop(cluster.link(2, A), A)
        for request in (hop, others):
            cluster.frontier.router.place(request)
        cluster.frontier.router.place(cluster.link(3, B))
        assert len(bench.gates[A]) == 3
        cluster.coordinator.gates[B] = B
        cluster.coordinator.log.clear()
        cluster.frontier.router.relocate(B, (ONE,))
        assert cluster.coordinator.told("place") == [], "it is where it was"
        cluster.frontier.router.relocate(B, ("192.0.2.9",))
        assert [queued.task for queued in bench.gates[A].lane(Lane.HOP)] == [others]
        assert not bench.gates[A].lane(Lane.LINK)
        assert (worker.table.leases[A].hosts, worker.table.feeds_host(B)) == ({A}, False)
        while cluster.frontier.router.is_looking_up:  # noqa: ASYNC110  # the task is the router's
            await asyncio.sleep(0.01)
        await settled(cluster)
        assert cluster.coordinator.told("place") == [(B,)]
        assert cluster.frontier.keeper.address_of(B) == "192.0.2.9"
        ((transfer, home, _, _),) = cluster.coordinator.told("send")
        assert (transfer.gate, home) == (B, A)

    run(tmp_path, act)


def test_what_has_moved_is_forgotten_before_a_gate_is_opened(tmp_path: Path) -> None:
    async def act(cluster: Cluster) -> None:
        cluster.coordinator.gates = {A: A, B: A, FAR: A}
        worker, keeper = cluster.worker, cluster.frontier.keeper
        await worker.leases.placement.locate([A, B, FAR])
        cluster.coordinator.moved = [f"host {B}"]
        cluster.frontier.queue.hosts |= {host: HostQueue(host, due=1) for host in (A, B, FAR)}
        await worker.leases._take({A: {A, B}})
        assert worker.table.leases[A].hosts == {A}
        assert B not in keeper.looked_up
        cluster.coordinator.moved = [f"gate {A}"]
        worker.leases.placement.follow_moves()
        assert keeper.looked_up & {A, FAR} == {A}, "whoever is fed here can't have moved unheard"

    run(tmp_path, act)
