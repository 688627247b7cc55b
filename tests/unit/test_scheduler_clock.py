"""The machine's clock is set while a crawl runs: hours follow it, delays don't, and no gap comes out shorter."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from linkcrawl.clock import EARLIEST, SETTLED, Clock, Jump, boot_time, machine_clock
from linkcrawl.errors import ConfigError
from linkcrawl.frontier.clock_follower import ClockFollower
from linkcrawl.frontier.gates.gatekeeper import Gatekeeper
from linkcrawl.frontier.gates.workbench import Gate, GateState, Workbench
from linkcrawl.frontier.ports import Task
from linkcrawl.politeness.outage import OutageDetector
from linkcrawl.politeness.pacing.persistence import shifted
from linkcrawl.politeness.pacing.state import Pace
from linkcrawl.politeness.policy.limits import DAYS, count_request, requests_in
from linkcrawl.session import Session
from tests.unit import frontier_kit
from tests.unit.frontier_kit import T0, FakeEngine, answer, read_robots_of, session

HOST = "a.example"
#: T0 is a Monday, 12:00 UTC.
QUIET = '[[policy]]\nname = "q"\nhosts = ["*"]\nquiet = ["daily 13:00-14:00 UTC"]\n'


@pytest.fixture
def clock() -> frontier_kit.Clock:
    return frontier_kit.Clock()


@pytest.fixture
def crawl(tmp_path: Path, clock: frontier_kit.Clock) -> Iterator[Session]:
    made = session(tmp_path, clock, QUIET)
    yield made
    made.worker.close()


class Frontier:
    """The parts of a frontier that a jump of the clock concerns."""

    def __init__(self, crawl: Session) -> None:
        self._session = crawl
        self.bench: Workbench[Task] = Workbench()
        self.keeper = Gatekeeper(crawl)
        self.reconsidered = 0
        self._follower = ClockFollower(
            crawl,
            bench=self.bench,
            keeper=self.keeper,
            feeder=self,  # type: ignore[arg-type]
            outage=OutageDetector(crawl.now, hosts=lambda: 0),
            engine=FakeEngine(),
        )

    def reconsider(self) -> None:
        self.reconsidered += 1

    def beat(self) -> Jump | None:
        """What the maintenance loop does."""
        jump = self._session.clock.check_jump()
        if jump is not None:
            self._follower.follow(jump)
        return jump

    def open(self, host: str = HOST) -> Gate[Any]:
        gate = self.bench.gate(host)
        self.keeper.add_host(gate, host)
        self.bench.offer(gate, host)  # type: ignore[arg-type]
        return gate

    def asked(self, gate: Gate[Any]) -> None:
        """A request of the gate has just been answered."""
        taken = self.bench.take(self._session.now())
        assert taken is not None
        self.bench.offer(gate, taken[1])
        done = self.keeper.completed(gate, gate.name, answer(at=self._session.now()), 1.0)
        self.bench.release(gate, done.wake)


def test_the_time_of_a_crawl_never_jumps_by_itself(clock: frontier_kit.Clock) -> None:
    clock.set_by = -3600.0
    assert clock.now() == T0
    clock.at += 5
    assert (clock.now(), clock.wall()) == (T0 + 5, T0 - 3595)


def test_a_small_difference_is_no_jump(clock: frontier_kit.Clock) -> None:
    for clock.set_by in (0.9, -0.9, 0.0):
        assert clock.check_jump() is None
    assert clock.skew == clock.moved == 0


@pytest.mark.parametrize("by", [3600.0, -3600.0, 86400.0])
def test_a_jump_is_seen_at_once_and_followed_when_it_has_lasted(clock: frontier_kit.Clock, by: float) -> None:
    clock.set_by = by
    assert clock.check_jump() == Jump(seconds=by, adopted=False)
    assert (clock.skew, clock.now()) == (by, T0)
    clock.at += SETTLED - 0.1
    assert clock.check_jump() is None
    clock.at += 0.2
    assert clock.check_jump() == Jump(seconds=by, adopted=True)
    assert clock.now() == clock.wall()
    assert (clock.skew, clock.moved) == (0, by)
    assert clock.check_jump() is None


def test_a_clock_that_is_set_to_and_fro_is_not_followed(clock: frontier_kit.Clock) -> None:
    for clock.set_by in (3600.0, 0.0, -3600.0, 0.0, 86400.0, 3600.0):
        clock.check_jump()
        clock.at += SETTLED / 2
        assert clock.check_jump() is None
    assert clock.moved == 0


def test_a_suspension_is_no_jump() -> None:
    """The steady clock counts it, as Linux's of the time since the start does."""
    at = [100.0]
    clock = Clock(wall=lambda: T0 + at[0], steady=lambda: at[0])
    at[0] += 8 * 3600
    assert clock.check_jump() is None
    assert clock.now() == T0 + 100 + 8 * 3600
    assert boot_time() <= boot_time()


def test_a_machine_whose_clock_is_not_set_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    assert machine_clock().now() > EARLIEST
    monkeypatch.setattr("linkcrawl.clock.Clock.now", lambda self: 86400.0)
    with pytest.raises(ConfigError, match=r"clock: 1970-01-02T00:00:00\.000Z can't be"):
        machine_clock()


def test_hours_are_kept_by_both_readings_until_it_is_sure_which_is_right(
    clock: frontier_kit.Clock, crawl: Session
) -> None:
    frontier = Frontier(crawl)
    availability = frontier.keeper.availability
    frontier.open()
    assert availability.of_host(HOST, clock.now()).at <= clock.now()
    clock.set_by = 3600.0  # 13:00 by the machine's clock, in quiet hours
    frontier.beat()
    wait = availability.of_host(HOST, clock.now())
    assert (wait.why, wait.at) == ("quiet hours", T0 + 3600)
    assert frontier.keeper.earliest_for(HOST, HOST, clock.now()) == T0 + 3600
    clock.set_by = 0.0
    frontier.beat()
    assert availability.of_host(HOST, clock.now()).at <= clock.now()


def test_hours_follow_the_clock_that_was_set(clock: frontier_kit.Clock, crawl: Session) -> None:
    frontier = Frontier(crawl)
    gate = frontier.open()
    frontier.asked(gate)
    clock.set_by = 3600.0
    frontier.beat()
    clock.at += SETTLED
    frontier.beat()
    assert clock.now() == T0 + 3600 + SETTLED
    assert gate.wake == T0 + 7200  # 14:00, when quiet hours end
    assert frontier.reconsidered == 1


@pytest.mark.parametrize("by", [3600.0, -3600.0, 86400.0, -86400.0])
def test_no_gap_is_shorter_and_none_much_longer(clock: frontier_kit.Clock, crawl: Session, by: float) -> None:
    frontier = Frontier(crawl)
    crawl.policies = frontier_kit.policies("")
    gate = frontier.open()
    frontier.asked(gate)
    ended, delay = clock.at, gate.delay
    assert delay > 0
    clock.set_by = by
    for _ in range(70):  # beats
        frontier.beat()
        if frontier.bench.take(clock.now()) is not None:
            break
        clock.at += 0.9
    assert delay <= clock.at - ended <= 2 * delay + 1
    # and over the moment at which the crawl's own time moves
    done = frontier.keeper.completed(gate, HOST, answer(at=clock.now()), 1.0)
    frontier.bench.offer(gate, HOST)  # type: ignore[arg-type]
    frontier.bench.release(gate, done.wake)
    ended = clock.at
    clock.at += delay / 2
    clock._since -= SETTLED
    jump = frontier.beat()
    assert jump is not None
    assert jump.adopted
    assert frontier.bench.take(clock.now()) is None
    clock.at += delay + 0.001
    assert frontier.bench.take(clock.now()) is not None
    assert clock.at - ended >= delay


def test_a_silence_stays_as_long_as_it_was(clock: frontier_kit.Clock, crawl: Session) -> None:
    frontier = Frontier(crawl)
    crawl.policies = frontier_kit.policies("")
    gate = frontier.open()
    frontier.bench.take(clock.now())
    frontier.bench.offer(gate, HOST)  # type: ignore[arg-type]
    asked = answer(429, at=clock.now(), retry_after="600")
    frontier.bench.release(gate, frontier.keeper.completed(gate, HOST, asked, 1.0).wake)
    clock.set_by = 86400.0
    frontier.beat()
    clock.at += SETTLED
    frontier.beat()
    assert gate.wake - clock.now() == pytest.approx(600 - SETTLED)
    memory = crawl.hosts.get(HOST)
    assert memory.last_end == T0 + 86400


def test_a_robots_txt_that_was_just_read_stays_fresh(clock: frontier_kit.Clock, crawl: Session) -> None:
    frontier = Frontier(crawl)
    read_robots_of(crawl, HOST, "User-agent: *\nDisallow: /x", clock.now())
    clock.set_by = 86400.0
    frontier.beat()
    clock.at += SETTLED
    frontier.beat()
    entry = crawl.robots.get(f"http://{HOST}")
    assert entry is not None
    assert entry.is_fresh(clock.now())


def test_links_checked_before_the_clock_was_set_back_are_not_checked_again(
    clock: frontier_kit.Clock, crawl: Session
) -> None:
    frontier = Frontier(crawl)
    clock.set_by = -86400.0
    frontier.beat()
    clock.at += SETTLED
    frontier.beat()
    assert crawl.started_at == clock.now()


def test_people_are_told(clock: frontier_kit.Clock, crawl: Session, caplog: pytest.LogCaptureFixture) -> None:
    frontier = Frontier(crawl)
    clock.set_by = -3600.0
    with caplog.at_level(logging.WARNING):
        frontier.beat()
        clock.at += SETTLED
        frontier.beat()
    first, second = caplog.messages
    assert "set by -3600 s; hours are kept by both readings" in first
    assert "set by -3600 s, and this crawl's time with it" in second


def test_a_workbench_moves_with_its_clock() -> None:
    bench: Workbench[str] = Workbench()
    bench.set_limit("c", 5.0)
    gates = [bench.gate(name, wake=at) for name, at in (("now", 10.0), ("later", 20.0), ("never", math.inf))]
    for gate in gates:
        bench.offer(gate, gate.name, limits=("c",))
    assert bench.take(10.0) == (gates[0], "now")
    bench.shift(1000.0)
    assert [gate.wake for gate in gates] == [1010.0, 1020.0, math.inf]
    assert bench.take(1014.0) is None
    assert gates[1].state is GateState.WAITING
    assert bench.take(1020.0) == (gates[1], "later")


def test_requests_of_the_day_stay_counted() -> None:
    pace = Pace(last_end=T0, counts=count_request(count_request({}, T0), T0))
    for seconds in (86400.0, -86400.0):
        moved = shifted(pace, seconds)
        assert requests_in(moved.counts, DAYS, T0 + seconds) == 2


@pytest.mark.parametrize("by", [3600.0, -3600.0])
def test_a_servers_clock_is_followed_at_once(by: float) -> None:
    at = [100.0]
    clock = Clock.of_server(T0, steady=lambda: at[0])
    at[0] += 50
    assert clock.follow(T0 + 50.9, at=150.0, error=0.0) is None, "clocks drift"
    assert clock.follow(T0 + 53, at=150.0, error=2.5) is None, "it may have been read at any time of these"
    at[0] += 5
    jump = clock.follow(T0 + 50 + by, at=150.0, error=0.5)
    assert jump is not None
    assert (jump.seconds, jump.adopted) == (by, True)
    assert (clock.now(), clock.moved, clock.wall()) == (T0 + 55 + by, by, T0 + 55 + by)
    assert clock.check_jump() is None, "this machine's own clock doesn't matter"
