"""Due links out of the store, a few per host at a time, so that memory grows with hosts only."""

from __future__ import annotations

import sys
from collections.abc import Callable, Container, Iterable
from math import inf

from attrs import define, field

from linkcrawl.items import DueLink
from linkcrawl.stores.contract import HostBacklog, LinkFilter, Store

#: Links held ready in memory over all hosts, about; shared out as 2 to 32 per host.
READY = 100_000
#: Hosts whose links are fetched in one call of the store, so that no call holds its thread for long.
HOSTS_A_CALL = 200


@define(eq=False)
class HostQueue:
    """A host's due links. `due`: how many are left in the store; `after`: the link after which reading goes on, None
    for the start; `drained`: the store has none after it. `out`: links that were handed out; `ready`: how many of these
    wait for their first request, and `aside`: how many are set aside. `deferred`: links that were handed back because a
    rule says that it is not their time, and `again_at`: when the first of them has its time (Unix seconds).
    `read_generation`: how often reading began anew."""

    host: str
    due: int = 0
    after: DueLink | None = None
    drained: bool = False
    out: set[int | str] = field(factory=set)
    ready: int = 0
    deferred: int = 0
    again_at: float = inf
    aside: int = 0
    read_generation: int = 0

    @property
    def held(self) -> int:
        """Links that are out."""
        return len(self.out)

    @property
    def under_way(self) -> int:
        """Checks of its links that have begun and have no record yet."""
        return self.held - self.ready - self.aside


class DueQueue:
    """Which hosts have due links, and the next of them.

    Links that were handed out stay due in the store until their record is there; until then they are held, and not
    handed out again. `narrow` and `due_before` (Unix seconds) are asked at each reading of the store. `limit`: links
    that are handed out at most, None for any number."""

    def __init__(self, narrow: Callable[[], LinkFilter], due_before: Callable[[], float], limit: int | None = None):
        self._narrow = narrow
        self._due_before = due_before
        self._left = limit
        self._held: dict[int | str, str] = {}
        self._aside: dict[int | str, float] = {}
        self._retired: set[int | str] = set()
        self.hosts: dict[str, HostQueue] = {}

    @property
    def share(self) -> int:
        """Links that one host keeps ready."""
        return min(32, max(2, READY // max(1, len(self.hosts))))

    @property
    def spent(self) -> bool:
        """True once the limit is reached."""
        return self._left is not None and self._left <= 0

    def backlog(self, store: Store) -> list[HostBacklog]:
        """What is due now, by host. Runs in the store's thread."""
        return store.backlog(self._due_before(), self._narrow())

    def refresh(self, backlog: Iterable[HostBacklog], now: float) -> list[HostQueue]:
        """Take in a backlog. Returns the hosts that have links to fetch and had none before."""
        grown, found = [], set()
        for link_id in [link_id for link_id, until in self._aside.items() if until <= now]:
            self._end_aside(link_id)
            self.forget(link_id)
        for line in backlog:
            found.add(line.host)
            queue = self.hosts.setdefault(line.host, HostQueue(line.host, drained=True))
            queue.due = max(0, line.due - queue.held)
            if now >= queue.again_at and (queue.drained or queue.deferred == sys.maxsize):
                queue.drained, queue.deferred, queue.again_at = True, 0, inf
            if queue.drained and queue.due > queue.deferred:
                queue.deferred, queue.again_at = 0, inf
                queue.drained = False
                queue.after = None
                grown.append(queue)
        for host, queue in self.hosts.items():
            if host not in found:
                queue.due = 0
        return grown

    def fetch(self, store: Store, queues: Iterable[HostQueue]) -> list[tuple[HostQueue, list[DueLink], bool]]:
        """The next links of these hosts, each with whether there are no more. Runs in the store's thread."""
        fetched, narrow = [], self._narrow()
        for queue in queues:
            # from the start of the order the links that are out come again: ask for so many more
            wanted = self.share + (queue.held if queue.after is None else 0)
            links = store.due(queue.host, self._due_before(), wanted, narrow, queue.after)
            fetched.append((queue, links, len(links) < wanted))
        return fetched

    def take_in(self, queue: HostQueue, links: list[DueLink], drained: bool) -> list[DueLink]:
        """Hold the links fetched of a host. Returns them without those that are out already, and those over the
        limit."""
        new = [link for link in links if link.id not in self._held]
        if self._left is not None:
            new = new[: max(0, self._left)]
            self._left -= len(new)
        for link in new:
            self.hold(link.id, queue.host)
        queue.ready += len(new)
        queue.due = 0 if drained else max(0, queue.due - len(new))
        queue.drained = drained
        queue.after = links[-1] if links else queue.after
        return new

    def take_alone(self, link: DueLink) -> bool:
        """Hold a link that was not read with its host's others. False where it is out already."""
        if link.id in self._held:
            return False
        self.hold(link.id, link.host)
        queue = self.hosts[link.host]
        queue.ready += 1
        queue.due = max(0, queue.due - 1)
        return True

    def had_turn(self, link: DueLink) -> HostQueue | None:
        """A link has its turn. Returns its host if few of its other links are ready; hosts are counted one by one,
        for a gate may be several hosts'."""
        queue = self.hosts[link.host]
        queue.ready -= 1
        return queue if queue.ready <= self.share // 2 else None

    def again(self, link: DueLink) -> bool:
        """The check of a link that is out comes to nothing, and begins once more. False where it is not out."""
        host = self._held.get(link.id)
        if host is not None:
            self.hosts[host].ready += 1
        return host is not None

    def defer(self, link: DueLink, until: float = inf) -> None:
        """Hand the link back: it stays due, and is not fetched again before the backlog is read after `until` (Unix
        seconds), or policies have changed, or others of its host have come due."""
        self.forget(link.id)
        queue = self.hosts[link.host]
        queue.deferred += 1
        queue.again_at = min(queue.again_at, until)
        if self._left is not None:
            self._left += 1

    def defer_host(self, link: DueLink, until: float) -> None:
        """Hand the link back, and fetch no other of its host before `until` (Unix seconds), or before orders or
        policies have changed."""
        self.defer(link, until)
        queue = self.hosts[link.host]
        queue.drained, queue.deferred = True, sys.maxsize

    @property
    def again_at(self) -> float:
        """When the first deferred link has its time (Unix seconds)."""
        return min((queue.again_at for queue in self.hosts.values()), default=inf)

    def reconsider(self) -> None:
        """Policies have changed: deferred links may go now."""
        for queue in self.hosts.values():
            if queue.deferred:
                queue.again_at = -inf

    def set_aside(self, link_id: int | str, until: float) -> None:
        """The link is out until then (Unix seconds), whatever happens: its record can't be kept, so it is due for ever,
        and would be asked again and again."""
        host = self._held.get(link_id)
        if host is not None and link_id not in self._aside:
            self._aside[link_id] = until
            self.hosts[host].aside += 1

    def _end_aside(self, link_id: int | str) -> None:
        del self._aside[link_id]
        self.hosts[self._held[link_id]].aside -= 1

    def held(self) -> list[int | str]:
        """Ids of the links that are out."""
        return list(self._held)

    def retire(self, link_ids: Iterable[int | str]) -> None:
        """These links were retired while they were out: those that have not begun don't begin any more."""
        self._retired |= self._held.keys() & set(link_ids)

    def is_retired(self, link_id: int | str) -> bool:
        """Whether the link was retired while it was out."""
        return link_id in self._retired

    def forget(self, link_id: int | str) -> None:
        """The link's record is stored, or won't be: the link is not out any more, unless it is set aside."""
        if link_id in self._aside:
            return
        self._retired.discard(link_id)
        host = self._held.pop(link_id, None)
        if host is not None:
            self.hosts[host].out.discard(link_id)

    def hold(self, link_id: int | str, host: str) -> None:
        """The link is out: don't hand it out before `forget`."""
        self._held[link_id] = host
        self.hosts.setdefault(host, HostQueue(host, drained=True)).out.add(link_id)

    def give_back(self, hosts: Iterable[str], keep: Container[int | str] = ()) -> None:
        """The hosts are another worker's now: their links are not out any more, except those to keep."""
        for queue in (self.hosts[host] for host in hosts if host in self.hosts):
            given = [link_id for link_id in queue.out if link_id not in keep]
            for link_id in given:
                if link_id in self._aside:
                    self._end_aside(link_id)
                self.forget(link_id)
            queue.due += len(given)
            queue.ready = 0
            queue.read_generation += 1
            queue.after, queue.drained = None, queue.due == 0

    def clear(self) -> None:
        """Forget everything, until the backlog is read again."""
        self._held.clear()
        self._aside.clear()
        self.hosts.clear()

    def __len__(self) -> int:
        """Links that are out."""
        return len(self._held)
