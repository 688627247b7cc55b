"""The audit: a line for every request that left, from which the gaps that were kept can be proved afterwards.

A line is a JSON array, its members in the order of `Line`. The log is written by the crawl and read by `scrapy audit`,
which computes from the times alone and shares no arithmetic with what kept the pace.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from attrs import define, field, frozen

#: Seconds by which a gap may be shorter than required without being a violation: the resolution of the log's times.
TOLERANCE = 0.001


@frozen
class Line:
    """One request. `sent`, `ended`: Unix seconds. `required`: seconds that had to pass in the gate between the end of
    the request before and this one, and `origin`, whose word that is. `clocks`: the clocks that its check cleared, and
    their delays from start to start. `status`: 0 where no answer came."""

    sent: float
    ended: float
    host: str
    gate: str
    required: float
    origin: str
    clocks: tuple[tuple[str, float], ...]
    method: str
    status: int

    def text(self) -> str:
        """The line as it stands in the log."""
        values = [
            round(self.sent, 4),
            round(self.ended, 4),
            self.host,
            self.gate,
            round(self.required, 4),
            self.origin,
            self.clocks,
            self.method,
            self.status,
        ]
        return json.dumps(values, ensure_ascii=True, separators=(",", ":"))


def read_line(text: str) -> Line:
    """A line of the log. Raises ValueError where it is none."""
    values = json.loads(text)
    if not isinstance(values, list) or len(values) != 9:
        raise ValueError("not a line of an audit log")
    sent, ended, host, gate, required, origin, clocks, method, status = values
    return Line(
        sent, ended, host, gate, required, origin, tuple((name, delay) for name, delay in clocks), method, status
    )


class AuditLog:
    """Adds lines to a file; no path: nothing is written. Raises OSError.

    Each line is one write at the file's end: several crawls may share the file, a crash loses none, and it may be
    rotated by copying.
    """

    def __init__(self, path: Path | None):
        self._file: int | None = None
        if path is not None:
            _cut_off_half_a_line(path)
            self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)

    def add(self, line: Line) -> None:
        if self._file is not None:
            os.write(self._file, f"{line.text()}\n".encode("ascii"))

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None


def _cut_off_half_a_line(path: Path) -> None:
    """What a crash left of a last line must not spoil the next."""
    if not path.exists():
        return
    with path.open("r+b") as file:
        size = file.seek(0, 2)
        start = max(0, size - 65536)
        file.seek(start)
        tail = file.read()
        if tail and not tail.endswith(b"\n"):
            file.truncate(start + tail.rfind(b"\n") + 1)


@define
class Scope:
    """What an audit found of a gate, a host or a clock: requests, and the gaps between them in seconds.

    `closest`: the smallest gap kept minus the gap required; negative where one was undercut. `smallest`, `required`:
    of that same gap.
    """

    kind: str
    name: str
    requests: int = 0
    violations: int = 0
    smallest: float | None = None
    required: float | None = None
    closest: float | None = None
    worst: str = field(default="")

    def gap(self, seconds: float, required: float, origin: str) -> None:
        """Take note of a gap."""
        if self.closest is None or seconds - required < self.closest:
            self.closest, self.smallest, self.required, self.worst = seconds - required, seconds, required, origin
        if seconds < required - TOLERANCE:
            self.violations += 1


def audit(lines: Iterable[Line]) -> list[Scope]:
    """All gates, hosts and clocks of the lines, in any order, those with violations first."""
    scopes: dict[tuple[str, str], Scope] = {}
    ended: dict[str, float] = {}
    started: dict[str, float] = {}

    def scope(kind: str, name: str) -> Scope:
        found = scopes.setdefault((kind, name), Scope(kind, name))
        found.requests += 1
        return found

    for line in sorted(lines, key=lambda each: each.sent):
        gate, host = scope("gate", line.gate), scope("host", line.host)
        if line.gate in ended:
            gate.gap(line.sent - ended[line.gate], line.required, line.origin)
        if line.host in ended and line.host != line.gate:
            host.gap(line.sent - ended[line.host], line.required, line.origin)
        ended[line.gate] = max(ended.get(line.gate, line.ended), line.ended)
        ended[line.host] = max(ended.get(line.host, line.ended), line.ended)
        for name, delay in line.clocks:
            clock = scope("clock", name)
            if name in started:
                clock.gap(line.sent - started[name], delay, f"policy delay of {name}")
            started[name] = line.sent
    return sorted(scopes.values(), key=lambda each: (-each.violations, each.kind, each.name))


def read_lines(paths: Iterable[Path]) -> Iterator[Line]:
    """The lines of several logs; the last one of a file, where a crash cut it off, is left out. Raises ValueError that
    names file and line for any other that is none."""
    for path in paths:
        with path.open(encoding="utf-8") as file:
            for number, text in enumerate(file, 1):
                if not text.endswith("\n"):
                    break
                try:
                    yield read_line(text)
                except (ValueError, TypeError):
                    raise ValueError(f"{path}:{number}: not a line of an audit log: {text[:80]!r}") from None
