"""The robots.txt files in force, by authority. Time is an argument.

An entry holds for its time to live. After that, and without an entry, the verdict is UNKNOWN: the file has to be
fetched first (fetch.py). While a robots.txt can't be had, nothing is allowed for 12 hours, then the last good
copy holds; where there never was one, all is allowed after 30 days of which several saw it fail (RFC 9309, 2.3.1.4; the
12 hours are Google's specification's).
"""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Any

from attrs import evolve, frozen

from linkcrawl.check.outcome import Failure
from linkcrawl.check.silence import ENOUGH_DAYS, Silence, count_days, with_look
from linkcrawl.items import RobotsFile
from linkcrawl.politeness.robots.fetch import Fetched, RobotsAvailability
from linkcrawl.politeness.robots.parser import Robots, read_robots
from linkcrawl.units import DAY, HOUR

#: Longest life of a copy (RFC 9309, 2.4).
MAX_TTL = DAY
#: Shortest life, whatever Cache-Control says; also the first wait until an unreachable file is asked for again.
MIN_TTL = 300.0
#: Seconds of unreachability after which a last good copy is applied again.
CLOSED_FOR = 12 * HOUR
#: Seconds of unreachability after which a file of which there is no good copy counts as absent, if ENOUGH_DAYS of them
#: have seen it.
GIVEN_UP_AFTER = 30 * DAY
#: Seconds without a look after which these begin anew. The links of a closed host are checked every 7 days at most
#: (Intervals.transient_longest), so twice that is no regular gap.
PAUSE = 14 * DAY
#: Seconds for which an old copy is kept for the case that the file can't be had: longer than the time between two
#: monthly crawls, and than the 30 days between two checks of broken or restricted links.
KEPT_FOR = 60 * DAY
#: Bytes that all entries may hold together, at ENTRY_COST each besides their texts (measured, with the dictionary).
MAX_SIZE = 64 * 1024 * 1024
ENTRY_COST = 600
#: Characters that are kept of a note, in which a stranger's URL may stand.
MAX_NOTE = 500


class Access(StrEnum):
    """What robots.txt says of a URL. UNREACHABLE: it can't be had, so nothing may be requested. UNKNOWN: it has to be
    fetched first."""

    ALLOWED = "allowed"
    DISALLOWED = "disallowed"
    UNREACHABLE = "unreachable"
    UNKNOWN = "unknown"


@frozen(kw_only=True)
class RobotsVerdict:
    """What robots.txt says of a URL, and why. `failure`: with UNREACHABLE, the failure that the link would meet itself;
    None means `robots_unreachable`. `timed_out`: a time limit ended the fetch of an unreachable file. `note`: one line
    for people; None for a plain rule."""

    access: Access
    failure: Failure | None = None
    timed_out: bool = False
    note: str | None = None


@frozen(kw_only=True)
class RobotsEntry:
    """What is known of one authority's robots.txt. Times are Unix seconds.

    `robots`: the last good copy, None if there never was one. `failing_since`: when the file could first not be had;
    None after a good fetch. `tries`: failed fetches since then. `failing_days`: the first of these on each day (UTC),
    of the first days since the last PAUSE only (check.silence).
    """

    robots: Robots | None
    asked_at: float
    expires_at: float
    note: str
    failing_since: float | None = None
    failing_days: tuple[float, ...] = ()
    failure: Failure | None = None
    timed_out: bool = False
    tries: int = 0

    def is_fresh(self, now: float) -> bool:
        """True while no fetch is needed. An entry from the future (the clock was set back) is not fresh."""
        return now < self.expires_at and now > self.asked_at - MIN_TTL

    def in_force(self, now: float) -> Robots | None:
        """The rules that hold; None where nothing is allowed."""
        if self.failing_since is None:
            return self.robots
        if self.robots is None:
            return Robots() if self.is_given_up else None
        return self.robots if now - self.failing_since >= CLOSED_FOR else None

    @property
    def is_given_up(self) -> bool:
        """True where the file counts as absent: it could not be had for long, and there is no good copy. It stays so
        until a good fetch, also after a pause: else a host that is looked at seldom would close again and again."""
        if self.robots is not None or not self.failing_days:
            return False
        silence = Silence(since=self.failing_days[0], days=count_days(self.failing_days))
        return silence.has_lasted(self.asked_at, GIVEN_UP_AFTER, ENOUGH_DAYS)

    def verdict(self, url: str, now: float) -> RobotsVerdict:
        """The verdict on a URL of this authority, however old the entry is."""
        robots = self.in_force(now)
        if robots is None:
            return RobotsVerdict(
                access=Access.UNREACHABLE, failure=self.failure, timed_out=self.timed_out, note=self.note
            )
        note = None if self.failing_since is None else self._exception(now - self.failing_since)
        if robots.is_beyond(url):
            note = "robots.txt has more rules with * than are held against a URL this long"
        return RobotsVerdict(access=Access.ALLOWED if robots.allowed(url) else Access.DISALLOWED, note=note)

    def _exception(self, failing: float) -> str:
        held = "taken to be absent" if self.robots is None else "last good copy applied"
        return f"robots.txt unreachable for {failing / HOUR:.0f} hours, {held} ({self.note})"

    def to_row(self) -> dict[str, Any]:
        """The entry as a store keeps it: JSON values only."""
        return {
            "rules": None if self.robots is None else self.robots.rules,
            "asked_at": self.asked_at,
            "expires_at": self.expires_at,
            "note": self.note,
            "failing_since": self.failing_since,
            "failing_days": list(self.failing_days),
            "failure": self.failure,
            "timed_out": self.timed_out,
            "tries": self.tries,
        }


def entry_from_row(row: Mapping[str, Any]) -> RobotsEntry:
    """The entry of a stored row."""
    rules, failure = row["rules"], row["failure"]
    return RobotsEntry(
        robots=None if rules is None else Robots(rules),
        asked_at=row["asked_at"],
        expires_at=row["expires_at"],
        note=row["note"],
        failing_since=row["failing_since"],
        failing_days=tuple(row.get("failing_days", ())),
        failure=None if failure is None else Failure(failure),
        timed_out=row.get("timed_out", False),
        tries=row["tries"],
    )


class RobotsCache:
    """The entries of the authorities that were asked for last; what is dropped when they hold too much is in the store,
    and read from there when it is needed again.

    `token`: our product token. `ttl`: LINKCRAWL_ROBOTS_TTL, seconds.
    """

    def __init__(self, token: str, ttl: float, max_size: int = MAX_SIZE):
        self._token = token
        self._ttl = min(ttl, MAX_TTL)
        self._max_size = max_size
        self._size = 0
        self._entries: OrderedDict[str, RobotsEntry] = OrderedDict()
        self._changed: set[str] = set()

    @property
    def size(self) -> int:
        """Bytes that the entries hold, as they are counted."""
        return self._size

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def get(self, authority: str) -> RobotsEntry | None:
        """The entry of an authority, fresh or not; None where none is in memory."""
        entry = self._entries.get(authority)
        if entry is not None:
            self._entries.move_to_end(authority)
        return entry

    def verdict(self, authority: str, url: str, now: float) -> RobotsVerdict:
        """What robots.txt says now of a URL of this authority."""
        entry = self.get(authority)
        if entry is None or not entry.is_fresh(now):
            return RobotsVerdict(access=Access.UNKNOWN)
        return entry.verdict(url, now)

    def take(self, fetched: Fetched, now: float) -> RobotsEntry:
        """Keep the result of a fetch. Returns the entry that is in force from now on."""
        if fetched.availability is RobotsAvailability.UNREACHABLE:
            entry = self._unreachable(fetched, self._entries.get(fetched.authority), now)
        else:
            body = fetched.body if fetched.availability is RobotsAvailability.FOUND else b""
            entry = RobotsEntry(
                robots=read_robots(body, self._token),
                asked_at=now,
                expires_at=now + self._lifetime(fetched.max_age),
                note=fetched.note[:MAX_NOTE],
            )
        self._keep(fetched.authority, entry)
        self._changed.add(fetched.authority)
        return entry

    def shift(self, seconds: float, since: float) -> None:
        """The clock has been moved by `seconds`: what was read since `since`, on the clock of before, moves with it."""
        for authority, entry in self._entries.items():
            if entry.asked_at >= since:
                failing_since = entry.failing_since
                self._entries[authority] = evolve(
                    entry,
                    asked_at=entry.asked_at + seconds,
                    expires_at=entry.expires_at + seconds,
                    failing_since=None if failing_since is None else _moved(failing_since, seconds, since),
                    failing_days=tuple(_moved(at, seconds, since) for at in entry.failing_days),
                )

    def take_changed(self) -> list[RobotsFile]:
        """What the store is to keep of the authorities that were asked since the last call."""
        changed, self._changed = self._changed, set()
        found = ((authority, self._entries.get(authority)) for authority in sorted(changed))
        return [self._file(authority, entry) for authority, entry in found if entry is not None]

    def still_changed(self, files: Iterable[RobotsFile]) -> None:
        """The store has not taken what `take_changed` gave: it is to be stored with the next."""
        self._changed.update(file.authority for file in files)

    def restore(self, files: Iterable[RobotsFile], now: float) -> None:
        """Take back what the store has kept, unless newer is known. Rules picked for another product token are not
        ours. What a crawl with a clock that was ahead has left counts as of now."""
        for file in files:
            if file.entry["token"] == self._token and file.authority not in self._entries:
                self._keep(file.authority, _not_of_the_future(entry_from_row(file.entry), now))

    def expire(self, since: float) -> None:
        """What was read since then (Unix seconds) was not the hosts' own: it is to be fetched anew, also by the next
        crawl."""
        for authority, entry in list(self._entries.items()):
            if entry.asked_at >= since:
                self._keep(authority, evolve(entry, expires_at=entry.asked_at))
                self._changed.add(authority)

    def forget_failures(self, since: float) -> None:
        """The files that could not be had since then (Unix seconds) were not missing: it was our own network. They are
        to be fetched anew; a good copy from before stays in force until then."""
        for authority, entry in list(self._entries.items()):
            if entry.failing_since is None or entry.failing_since < since:
                continue
            if entry.robots is None:
                self.forget(authority)
            else:
                known = evolve(entry, expires_at=entry.asked_at, failing_since=None, failure=None, tries=0)
                self._keep(authority, known)

    def forget(self, authority: str) -> None:
        """Another worker may know better: the store is to be asked again."""
        self._changed.discard(authority)
        dropped = self._entries.pop(authority, None)
        self._size -= 0 if dropped is None else _cost(authority, dropped)

    def _file(self, authority: str, entry: RobotsEntry) -> RobotsFile:
        useful_from = entry.expires_at if entry.failing_since is None else entry.failing_since
        row = {"token": self._token, **entry.to_row()}
        return RobotsFile(authority=authority, until=max(useful_from, entry.asked_at) + KEPT_FOR, entry=row)

    def _lifetime(self, max_age: float | None) -> float:
        return self._ttl if max_age is None else min(self._ttl, max(max_age, MIN_TTL))

    def _unreachable(self, fetched: Fetched, before: RobotsEntry | None, now: float) -> RobotsEntry:
        if before is None:
            before = RobotsEntry(robots=None, asked_at=now, expires_at=now, note="")
        return evolve(
            before,
            asked_at=now,
            expires_at=now + min(MIN_TTL * 2 ** min(before.tries, 10), self._ttl),
            note=fetched.note[:MAX_NOTE],
            failing_since=now if before.failing_since is None else before.failing_since,
            failing_days=_days_after(before, now),
            failure=fetched.failure,
            timed_out=fetched.timed_out,
            tries=before.tries + 1,
        )

    def _keep(self, authority: str, entry: RobotsEntry) -> None:
        if entry.robots is not None and entry.robots.ignored:  # for the log only
            entry = evolve(entry, robots=Robots(entry.robots.rules))
        self._size += _cost(authority, entry)
        replaced = self._entries.pop(authority, None)
        self._entries[authority] = entry
        self._size -= 0 if replaced is None else _cost(authority, replaced)
        while self._size > self._max_size and len(self._entries) > 1:
            name, dropped = self._entries.popitem(last=False)
            self._size -= _cost(name, dropped)


def _not_of_the_future(entry: RobotsEntry, now: float) -> RobotsEntry:
    ahead = max(entry.asked_at - now, 0.0)
    return evolve(
        entry,
        asked_at=min(entry.asked_at, now),
        expires_at=min(entry.expires_at - ahead, now + MAX_TTL),
        failing_since=None if entry.failing_since is None else min(entry.failing_since, now),
        failing_days=tuple(min(at, now) for at in entry.failing_days),
    )


def _days_after(before: RobotsEntry, now: float) -> tuple[float, ...]:
    """`failing_days` after one more fetch that failed."""
    if before.failing_since is None:
        return (now,)
    if before.is_given_up:
        return before.failing_days
    if now - before.asked_at >= PAUSE:
        return (now,)
    return with_look(before.failing_days or (before.failing_since,), now)  # older versions kept no days


def _moved(at: float, seconds: float, since: float) -> float:
    return at + seconds if at >= since else at


def _cost(authority: str, entry: RobotsEntry) -> int:
    """Bytes that an entry holds."""
    rules = "" if entry.robots is None else entry.robots.rules
    return ENTRY_COST + sum(map(sys.getsizeof, (authority, entry.note, rules)))
