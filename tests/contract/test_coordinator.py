"""What workers share in Redis: leases, hand-overs, limits. A real Redis; each test has keys of its own generation."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import redis as sync_redis

from linkcrawl.clock import boot_time
from linkcrawl.cluster.coordinator import (
    MARGIN,
    PREFIX,
    Coordinator,
    HostAddress,
    JoinReply,
    LeaseRelease,
    WaitingTransfer,
)
from linkcrawl.errors import SessionLost
from linkcrawl.politeness.policy.limits import DAYS, WINDOWS, Quota, SharedLimit, Window
from linkcrawl.units import DAY
from tests.contract.test_servers import redis_database
from tests.crawl.cluster_kit import running_redis

#: Of a lease that a test sees run out, and of one that no busy machine lets run out.
SHORT, LEASE = 1.5, 30.0


@pytest.fixture
def url() -> Iterator[str]:
    """A database of its own on the test server: nobody else resets its generation."""
    url = redis_database()
    with sync_redis.Redis.from_url(url) as client:
        client.flushdb()
        yield url
        client.flushdb()


async def join(ledger: Coordinator, pace: str = "{}", protocol: str = "1") -> JoinReply:
    return await ledger.join({"host": "machine", "pid": 1}, policies="p", pace=pace, protocol=protocol)


def state(ledger: Coordinator) -> str:
    """The key of what Redis knows of the generation itself."""
    return f"{PREFIX}{ledger.generation}:state"


def run(
    url: str,
    act: Callable[..., Awaitable[None]],
    workers: int = 2,
    lease: float = LEASE,
    *,
    open_at_once: bool = True,
) -> None:
    """Run an act with so many workers that have joined. `open_at_once`: as where a generation began long ago."""

    async def main() -> None:
        ledgers = [Coordinator.connect(url, lease) for _ in range(workers)]
        try:
            for ledger in ledgers:
                await join(ledger)
            if open_at_once:
                await ledgers[0]._client.hset(state(ledgers[0]), "shut", 0)  # type: ignore[misc]
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


def test_a_gate_whose_check_was_lost_with_its_worker_is_no_empty_one(url: str) -> None:
    """Its link is due, and begun anew when the ticket expires: nobody ends a crawl before."""

    async def act(one: Coordinator, other: Coordinator) -> None:
        await one.take([("a", 0.0, 1)], time.time())
        await one.send(WaitingTransfer(gate="far", text="hop"), "a", "token", "key")
        await one.give([LeaseRelease(gate="a", wait=0.0, done=True)])
        assert await standings(one, "a") == ["empty"]
        await one._client.zincrby(f"{PREFIX}{one.generation}:tickets:a", -LEASE * 1000 - 1, "token")
        assert await standings(one, "a") == ["lapsing"]
        await other.tickets(renewed=[("a", "token")])
        assert await standings(one, "a") == ["empty"]

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


async def placed(ledger: Coordinator, *hosts: HostAddress, few: int = 4, policies: str = "p") -> dict[str, str]:
    """The gates of those that have one."""
    found = (await ledger.place(hosts, few=few, policies=policies)).found
    return {host: gate for host, (gate, _) in found.items()}


def at(host: str, address: str | None, group: str = "") -> HostAddress:
    return HostAddress(host=host, domain=".".join(host.split(".")[-2:]), address=address, group=group)


def test_hosts_of_one_address_share_a_gate_for_all_workers_unless_strangers_live_there(url: str) -> None:
    async def act(one: Coordinator, other: Coordinator) -> None:
        museum = [at(f"{name}.museum.org", "1") for name in ("a", "b")]
        assert await placed(one, *museum, few=2) == {host.host: "a.museum.org" for host in museum}
        assert await placed(other, museum[1], few=2) == {"b.museum.org": "a.museum.org"}
        asked = await other.place([at("b.museum.org", None), at("new.org", None)], few=2, policies="p")
        assert (asked.found, asked.new) == ({"b.museum.org": ("a.museum.org", "1")}, {"new.org"})
        cdn = [at(f"{number}.org", "2") for number in range(4)]
        found = await placed(other, *cdn, few=2)
        assert found == {"0.org": "0.org", "1.org": "0.org", "2.org": "2.org", "3.org": "3.org"}
        assert await placed(one, at("nowhere.org", "")) == {"nowhere.org": "nowhere.org"}

    run(url, act)


def test_a_name_that_is_looked_up_late_moves_when_nobody_else_leases_its_gate(url: str) -> None:
    async def act(one: Coordinator, other: Coordinator) -> None:
        assert await placed(one, at("a.org", "1"), at("late.org", "")) == {"a.org": "a.org", "late.org": "late.org"}
        assert await standings(one, "late.org") == ["taken"]
        assert await placed(other, at("late.org", "1")) == {"late.org": "late.org"}, "its holder may be sending there"
        for _ in range(2):  # an answer may get lost
            assert await placed(one, at("late.org", "1")) == {"late.org": "a.org"}
        assert await placed(other, at("late.org", None)) == {"late.org": "a.org"}
        assert await placed(one, at("late.org", "")) == {"late.org": "a.org"}, "not found just now is no move"

    run(url, act)


def test_whoever_leases_a_gate_hears_with_it_which_hosts_have_left(url: str) -> None:
    """What a worker has heard of hosts may be old; a gate that a host has left it can't lease without hearing of it."""

    async def act(one: Coordinator, other: Coordinator, third: Coordinator) -> None:
        for worker in (one, other):
            await placed(worker, at("a.org", "1"), at("b.org", "1"), at("c.org", "2"))
        assert await standings(one, "a.org") == ["taken"]
        assert await placed(one, at("b.org", "2")) == {"b.org": "c.org"}
        assert other.take_moved() == []
        assert await standings(other, "a.org") == ["held"]
        await one.give([LeaseRelease(gate="a.org", wait=0.0, done=False)])
        assert await standings(other, "a.org", looked=time.time() + 9) == ["taken"]
        assert other.take_moved() == ["host b.org"]
        assert await standings(other, "c.org") == ["taken"]
        assert other.take_moved() == [], "once"
        await placed(third, at("b.org", None))
        assert await standings(third, "x") == ["taken"]
        assert third.take_moved() == [], "it has asked since"

    run(url, act, workers=3)


def test_a_group_takes_over_the_address_of_one_of_its_hosts_once_the_gate_there_is_given_back(url: str) -> None:
    async def act(one: Coordinator, other: Coordinator) -> None:
        await placed(one, at("lone.org", "1"))
        assert await standings(one, "lone.org") == ["taken"]
        groups = at("a.group.org", "1", "policy g")
        waits = await other.place([groups], few=4, policies="p")
        assert (waits.found, waits.new, waits.closing) == ({}, frozenset(), ())
        assert (await one.heartbeat(busy=True, load=1, policies="p")).notifications == ("lone.org",)
        assert dict((await one.collect(["lone.org"]))[1]).keys() == {"lone.org"}, "another session wants it"
        assert (await one.place([groups], few=4, policies="p")).closing == ("lone.org",)
        await one.give([LeaseRelease(gate="lone.org", wait=0.0, done=False)])
        assert await placed(other, groups) == {"a.group.org": "policy g"}
        assert await standings(one, "lone.org") in (["held"], ["empty"], ["taken"])
        assert one.take_moved() == ["gate lone.org"]
        assert await placed(one, at("lone.org", None), at("late.net", "1")) == dict.fromkeys(
            ["lone.org", "late.net"], "policy g"
        )
        other_file = await placed(one, at("lone.org", None), policies="q")
        assert other_file == {"lone.org": "lone.org"}, "groups are those of the policies in force"

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
        await join(other)
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


def test_scripts_that_redis_has_forgotten_are_no_restart(url: str) -> None:
    async def act(one: Coordinator) -> None:
        assert await standings(one, "a") == ["taken"]
        await one._client.script_flush()
        assert await standings(one, "a") == ["mine"]

    run(url, act, workers=1)


async def shut_until_all_leases_are_over(one: Coordinator, before: float) -> None:
    """Nobody leases anything before the leases of a generation before are over: `before`, by the steady clock."""
    while (taken := (await one.take([("a", 0.0, 1)], time.time()))[0]).standing == "shut":
        assert boot_time() < before + MARGIN + 1.0
        await asyncio.sleep(0.05)
        await one.heartbeat(busy=True, load=0, policies="p")
    assert boot_time() > before
    assert (taken.standing, taken.wait) == ("taken", None)


Damage = Callable[[sync_redis.Redis, Coordinator], object]

#: What makes a generation void, by name.
DAMAGES: dict[str, Damage] = {
    "a restart with its data, or a replica that took over": lambda client, one: client.hset(
        state(one), "run_id", "another"
    ),
    "emptied": lambda client, one: client.flushdb(),
    **{
        f"{name} evicted": lambda client, one, name=name: client.delete(f"{PREFIX}{one.generation}:{name}")  # type: ignore[misc]
        for name in ("workers", "gates", "places", "addresses", "representatives", "groups", "moves", "state")
    },
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_what_redis_has_lost_makes_all_that_it_holds_void(url: str, damage: Damage) -> None:
    """For every worker at its next call; nobody leases anything on the strength of it in between."""

    async def act(one: Coordinator, other: Coordinator) -> None:
        await placed(one, at("a.org", "1"), at("x.group.org", "2", "policy g"))
        await placed(one, at("a.org", "2"))
        await one.take([("a", 0.0, 1)], time.time())
        await one.give([LeaseRelease(gate="a", wait=0.0, done=False)])
        await one.take([("b", 0.0, 1)], time.time())
        before = one.generation
        with sync_redis.Redis.from_url(url) as client:
            damage(client, one)
        for worker in (other, one):
            with pytest.raises(SessionLost):
                await worker.take([("a", 0.0, 1)], time.time())
        await join(other)
        assert int(other.generation) > int(before)
        assert await standings(other, "a") == ["shut"]
        await join(one)  # the same generation, and no second one
        assert one.generation == other.generation

    run(url, act)


def test_a_redis_that_is_full_changes_nothing_by_halves(tmp_path: Path) -> None:
    """A script that it breaks off in the middle would look like keys that were lost."""

    async def act(one: Coordinator, other: Coordinator) -> None:
        await one.take([("a", 0.0, 1)], time.time())
        with full.client as client:
            client.config_set("maxmemory", 1)
            try:
                calls: list[Callable[[], Awaitable[object]]] = [
                    lambda: one.give([LeaseRelease(gate="a", wait=1.0, done=True)]),
                    lambda: one.heartbeat(busy=True, load=1, policies="p"),
                    lambda: other.take([("b", 0.0, 1)], time.time()),
                    other.leave,
                    lambda: join(Coordinator(one._client, LEASE)),
                ]
                for call in calls:
                    with pytest.raises(sync_redis.RedisError, match="OOM"):
                        await call()
            finally:
                client.config_set("maxmemory", 0)
        assert await standings(one, "a") == ["mine"]
        assert (await one.heartbeat(busy=True, load=1, policies="p", held=["a"])).others == 1

    with running_redis(tmp_path) as full:
        run(full.url, act)


def test_a_worker_that_is_first_at_an_empty_redis_waits_for_leases_that_it_knows_nothing_of(url: str) -> None:
    async def act(one: Coordinator, new: Coordinator) -> None:
        await one.take([("a", 0.0, 1)], time.time())
        with sync_redis.Redis.from_url(url) as client:
            client.flushdb()
        await join(new)
        await shut_until_all_leases_are_over(new, one.deadline)
        with pytest.raises(SessionLost):
            await one.heartbeat(busy=True, load=1, policies="p")

    run(url, act, lease=SHORT)


def test_the_longest_lease_of_a_generation_that_is_void_is_waited_for(url: str) -> None:
    async def act(one: Coordinator) -> None:
        brief = Coordinator.connect(url, SHORT)
        await one._client.hset(state(one), "run_id", "another")  # type: ignore[misc]
        await join(brief)
        shut = float(await one._client.hget(state(brief), "shut") or 0)  # type: ignore[misc]
        assert shut / 1000 > one.deadline - boot_time() + time.time() - 1.0
        await brief.close()

    run(url, act, workers=1)


def test_a_redis_that_is_behind_what_a_worker_knows_begins_a_generation_under_a_new_number(url: str) -> None:
    """As where the server of before a failover is asked again, with all that it had."""

    async def act(one: Coordinator, other: Coordinator) -> None:
        old = one.generation
        one.generation = str(int(old) + 10**9)  # of the server in between
        with pytest.raises(SessionLost):
            await one.heartbeat(busy=True, load=0, policies="p")
        known = int(one.generation)
        await join(one)
        assert int(one.generation) > known
        with pytest.raises(SessionLost):
            await other.heartbeat(busy=True, load=0, policies="p")

    run(url, act)


def test_a_heartbeat_compares_what_is_held_with_what_redis_knows(url: str) -> None:
    async def act(one: Coordinator, other: Coordinator) -> None:
        await one.take([("a", 0.0, 1), ("b", 0.0, 1)], time.time())
        assert (await one.heartbeat(busy=True, load=2, policies="p", held=["a", "b"])).missing == ()
        await one._client.hset(f"{PREFIX}{one.generation}:gates", "a", other.session)  # type: ignore[misc]
        assert (await one.heartbeat(busy=True, load=2, policies="p", held=["a", "b"])).missing == ("a",)
        before = one.generation
        one.declare_void()
        await join(one)
        assert int(one.generation) > int(before)
        assert await standings(one, "a") == ["shut"]

    run(url, act)


def test_workers_of_another_protocol_wait_until_none_of_this_one_is_left(url: str) -> None:
    async def act(one: Coordinator, other: Coordinator) -> None:
        newer = Coordinator.connect(url, LEASE)
        assert (await join(newer, protocol="2")).blocked_by == "machine:1, protocol 1"
        assert await standings(one, "a") == ["taken"]
        await one.leave()
        assert (await join(newer, protocol="2")).blocked_by is not None
        await other.leave()
        assert (await join(newer, protocol="2")).blocked_by is None
        assert (await join(one)).blocked_by == "machine:1, protocol 2"
        await newer.close()

    run(url, act)


def test_workers_know_the_settings_of_others(url: str) -> None:
    async def act(one: Coordinator, other: Coordinator) -> None:
        third = Coordinator.connect(url, LEASE)
        await join(third, pace="slow")
        assert set((await one.heartbeat(busy=True, load=0, policies="p")).paces) == {"{}", "slow"}
        await third.leave()
        assert (await one.heartbeat(busy=True, load=0, policies="p")).paces == ("{}",)
        await third.close()

    run(url, act)


def test_nothing_that_a_crawl_of_weeks_needs_expires_under_it(url: str) -> None:
    """Days of Redis' time, by shortening what is left of every key."""

    def pass_by(client: sync_redis.Redis, seconds: float) -> None:
        for name in client.scan_iter(f"{PREFIX}*"):
            left = client.pttl(name)
            if left >= 0:
                client.pexpire(name, max(0, left - round(seconds * 1000)))

    async def act(one: Coordinator, other: Coordinator) -> None:
        await placed(one, at("a.org", "1"), at("b.org", "1"), at("m.org", "2"), at("x.group.org", "2", "policy g"))
        await placed(one, at("m.org", "1"))
        await one.take([("a", 0.0, 1), ("c", 0.0, 1)], time.time())
        await one.give([LeaseRelease(gate="c", wait=7 * DAY, done=True)])
        with sync_redis.Redis.from_url(url) as client:
            kept = {str(name) for name in client.scan_iter(f"{PREFIX}*")}
            for _ in range(10):
                for worker in (one, other):
                    await worker.heartbeat(busy=True, load=1, policies="p", held=["a"] if worker is one else [])
                pass_by(client, 2.9 * DAY)
            assert {str(name) for name in client.scan_iter(f"{PREFIX}*")} == kept
        assert await placed(one, at("m.org", None), at("b.org", None)) == {"m.org": "a.org", "b.org": "a.org"}
        assert await placed(one, at("d.org", "1")) == {"d.org": "a.org"}, "its address is still led by a"
        assert await placed(one, at("e.org", "2")) == {"e.org": "policy g"}
        assert await standings(other, "a", "c") == ["held", "empty"]
        with sync_redis.Redis.from_url(url) as client:  # nobody for three days
            pass_by(client, 3.1 * DAY)
        await join(other)
        assert await standings(other, "a") == ["shut"]

    run(url, act)


def test_a_generation_that_one_worker_declares_void_is_void_for_all(url: str) -> None:
    """As when Redis' clock has been set. The first worker that notices begins another, and only that one."""

    async def act(one: Coordinator, other: Coordinator) -> None:
        await one.take([("a", 0.0, 1)], time.time())
        before = one.generation
        for worker in (one, other):
            worker.declare_void()
            reply = await join(worker)
            assert abs(reply.time.now - time.time()) < 5 + reply.time.error
        assert int(one.generation) > int(before)
        assert other.generation == one.generation
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
