"""The audit: a line for every request that left, from which the gaps that were kept can be proved afterwards.

A line is a JSON array, its members in the order of `AuditEntry`. The log is written by the crawl and read
by `scrapy audit`, which computes from the times alone and shares no arithmetic with what kept the pace (verify.py).
"""

from __future__ import annotations

import json
import logging
import os
from pathlib import Path

from attrs import frozen

logger = logging.getLogger(__name__)

# Made once: json.dumps makes one a call unless everything is as it has it.
_JSON = json.JSONEncoder(ensure_ascii=True, separators=(",", ":"))


@frozen
class AuditEntry:
    """One request. `sent`, `ended`: Unix seconds. `required`: seconds that had to pass in the gate between the end of
    the request before and this one, and `origin`, whose word that is. `limits`: the limits that its check cleared, and
    their delays from start to start. `status`: 0 where no answer came."""

    sent: float
    ended: float
    host: str
    gate: str
    required: float
    origin: str
    limits: tuple[tuple[str, float], ...]
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
            self.limits,
            self.method,
            self.status,
        ]
        return _JSON.encode(values)


def read_line(text: str) -> AuditEntry:
    """A line of the log. Raises ValueError where it is none."""
    values = json.loads(text)
    if not isinstance(values, list) or len(values) != 9:
        raise ValueError("not a line of an audit log")
    sent, ended, host, gate, required, origin, limits, method, status = values
    return AuditEntry(
        sent, ended, host, gate, required, origin, tuple((name, delay) for name, delay in limits), method, status
    )


class AuditLog:
    """Adds lines to a file; no path: nothing is written. Raises OSError.

    Each line is one write at the file's end: several crawls may share the file, a crash loses none, and it may be
    rotated by copying. A line that can't be written (disk full) is lost, and that is said once.
    """

    def __init__(self, path: Path | None):
        self._file: int | None = None
        self._losing = False
        if path is not None:
            _cut_off_half_a_line(path)
            self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)

    def add(self, line: AuditEntry) -> None:
        if self._file is None:
            return
        try:
            os.write(self._file, f"{line.text()}\n".encode("ascii"))
            self._losing = False
        except OSError as fault:
            if not self._losing:
                logger.error("Lines of the audit log are lost: %s", fault.strerror)
            self._losing = True

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
