"""The audit: a line for every request that left, from which the gaps that were kept can be proved afterwards.

A line is a JSON array, its members in the order of `AuditEntry`. The log is written by the crawl and read
by `scrapy audit`, which computes from the times alone and shares no arithmetic with what kept the pace (verify.py).
"""

from __future__ import annotations

import json
import logging
import math
from pathlib import Path

from attrs import frozen

from linkcrawl.line_file import LineFile

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
    try:
        values = json.loads(text)
    except RecursionError:
        values = None
    if not isinstance(values, list) or len(values) != 9:
        raise ValueError("not a line of an audit log")
    sent, ended, host, gate, required, origin, limits, method, status = values
    try:
        entry = AuditEntry(
            sent, ended, host, gate, required, origin, tuple((name, delay) for name, delay in limits), method, status
        )
    except TypeError:
        raise ValueError("not a line of an audit log") from None
    numbers = (sent, ended, required, status, *(delay for _, delay in entry.limits))
    texts = (host, gate, origin, method, *(name for name, _ in entry.limits))
    if not all(map(_is_number, numbers)) or not all(isinstance(text, str) for text in texts):
        raise ValueError("not a line of an audit log")
    return entry


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


class AuditLog:
    """Adds lines to a file; no path: nothing is written. Raises OSError.

    A line stands in the file whole or not at all (LineFile); one that can't be written (disk full) is lost, and that is
    said once.
    """

    def __init__(self, path: Path | None):
        self._file = None if path is None else LineFile(path)
        self._losing = False

    def add(self, line: AuditEntry) -> None:
        if self._file is None:
            return
        try:
            self._file.add(f"{line.text()}\n".encode("ascii"))
            self._losing = False
        except OSError as fault:
            if not self._losing:
                logger.error("Lines of the audit log are lost: %s", fault.strerror)
            self._losing = True

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
