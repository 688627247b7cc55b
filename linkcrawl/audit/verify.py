"""The proof: from an audit log alone, the gaps that were kept per host, gate and limit, against those required.

A host's or gate's gap runs from the end of the request before to the start of the next; a limit's from start to start.
What was required stands in the log, as the word of what kept the pace; a floor from elsewhere may be given besides.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from attrs import define, field, frozen

from linkcrawl.audit.log import AuditEntry, read_line

#: Seconds by which a gap may be shorter than required without being a violation: the log's times are rounded to a
#: tenth of a millisecond, and those of an answer come from a clock of milliseconds.
TOLERANCE = 0.001

#: A number of seconds and whose word it is.
Floor = tuple[float, str]


@frozen(kw_only=True)
class ScopeResult:
    """What a proof found of a host, gate or limit: requests, those that came too early, and its tightest gap, which
    is the one that was the least above what it had to be: its seconds, those required, and whose word that was. None
    where there was one request only."""

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


class AuditVerifier:
    """Takes lines in any order, of as many logs as there were workers. `floor`: what a host has to keep whatever the
    log says was required, by the settings and policies of now."""

    def __init__(self, floor: Callable[[str], Floor] = lambda host: (0.0, "")):
        self._floor = floor
        self._requests: dict[tuple[str, str], _Timeline] = {}  # by gate and host
        self._checks: dict[str, _Timeline] = {}  # by limit
        self._origins: dict[str, int] = {}

    def add(self, line: AuditEntry) -> None:
        """Take note of a request."""
        requests = self._requests.setdefault((line.gate, line.host), _Timeline())
        requests.add(line.sent, line.ended, line.required, self._number(line.origin))
        for name, delay in line.limits:
            # from start to start: as if a check ended when it began
            checks = self._checks.setdefault(name, _Timeline())
            checks.add(line.sent, line.sent, delay, self._number(f"delay of {name}"))

    def scopes(self) -> list[ScopeResult]:
        """All hosts, all gates that are not just a host's own, and all limits; those with violations first."""
        gates: dict[str, dict[str, _Timeline]] = {}
        hosts: dict[str, list[_Timeline]] = {}
        for (gate, host), trail in self._requests.items():
            gates.setdefault(gate, {})[host] = trail
            hosts.setdefault(host, []).append(trail)
        found = [self._scope("host", host, trails, self._floor(host)) for host, trails in hosts.items()]
        shared = {gate: trails for gate, trails in gates.items() if trails.keys() != {gate}}
        found += [self._scope("gate", gate, trails.values()) for gate, trails in shared.items()]
        found += [self._scope("limit", limit, [trail]) for limit, trail in self._checks.items()]
        return sorted(found, key=lambda scope: (-scope.violations, scope.kind, scope.name))

    def _number(self, origin: str) -> int:
        return self._origins.setdefault(origin, len(self._origins))

    def _scope(self, kind: str, name: str, trails: Iterable[_Timeline], floor: Floor = (0.0, "")) -> ScopeResult:
        rows = sorted(row for trail in trails for row in trail)
        origins = list(self._origins)
        tightest: tuple[float, float, str] | None = None
        violations, free_from = 0, rows[0][1]
        for sent, ended, told, number in rows[1:]:
            required, origin = max((told, origins[number]), floor, key=lambda each: each[0])
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


@frozen(kw_only=True)
class Unreadable:
    """A line that is none of an audit log: torn by a crash or a full disk. The request that it was of is missing from
    the proof."""

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
