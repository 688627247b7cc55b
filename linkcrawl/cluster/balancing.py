"""Which gates a worker may lease next, and how many are its share."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable

from linkcrawl.cluster.coordinator import HeartbeatReply
from linkcrawl.frontier.parts import Frontier

#: Gates leased in one call, so that no script holds Redis for long.
AT_ONCE = 200
#: Seconds until gates that others had leased are asked for again, and between two readings of the backlog (or so many
#: times what a reading takes).
AGAIN, REFRESH, REFRESH_COST = 0.25, 2.0, 20.0


class Candidates:
    """Hosts with due links that aren't ours, most work first. `is_ours`: True for a host whose gate is leased here."""

    def __init__(self, frontier: Frontier, is_ours: Callable[[str], bool]):
        self._session, self._queue, self._feeder = frontier.session, frontier.queue, frontier.feeder
        self._is_ours = is_ours
        self._hosts: deque[str] = deque()
        self._leased_elsewhere: list[str] = []
        self._retried_at = float("-inf")
        #: When the reading of the backlog began that they are of (Unix seconds).
        self.seen_at = float("-inf")

    def __len__(self) -> int:
        return len(self._hosts)

    def clear(self) -> None:
        """Forget all, until the backlog is read again."""
        self._hosts.clear()
        self._leased_elsewhere.clear()
        self.seen_at = float("-inf")

    def pop(self) -> list[str]:
        """The next hosts."""
        return [self._hosts.popleft() for _ in range(min(AT_ONCE, len(self._hosts)))]

    def put_back(self, hosts: Iterable[str]) -> None:
        """Take back hosts for which there was no room."""
        self._hosts.extendleft(reversed(list(hosts)))

    def mark_leased(self, hosts: Iterable[str]) -> None:
        """Another worker leases the gates of these hosts: they are retried later."""
        self._leased_elsewhere += hosts

    def spare_share(self, heartbeat: HeartbeatReply, mine: int) -> int:
        """How many gates more are our share, beside `mine` with work."""
        return (
            AT_ONCE
            if heartbeat.others == 0
            else spare_share(heartbeat, mine, len(self._hosts) + len(self._leased_elsewhere))
        )

    def reload(self) -> None:
        """Reload from the latest backlog; otherwise retry gates that other workers had leased."""
        now = self._session.now()
        if self._feeder.refreshed_at > self.seen_at:
            self.seen_at = self._feeder.refreshed_at
            due = [
                queue
                for queue in self._queue.hosts.values()
                if queue.due > queue.deferred and not self._is_ours(queue.host)
            ]
            due.sort(key=lambda queue: -queue.due)
            self._hosts = deque(queue.host for queue in due)
            self._leased_elsewhere.clear()
        elif not self._hosts and self._leased_elsewhere and now - self._retried_at > AGAIN:
            self._retried_at = now
            self._hosts.extend(host for host in self._leased_elsewhere if self._queue.hosts[host].due > 0)
            self._leased_elsewhere.clear()

    def refresh_if_empty(self) -> None:
        """Have the backlog read again where no candidates are left, as often as costs the store little."""
        wait = max(REFRESH, REFRESH_COST * self._feeder.refresh_seconds)
        if not self._hosts and self._session.now() > self._feeder.refreshed_at + wait and not self._feeder.is_busy:
            self._feeder.refresh_backlog()


#: A worker gives gates away when it has more than its share by this part of it, and by so many gates at least.
EXCESS, LEAST_EXCESS = 0.25, 4
#: Seconds of work that are not worth giving away: this worker has done it before another has leased the gate and read
#: its due links.
WORTH = 3.0
#: Seconds that a worker's pace is measured over.
THROUGHPUT_SECONDS = 2.0


class Throughput:
    """Checks a second of a worker lately. Times: seconds of a monotonic clock."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, int]] = deque()

    def see(self, now: float, ended: int) -> None:
        """Note that `ended` checks have ended so far."""
        self._seen.append((now, ended))
        while len(self._seen) > 2 and self._seen[1][0] <= now - THROUGHPUT_SECONDS:
            self._seen.popleft()

    def seconds(self, left: int) -> float:
        """How long this worker takes for `left` checks; infinite where it has ended none lately."""
        (began, before), (now, ended) = self._seen[0], self._seen[-1]
        return math.inf if ended == before else left * (now - began) / (ended - before)


def spare_share(heartbeat: HeartbeatReply, mine: int, seen: int) -> int:
    """How many more gates are our share, beside the `mine` with work that are leased here. `seen`: gates with work that
    are not leased here."""
    free = max(0, seen - heartbeat.load)
    return math.ceil((mine + heartbeat.load + free) / (heartbeat.others + 1)) - mine


def excess(heartbeat: HeartbeatReply, mine: int) -> int:
    """How many gates to give away; 0 where there would be only a few."""
    share = math.ceil((mine + heartbeat.load) / (heartbeat.others + 1))
    return mine - share if mine - share > max(LEAST_EXCESS, EXCESS * share) else 0
