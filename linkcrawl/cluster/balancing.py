"""Which gates a worker may lease next, and how many are its share."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable

from linkcrawl.cluster.context import WorkerContext
from linkcrawl.cluster.coordinator import HeartbeatReply

#: Gates taken in one call, so that no script holds Redis for long.
AT_ONCE = 200
#: Seconds until gates that others held are asked for again, and between two looks for due links (or so many times what
#: a look takes).
AGAIN, LOOK, LOOKS_COST = 0.25, 2.0, 20.0


class Candidates:
    """Hosts with due links that aren't ours, most work first. `ours`: whether a host's gate is leased here."""

    def __init__(self, parts: WorkerContext, ours: Callable[[str], bool]):
        self._session, self._queue, self._feeder = parts.session, parts.queue, parts.feeder
        self._ours = ours
        self._hosts: deque[str] = deque()
        self._held: list[str] = []
        self._retried_at = float("-inf")
        #: When the look into the store began that they are of.
        self.seen_at = float("-inf")

    def __len__(self) -> int:
        return len(self._hosts)

    def clear(self) -> None:
        """Forget all; the next look begins anew."""
        self._hosts.clear()
        self._held.clear()
        self.seen_at = float("-inf")

    def pop(self) -> list[str]:
        """The next hosts."""
        return [self._hosts.popleft() for _ in range(min(AT_ONCE, len(self._hosts)))]

    def put_back(self, hosts: Iterable[str]) -> None:
        """There was no room for these."""
        self._hosts.extendleft(reversed(list(hosts)))

    def are_held(self, hosts: Iterable[str]) -> None:
        """Another worker leases their gates."""
        self._held += hosts

    def room(self, beat: HeartbeatReply, mine: int) -> int:
        """How many gates more are our share, beside `mine` with work."""
        return AT_ONCE if beat.others == 0 else spare_share(beat, mine, len(self._hosts) + len(self._held))

    def renew(self) -> None:
        """As the last look has them; later those again that others held."""
        now = self._session.now()
        if self._feeder.refreshed_at > self.seen_at:
            self.seen_at = self._feeder.refreshed_at
            due = [
                queue
                for queue in self._queue.hosts.values()
                if queue.due > queue.deferred and not self._ours(queue.host)
            ]
            due.sort(key=lambda queue: -queue.due)
            self._hosts = deque(queue.host for queue in due)
            self._held.clear()
        elif not self._hosts and self._held and now - self._retried_at > AGAIN:
            self._retried_at = now
            self._hosts.extend(host for host in self._held if self._queue.hosts[host].due > 0)
            self._held.clear()

    def look_for_more(self) -> None:
        """Look into the store again, where there are none left and it costs little."""
        wait = max(LOOK, LOOKS_COST * self._feeder.refresh_seconds)
        if not self._hosts and self._session.now() > self._feeder.refreshed_at + wait and not self._feeder.is_busy:
            self._feeder.refresh_backlog()


#: A worker gives gates away when it has so much more than its share, and so many more at least.
SURPLUS, LEAST_SURPLUS = 0.25, 4
#: Seconds of work that are not worth giving away: until another has taken a gate over and read what is due there
#: the worker itself is done.
WORTH = 3.0
#: Seconds that a worker's pace is measured over.
THROUGHPUT_SECONDS = 2.0


class Throughput:
    """Checks a second that a worker has come to lately. Times: seconds that never run backwards."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, int]] = deque()

    def see(self, now: float, ended: int) -> None:
        """So many checks have ended until now."""
        self._seen.append((now, ended))
        while len(self._seen) > 2 and self._seen[1][0] <= now - THROUGHPUT_SECONDS:
            self._seen.popleft()

    def seconds(self, left: int) -> float:
        """How long this worker takes for so many checks; endless where it has ended none lately."""
        (began, before), (now, ended) = self._seen[0], self._seen[-1]
        return math.inf if ended == before else left * (now - began) / (ended - before)


def spare_share(beat: HeartbeatReply, mine: int, seen: int) -> int:
    """How many gates more are our share, beside `mine` with work. `seen`: those with work that are not ours, others'
    and free ones."""
    free = max(0, seen - beat.load)
    return math.ceil((mine + beat.load + free) / (beat.others + 1)) - mine


def excess(beat: HeartbeatReply, mine: int) -> int:
    """How many gates are to be given away; 0 where that would be few."""
    share = math.ceil((mine + beat.load) / (beat.others + 1))
    return mine - share if mine - share > max(LEAST_SURPLUS, SURPLUS * share) else 0
