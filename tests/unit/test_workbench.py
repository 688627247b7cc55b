"""The workbench on a virtual clock: no gate goes early, none waits in vain, none is forgotten."""

from __future__ import annotations

import heapq
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from linkcrawl.frontier.gates.workbench import GateState, Lane, Workbench


def names(bench: Workbench[str], now: float) -> list[str]:
    """Everything that may go now, by task."""
    out = []
    while (taken := bench.take(now)) is not None:
        out.append(taken[1])
    return out


def test_a_gate_hands_out_one_task_until_it_is_released():
    bench: Workbench[str] = Workbench()
    gate = bench.gate("a")
    bench.offer(gate, "1")
    bench.offer(gate, "2")
    assert names(bench, 0) == ["1"]
    assert bench.next_wake() is None
    bench.release(gate, 5)
    assert names(bench, 4.999) == []
    assert bench.next_wake() == 5
    assert names(bench, 5) == ["2"]


def test_hops_go_before_on_demand_links_and_those_before_others():
    bench: Workbench[str] = Workbench()
    gate = bench.gate("a")
    for lane in (Lane.LINK, Lane.ON_DEMAND, Lane.HOP):
        bench.offer(gate, lane.name, lane=lane)
    bench.offer(gate, "put back", lane=Lane.LINK, first=True)
    order = []
    for now in range(4):
        order += names(bench, now)
        bench.release(gate, now)
    assert order == ["HOP", "ON_DEMAND", "put back", "LINK"]


def test_a_gate_waits_for_its_first_wake():
    bench: Workbench[str] = Workbench()
    bench.offer(bench.gate("a", wake=3), "1")
    assert names(bench, 2) == []
    assert bench.next_wake() == 3
    assert names(bench, 3) == ["1"]


def test_the_gate_with_the_most_time_of_work_left_goes_first():
    bench: Workbench[str] = Workbench()
    for name, delay, backlog in (("small", 1, 3), ("large", 1, 50), ("slow", 60, 2)):
        gate = bench.gate(name)
        gate.delay, gate.backlog = delay, backlog
        bench.offer(gate, name)
    assert names(bench, 0) == ["slow", "large", "small"]


def test_a_silenced_gate_that_was_ready_waits_again():
    bench: Workbench[str] = Workbench()
    gate = bench.gate("a")
    bench.offer(gate, "1")
    other = bench.gate("b")
    bench.offer(other, "2")
    assert bench.take(0) is not None
    left = next(g for g in (gate, other) if g.state is not GateState.IN_FLIGHT)
    bench.retime(left, 10)
    assert names(bench, 9) == []
    assert len(names(bench, 10)) == 1


def test_a_task_that_sends_nothing_leaves_its_limits_to_the_next():
    bench: Workbench[str] = Workbench()
    bench.set_limit("c", 10)
    for name in ("a", "b"):
        bench.offer(bench.gate(name), name, limits=("c",))
    first = bench.take(0)
    assert first is not None
    assert bench.take(0) is None
    bench.refund(("c",), 0)
    second = bench.take(0)
    assert second is not None
    assert {first[1], second[1]} == {"a", "b"}
    bench.offer(bench.gate("d"), "d", limits=("c",))
    assert names(bench, 9.9) == []
    assert names(bench, 10) == ["d"]


def test_a_limit_counts_from_when_its_task_is_sent():
    bench: Workbench[str] = Workbench()
    bench.set_limit("c", 10)
    for name in ("a", "b"):
        bench.offer(bench.gate(name), name, limits=("c",))
    assert bench.take(0) is not None
    bench.commit(("c",), 0.5)
    assert names(bench, 10) == []
    assert bench.next_wake() == 10.5
    assert len(names(bench, 10.5)) == 1


def test_a_limit_spaces_tasks_over_gates_start_to_start():
    bench: Workbench[str] = Workbench()
    bench.set_limit("collection", 2.0)
    for name in "abc":
        bench.offer(bench.gate(name), name, limits=("collection",))
    went = {}
    for tick in range(100):
        now = tick / 10
        for task in names(bench, now):
            went[task] = now
    assert sorted(went.values()) == [0, 2, 4]


def test_a_task_that_a_limit_holds_back_lets_others_of_its_gate_pass():
    bench: Workbench[str] = Workbench()
    bench.set_limit("collection", 10.0)
    bench.offer(bench.gate("a"), "first", limits=("collection",))
    assert names(bench, 0) == ["first"]
    gate = bench.gate("b")
    bench.offer(gate, "held", limits=("collection",))
    bench.offer(gate, "free")
    assert names(bench, 1) == ["free"]
    bench.release(gate, 2)
    assert names(bench, 2) == []
    assert bench.next_wake() == 10
    assert names(bench, 10) == ["held"]


def test_a_woken_gate_that_takes_another_task_passes_the_limits_turn_on():
    bench: Workbench[str] = Workbench()
    bench.set_limit("collection", 10.0)
    bench.offer(bench.gate("first"), "first", limits=("collection",))
    assert names(bench, 0) == ["first"]
    for name in "ab":
        bench.offer(bench.gate(name), name, limits=("collection",))
    assert names(bench, 1) == []
    bench.offer(bench.gate("a"), "hop", lane=Lane.HOP)
    bench.retime(bench.gate("a"), 10)
    assert sorted(names(bench, 10)) == ["b", "hop"]


def test_a_woken_gate_that_is_emptied_leaves_the_limits_turn_to_the_next():
    bench: Workbench[str] = Workbench()
    bench.set_limit("collection", 10.0)
    bench.offer(bench.gate("first"), "first", limits=("collection",))
    assert names(bench, 0) == ["first"]
    for name in "ab":
        bench.offer(bench.gate(name), name, limits=("collection",))
    assert names(bench, 1) == []
    for task in ("large 1", "large 2"):
        bench.offer(bench.gate("large", wake=10), task)
    taken = bench.take(10)
    assert taken is not None
    assert taken[1] == "large 1"  # by now the limit has woken one of the others
    woken = [gate for gate in bench.gates.values() if gate.woken_by is not None]
    assert [task for _, task in bench.drain(woken[0])] == [woken[0].name]
    assert names(bench, 10) == [name for name in "ab" if name != woken[0].name]


@st.composite
def workloads(draw: st.DrawFn) -> list[tuple[str, float, float, int, tuple[str, ...]]]:
    """Gates with delay, service time, links, and the limits of their links."""
    count = draw(st.integers(1, 8))
    number = st.floats(0.0, 5.0, allow_nan=False)
    limits = st.sampled_from([(), (), ("c1",), ("c2",), ("c1", "c2")])
    return [(f"g{i}", draw(number), draw(number), draw(st.integers(1, 8)), draw(limits)) for i in range(count)]


@settings(max_examples=200, deadline=None)
@given(workloads(), st.integers(1, 4))
def test_every_task_goes_once_and_no_delay_is_undercut(load, permits):
    bench: Workbench[str] = Workbench()
    limit_delays = {"c1": 1.5, "c2": 0.5}
    for limit, delay in limit_delays.items():
        bench.set_limit(limit, delay)
    for name, delay, _, links, limits in load:
        gate = bench.gate(name)
        gate.delay = delay
        for i in range(links):
            bench.offer(gate, f"{name}/{i}", limits=limits)
    by_name = {name: (delay, service, limits) for name, delay, service, _, limits in load}
    now, flying, went = 0.0, [], []
    ended: dict[str, float] = {}
    started: dict[str, float] = {}
    while True:
        while flying and flying[0][0] <= now:
            end, name = heapq.heappop(flying)
            ended[name] = end
            bench.release(bench.gate(name), end + by_name[name][0])
        while len(flying) < permits and (taken := bench.take(now)) is not None:
            gate, task = taken
            delay, service, limits = by_name[gate.name]
            assert now >= ended.get(gate.name, float("-inf")) + delay
            assert gate.name not in [name for _, name in flying]
            for limit in limits:
                assert now >= started.get(limit, float("-inf")) + limit_delays[limit]
                started[limit] = now
            went.append(task)
            heapq.heappush(flying, (now + service, gate.name))
        wake = bench.next_wake()
        times = [flying[0][0]] if flying else []
        if wake is not None and len(flying) < permits:
            assert wake > now, "something may go, and nothing went"
            times.append(wake)
        if not times:
            break
        now = min(times)
    assert Counter(went) == Counter({f"{name}/{i}": 1 for name, _, _, links, _ in load for i in range(links)})


@pytest.mark.parametrize("hosts", [2000])
def test_a_skewed_load_in_the_worst_order_ends_at_its_lower_bound(hosts):
    """Links in host order, the largest host last, fewer permits than hosts: the largest host must not wait."""
    bench: Workbench[str] = Workbench()
    sizes = {f"h{i}": max(1, 4000 // (hosts - i)) for i in range(hosts)}
    service, delay, permits = 0.05, 1.0, 200
    for name, size in sizes.items():
        gate = bench.gate(name)
        gate.delay, gate.backlog = delay, size - 1
        bench.offer(gate, name)
    bound = max(
        max((n - 1) * (delay + service) + service for n in sizes.values()), sum(sizes.values()) * service / permits
    )
    left = dict(sizes)
    now, flying = 0.0, []
    while True:
        while flying and flying[0][0] <= now:
            end, name = heapq.heappop(flying)
            gate = bench.gate(name)
            left[name] -= 1
            if left[name]:
                gate.backlog = left[name] - 1
                bench.offer(gate, name)
            bench.release(gate, end + delay)
        while len(flying) < permits and (taken := bench.take(now)) is not None:
            heapq.heappush(flying, (now + service, taken[0].name))
        wake = bench.next_wake()
        times = [flying[0][0]] if flying else []
        if wake is not None and len(flying) < permits:
            times.append(max(now, wake))
        if not times:
            break
        now = min(times)
    assert not any(left.values())
    assert now <= 1.02 * bound


def test_while_one_tenant_is_shut_the_others_go_and_whoever_waited_longest_goes_first():
    bench: Workbench[str] = Workbench()
    gate = bench.gate("a")
    for number in range(3):
        bench.offer(gate, f"own {number}")
        bench.offer(gate, f"stranger {number}", tenant="b.org")
    gate.opens = {"": 0.0, "b.org": 5.5}
    bench.retime(gate, 0.0)
    order = []
    for now in range(9):
        order += [(now, task) for task in names(bench, now)]
        if gate.state is GateState.IN_FLIGHT:
            bench.release(gate, now + 1)
    assert order == [(0, "own 0"), (1, "own 1"), (2, "own 2"), (6, "stranger 0"), (7, "stranger 1"), (8, "stranger 2")]
    for number in range(2):
        bench.offer(gate, f"own {number}", tenant="")
        bench.offer(gate, f"stranger {number}", tenant="b.org")
    assert names(bench, 20) == ["own 0"], "the stranger had its turn last"
    bench.release(gate, 21)
    assert names(bench, 21) == ["stranger 0"]


def test_a_gate_sleeps_until_the_first_tenant_that_has_a_task_opens():
    bench: Workbench[str] = Workbench()
    gate = bench.gate("a")
    gate.opens = {"": 1.0, "b.org": 86400.0}
    bench.offer(gate, "shut", tenant="b.org")
    assert bench.next_wake() == 86400.0
    assert names(bench, 10) == []
    bench.offer(gate, "open")
    assert names(bench, 10) == ["open"]
    bench.release(gate, 12)
    assert bench.next_wake() == 86400.0
    assert gate.opens_at == 86400.0
    assert [task for _, task in bench.drain(gate, "b.org")] == ["shut"]
    assert bench.next_wake() is None


def test_a_tenant_that_opens_is_not_held_up_by_a_limit_that_another_waits_for():
    bench: Workbench[str] = Workbench()
    bench.set_limit("north", 10.0, ready_at=100.0)
    gate = bench.gate("a")
    bench.offer(gate, "limited", limits=("north",))
    gate.opens = {"": 0.0, "b.org": 200.0}
    bench.offer(gate, "shut", tenant="b.org")
    assert names(bench, 0) == []
    gate.opens = {"": 0.0, "b.org": 20.0}
    bench.retime(gate, 0.0)
    assert names(bench, 0) == []
    assert bench.next_wake() == 20.0
    assert names(bench, 20) == ["shut"]
    bench.release(gate, 21)
    assert names(bench, 99) == []
    assert names(bench, 100) == ["limited"]
