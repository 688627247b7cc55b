"""What is remembered of hosts while a crawl runs, and handed to the store now and then."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from attrs import evolve

from linkcrawl.items import HostMemory
from linkcrawl.politeness.future import not_of_the_future
from linkcrawl.politeness.pacing.persistence import pace_to_row
from linkcrawl.politeness.pacing.state import Pace

#: Seconds that a useless HEAD is remembered; then HEAD is tried again, as servers get mended.
HEAD_MEMORY = 30 * 86400.0


class HostStateCache:
    """Host memories by host key, and which of them have changed since they were last stored."""

    def __init__(self, memories: Iterable[HostMemory] = (), *, now: Callable[[], float] | None = None):
        """`now`: Unix seconds; what the store remembers of a later time counts as of then. None: as it is."""
        self._now = now
        self._ahead: dict[str, float] = {}
        self._memories: dict[str, HostMemory] = {}
        self._changed: set[str] = set()
        self._asked: dict[str, float] = {}  # apart from Paces, which are made anew whenever something in them changes
        self.load(memories)

    def get(self, host: str) -> HostMemory:
        """What is known of a host; an empty memory where nothing is."""
        return self._memories.get(host) or HostMemory(host=host)

    def change(self, host: str, **changes: Any) -> None:
        """Remember something new of a host, to be stored with the next `take_changed`."""
        self._memories[host] = evolve(self.get(host), **changes)
        self._changed.add(host)

    def asked(self, gate: str, at: float) -> None:
        """A request has been handed out at a gate whose Pace is known here."""
        self._asked[gate] = at
        self._changed.add(gate)

    def load(self, memories: Iterable[HostMemory]) -> None:
        """Take in what the store remembers, in place of what is known here."""
        now = None if self._now is None else self._now()
        for known in memories:
            memory, ahead = (known, 0.0) if now is None else not_of_the_future(known, now)
            self._memories[memory.host] = memory
            self._changed.discard(memory.host)
            self._asked.pop(memory.host, None)
            if ahead:
                self._ahead[memory.host] = ahead
                self._changed.add(memory.host)

    def take_ahead(self) -> dict[str, float]:
        """Of the hosts loaded since the last call those whose memory was of a time to come, and by how many seconds."""
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
        """A gate's Pace changes with every request; it is made a row only when it is stored."""
        if not isinstance(memory.pace, Pace):
            return memory
        asked_at = self._asked.get(memory.host, memory.pace.asked_at)
        return evolve(memory, pace=pace_to_row(memory.pace) | {"asked_at": asked_at})

    def shift(self, seconds: float, since: float) -> None:
        """The clock has been moved by `seconds`: what was noted since `since`, on the clock of before, moves with it.
        Paces are the gatekeeper's to move."""
        self._asked = {gate: at + seconds for gate, at in self._asked.items()}
        for memory in list(self._memories.values()):
            times = {"last_end": memory.last_end, "failing_since": memory.failing_since}
            times |= {"head_useless_since": memory.head_useless_since}
            moved = {name: at + seconds for name, at in times.items() if at is not None and at >= since}
            if moved:
                self.change(memory.host, **moved)

    def __iter__(self) -> Iterator[HostMemory]:
        return iter(self._memories.values())

    def head_useless(self, host: str, now: float) -> bool:
        """Whether HEAD fails there where GET works, as far as is known."""
        since = self.get(host).head_useless_since
        return since is not None and now - since < HEAD_MEMORY

    def learn_head(self, host: str, useless: bool, now: float) -> None:
        """A check has shown whether HEAD is to be trusted there."""
        if useless != self.head_useless(host, now):
            self.change(host, head_useless_since=now if useless else None)

    def failing_since(self, host: str) -> float | None:
        """Since when nothing there answered at all; None while it answers or is unknown."""
        return self.get(host).failing_since

    def learn_answer(self, host: str, answered: bool, at: float, **more: Any) -> None:
        """A request there has ended at this time, with any answer or with none; what is `more` to be remembered."""
        known = self.get(host).failing_since
        failing_since = None if answered else known if known is not None else at
        self.change(host, last_end=at, failing_since=failing_since, **more)
