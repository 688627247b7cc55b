"""The virtual crawl: as long as politeness demands and hardly longer, whatever is asked of it."""

from __future__ import annotations

import math
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from linkcrawl.simulation.engine import GateLoad, LinkGroup, interleave, lower_bound, minimum_times, simulate


def load(gate: str, links: int, *, delay: float = 1.0, answer_time: float = 0.5, **more: object) -> GateLoad:
    return GateLoad(gate=gate, delay=delay, answer_time=answer_time, groups=(LinkGroup(links=links, **more),))  # type: ignore[arg-type]


def test_one_gate_takes_its_delays_and_answers() -> None:
    """robots.txt and three links: four answers and three delays."""
    result = simulate([load("a", 3)], {}, 8)
    assert result.requests == 4
    assert result.makespan == pytest.approx(4 * 0.5 + 3 * 1.0)
    assert result.makespan == pytest.approx(result.bound)
    assert result.ends == {"a": pytest.approx(5.0)}


def test_a_hop_is_a_request_at_the_gate_that_it_goes_to() -> None:
    loads = [load("resolver", 3, delay=0.1, redirect_gate="b"), load("b", 2)]
    requests = {time.name: time.requests for time in minimum_times(loads, {})}
    assert requests == {"resolver": 1 + 3, "b": 1 + 2 + 3}
    assert simulate(loads, {}, 8).requests == 10


def test_a_limit_spaces_starts_over_all_gates() -> None:
    loads = [load(name, 10, delay=0.0, answer_time=0.01, limits=("collection",)) for name in "abc"]
    result = simulate(loads, {"collection": 2.0}, 64)
    assert result.bound == pytest.approx(29 * 2.0)
    assert result.bound <= result.makespan <= result.bound * 1.02 + 0.05


def test_few_permits_are_shared_out_by_the_work_left() -> None:
    """One long chain beside many short ones, with two permits: the long one must not wait for them."""
    loads = [load(f"small{number}", 5, answer_time=0.1) for number in range(200)] + [
        load("large", 100, answer_time=0.9)
    ]
    result = simulate(loads, {}, 2)
    assert result.makespan <= result.bound * 1.05


def test_quiet_hours_hold_a_gate_back_and_pauses_keep_its_links() -> None:
    def afternoon(moment: float) -> float:
        return max(moment, 100.0)

    loads = [
        GateLoad(gate="quiet", delay=1.0, answer_time=0.5, groups=(LinkGroup(links=1),), open_at=afternoon),
        GateLoad(
            gate="paused", delay=1.0, answer_time=0.5, groups=(LinkGroup(links=7),), open_at=lambda moment: math.inf
        ),
        load("open", 2, redirect_gate="paused"),
    ]
    result = simulate(loads, {}, 8)
    assert result.ends["quiet"] == pytest.approx(102.0)
    assert "paused" not in result.ends
    assert result.left == 7 + 2


def test_the_bound_of_few_permits_is_all_answers_shared_out() -> None:
    loads = [load(f"host{number}", 9, delay=0.0, answer_time=1.0) for number in range(10)]
    assert lower_bound(loads, {}, 4) == pytest.approx(100 / 4)


parts = st.lists(st.integers(0, 30), min_size=1, max_size=5)


@given(parts)
def test_every_link_is_dealt_once(numbers: list[int]) -> None:
    kinds = [LinkGroup(links=number, redirect_gate=f"h{index}") for index, number in enumerate(numbers)]
    counted = Counter(part.redirect_gate for part in interleave(kinds))
    assert counted == +Counter({part.redirect_gate: part.links for part in kinds})


hosts = st.lists(
    st.tuples(st.integers(0, 40), st.floats(0.1, 5.0), st.floats(0.01, 1.0), st.integers(-1, 5)), min_size=1, max_size=6
)


@settings(deadline=None)
@given(hosts, st.integers(1, 8))
def test_everything_is_asked_and_never_sooner_than_is_polite(
    shape: list[tuple[int, float, float, int]], concurrency: int
) -> None:
    names = [f"h{index}" for index in range(len(shape))]
    loads = [
        load(
            name,
            links,
            delay=delay,
            answer_time=answer_time,
            redirect_gate=names[to] if 0 <= to < len(names) else None,
        )
        for name, (links, delay, answer_time, to) in zip(names, shape, strict=True)
    ]
    result = simulate(loads, {}, concurrency)
    assert result.requests == sum(time.requests for time in minimum_times(loads, {}))
    assert result.left == 0
    assert result.makespan >= result.bound - 1e-6
