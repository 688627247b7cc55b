"""The limits of a policy as values: requests in a window of the day, and what several gates share. Pure.

A new window (as `max_per_hour` is one) is one entry of WINDOWS. Policies, pacing, Redis, `scrapy explain` and the
audit take every window that stands there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from attrs import field, frozen

from linkcrawl.units import DAY, HOUR


@frozen(kw_only=True)
class Window:
    """A length of UTC clock time in which requests are counted. Windows follow one another from 1970 on: hours begin at
    the full hour, days at midnight UTC. `key`: of the policy file; `name`: under which requests are counted; `each`,
    `current`: in texts, a window at large and the present one."""

    key: str
    name: str
    each: str
    current: str
    seconds: float

    def number(self, at: float) -> int:
        """Which window a moment (Unix seconds) is in, counted from 1970."""
        return int(at // self.seconds)

    def end(self, number: int) -> float:
        """When a window ends and the next one begins (Unix seconds)."""
        return (number + 1) * self.seconds


HOURS = Window(key="max_per_hour", name="hour", each="an hour", current="this hour", seconds=HOUR)
DAYS = Window(key="max_per_day", name="day", each="a day", current="today", seconds=DAY)

#: Every window that a policy can limit, the shortest first.
WINDOWS = (HOURS, DAYS)

#: Requests counted: by a window's name, the number of the window that was counted last and the requests in it.
Counts = Mapping[str, tuple[int, int]]


def count_request(counts: Counts, at: float) -> dict[str, tuple[int, int]]:
    """The counts after one request more at a moment (Unix seconds)."""
    return {window.name: (window.number(at), requests_in(counts, window, at) + 1) for window in WINDOWS}


def requests_in(counts: Counts, window: Window, at: float) -> int:
    """Requests counted in the window that a moment (Unix seconds) is in."""
    number, requests = counts.get(window.name, (-1, 0))
    return requests if number == window.number(at) else 0


def recount(counts: Counts, at: float) -> dict[str, tuple[int, int]]:
    """The counts as they are if the last request was at this moment (Unix seconds): a clock was set."""
    return {window.name: (window.number(at), counts[window.name][1]) for window in WINDOWS if window.name in counts}


def merge_counts(one: Counts, other: Counts) -> dict[str, tuple[int, int]]:
    """For each window the later count; of two of the same window the larger. Merging twice changes nothing."""
    return {name: max(counts[name] for counts in (one, other) if name in counts) for name in one.keys() | other.keys()}


@frozen(kw_only=True)
class Quota:
    """At most so many requests (`most`) in each window."""

    window: Window
    most: int

    def shut_until(self, counts: Counts) -> float:
        """When the counted window ends (Unix seconds) where it is full; 0 where it isn't."""
        number, requests = counts.get(self.window.name, (-1, 0))
        return self.window.end(number) if requests >= self.most else 0.0

    @property
    def row(self) -> tuple[float, int]:
        """The quota in the audit: seconds of a window, and the most requests in one."""
        return self.window.seconds, self.most

    @property
    def origin(self) -> str:
        """The quota as the origin of a wait."""
        return f"{self.window.key} of {self.most}"

    @property
    def text(self) -> str:
        """The quota as a fact."""
        return f"{self.most} requests {self.window.each} at most"

    @property
    def spacing(self) -> float:
        """Seconds from one request to the next, where a window's requests are spread evenly over it."""
        return self.window.seconds / self.most

    def least_seconds(self, requests: int) -> float:
        """Seconds from the first to the last of so many requests at least."""
        return (requests - 1) // self.most * self.window.seconds


def strictest_quotas(quotas: Iterable[Quota]) -> tuple[Quota, ...]:
    """For each window the smallest of several quotas, in the order of WINDOWS."""
    smallest: dict[Window, Quota] = {}
    for quota in quotas:
        known = smallest.get(quota.window)
        if known is None or quota.most < known.most:
            smallest[quota.window] = quota
    return tuple(smallest[window] for window in WINDOWS if window in smallest)


@frozen(kw_only=True)
class SharedLimit:
    """What spaces the checks of a collection, of a provider, or of everything that a group rule matches. `delay`:
    seconds from the start of one check to the start of the next (0: none); `quotas`: checks in a window; `rule`: the
    policy that the delay is from. Where a group rule matches hosts as well, every request to them counts like a check.
    """

    name: str
    rule: str
    delay: float = 0.0
    quotas: tuple[Quota, ...] = field(default=())

    @property
    def spacing(self) -> float:
        """Seconds from one check to the next on average, if there is always one."""
        return max([self.delay, *(quota.spacing for quota in self.quotas)])

    @property
    def text(self) -> str:
        """The limit as a fact."""
        parts = [f"{self.delay:g} s"] if self.delay or not self.quotas else []
        return f"{self.name}: {', '.join(parts + [quota.text for quota in self.quotas])} by policy {self.rule}"

    def redis_row(self) -> tuple[str, int, tuple[int, ...]]:
        """Name, delay in milliseconds, and the most requests for each of `redis_windows` (0: any number)."""
        most = {quota.window: quota.most for quota in self.quotas}
        return self.name, round(self.delay * 1000), tuple(most.get(window, 0) for window in WINDOWS)


def redis_windows(at: float) -> list[tuple[str, int, int]]:
    """The windows that a moment (Unix seconds) is in, for Redis: name, number and end in milliseconds since 1970."""
    numbers = [(window, window.number(at)) for window in WINDOWS]
    return [(window.name, number, round(window.end(number) * 1000)) for window, number in numbers]


def stricter(one: SharedLimit, other: SharedLimit) -> SharedLimit:
    """Two limits of one name as one: the larger delay, the smaller quotas."""
    slower = max(one, other, key=lambda limit: limit.delay)
    quotas = strictest_quotas((*one.quotas, *other.quotas))
    return SharedLimit(name=one.name, delay=slower.delay, quotas=quotas, rule=slower.rule)
