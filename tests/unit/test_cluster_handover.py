"""What waits at a gate that goes to another worker goes on there; what comes from there goes on here."""

from __future__ import annotations

from pathlib import Path

import pytest
import redis

from linkcrawl.cluster import transfers
from linkcrawl.cluster.codec import VERSION, Ticket, TransferredCheck
from linkcrawl.cluster.coordinator import WaitingTransfer
from linkcrawl.cluster.handover import PendingLeases
from linkcrawl.errors import SessionLost
from linkcrawl.frontier.gates.workbench import Lane
from linkcrawl.frontier.ports import RoutedTask, context_of
from linkcrawl.items import DueLink
from linkcrawl.politeness.robots.fetch import begin
from tests.unit.cluster_kit import Cluster, check_to, run, settled
from tests.unit.frontier_kit import request_to

A, B, FAR = "a.example", "b.example", "far.example"


def arriving(link: DueLink, gate: str) -> WaitingTransfer:
    """A check of another worker's link whose next hop goes to a gate of ours."""
    ticket = Ticket.of(link, link.host)
    text = TransferredCheck(version=VERSION, ticket=ticket, link=link, check=check_to(f"http://{gate}/hop")).text()
    return WaitingTransfer(gate=gate, text=text)


def foreign_link(number: int) -> DueLink:
    return DueLink(id=number, url=f"http://{FAR}/{number}", host=FAR)


def test_a_hop_to_a_gate_of_another_worker_is_passed_on_with_a_ticket(tmp_path: Path) -> None:
    async def act(cluster: Cluster) -> None:
        cluster.lease(A)
        link = cluster.link(1, A)
        hop = cluster.hop(link, FAR)
        cluster.frontier.keeper.looked_up.add(FAR)
        cluster.frontier.router.place(hop)
        assert cluster.worker.transfers.is_sending_from(A)
        await settled(cluster)
        ((transfer, home_gate, token, _),) = cluster.coordinator.told("send")
        assert (transfer.gate, home_gate) == (FAR, A)
        assert token in transfer.text.replace("\\", "") or str(link.id) in token
        assert cluster.worker.transfers.held_links() == {link.id}, "it must not be begun again"
        assert (cluster.frontier.feeder.under_way, cluster.worker.transfers.remote_checks) == (0, 1)

    run(tmp_path, act)


def test_passing_on_is_repeated_until_redis_has_it_under_one_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transfers, "RETRY", 0.0)

    async def act(cluster: Cluster) -> None:
        cluster.lease(A)
        cluster.coordinator.fault = redis.TimeoutError("slow")
        cluster.worker.transfers.send(cluster.hop(cluster.link(1, A), FAR), FAR)
        await settled(cluster)
        first, second = cluster.coordinator.told("send")
        assert first == second

    run(tmp_path, act)


def test_a_check_that_arrives_goes_on_here_until_its_record_is_stored(tmp_path: Path) -> None:
    async def act(cluster: Cluster) -> None:
        cluster.lease(A)
        await cluster.worker.transfers.receive([arriving(foreign_link(7), A)])
        assert cluster.coordinator.told("take_in") == [(A,)]
        (queued,) = cluster.frontier.bench.gates[A].lane(Lane.HOP)
        assert context_of(queued.task).link == foreign_link(7)  # type: ignore[arg-type]
        assert cluster.ownership.owns(7)
        assert not cluster.ownership.let_go(7), "let go of, it would be begun again at once"
        await cluster.worker.transfers.renew_tickets()
        assert cluster.ownership.forget(7)
        assert not cluster.ownership.forget(7)
        await cluster.worker.transfers.report_ended()
        assert cluster.coordinator.told("tickets") == [(1, 0, 0), (0, 0, 1)]

    run(tmp_path, act)


@pytest.mark.parametrize("text", ["{", '{"version": 0}', None])
def test_what_can_not_be_read_or_has_no_valid_ticket_is_dropped(tmp_path: Path, text: str | None) -> None:
    async def act(cluster: Cluster) -> None:
        cluster.lease(A)
        transfer = arriving(foreign_link(7), A) if text is None else WaitingTransfer(gate=A, text=text)
        await cluster.worker.transfers.receive([transfer])
        assert cluster.coordinator.told("take_in") == [(A,)], "it is taken out of Redis all the same"
        assert len(cluster.frontier.bench.gates[A]) == 0
        assert not cluster.ownership.owns(7)

    run(tmp_path, act, valid=False)


def test_a_check_of_another_version_is_begun_anew_at_once(tmp_path: Path) -> None:
    """Its ticket is ended, so that nobody waits for it."""

    async def act(cluster: Cluster) -> None:
        cluster.lease(A)
        text = arriving(foreign_link(7), A).text.replace(f'"version": {VERSION}', '"version": 99')
        await cluster.worker.transfers.receive([WaitingTransfer(gate=A, text=text)])
        await cluster.worker.transfers.report_ended()
        assert cluster.coordinator.told("tickets") == [(0, 0, 1)]
        assert not cluster.ownership.owns(7)

    run(tmp_path, act, valid=False)


def test_what_could_not_be_taken_in_is_taken_in_later(tmp_path: Path) -> None:
    async def act(cluster: Cluster) -> None:
        cluster.lease(A)
        cluster.coordinator.fault = redis.ConnectionError("gone")
        with pytest.raises(redis.ConnectionError):
            await cluster.worker.transfers.receive([arriving(foreign_link(7), A)])
        assert cluster.worker.transfers.is_arriving(A)
        await cluster.worker.transfers.receive()
        assert not cluster.worker.transfers.is_arriving(A)
        assert cluster.ownership.owns(7)

    run(tmp_path, act)


def test_a_remote_check_that_has_ended_frees_its_link(tmp_path: Path) -> None:
    async def act(cluster: Cluster) -> None:
        cluster.lease(A)
        token = Ticket.of(DueLink(id=3, url=f"http://{A}/3", host=A), A).token
        cluster.worker.transfers.reserve([token], A)
        assert cluster.worker.transfers.held_links() == {3}
        assert len(cluster.frontier.queue) == 1
        await cluster.worker.transfers.renew_tickets()
        assert len(cluster.frontier.queue) == 1
        cluster.coordinator.valid = False
        await cluster.worker.transfers.renew_tickets()
        assert (len(cluster.frontier.queue), cluster.worker.transfers.held_links()) == (0, set())

    run(tmp_path, act)


def test_a_gate_that_closes_passes_its_checks_on_and_keeps_what_can_not_travel(tmp_path: Path) -> None:
    async def act(cluster: Cluster) -> None:
        cluster.lease(A, B)
        bench, gate = cluster.frontier.bench, cluster.frontier.bench.gates[A]
        check = cluster.hop(cluster.link(1, B), A)
        waits = cluster.hop(cluster.link(2, B), B)
        theirs = request_to(f"http://{A}/theirs")
        fetch = begin(f"http://{B}")
        robots = request_to(f"http://{A}/robots.txt", robots=fetch)
        cluster.frontier.robots._waiting[fetch.authority] = [waits]
        cluster.frontier.router.place(cluster.link(3, A))
        for request in (check, theirs, robots):
            bench.offer(gate, request, lane=Lane.HOP)
        cluster.worker.leases.close_all()
        await settled(cluster)
        sent = [transfer.gate for transfer, *_ in cluster.coordinator.told("send")]
        assert sorted(sent) == [A, B], "the check that waits there, and that which waits for the robots.txt"
        assert [queued.task for queued in gate.lane(Lane.HOP)] == [theirs]
        assert not gate.lane(Lane.LINK), "a link is the next holder's to begin"
        assert not cluster.worker.table.feeds(A)
        assert not cluster.frontier.robots.waits_for(B)

    run(tmp_path, act)


def test_what_needs_a_gate_of_another_worker_waits_for_it_and_gives_way(tmp_path: Path) -> None:
    async def act(cluster: Cluster) -> None:
        cluster.lease(A)
        fetch = begin(f"http://{A}")
        robots = request_to(f"http://{FAR}/robots.txt", robots=fetch)
        waits = cluster.hop(cluster.link(1, A), A)
        cluster.frontier.robots._waiting[fetch.authority] = [waits]
        cluster.frontier.keeper.looked_up.add(FAR)
        cluster.frontier.router.place(robots)
        assert cluster.worker.leases.is_busy, "it is asked for"
        cluster.coordinator.wanted = {A: True}
        cluster.worker.leases.notify([A])
        await cluster.worker.leases.handle_notifications()
        await settled(cluster)
        assert [transfer.gate for transfer, *_ in cluster.coordinator.told("send")] == [A]
        assert not cluster.frontier.robots.waits_for(A), "the other has our gate fetch it"

    run(tmp_path, act)


def test_a_gate_that_is_needed_is_waited_for_no_longer_than_the_crawl_is_patient(tmp_path: Path) -> None:
    async def act(cluster: Cluster) -> None:
        pending = PendingLeases(cluster.session)
        assert not pending.may_come
        pending.add(FAR, RoutedTask(task=request_to(f"http://{FAR}/"), lane=Lane.HOP))
        assert pending.may_come
        cluster.clock.at += cluster.session.config.patience
        assert not pending.may_come
        assert len(pending.pop(FAR)) == 1
        assert FAR not in pending

    run(tmp_path, act)


def test_a_lost_session_sends_nothing_on(tmp_path: Path) -> None:
    async def act(cluster: Cluster) -> None:
        cluster.lease(A)
        cluster.coordinator.fault = SessionLost("over")
        cluster.worker.transfers.send(cluster.hop(cluster.link(1, A), FAR), FAR)
        await settled(cluster)
        assert len(cluster.coordinator.told("send")) == 1

    run(tmp_path, act)
