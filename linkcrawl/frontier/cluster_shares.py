"""How many of the gates with work are a worker's share, and when it is worth while to give away more than that."""

from __future__ import annotations

import math
from collections import deque

from linkcrawl.frontier.cluster_ledger import Beat

#: A worker gives gates away when it has so much more than its share, and so many more at least.
SURPLUS, LEAST_SURPLUS = 0.25, 4
#: Seconds of work that are not worth giving away: until another has taken a gate over and read what is due there
#: the worker itself is done.
WORTH = 3.0
#: Seconds that a worker's pace is measured over.
PACE = 2.0


class Pace:
    """Checks a second that a worker has come to lately. Times: seconds that never run backwards."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, int]] = deque()

    def see(self, now: float, ended: int) -> None:
        """So many checks have ended until now."""
        self._seen.append((now, ended))
        while len(self._seen) > 2 and self._seen[1][0] <= now - PACE:
            self._seen.popleft()

    def seconds(self, left: int) -> float:
        """How long this worker takes for so many checks; endless where it has ended none lately."""
        (began, before), (now, ended) = self._seen[0], self._seen[-1]
        return math.inf if ended == before else left * (now - began) / (ended - before)


def room(beat: Beat, mine: int, seen: int) -> int:
    """How many gates more are our share, beside `mine` with work. `seen`: those with work that are not ours, others'
    and free ones."""
    free = max(0, seen - beat.load)
    return math.ceil((mine + beat.load + free) / (beat.others + 1)) - mine


def surplus(beat: Beat, mine: int) -> int:
    """How many gates are to be given away; 0 where that would be few."""
    share = math.ceil((mine + beat.load) / (beat.others + 1))
    return mine - share if mine - share > max(LEAST_SURPLUS, SURPLUS * share) else 0
