"""A worker's session in Redis: while it stands its gates are its own, and when it is over it forgets all it held."""

from __future__ import annotations

import asyncio
import time
from itertools import combinations
from pathlib import Path

import pytest
import redis
from attrs import evolve

from linkcrawl.check.procedure import Denial
from linkcrawl.clock import boot_time
from linkcrawl.cluster.codec import Ticket
from linkcrawl.cluster.coordinator import TimeReading
from linkcrawl.cluster.ownership import ClusterOwnership
from linkcrawl.cluster.shared_pace import PaceSettings, read_pace
from linkcrawl.cluster.worker import DEATHS, QUIET
from linkcrawl.errors import LeaseLost, SessionLost
from linkcrawl.frontier.gates.workbench import Lane
from linkcrawl.frontier.ports import context_of
from linkcrawl.items import DueLink
from tests.unit.cluster_kit import ALONE, Cluster, FakeCoordinator, opened, run, settled
from tests.unit.frontier_kit import T0, answer, request_to

A, B = "a.example", "b.example"


def test_a_worker_joins_when_its_crawl_opens_and_gives_all_back_when_it_closes(tmp_path: Path) -> None:
    async def act(cluster: Cluster) -> None:
        assert cluster.ownership.may_send()
        cluster.lease(A)
        await cluster.ownership.close()
        assert [name for name, _ in cluster.coordinator.log] == ["give", "leave", "close"]
        assert cluster.coordinator.told("give") == [(A,)]

    run(tmp_path, act)


def test_redis_that_is_away_is_told_once_a_minute(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def act(cluster: Cluster) -> None:
        told = []
        for _ in range(8):
            cluster.coordinator.fault = redis.ConnectionError("gone")
            await cluster.worker._try(cluster.worker._renew_session)
            told.append(caplog.text.count("Redis can't be asked (gone)"))
            cluster.clock.at += 20.0
        assert told == [1, 1, 1, 1, 2, 2, 2, 2]  # more than sixty seconds after the one before
        await cluster.worker._try(cluster.worker._renew_session)
        assert caplog.text.count("Redis is back after 160 s") == 1

    run(tmp_path, act)


def test_before_the_crawl_opens_there_are_no_metrics(tmp_path: Path) -> None:
    async def act(cluster: Cluster) -> None:
        unopened = ClusterOwnership(cluster.session, cluster.coordinator)  # type: ignore[arg-type]
        assert unopened.metrics() == {}
        cluster.lease(A)
        assert {name: value for name, (_, value) in cluster.ownership.metrics().items()}["leases"] == 1

    run(tmp_path, act)


def test_at_the_deadline_everything_is_dropped_and_what_is_in_flight_cut_off(tmp_path: Path) -> None:
    async def act(cluster: Cluster) -> None:
        cluster.lease(A)
        hop = cluster.hop(cluster.link(1, A), A)
        gate = cluster.frontier.bench.gates[A]
        cluster.frontier.router.place(cluster.link(2, A))
        cluster.frontier.in_flight.add(hop, gate)
        cluster.frontier.postponed.add(request_to(f"http://{A}/aside"))

        async def in_flight() -> None:
            async with asyncio.timeout(100) as context_of(hop).deadline:
                await asyncio.sleep(30)

        request = asyncio.create_task(in_flight())
        await asyncio.sleep(0)
        assert cluster.ownership.may_send()
        cluster.coordinator.deadline = boot_time() - 1
        assert not cluster.ownership.may_send()
        with pytest.raises(TimeoutError):
            await request
        assert cluster.session.lease_epoch == 1
        assert (len(gate), len(cluster.frontier.queue), cluster.frontier.feeder.under_way) == (0, 0, 0)
        assert cluster.frontier.postponed.take_all() == []
        assert not cluster.ownership.owns(1)
        assert not cluster.ownership.feeds_host(A)
        assert not cluster.ownership.keeps_state_of(A)

    run(tmp_path, act)


def test_a_request_of_before_a_lost_session_is_dropped_at_its_gate(tmp_path: Path) -> None:
    async def act(cluster: Cluster) -> None:
        cluster.lease(A)
        hop = cluster.hop(cluster.link(1, A), A)
        cluster.worker.drop_session("as a test will have it")
        await cluster.worker._renew_session()
        cluster.lease(A)
        cluster.frontier.router.place(hop)
        assert len(cluster.frontier.bench.gates[A]) == 0

    run(tmp_path, act)


def test_the_end_of_a_request_that_outlived_its_lease_is_cut_to_it(tmp_path: Path) -> None:
    """Where this machine stood still, the answer was read long after it was another worker's gate."""

    async def act(cluster: Cluster) -> None:
        cluster.lease(A)
        hop = cluster.hop(cluster.link(1, A), A)
        offset = cluster.ownership._clock_offset
        context_of(hop).outcome = answer(at=T0 + 50 - offset, took=45.0)
        cluster.frontier.in_flight.add(hop, cluster.frontier.bench.gates[A])
        cluster.clock.at = T0 + 20
        cluster.worker.drop_session("as a test will have it")
        cluster.clock.at = T0 + 50
        assert not cluster.ownership.settled(hop)
        outcome = context_of(hop).outcome
        assert outcome is not None
        assert (outcome.sent_at, outcome.ended_at) == pytest.approx((T0 + 5, T0 + 20))

    run(tmp_path, act)


def test_outcomes_are_in_the_clusters_clock(tmp_path: Path) -> None:
    async def act(cluster: Cluster) -> None:
        cluster.lease(A)
        hop = cluster.hop(cluster.link(1, A), A)
        now = time.time()
        context_of(hop).outcome = answer(at=now, took=0.5)
        assert cluster.ownership.settled(hop)
        outcome = context_of(hop).outcome
        assert outcome is not None
        assert outcome.ended_at == pytest.approx(T0 + (now - time.time()), abs=5)
        assert outcome.ended_at - outcome.sent_at == pytest.approx(0.5)

    run(tmp_path, act)


def test_records_are_not_stored_once_the_lease_is_over(tmp_path: Path) -> None:
    async def act(cluster: Cluster) -> None:
        cluster.ownership.ensure_leased()
        cluster.coordinator.deadline = boot_time() - 0.001
        with pytest.raises(LeaseLost):
            cluster.ownership.ensure_leased()

    run(tmp_path, act)


def test_links_and_requests_go_to_whom_they_belong(tmp_path: Path) -> None:
    async def act(cluster: Cluster) -> None:
        cluster.lease(A)
        cluster.frontier.keeper.looked_up.add(B)
        ours, theirs = cluster.link(1, A), cluster.link(2, B)
        for link in (ours, theirs):
            cluster.frontier.router.place(link)
        assert len(cluster.frontier.bench.gates[A]) == 1
        assert theirs.id not in cluster.frontier.queue.hosts[B].out, "it stays due, for whoever leases its gate"
        cluster.worker.table.closing[A] = T0
        component = request_to(f"http://{A}/theirs", lease_epoch=cluster.session.lease_epoch)
        cluster.frontier.router.place(component)
        assert len(cluster.frontier.bench.gates[A]) == 2, "what can't be passed on uses the gate while it is ours"

    run(tmp_path, act)


@pytest.mark.parametrize(("deaths", "denied"), [(DEATHS - 1, False), (DEATHS, True)])
def test_a_link_over_which_workers_died_is_denied(tmp_path: Path, deaths: int, denied: bool) -> None:
    async def act(cluster: Cluster) -> None:
        cluster.lease(A)
        cluster.worker.table.leases[A].deaths["1"] = deaths
        denial = cluster.ownership.begin(cluster.link(1, A))
        assert (isinstance(denial, Denial) and denial.reason == "poison_link") is denied
        assert cluster.ownership.owns(1), "its record is ours to store"

    run(tmp_path, act)


def test_what_is_in_flight_is_reported_together(tmp_path: Path) -> None:
    async def act(cluster: Cluster) -> None:
        cluster.lease(A, B)
        for number, host in ((1, A), (2, B)):
            hop = cluster.hop(cluster.link(number, host), host)
            cluster.ownership.handed_out(host, hop)
        cluster.ownership.handed_out(B, request_to(f"http://{B}/robots.txt"))  # no link of anybody's
        await asyncio.sleep(0.05)
        await settled(cluster)
        assert cluster.coordinator.told("in flight") == [{A: "1", B: "2"}]

    run(tmp_path, act)


def test_new_policies_close_all_gates_and_nothing_is_taken_before_all_agree(tmp_path: Path) -> None:
    async def act(cluster: Cluster) -> None:
        cluster.lease(A)
        aside = cluster.hop(cluster.link(1, A), B)
        cluster.frontier.postponed.add(aside)
        assert not cluster.ownership.regroup(), "the router moves nothing"
        await settled(cluster)
        assert [transfer.gate for transfer, *_ in cluster.coordinator.told("send")] == [B]
        assert not cluster.worker.table.feeds(A)
        heartbeat = cluster.worker.heartbeat
        assert heartbeat is not None
        await cluster.worker.leases.take(heartbeat)
        assert cluster.coordinator.told("take") == []
        await cluster.worker.leases.give(heartbeat)
        assert cluster.coordinator.told("give") == [(A,)]

    run(tmp_path, act)


@pytest.mark.parametrize(
    ("reply", "may_end"),
    [
        (ALONE, True),
        (evolve(ALONE, others=1, busy=1), False),
        (evolve(ALONE, others=1), False),  # a report of theirs may be on its way
        (evolve(ALONE, agreed=False, others=1), False),
    ],
)
def test_a_crawl_may_end_when_nobody_has_work(tmp_path: Path, reply: object, may_end: bool) -> None:
    async def act(cluster: Cluster) -> None:
        await cluster.worker._renew_session()
        await cluster.worker._round()
        assert cluster.ownership.may_end is may_end

    run(tmp_path, act, reply=reply)


def test_it_ends_once_all_others_have_been_quiet_for_a_while(tmp_path: Path) -> None:
    async def act(cluster: Cluster) -> None:
        await cluster.worker._renew_session()
        await cluster.worker._round()
        cluster.clock.at += QUIET + 0.1
        await cluster.worker._round()
        assert cluster.ownership.may_end
        cluster.lease(A)
        cluster.frontier.in_flight.add(request_to(f"http://{A}/"), cluster.frontier.bench.gates[A])
        assert not cluster.ownership.may_end

    run(tmp_path, act, reply=evolve(ALONE, others=1))


def test_gates_with_due_links_are_leased_with_what_belongs_to_them(tmp_path: Path) -> None:
    async def act(cluster: Cluster) -> None:
        token = Ticket.of(DueLink(id=9, url=f"http://{A}/9", host=A), A).token
        cluster.worker.transfers.reserve([token], A)
        cluster.coordinator.waiting_gates = [A]
        await cluster.worker._renew_session()
        await cluster.worker._round()
        assert cluster.coordinator.told("take") == [(A,)]
        assert cluster.worker.table.has(A)
        cluster.frontier.keeper.looked_up.add(A)
        hop = cluster.hop(DueLink(id=5, url=f"http://{A}/5", host=A), A)
        cluster.frontier.router.place(hop)
        assert cluster.frontier.bench.gates[A].lane(Lane.HOP)

    run(tmp_path, act)


def test_a_redis_that_is_away_ends_the_crawl_only_after_its_patience(tmp_path: Path) -> None:
    async def act(cluster: Cluster) -> None:
        async def away() -> None:
            raise redis.ConnectionError("refused")

        await cluster.worker._try(away)
        assert cluster.engine.closed == []
        cluster.clock.at += cluster.session.config.patience + 1
        await cluster.worker._try(away)
        assert cluster.engine.closed == ["frontier_lost"]

    run(tmp_path, act)


def test_a_session_that_redis_does_not_know_is_dropped_once(tmp_path: Path) -> None:
    async def act(cluster: Cluster) -> None:
        async def over() -> None:
            raise SessionLost("restarted")

        async def noticed_before() -> None:
            cluster.worker.drop_session("restarted")
            raise SessionLost("restarted")

        await cluster.worker._try(over)
        assert (cluster.worker.losses, cluster.ownership.may_send()) == (1, False)
        await cluster.worker._try(noticed_before)
        assert cluster.worker.losses == 2
        await cluster.worker._renew_session()
        assert cluster.ownership.may_send()

    run(tmp_path, act)


def test_a_fault_of_ours_stops_no_loop(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def act(cluster: Cluster) -> None:
        async def broken() -> None:
            raise ValueError("ours")

        await cluster.worker._try(broken)

    run(tmp_path, act)
    assert "met a fault of ours and goes on" in caplog.text


def test_it_may_be_opened_while_redis_is_away(tmp_path: Path) -> None:
    async def main() -> None:
        cluster = await opened(tmp_path, coordinator=FakeCoordinator(fault=redis.ConnectionError("refused")))
        assert not cluster.ownership.may_send()
        await cluster.worker._renew_session()
        assert cluster.ownership.may_send()
        cluster.session.worker.close()

    asyncio.run(main())


@pytest.mark.parametrize("by", [3600.0, -3600.0, 5.0])
def test_where_redis_clock_is_set_all_leases_are_void_and_the_time_follows(
    tmp_path: Path, by: float, caplog: pytest.LogCaptureFixture
) -> None:
    async def act(cluster: Cluster) -> None:
        cluster.lease(A)
        gate = cluster.frontier.bench.gates[A]
        cluster.coordinator.time = TimeReading(now=T0 + by, at=T0, error=0.1)
        await cluster.worker._try(cluster.worker._renew_session)
        assert cluster.coordinator.told("void") == [None]
        assert not cluster.ownership.may_send()
        assert not cluster.ownership.feeds_host(A)
        assert cluster.session.now() == T0 + by
        assert gate.wake >= T0 + by + gate.delay
        cluster.coordinator.generation_of_join = "2"
        await cluster.worker._try(cluster.worker._renew_session)
        assert cluster.ownership.may_send()
        assert cluster.coordinator.told("void") == [None], "once"

    run(tmp_path, act)
    assert f"The cluster's clock has been set by {by:+.0f} s" in caplog.text


def test_a_session_that_a_jump_forward_has_ended_is_not_simply_begun_again(tmp_path: Path) -> None:
    """Waits in Redis are timed by the clock of before: whoever comes first makes them void, and only that one."""

    async def act(cluster: Cluster) -> None:
        cluster.worker.drop_session("Redis takes it for over")
        cluster.coordinator.time = TimeReading(now=T0 + 60, at=T0, error=0.0)
        await cluster.worker._try(cluster.worker._renew_session)
        assert not cluster.ownership.may_send()
        assert cluster.coordinator.told("void") == [None]
        await cluster.worker._try(cluster.worker._renew_session)
        assert cluster.ownership.may_send()
        assert len(cluster.coordinator.told("void")) == 1

    run(tmp_path, act)


def test_of_workers_that_see_redis_clock_set_one_begins_a_generation(tmp_path: Path) -> None:
    async def act(cluster: Cluster) -> None:
        cluster.worker.drop_session("another has begun a generation")
        cluster.coordinator.generation_of_join = "2"
        cluster.coordinator.time = TimeReading(now=T0 + 60, at=T0, error=0.0)
        await cluster.worker._try(cluster.worker._renew_session)
        assert cluster.coordinator.told("void") == []
        assert cluster.session.now() == T0 + 60
        assert cluster.ownership.may_send()

    run(tmp_path, act)


def test_a_slow_answer_of_redis_is_no_jump(tmp_path: Path) -> None:
    async def act(cluster: Cluster) -> None:
        cluster.coordinator.time = TimeReading(now=T0 + 4.0, at=T0, error=4.5)
        await cluster.worker._renew_session()
        assert cluster.session.now() == T0

    run(tmp_path, act)


def test_leases_that_redis_has_lost_end_the_session_and_the_generation(tmp_path: Path) -> None:
    async def act(cluster: Cluster) -> None:
        cluster.lease(A)
        await cluster.worker._try(cluster.worker._renew_session)
        assert (cluster.worker.losses, cluster.coordinator.told("void")) == (1, [None])
        assert not cluster.worker.table.has(A)

    run(tmp_path, act, reply=evolve(ALONE, missing=(A,)))


def test_a_lease_that_was_given_back_meanwhile_is_not_missing(tmp_path: Path) -> None:
    async def act(cluster: Cluster) -> None:
        cluster.lease(B)
        await cluster.worker._try(cluster.worker._renew_session)
        assert (cluster.worker.losses, cluster.coordinator.told("void")) == (0, [])

    run(tmp_path, act, reply=evolve(ALONE, missing=(A,)))


def test_a_worker_of_another_version_waits_and_says_so(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def act(cluster: Cluster) -> None:
        cluster.worker.drop_session("for the test")
        for _ in range(3):
            await cluster.worker._renew_session()
            await cluster.worker._round()
        assert not cluster.ownership.may_send()
        assert not cluster.ownership.may_end, "links may be due"
        cluster.coordinator.blocked_by = None
        await cluster.worker._renew_session()
        assert cluster.ownership.may_send()

    run(tmp_path, act, blocked_by="machine:1, protocol 0.1")
    assert caplog.text.count("A worker of another version is at work (machine:1, protocol 0.1; ours is") == 1


def test_a_crawl_does_not_end_while_checks_that_were_lost_elsewhere_are_to_be_begun_anew(tmp_path: Path) -> None:
    """Their links are due again when their tickets expire."""

    async def act(cluster: Cluster) -> None:
        cluster.coordinator.waiting_gates = [A]
        cluster.coordinator.standing = "lapsing"
        await cluster.worker._renew_session()
        await cluster.worker._round()
        assert not cluster.ownership.may_end
        cluster.coordinator.standing = "empty"
        await cluster.worker._round()
        assert cluster.ownership.may_end

    run(tmp_path, act)


def test_a_worker_that_found_all_gates_leased_just_now_does_not_end_before_their_holders_are_heard_of(
    tmp_path: Path,
) -> None:
    """As where all were idle until leases of a generation before were over, and another was first."""

    async def act(cluster: Cluster) -> None:
        cluster.coordinator.waiting_gates = [A]
        await cluster.worker._renew_session()
        await cluster.worker._round()
        cluster.clock.at += QUIET + 0.1
        await cluster.worker._round()
        assert not cluster.ownership.may_end
        cluster.clock.at += QUIET - 0.1
        await cluster.worker._round()
        assert not cluster.ownership.may_end
        cluster.clock.at += 0.2  # whoever has them is idle
        await cluster.worker._round()
        assert cluster.ownership.may_end

    run(tmp_path, act, reply=evolve(ALONE, others=1), standing="held")


def test_the_strictest_settings_of_all_workers_pace_everybody(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def act(cluster: Cluster) -> None:
        cluster.lease(A)
        own = PaceSettings.of(cluster.session.config)
        slower = evolve(own, delay=own.delay + 7, target_concurrency=own.target_concurrency / 2)
        eager = evolve(own, delay=0.0, target_concurrency=own.target_concurrency * 2)
        cluster.coordinator.reply = evolve(ALONE, others=2, paces=(slower.text, eager.text))
        for _ in range(2):
            await cluster.worker._renew_session()
        assert PaceSettings.of(cluster.session.config) == slower
        gate = cluster.frontier.bench.gates[A]
        assert gate.delay == slower.delay
        assert gate.wake >= cluster.clock() + slower.delay
        cluster.coordinator.reply = ALONE  # it has left
        await cluster.worker._renew_session()
        assert PaceSettings.of(cluster.session.config) == own
        assert gate.delay == own.delay

    run(tmp_path, act)
    assert caplog.text.count("the strictest hold") == 1


#: Settings from lax to strict.
FROM_LAX = [
    PaceSettings(delay=1.0, target_concurrency=2.0, max_adaptive_delay=60.0, probation=60.0),
    PaceSettings(delay=2.0, target_concurrency=1.0, max_adaptive_delay=90.0, probation=90.0),
    PaceSettings(delay=3.0, target_concurrency=0.5, max_adaptive_delay=99.0, probation=None),
]


@pytest.mark.parametrize("name", ["delay", "target_concurrency", "max_adaptive_delay", "probation"])
def test_of_each_setting_the_strictest_holds(name: str) -> None:
    for lax, strict in combinations([evolve(FROM_LAX[1], **{name: getattr(each, name)}) for each in FROM_LAX], 2):
        assert lax.strictest(strict) == strict.strictest(lax) == strict
        assert read_pace(strict.text) == strict
