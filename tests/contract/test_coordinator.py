"""What workers share in Redis: leases, hand-overs, limits. A real Redis; each test has keys of its own generation."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
import redis as sync_redis

from linkcrawl.clock import boot_time
from linkcrawl.cluster.coordinator import MARGIN, PREFIX, Coordinator, LeaseRelease, WaitingTransfer
from linkcrawl.errors import SessionLost
from linkcrawl.politeness.policy.limits import DAYS, WINDOWS, Quota, SharedLimit, Window
from linkcrawl.redis_client import connect_async
from tests.contract.test_servers import server

#: Of a lease that a test sees run out, and of one that no busy machine lets run out.
SHORT, LEASE = 1.5, 30.0


@pytest.fixture
def url() -> Iterator[str]:
    """A database of its own on the test server: nobody else resets its generation."""
    url = f"{server('TEST_REDIS_URL')}/9"
    with sync_redis.Redis.from_url(url) as client:
        client.flushdb()
        yield url
        client.flushdb()


def run(url: str, act: Callable[..., Awaitable[None]], workers: int = 2, lease: float = LEASE) -> None:
    """Run an act with so many workers that have joined."""

    async def main() -> None:
        ledgers = [Coordinator.connect(url, lease) for _ in range(workers)]
        try:
            for ledger in ledgers:
                await ledger.join({"pid": 1}, "p")
            await act(*ledgers)
        finally:
            for ledger in ledgers:
                await ledger.close()

    asyncio.run(main())


async def standings(ledger: Coordinator, *gates: str, looked: float = 0.0, **how: Any) -> list[str]:
    return [taken.standing for taken in await ledger.take([(gate, looked, 1) for gate in gates], time.time(), **how)]


def test_a_gate_has_one_holder(url: str) -> None:
    async def act(one: Coordinator, other: Coordinator) -> None:
        assert await standings(one, "a", "b") == ["taken", "taken"]
        assert await standings(other, "a", "b", "c") == ["held", "held", "taken"]
        assert await standings(one, "a", "c") == ["mine", "held"]

    run(url, act)


def test_what_is_given_back_tells_when_it_may_send(url: str) -> None:
    async def act(one: Coordinator, other: Coordinator) -> None:
        (first,) = await one.take([("a", 0.0, 1)], time.time())
        assert first.wait is None  # nobody knows what was before
        await one.give([LeaseRelease(gate="a", wait=50.0, done=False)])
        (second,) = await other.take([("a", 0.0, 1)], time.time())
        assert second.standing == "taken"
        assert second.wait is not None
        assert 20.0 < second.wait <= 50.0

    run(url, act)


def test_a_lease_that_ran_out_is_taken_over_with_nothing_known(url: str) -> None:
    async def act(one: Coordinator, other: Coordinator) -> None:
        await one.take([("a", 0.0, 1)], time.time())
        await one.report_in_flight({"a": "link"})
        for _ in range(4):
            await asyncio.sleep(SHORT / 3)
            await other.heartbeat(busy=True, load=0, policies="p")
        with pytest.raises(SessionLost):
            await one.heartbeat(busy=True, load=1, policies="p")
        (taken,) = await other.take([("a", 0.0, 1)], time.time())
        assert (taken.standing, taken.wait, taken.deaths) == ("taken", None, {"link": 1})
        with pytest.raises(SessionLost):  # whoever has lost its session changes nothing
            await one.give([LeaseRelease(gate="a", wait=0.0, done=True)])

    run(url, act, lease=SHORT)


def test_the_holder_knows_the_end_of_its_lease_before_redis_does(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """From when it asked, however long the answer took."""

    async def act(one: Coordinator) -> None:
        ask, before = one._run, boot_time()

        async def slowly(*told: Any) -> Any:
            reply = await ask(*told)
            await asyncio.sleep(0.2)
            return reply

        monkeypatch.setattr(one, "_run", slowly)
        await one.heartbeat(busy=True, load=0, policies="p")
        assert before + LEASE - MARGIN <= one.deadline <= boot_time() - 0.2 + LEASE - MARGIN

    run(url, act, workers=1)


def test_a_gate_where_nothing_is_due_is_left_until_somebody_has_looked_again(url: str) -> None:
    async def act(one: Coordinator, other: Coordinator) -> None:
        await one.take([("a", 0.0, 1)], time.time())
        await one.give([LeaseRelease(gate="a", wait=0.0, done=True)])
        assert await standings(other, "a") == ["empty"]
        assert await standings(other, "a", looked=time.time() + 3600) == ["taken"]

    run(url, act)


def test_a_gate_whose_last_checks_go_on_elsewhere_is_left_alone(url: str) -> None:
    """Its links are due until they end: workers that look for the end of a crawl would take it again and again."""

    async def act(one: Coordinator, other: Coordinator) -> None:
        later = time.time() + LEASE / 2
        await one.take([("a", 0.0, 2)], time.time())
        for token in ("token", "another"):
            await one.send(WaitingTransfer(gate="far", text=token), "a", token, token)
        await one.give([LeaseRelease(gate="a", wait=0.0, done=True)])
        assert [each.standing for each in await other.take([("a", later, 2)], time.time())] == ["empty"]
        (taken,) = await other.take([("a", later, 3)], time.time())  # one has come due besides
        assert (taken.standing, sorted(taken.tickets)) == ("taken", ["another", "token"])
        await other.give([LeaseRelease(gate="a", wait=0.0, done=False)])
        assert [each.standing for each in await one.take([("a", 0.0, 2)], time.time())] == ["empty"]
        await other.tickets(ended=[("a", "token")])
        assert [each.standing for each in await one.take([("a", 0.0, 2)], time.time())] == ["taken"]

    run(url, act)


def test_hops_wait_for_the_holder_or_the_next(url: str) -> None:
    async def act(one: Coordinator, other: Coordinator) -> None:
        await one.take([("a", 0.0, 1)], time.time())
        first, second = (WaitingTransfer(gate="a", text=f"hop {number}") for number in (1, 2))
        await other.send(first, "home", "token 1", "journey 1")
        for _ in range(2):  # an answer may get lost
            assert (await one.heartbeat(busy=True, load=1, policies="p")).notifications == ("a",)
        for _ in range(2):
            assert await one.collect(["a"]) == ([first], {})
        assert (await one.heartbeat(busy=True, load=1, policies="p")).notifications == ()
        for _ in range(2):
            assert await one.take_in([first], [("home", "token 1")]) == [True]
        assert await one.collect(["a"]) == ([], {})
        await other.send(second, "home", "token 2", "journey 2")
        await one.give([LeaseRelease(gate="a", wait=0.0, done=True)])
        assert await other.transfer_gates(10) == ["a"]
        (taken,) = await other.take([("a", 0.0, 1)], time.time())
        assert (taken.standing, taken.transfers) == ("taken", ("hop 2",))
        assert await one.take_in([second], [("home", "token 2")]) == [False]  # it is not its gate any more
        assert await other.take_in([second], [("home", "token 2")]) == [True]
        assert await other.transfer_gates(10) == []

    run(url, act)


def test_a_check_that_is_passed_on_twice_goes_once(url: str) -> None:
    """Its sender did not hear the answer, and the check was taken in meanwhile."""

    async def act(one: Coordinator, other: Coordinator) -> None:
        hop = WaitingTransfer(gate="a", text="hop")
        await one.take([("a", 0.0, 1)], time.time())
        await other.send(hop, "home", "token", "journey")
        assert await one.take_in([hop], [("home", "token")]) == [True]
        await other.send(hop, "home", "token", "journey")
        assert await one.collect(["a"]) == ([], {})
        await other.send(hop, "home", "token", "another journey")
        assert await one.collect(["a"]) == ([hop], {})

    run(url, act)


def test_a_gate_that_was_given_without_a_word_of_it_can_be_given_back(url: str) -> None:
    async def act(one: Coordinator, other: Coordinator) -> None:
        await other.send(WaitingTransfer(gate="a", text="hop"), "home", "token", "journey")
        await one.take([("a", 0.0, 1)], time.time())  # its answer is lost, with the hop in it
        assert await standings(one, "a") == ["mine"]
        for _ in range(2):
            await one.give([LeaseRelease(gate="a", wait=None, done=False)])
        (taken,) = await other.take([("a", 0.0, 1)], time.time())
        assert (taken.standing, taken.wait, taken.transfers) == ("taken", None, ("hop",))

    run(url, act)


def test_a_check_that_is_out_is_known_to_its_home_until_it_has_ended(url: str) -> None:
    async def act(one: Coordinator, other: Coordinator) -> None:
        await one.send(WaitingTransfer(gate="far", text="hop"), "home", "token", "journey")
        (home,) = await other.take([("home", 0.0, 2)], time.time())
        assert home.tickets == ("token",)
        both = [("home", "token"), ("home", "another")]
        assert await one.tickets(renewed=both[:1], watched=both) == ([True], [True, False])
        await one.tickets(ended=both[:1])
        assert await one.tickets(renewed=both[:1], watched=both[:1]) == ([False], [False])

    run(url, act)


def test_a_gate_that_is_wanted_goes_to_who_wants_it(url: str) -> None:
    async def act(one: Coordinator, other: Coordinator, third: Coordinator) -> None:
        await one.take([("a", 0.0, 1)], time.time())
        assert await standings(other, "a", wanted=True) == ["held"]
        assert (await one.heartbeat(busy=True, load=1, policies="p")).notifications == ("a",)
        first = one.session < other.session
        assert await one.collect(["a"]) == ([], {"a": not first})
        await one.give([LeaseRelease(gate="a", wait=0.0, done=False)])
        assert await standings(third, "a") == ["held"]
        assert await standings(other, "a", wanted=True) == ["taken"]

    run(url, act, workers=3)


def test_hosts_of_one_address_share_a_gate_for_all_workers_unless_strangers_live_there(url: str) -> None:
    async def act(one: Coordinator, other: Coordinator) -> None:
        museum = [("a.museum", "museum.org", "192.0.2.1"), ("b.museum", "museum.org", "192.0.2.1")]
        assert await one.place(museum, 2) == {"a.museum": "a.museum", "b.museum": "a.museum"}
        assert await other.place([museum[1]], 2) == {"b.museum": "a.museum"}
        assert await other.places(["b.museum", "new"]) == {"b.museum": "a.museum"}
        cdn = [(f"{n}.org", f"{n}.org", "192.0.2.2") for n in range(4)]
        placed = await other.place(cdn, 2)
        assert placed == {"0.org": "0.org", "1.org": "0.org", "2.org": "2.org", "3.org": "3.org"}
        assert await one.place([("nowhere", "nowhere", "")], 2) == {"nowhere": "nowhere"}

    run(url, act)


async def wait_for(worker: Coordinator, limits: list[SharedLimit], permit: str, at: float) -> float:
    """Seconds until all the limits allow a start; 0: the permit is granted."""
    return max(await worker.acquire_permit(limits, permit, at))


def test_a_limit_lets_one_start_at_a_time(url: str) -> None:
    async def act(one: Coordinator, other: Coordinator) -> None:
        now = time.time()
        slow = SharedLimit(name="slow", delay=1.0, rule="r")
        quick = SharedLimit(name="quick", rule="r")
        wait = await wait_for(one, [slow], "check", now)
        assert 0 < wait <= 1.0  # unknown: one full delay
        await asyncio.sleep(wait + 0.05)
        assert await wait_for(one, [slow, quick], "check", now) == 0
        assert await wait_for(other, [slow], "check", now) > 0  # not until the first has begun
        assert await wait_for(other, [quick, slow], "check", now) > 0
        await one.settle_permit([slow, quick], "check", now, used=True)
        wait = await wait_for(other, [slow], "check", now)
        assert 0 < wait <= 1.0
        await asyncio.sleep(wait + 0.05)
        assert await wait_for(other, [slow], "check", now) == 0
        for _ in range(2):  # an answer may get lost
            await other.settle_permit([slow], "check", now, used=False)  # it did not begin after all
        assert await wait_for(one, [slow], "check", now) == 0
        await other.settle_permit([slow], "check", now, used=False)  # a word of before, come late
        assert await wait_for(other, [slow], "check", now) > 0
        assert await wait_for(one, [slow], "another check", now) > 0

    run(url, act)


def test_a_check_whose_worker_died_may_have_begun(url: str) -> None:
    async def act(one: Coordinator, other: Coordinator) -> None:
        now = time.time()
        limit = SharedLimit(name="none", rule="r")
        assert await wait_for(one, [limit], "check", now) == 0
        for _ in range(4):
            await asyncio.sleep(SHORT / 3)
            await other.heartbeat(busy=True, load=0, policies="p")
        wait = await wait_for(other, [SharedLimit(name="none", delay=1.0, rule="r")], "check", now)
        assert 0.9 < wait <= 1.0  # from now, whenever it was
        assert await wait_for(other, [limit], "check", now) > 0
        await asyncio.sleep(wait + 0.05)
        await other.join({}, "p")
        assert await wait_for(other, [limit], "check", now) == 0

    run(url, act, lease=SHORT)


@pytest.mark.parametrize("window", WINDOWS, ids=lambda window: window.key)
def test_a_limit_has_its_quota_in_each_window(url: str, window: Window) -> None:
    async def act(one: Coordinator, other: Coordinator) -> None:
        limit = SharedLimit(name="c", rule="r", quotas=(Quota(window=window, most=2),))
        at = time.time() + window.seconds  # the next window: it can't end while the test runs
        for worker in (one, other, one):
            assert await wait_for(worker, [limit], "check", at) == 0
            await worker.settle_permit([limit], "check", at, used=worker is not other)  # what is returned doesn't count
        wait = await wait_for(other, [limit], "check", at)
        assert wait == pytest.approx(window.end(window.number(at)) - time.time(), abs=5)
        assert await wait_for(other, [limit], "check", at + window.seconds) == 0

    run(url, act)


def test_the_quotas_of_all_limits_hold_together(url: str) -> None:
    async def act(one: Coordinator) -> None:
        at = time.time() + DAYS.seconds
        few = SharedLimit(name="few", rule="r", quotas=(Quota(window=DAYS, most=1),))
        many = SharedLimit(name="many", rule="r")
        assert await wait_for(one, [few, many], "check", at) == 0
        await one.settle_permit([few, many], "check", at, used=True)
        assert await wait_for(one, [few, many], "check", at) > 0
        waits = await one.acquire_permit([few, many], "check", at)
        assert (waits[0] > 0, waits[1]) == (True, 0.0), "the other limit's checks don't wait for this one"
        assert await wait_for(one, [many], "check", at) == 0

    run(url, act, workers=1)


def test_workers_with_other_policies_are_noticed(url: str) -> None:
    async def act(one: Coordinator, other: Coordinator) -> None:
        assert (await one.heartbeat(busy=False, load=3, policies="p")).agreed
        await other.heartbeat(busy=True, load=2, policies="q")
        beat = await one.heartbeat(busy=False, load=3, policies="p")
        assert (beat.agreed, beat.others, beat.busy, beat.load) == (False, 1, 1, 2)
        await other.leave()
        assert (await one.heartbeat(busy=False, load=3, policies="p")).others == 0

    run(url, act)


def test_scripts_that_were_loaded_in_part_are_no_restart(url: str) -> None:
    """Whoever loaded them after a restart did not come to the end of it."""

    async def act(one: Coordinator, other: Coordinator) -> None:
        client = connect_async(url, "LINKCRAWL_FRONTIER")
        await client.script_flush()
        with pytest.raises(SessionLost):
            await one.heartbeat(busy=True, load=0, policies="p")
        await one.join({}, "p")
        await client.script_flush()
        await client.script_load(one._sources["heartbeat"])
        assert (await one.take([("a", 0.0, 1)], time.time()))[0].standing == "shut"  # of the restart before
        assert await client.get(f"{PREFIX}generation") == one.generation
        await client.aclose()

    run(url, act)


def test_a_redis_that_was_restarted_voids_all_that_it_holds(url: str) -> None:
    async def act(one: Coordinator, other: Coordinator) -> None:
        await one.take([("a", 0.0, 1)], time.time())
        await one.give([LeaseRelease(gate="a", wait=0.0, done=False)])
        with sync_redis.Redis.from_url(url) as client:
            client.script_flush()  # what a restart leaves of scripts, with all its data back
            with pytest.raises(SessionLost):
                await other.heartbeat(busy=True, load=0, policies="p")
            with pytest.raises(SessionLost):
                await one.heartbeat(busy=True, load=0, policies="p")
            await one.join({}, "p")
            # Who has not noticed may still use what it leased before.
            while (taken := (await one.take([("a", 0.0, 1)], time.time()))[0]).standing == "shut":
                assert boot_time() < other.deadline + MARGIN + 1.0
                await asyncio.sleep(0.05)
                await one.heartbeat(busy=True, load=0, policies="p")
            assert boot_time() > other.deadline
            assert (taken.standing, taken.wait) == ("taken", None)
            assert client.get(f"{PREFIX}generation") == one.generation.encode()

    run(url, act, lease=4.0)


def test_a_new_generation_makes_all_leases_void(url: str) -> None:
    """As when Redis' clock has been set. The first worker that notices begins it, and no other."""

    async def act(one: Coordinator, other: Coordinator) -> None:
        await one.take([("a", 0.0, 1)], time.time())
        await one.begin_generation()
        with pytest.raises(SessionLost):
            await other.begin_generation()
        for worker in (one, other):
            with pytest.raises(SessionLost):
                await worker.heartbeat(busy=True, load=0, policies="p")
        before = one.generation
        reading = await one.join({}, "p")
        assert int(one.generation) == int(before) + 1
        assert abs(reading.now - time.time()) < 5 + reading.error
        assert await standings(one, "a") == ["shut"]

    run(url, act)


def test_a_wait_is_not_cut_by_a_clock_of_redis_that_was_set_forward(url: str) -> None:
    """By a minute since the wait was reported; the taker has not noticed yet."""

    async def act(one: Coordinator, other: Coordinator) -> None:
        await one.take([("a", 0.0, 1)], time.time())
        await one.give([LeaseRelease(gate="a", wait=50.0, done=False)])
        (taken,) = await other.take([("a", 0.0, 1)], time.time() - 60)
        assert taken.wait is not None
        assert taken.wait > 60.0

    run(url, act)
