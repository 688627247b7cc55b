"""Progress: gates counted by what they do, an ETA that is the bound's, and lines and a panel that say so."""

from __future__ import annotations

import io
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from linkcrawl.extensions.outcomes import OutcomeCounts
from linkcrawl.extensions.panel import PanelState, line, lines, panel, table
from linkcrawl.frontier.gates.eta import FrontierStats, frontier_stats
from linkcrawl.frontier.gates.workbench import Gate, Workbench
from linkcrawl.items import Category, DueLink
from tests.contract.making import record

NOW = 1000.0
LINK = DueLink(id=1, url="https://a.example/", host="a.example")


def gate(name: str, tasks: int, *, delay: float = 2.0, wake: float = NOW, backlog: int = 0) -> Gate[int]:
    made: Gate[int] = Workbench[int]().gate(name, wake=wake)
    made.delay, made.backlog = delay, backlog
    bench = Workbench[int]()
    bench.gates[name] = made
    for task in range(tasks):
        bench.offer(made, task)
    return made


def read(*gates: Gate[int], service: float = 0.5, permits: int = 100, patience: float = 300.0) -> FrontierStats:
    return frontier_stats(gates, NOW, response_time=service, concurrency=permits, patience=patience)


def test_no_gates() -> None:
    assert read() == FrontierStats(ready=0, waiting=0, in_flight=0, blocked=0, due=0, eta=0.0, slowest=None)


@pytest.mark.parametrize(
    ("gates", "due", "eta", "slowest"),
    [
        ([gate("a", 1)], 1, 0.5, "a"),
        ([gate("a", 3)], 3, 3 * 0.5 + 2 * 2.0, "a"),
        ([gate("a", 1, backlog=2)], 3, 3 * 0.5 + 2 * 2.0, "a"),
        ([gate("a", 3, wake=NOW + 7)], 3, 7 + 3 * 0.5 + 2 * 2.0, "a"),
        ([gate("a", 3, wake=NOW - 7)], 3, 3 * 0.5 + 2 * 2.0, "a"),
        ([gate("a", 9), gate("b", 2, delay=60)], 11, 2 * 0.5 + 60, "b"),
        ([gate("a", 0, wake=NOW + 60)], 0, 0.0, None),
        ([gate("a", 2, wake=inf), gate("b", 1)], 1, 0.5, "b"),  # blocked
        ([gate("a", 2, wake=NOW + 301), gate("b", 1)], 3, 0.5, "b"),  # silent for longer than we wait
    ],
)
def test_the_crawl_lasts_as_long_as_its_slowest_gate(
    gates: list[Gate[int]], due: int, eta: float, slowest: str | None
) -> None:
    seen = read(*gates)
    assert (seen.due, seen.eta) == (due, pytest.approx(eta))
    assert seen.slowest == (None if slowest is None else (slowest, pytest.approx(eta)))


def test_and_no_shorter_than_its_requests_take_with_the_permits_there_are() -> None:
    many = [gate(f"h{n}", 1) for n in range(100)]
    assert read(*many, permits=4).eta == pytest.approx(100 * 0.5 / 4)
    assert read(*many, permits=0).eta == pytest.approx(100 * 0.5)
    assert read(*many, permits=1000).eta == pytest.approx(0.5)


def test_gates_are_counted_where_they_are() -> None:
    bench = Workbench[str]()
    for name, wake in {"now": 0, "taken": 0, "later": NOW + 5, "blocked": inf, "idle": 0}.items():
        bench.gate(name, wake=wake)
    for name in ("now", "taken", "taken", "later", "blocked"):
        bench.offer(bench.gates[name], name)
    taken = bench.take(NOW)
    assert taken is not None
    assert taken[0].name == "taken"  # it has the most work
    seen = frontier_stats(bench.gates.values(), NOW, response_time=0.0, concurrency=9, patience=300)
    assert (seen.ready, seen.waiting, seen.in_flight, seen.blocked, seen.due) == (1, 1, 1, 1, 3)


@given(
    works=st.lists(st.tuples(st.integers(0, 9), st.floats(0, 9), st.floats(-9, 9)), max_size=9),
    service=st.floats(0, 3),
    permits=st.integers(1, 9),
)
def test_the_eta_is_never_more_than_one_request_at_a_time_would_take(
    works: list[tuple[int, float, float]], service: float, permits: int
) -> None:
    gates = [gate(f"h{n}", tasks, delay=delay, wake=NOW + wait) for n, (tasks, delay, wait) in enumerate(works)]
    one_by_one = sum(max(0.0, wait) + tasks * (service + delay) for tasks, delay, wait in works)
    seen = read(*gates, service=service, permits=permits)
    assert 0 <= seen.eta <= one_by_one + 1e-6
    assert seen.due == sum(tasks for tasks, _, _ in works)


def outcomes() -> OutcomeCounts:
    made = OutcomeCounts()
    gone = {"category": Category.BROKEN, "reason": "http_404", "status": 404}
    late = {"category": Category.UNDETERMINED, "reason": "timeout", "status": None}
    for facts in ({"duration_ms": 100}, {"duration_ms": 300}, gone | {"duration_ms": 50}, late | {"duration_ms": None}):
        made.add(record(LINK, NOW, NOW + 9, **facts))  # type: ignore[arg-type]
    return made


def test_outcomes_have_count_mean_and_maximum() -> None:
    made = outcomes()
    assert made.rows() == [
        ("Broken", "http_404", "404", "1", "50", "50"),
        ("Ok", "ok", "200", "2", "200", "300"),
        ("Undetermined", "timeout", "-", "1", "-", "-"),
    ]
    assert made.whole.count == sum(made.categories.values()) == 4
    assert made.service == pytest.approx(0.15)
    assert OutcomeCounts().service == 0.0


STANDING = PanelState(
    checked=1234,
    rate=5.5,
    requests=7,
    stats=FrontierStats(
        ready=1, waiting=2, in_flight=7, blocked=3, due=99, eta=3700, slowest=("[bold]a.example", 3600)
    ),
    categories={Category.BROKEN: 4, Category.OK: 1230},
)


def test_the_log_line_is_names_and_values() -> None:
    assert line(STANDING) == (
        "progress checked=1234 per_second=5.50 due=99 requests=7 ready=1 waiting=2 in_flight=7 blocked=3 "
        "eta_seconds=3700 slowest=[bold]a.example slowest_seconds=3600 Ok=1230 Broken=4"
    )


def test_the_outcomes_in_a_log_are_a_line_each() -> None:
    assert lines(outcomes())[1] == "outcome category=Ok reason=ok status=200 links=2 mean_ms=200 max_ms=300"
    assert len(lines(outcomes())) == 3


@pytest.mark.parametrize("width", [100, 60, 40])
def test_the_panel_shows_the_same_on_any_terminal(width: int) -> None:
    console = Console(file=io.StringIO(), width=width, force_terminal=True, color_system=None)
    console.print(panel(STANDING))
    console.print(table(outcomes(), console))
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    text = "".join(shown.replace("│", " ").split())
    for part in ("1,234", "99", "[bold]a.example", "3blocked", "1,230", "200", "300"):
        assert part in text
    for word in ("Ok", "Broken", *(row[1] for row in outcomes().rows())):
        assert word in shown  # in one piece
    assert max(map(len, shown.splitlines())) <= width
