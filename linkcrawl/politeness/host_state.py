"""What is remembered of hosts, gates and shared limits while a crawl runs; the store gets it every few seconds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from attrs import evolve

from linkcrawl.check.silence import Silence, count_days, with_look
from linkcrawl.items import HostMemory
from linkcrawl.politeness.future import not_of_the_future
from linkcrawl.politeness.pacing.persistence import GATE, gate_of_row, pace_from_row, pace_to_row
from linkcrawl.politeness.pacing.state import Pace
from linkcrawl.politeness.robots.pace import RobotsPace, robots_pace_from_row
from linkcrawl.units import DAY

#: Seconds for which HEAD counts as useless at a host; then HEAD is tried again, as servers get mended.
HEAD_MEMORY = 30 * DAY


class HostStateCache:
    """Host memories by key (politeness.keys), and which of them have changed since they were last stored.

    The pace of a gate is a Pace here; it becomes a row of HostMemory only on its way to the store.
    """

    def __init__(self, memories: Iterable[HostMemory] = (), *, now: Callable[[], float] | None = None):
        """`now`: Unix seconds; what the store remembers of a later time counts as of then. None: as it is."""
        self._now = now
        self._ahead: dict[str, float] = {}
        self._memories: dict[str, HostMemory] = {}  # their pace is as it was loaded: _paces has the present one
        self._paces: dict[str, Pace] = {}
        self._asked: dict[str, float] = {}  # apart from Paces, which are made anew whenever something in them changes
        self._changed: set[str] = set()
        self.load(memories)

    def get(self, host: str) -> HostMemory:
        """What is known of a host, apart from its pace; an empty memory for a new host."""
        return self._memories.get(host) or HostMemory(host=host)

    def is_known(self, host: str) -> bool:
        """True where anything is remembered of a host."""
        return host in self._memories

    def change(self, host: str, **changes: Any) -> None:
        """Remember something new of a host, to be stored with the next `take_changed`. Paces: see `keep_pace`."""
        self._memories[host] = evolve(self.get(host), **changes)
        self._changed.add(host)

    def pace(self, gate: str) -> Pace:
        """The pace of a gate or shared limit, over restarts; an empty one for a new gate."""
        known = self._paces.get(gate)
        return pace_from_row(self.get(gate).pace) if known is None else known

    def keep_pace(self, gate: str, pace: Pace) -> None:
        """Remember the present pace of a gate or shared limit."""
        self._memories.setdefault(gate, HostMemory(host=gate))
        self._paces[gate] = pace
        self._changed.add(gate)

    def gate(self, host: str) -> str:
        """The gate that a host was in when it was last met: its own, or the one that it shared."""
        return host if host in self._paces else gate_of_row(self.get(host).pace) or host

    def keep_gate(self, host: str, gate: str) -> None:
        """Remember that a host shares another's gate, which has the pace from now on."""
        self._paces.pop(host, None)
        self.change(host, pace={GATE: gate})

    def asked(self, gate: str, pace: Pace, at: float) -> None:
        """A request has been handed out at a gate that has this pace."""
        if gate not in self._paces:
            self.keep_pace(gate, pace)
        self._asked[gate] = at
        self._changed.add(gate)

    def load(self, memories: Iterable[HostMemory]) -> None:
        """Take over what the store remembers, in place of what is known here."""
        now = None if self._now is None else self._now()
        for known in memories:
            slim = _without_files(known)
            memory, ahead = (slim, 0.0) if now is None else not_of_the_future(slim, now)
            self._memories[memory.host] = memory
            self._changed.discard(memory.host)
            self._paces.pop(memory.host, None)
            self._asked.pop(memory.host, None)
            if ahead:
                self._ahead[memory.host] = ahead
            if memory is not known:
                self._changed.add(memory.host)

    def take_ahead(self) -> dict[str, float]:
        """The hosts loaded since the last call whose memory was from the future, and by how many seconds."""
        ahead, self._ahead = self._ahead, {}
        return ahead

    def take_changed(self) -> list[HostMemory]:
        """The memories changed since the last call, ready for the store."""
        changed, self._changed = self._changed, set()
        return [self._row(self._memories[host]) for host in changed]

    def still_changed(self, memories: Iterable[HostMemory]) -> None:
        """The store has not taken what `take_changed` gave: it is to be stored with the next."""
        self._changed.update(memory.host for memory in memories)

    def _row(self, memory: HostMemory) -> HostMemory:
        """The memory as the store takes it."""
        pace = self._paces.get(memory.host)
        if pace is None:
            return memory
        asked_at = self._asked.get(memory.host, pace.asked_at)
        return evolve(memory, pace=pace_to_row(evolve(pace, asked_at=asked_at)))

    def shift(self, seconds: float, since: float) -> None:
        """The clock has been moved by `seconds`: what was noted since `since`, on the clock of before, moves with it.
        Paces are the gatekeeper's to move."""
        self._asked = {gate: at + seconds for gate, at in self._asked.items()}
        for memory in list(self._memories.values()):
            times = {"last_end": memory.last_end, "failing_since": memory.failing_since}
            times |= {"head_useless_since": memory.head_useless_since}
            moved: dict[str, Any] = {name: at + seconds for name, at in times.items() if at is not None and at >= since}
            if any(at >= since for at in memory.failing_days):
                moved["failing_days"] = tuple(at + seconds if at >= since else at for at in memory.failing_days)
            if moved:
                self.change(memory.host, **moved)

    def __iter__(self) -> Iterator[HostMemory]:
        return iter(self._memories.values())

    def robots_paces(self, host: str) -> list[RobotsPace]:
        """When and how often the robots.txt files of a host, of either scheme, ask to be asked."""
        kept = self.get(host).robots
        return [robots_pace_from_row(row) for row in kept.values()] if kept else []

    def learn_robots(self, host: str, authority: str, pace: RobotsPace) -> None:
        """What the robots.txt of one of the host's authorities says of pace."""
        kept = {name: row for name, row in self.get(host).robots.items() if name != authority}
        if pace != RobotsPace():
            kept[authority] = pace.to_row()
        if kept != self.get(host).robots:
            self.change(host, robots=kept)

    def head_useless(self, host: str, now: float) -> bool:
        """True where HEAD has failed and GET worked, lately."""
        since = self.get(host).head_useless_since
        return since is not None and now - since < HEAD_MEMORY

    def learn_head(self, host: str, useless: bool, now: float) -> None:
        """Remember what a check has shown of HEAD there."""
        if useless != self.head_useless(host, now):
            self.change(host, head_useless_since=now if useless else None)

    def silence(self, host: str) -> Silence | None:
        """The silence of a host at which nothing answers; None while it answers or is unknown."""
        memory = self.get(host)
        if memory.failing_since is None:
            return None
        return Silence(since=memory.failing_since, days=count_days(memory.failing_days))

    def has_answered(self, gate: str) -> bool:
        """True where a gate has given a good answer for any of its hosts, in this crawl or before."""
        pace = self.pace(gate)
        return any(
            known.good > 0 or any(good for _, good, _ in known.recent) for known in (pace, *pace.strangers.values())
        )

    def learn_answer(self, host: str, answered: bool, at: float) -> None:
        """A request there has ended at this time, with any answer or with none."""
        known = self.get(host)
        if answered:
            self.change(host, last_end=at, failing_since=None, failing_days=())
        elif known.failing_since is None:
            self.change(host, last_end=at, failing_since=at, failing_days=(at,))
        else:  # older versions kept no days
            days = with_look(known.failing_days or (known.failing_since,), at)
            self.change(host, last_end=at, failing_days=days)


def _without_files(memory: HostMemory) -> HostMemory:
    """Older versions kept whole robots.txt files here: of those, what they say of pace."""
    if not any("rules" in row for row in memory.robots.values()):
        return memory
    paces = {authority: robots_pace_from_row(row) for authority, row in memory.robots.items()}
    return evolve(
        memory, robots={authority: pace.to_row() for authority, pace in paces.items() if pace != RobotsPace()}
    )
