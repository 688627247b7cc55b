"""PURE, no I/O. The head of an HTTP/1 answer out of bytes, in whatever pieces they come.

Tolerant where a browser is: what is wanted of an answer is its status, and a server that says 200 in a sloppy way is
alive. Strict about size: what a server sends can't cost more memory or time than the bounds below.
"""

from __future__ import annotations

import re

from attrs import frozen

from linkcrawl.check.outcome import Failure
from linkcrawl.network.fault import Fault, replace_controls

#: Bytes of a whole head, interim answers included. Chromium's limit.
MAX_HEAD = 256 * 1024
#: Lines of header fields, skipped and folded ones and empty lines in front included.
MAX_LINES = 1000
#: 1xx answers before the final one. RFC 9110, 15.2, sets no bound, and slow applications send a 102 every so often;
#: neon reads as many.
MAX_INTERIM = 128

# The version is not looked at: "HTTP/2 200" as text comes from broken gateways. Three digits, so that 999 passes.
_STATUS_LINE = re.compile(rb"HTTP/(\d{1,3}(?:\.\d{1,3})?)[ \t]+([1-9]\d\d)(?!\d)(.*)", re.IGNORECASE | re.DOTALL)
_NAME = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")  # token of RFC 9110, 5.6.2
_BLANK = b" \t"
_BEGINNING = b"HTTP/"


@frozen(kw_only=True)
class Head:
    """The head of a final answer. `headers`: names in lower case, in the order of their lines, duplicates kept.

    `rest` holds what came after the head. Values are clean text: no control characters.
    """

    status: int
    reason: str
    version: str
    headers: tuple[tuple[str, str], ...]
    rest: bytes

    def values(self, name: str) -> list[str]:
        """The comma-separated members of all fields of that name (RFC 9110, 5.3), in lower case."""
        lines = (value for key, value in self.headers if key == name)
        return [part.strip().lower() for line in lines for part in line.split(",") if part.strip()]

    @property
    def persistent(self) -> bool:
        """Does the server keep the connection (RFC 9112, 9.3)? Anything but plain HTTP/1.1 counts as no."""
        return self.version == "1.1" and "close" not in self.values("connection")


class HeadParser:
    """Feed it until it gives a Head or a Fault; feed it nothing after that. Linear in the bytes, however they come."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._start = 0  # of the line being read
        self._searched = 0  # up to here there is no line end
        self._lines = 0
        self._interim = 0
        self._status: tuple[int, bytes, bytes] | None = None
        self._fields: list[tuple[bytes, list[bytes]]] = []
        self._folding = False  # may the next line continue a field?

    def feed(self, data: bytes) -> Head | Fault | None:
        self._buffer += data
        while True:
            end = self._buffer.find(b"\n", self._searched)
            if self._status is None and not self._buffer.startswith(b"HTTP/1.", self._start) and not self._may_begin():
                return Fault(failure=Failure.PROTOCOL, detail="the answer does not begin with HTTP/")
            if (end if end >= 0 else len(self._buffer) - 1) >= MAX_HEAD:
                return Fault(failure=Failure.TOO_LARGE, detail=f"over {MAX_HEAD} bytes")
            if end < 0:
                self._searched = len(self._buffer)
                return None
            line = bytes(self._buffer[self._start : end]).rstrip(b"\r")
            self._start = self._searched = end + 1
            got = self._take(line)
            if got is not None:
                return got

    def _may_begin(self) -> bool:
        """Can what has come of the status line still become one? Told early: who isn't speaking HTTP may never send
        a line end. A carriage return at the end may belong to an empty line."""
        begun = bytes(self._buffer[self._start : self._start + len(_BEGINNING) + 1]).split(b"\n")[0].rstrip(b"\r")
        return begun[: len(_BEGINNING)].upper() == _BEGINNING[: len(begun)]

    def _take(self, line: bytes) -> Head | Fault | None:
        if self._status is not None and not line:
            return self._end()
        if self._status is None and line:
            return self._take_status(line)
        self._lines += 1
        if self._lines > MAX_LINES:
            return Fault(failure=Failure.TOO_LARGE, detail=f"over {MAX_LINES} lines")
        if line:
            self._take_field(line)
        return None

    def _take_status(self, line: bytes) -> Fault | None:
        match = _STATUS_LINE.fullmatch(line)
        if match is None:
            shown = replace_controls(line[:60].decode("latin-1"))
            return Fault(failure=Failure.PROTOCOL, detail=f"no status line: {shown!r}")
        version, status, reason = match.groups()
        self._status = int(status), version, reason
        return None

    def _take_field(self, line: bytes) -> None:
        if line[:1] in (b" ", b"\t"):  # obs-fold (RFC 9112, 5.2), dropped along with a line that was no field
            if self._folding:
                self._fields[-1][1].append(line.strip(_BLANK))
            return
        name, colon, value = line.partition(b":")
        name = name.rstrip(_BLANK)
        self._folding = bool(colon) and _NAME.fullmatch(name) is not None
        if self._folding:
            self._fields.append((name, [value.strip(_BLANK)]))

    def _end(self) -> Head | Fault | None:
        assert self._status is not None
        status, version, reason = self._status
        if status >= 200:
            fields = tuple(
                (name.decode("ascii").lower(), field_text(name, parts[0] if len(parts) == 1 else b" ".join(parts)))
                for name, parts in self._fields
            )
            return Head(
                status=status,
                reason=replace_controls(_decoded(reason).strip()),
                version=version.decode("ascii"),
                headers=fields,
                rest=bytes(self._buffer[self._start :]),
            )
        self._interim += 1
        if status == 101:
            return Fault(failure=Failure.PROTOCOL, detail="switched protocols unasked (101)")
        if self._interim > MAX_INTERIM:
            return Fault(failure=Failure.PROTOCOL, detail=f"over {MAX_INTERIM} interim answers")
        self._status, self._fields, self._folding = None, [], False
        return None


def _decoded(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw.decode("latin-1")


def field_text(name: bytes, raw: bytes) -> str:
    """A field's value as clean text: UTF-8, else Latin-1, without control characters.

    What goes back to a server keeps its very bytes, as browsers send them: a Location that isn't UTF-8 percent-encoded,
    a cookie with surrogate escapes (PEP 383)."""
    if name.lower() == b"set-cookie":
        return replace_controls(raw.decode("utf-8", "surrogateescape"))
    if name.lower() == b"location":
        try:
            raw.decode()
        except UnicodeDecodeError:
            raw = b"".join(b"%%%02X" % byte if byte > 0x7F else bytes((byte,)) for byte in raw)
    value = _decoded(raw)
    return value if value.isprintable() else replace_controls(value)
