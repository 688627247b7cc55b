"""The proof: computes from an audit log alone whether every gap and every quota was kept.

The gap of a host or gate runs from the end of one request to the start of the next; that of a shared limit from start
to start. Quotas are counted by when requests were sent. The log says what was required; gaps may also be compared with
the present settings and policies."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from attrs import define, field, frozen

from linkcrawl.audit.log import AuditEntry, Quotas, read_line

#: Seconds by which a gap may be too short without a violation: the log's times are rounded to a tenth of a millisecond,
#: and those of an answer come from a clock of milliseconds.
TOLERANCE = 0.001
#: Seconds from the start of a window in which a check may still start that was let go in the window before, and has
#: counted there (a name may have had to be looked up again). Gates count requests that have ended: they need no time.
LET_GO_BEFORE = 10.0


@frozen(kw_only=True)
class HostRules:
    """What the present settings and policies require of a host: a gap in seconds, the origin of that, and quotas."""

    gap: float = 0.0
    origin: str = ""
    quotas: Quotas = ()


@frozen(kw_only=True)
class ScopeResult:
    """What the proof found of one host, gate, shared limit, or quota of one of these (`kind`).

    `requests`: how many it is about; `violations`: how many of them came too early, or were too many. `gap`,
    `required`, `origin`: of the tightest gap, the one that was least above what was required; None for a single
    request. A quota has no gap; its origin says how many were allowed, and how many the fullest window had.
    """

    kind: str
    name: str
    requests: int
    violations: int
    gap: float | None = None
    required: float | None = None
    origin: str | None = None

    def row(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "kind": self.kind,
            "name": self.name,
            "requests": self.requests,
            "smallest_gap": None if self.gap is None else round(self.gap, 4),
            "required_gap": self.required,
            "origin": self.origin,
            "violations": self.violations,
        }


@define(kw_only=True)
class _Timeline:
    """Requests in numbers, 32 bytes each: a log may have millions of lines."""

    sent: array[float] = field(factory=lambda: array("d"))
    ended: array[float] = field(factory=lambda: array("d"))
    required: array[float] = field(factory=lambda: array("d"))
    origin: array[int] = field(factory=lambda: array("l"))

    def add(self, sent: float, ended: float, required: float, origin: int) -> None:
        self.sent.append(sent)
        self.ended.append(ended)
        self.required.append(required)
        self.origin.append(origin)

    def __iter__(self) -> Iterator[tuple[float, float, float, int]]:
        return zip(self.sent, self.ended, self.required, self.origin, strict=True)


@define(kw_only=True)
class _Counted:
    """Requests under a quota: when each was sent, and the most that its window could have by then."""

    sent: array[float] = field(factory=lambda: array("d"))
    most: array[float] = field(factory=lambda: array("d"))

    def add(self, sent: float, most: float) -> None:
        self.sent.append(sent)
        self.most.append(most)


class AuditVerifier:
    """Takes lines of the logs of all workers, in any order. `rules`: the present ones, by host."""

    def __init__(self, rules: Callable[[str], HostRules] = lambda host: HostRules()):
        self._rules = rules
        self._requests: dict[tuple[str, str], _Timeline] = {}  # by gate and host
        self._starts: dict[str, _Timeline] = {}  # by shared limit
        self._counted: dict[tuple[str, str, float], _Counted] = {}  # by kind, name and seconds of a window
        self._origins: dict[str, int] = {}

    def add(self, entry: AuditEntry) -> None:
        """Take a request into account."""
        requests = self._requests.setdefault((entry.gate, entry.host), _Timeline())
        requests.add(entry.sent, entry.ended, entry.required, self._origin_number(entry.origin))
        self._count("gate quota", entry.gate, entry.sent, entry.quotas)
        for limit in entry.limits:
            # from start to start: as if a check ended when it began
            starts = self._starts.setdefault(limit.name, _Timeline())
            starts.add(entry.sent, entry.sent, limit.delay, self._origin_number(f"delay of {limit.name}"))
            self._count("limit quota", limit.name, entry.sent, limit.quotas)

    def scopes(self) -> list[ScopeResult]:
        """Results for all hosts, all gates of several hosts, all shared limits and all quotas; those with violations
        first."""
        gates: dict[str, dict[str, _Timeline]] = {}
        hosts: dict[str, list[_Timeline]] = {}
        for (gate, host), timeline in self._requests.items():
            gates.setdefault(gate, {})[host] = timeline
            hosts.setdefault(host, []).append(timeline)
        rules = {host: self._rules(host) for host in hosts}
        found = [self._gaps("host", host, timelines, rules[host]) for host, timelines in hosts.items()]
        shared = {gate: timelines for gate, timelines in gates.items() if timelines.keys() != {gate}}
        found += [self._gaps("gate", gate, timelines.values()) for gate, timelines in shared.items()]
        found += [self._gaps("limit", limit, [timeline]) for limit, timeline in self._starts.items()]
        for (kind, name, seconds), counted in self._counted.items():
            spared = LET_GO_BEFORE if kind == "limit quota" else 0.0
            found.append(_quota(kind, name, seconds, zip(counted.sent, counted.most, strict=True), spared))
        for host, timelines in hosts.items():
            for seconds, most in rules[host].quotas:
                sent = ((moment, most) for timeline in timelines for moment in timeline.sent)
                found.append(_quota("host quota", host, seconds, sent))
        return sorted(found, key=lambda scope: (-scope.violations, scope.kind, scope.name))

    def _count(self, kind: str, name: str, sent: float, quotas: Quotas) -> None:
        for seconds, most in quotas:
            self._counted.setdefault((kind, name, seconds), _Counted()).add(sent, most)

    def _origin_number(self, origin: str) -> int:
        return self._origins.setdefault(origin, len(self._origins))

    def _gaps(
        self, kind: str, name: str, timelines: Iterable[_Timeline], rules: HostRules = HostRules()
    ) -> ScopeResult:
        rows = sorted(row for timeline in timelines for row in timeline)
        origins = list(self._origins)
        tightest: tuple[float, float, str] | None = None
        violations, free_from = 0, rows[0][1]
        for sent, ended, logged, number in rows[1:]:
            required, origin = (rules.gap, rules.origin) if rules.gap > logged else (logged, origins[number])
            gap = sent - free_from
            violations += gap < required - TOLERANCE
            if tightest is None or gap - required < tightest[0] - tightest[1]:
                tightest = gap, required, origin
            free_from = max(free_from, ended)
        gap_, required_, origin_ = tightest or (None, None, None)
        return ScopeResult(
            kind=kind,
            name=name,
            requests=len(rows),
            violations=violations,
            gap=gap_,
            required=required_,
            origin=origin_,
        )


def _quota(
    kind: str, name: str, seconds: float, counted: Iterable[tuple[float, float]], spared: float = 0.0
) -> ScopeResult:
    """How a quota was kept. `counted`: when each request was sent, and the most that its window could have by then.
    `spared`: seconds from the start of a window whose requests are not held against it."""
    rows = sorted(counted)
    in_window: Counter[int] = Counter()
    violations, fullest, allowed = 0, 0, rows[0][1]
    for sent, most in rows:
        number, into = divmod(sent + TOLERANCE, seconds)
        if into < spared:
            continue
        in_window[int(number)] += 1
        so_far = in_window[int(number)]
        violations += so_far > most
        if so_far - most > fullest - allowed:
            fullest, allowed = so_far, most
    return ScopeResult(
        kind=kind,
        name=name,
        requests=len(rows),
        violations=violations,
        origin=f"{allowed:g} in each {seconds:g} s (UTC), {fullest} in the fullest",
    )


@frozen(kw_only=True)
class Unreadable:
    """A line that is no audit entry: torn by a crash or a full disk. Its request is missing from the proof."""

    path: Path
    number: int
    text: str

    def __str__(self) -> str:
        """One printable line."""
        return f"{self.path}:{self.number}: not a line of an audit log: {self.text.strip()[:80]!r}"


def read_lines(paths: Iterable[Path]) -> Iterator[AuditEntry | Unreadable]:
    """The lines of several logs. Raises OSError; and ValueError, which names file and line, for a file in which nothing
    is a line of an audit log."""
    for path in paths:
        first: Unreadable | None = None
        is_log = False
        with path.open(encoding="utf-8", errors="replace") as file:
            for number, text in enumerate(file, 1):
                if not text.strip():
                    continue
                try:
                    entry = read_line(text)
                except ValueError:
                    unreadable = Unreadable(path=path, number=number, text=text)
                    first = first or unreadable
                    yield unreadable
                else:
                    is_log = True
                    yield entry
        if first is not None and not is_log:
            raise ValueError(str(first))
