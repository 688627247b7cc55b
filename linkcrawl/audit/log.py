"""The audit log: a line for every request that was sent, from which its gaps and quotas can be proved afterwards.

A line is a JSON array, its members in the order of `AuditEntry`. The crawl writes the log; `scrapy audit` reads it, and
computes from the times alone: the proof shares no arithmetic with pacing (verify.py).
"""

from __future__ import annotations

import json
import logging
import math
from pathlib import Path

from attrs import frozen

from linkcrawl.line_file import LineFile

logger = logging.getLogger(__name__)

# Made once: json.dumps makes an encoder for each call with options.
_JSON = json.JSONEncoder(ensure_ascii=True, separators=(",", ":"))


#: Quotas: the length of a window in seconds, and the most requests in each. Windows follow one another from 1970, UTC.
Quotas = tuple[tuple[float, int], ...]


@frozen
class AuditLimit:
    """A shared limit that a check has started under. `delay`: seconds from start to start; `quotas`: checks."""

    name: str
    delay: float
    quotas: Quotas = ()


@frozen
class AuditEntry:
    """One request that was sent.

    `sent`, `ended`: Unix seconds. `required`: seconds that the gate had to keep between the
    end of its last request and `sent`; `origin`: the rule or value that required them. `limits`: shared limits that the
    request starts. `status`: 0 where no answer came. `quotas`: of the gate, in requests."""

    sent: float
    ended: float
    host: str
    gate: str
    required: float
    origin: str
    limits: tuple[AuditLimit, ...]
    method: str
    status: int
    quotas: Quotas = ()

    def text(self) -> str:
        """The line of the log: members that are empty at the end of an array are left out."""
        values: list[object] = [
            round(self.sent, 4),
            round(self.ended, 4),
            self.host,
            self.gate,
            round(self.required, 4),
            self.origin,
            [
                (limit.name, limit.delay, limit.quotas) if limit.quotas else (limit.name, limit.delay)
                for limit in self.limits
            ],
            self.method,
            self.status,
        ]
        return _JSON.encode([*values, self.quotas] if self.quotas else values)


def read_line(text: str) -> AuditEntry:
    """An entry from its line of the log. Raises ValueError for any other text."""
    try:
        values = json.loads(text)
    except RecursionError:
        values = None
    if not isinstance(values, list) or len(values) not in (9, 10):
        raise ValueError("not a line of an audit log")
    sent, ended, host, gate, required, origin, limits, method, status, *quotas = values
    try:
        read = tuple(AuditLimit(name, delay, _quotas(*more)) for name, delay, *more in limits)
        entry = AuditEntry(sent, ended, host, gate, required, origin, read, method, status, _quotas(*quotas))
    except TypeError:
        raise ValueError("not a line of an audit log") from None
    windows = [window for quotas in (entry.quotas, *(limit.quotas for limit in read)) for window in quotas]
    numbers = (sent, ended, required, status, *(limit.delay for limit in read), *(most for _, most in windows))
    texts = (host, gate, origin, method, *(limit.name for limit in read))
    if not all(map(_is_number, numbers)) or not all(isinstance(text, str) for text in texts):
        raise ValueError("not a line of an audit log")
    if not all(_is_number(seconds) and seconds > 0 for seconds, _ in windows):
        raise ValueError("not a line of an audit log")
    return entry


def _quotas(rows: list[tuple[float, int]] | None = None) -> Quotas:
    return tuple((seconds, most) for seconds, most in rows or ())


def _is_number(value: object) -> bool:
    try:
        return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    except OverflowError:
        return False


class AuditLog:
    """Adds lines to a file; without a path it writes nothing. Raises OSError where the file can't be opened.

    The file has whole lines only (LineFile). A line that can't be written (disk full) is lost; the log says so once.
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
