"""PURE, no I/O. Reads the body of an answer: robots.txt, a page's beginning, and where the next answer starts.

Broken framing is no error here: what came until then is the body.
"""

from __future__ import annotations

import re

from linkcrawl.network.head import Head

# Zeros in front are legal (RFC 9112, 7.1: 1*HEXDIG); some servers pad every size to eight or sixteen digits.
_SIZE = re.compile(rb"0*([0-9A-Fa-f]{1,15})[ \t]*(?:;.*)?", re.DOTALL)
_MAX_LINE = 4096
_MAX_TRAILERS = 100
#: Bytes of sizes, extensions, line ends and trailers that chunks may come with (RFC 9112, 7.1.1 wants a limit): so many
#: at any rate, and more for each byte of data, enough for a server that sends every byte in a chunk of its own.
_MAX_FRAMING = 64 * 1024
_FRAMING_PER_BYTE = 8


class BodyReader:
    """Feed it until `done`. At most `limit` bytes are kept.

    `complete`: the body came to its end as the head announced it (or, announced by nothing, the connection closed in
    good order). `stray`: bytes came after that end. `truncated`: `limit` cut it.
    """

    def __init__(self, head: Head, limit: int) -> None:
        self.data = bytearray()
        self.done = self.complete = self.stray = self.truncated = False
        self._limit = limit
        self._buffer = bytearray()
        self._framing = 0  # bytes of chunks that are no data
        self._trailers = -1  # counted from the last chunk on
        # "identity" was a coding until RFC 7230; servers that say it send a Content-Length as well
        codings = [coding for coding in head.values("transfer-encoding") if coding != "identity"]
        self._chunked = bool(codings) and codings[-1] == "chunked"
        self._left = 0 if self._chunked else None if codings else _content_length(head)
        if self._left == 0 and not self._chunked:
            self._finish()

    def feed(self, data: bytes) -> None:
        self._buffer += data
        if self._chunked:
            self._read_chunks()
        elif self._left is not None and not self.done:
            self._read_data()
            if self._left == 0:
                self._finish()
        elif not self.done:
            self._keep(bytes(self._buffer))
            self._buffer.clear()
        if self.done:
            self.stray = self.stray or bool(self._buffer)
            self._buffer.clear()

    def end(self, *, orderly: bool) -> None:
        """The connection is closed; `orderly`: by FIN, not by a reset."""
        if not self.done:
            self.done = True
            self.complete = orderly and self._left is None and not self._chunked

    def _finish(self) -> None:
        self.done = True
        self.complete = not self.truncated

    def _keep(self, piece: bytes) -> None:
        room = self._limit - len(self.data)
        self.data += piece[:room]
        if len(piece) > room:
            self.truncated = self.done = True

    def _read_data(self) -> None:
        assert self._left is not None
        piece = bytes(self._buffer[: self._left])
        del self._buffer[: len(piece)]
        self._left -= len(piece)
        self._keep(piece)

    def _read_chunks(self) -> None:
        while not self.done:
            if self._left:
                self._read_data()
                if self._left:
                    return
                continue
            end = self._buffer.find(b"\n", 0, _MAX_LINE)
            if end < 0:
                self.done = len(self._buffer) >= _MAX_LINE
                return
            line = bytes(self._buffer[:end]).rstrip(b"\r")
            del self._buffer[: end + 1]
            self._framing += end + 1
            if self._framing > _MAX_FRAMING + _FRAMING_PER_BYTE * len(self.data):
                self.done = True
                return
            self._read_line(line)

    def _read_line(self, line: bytes) -> None:
        if self._trailers >= 0:
            self._trailers += 1
            if not line:
                self._finish()
            elif self._trailers > _MAX_TRAILERS:
                self.done = True
            return
        if not line and self.data:  # the line end after a chunk
            return
        size = _SIZE.fullmatch(line)
        if size is None:
            self.done = True
        elif int(size[1], 16) == 0:
            self._trailers = 0
        else:
            self._left = int(size[1], 16)


def _content_length(head: Head) -> int | None:
    """None where there is none to rely on; the body then goes on until the connection is closed."""
    values = set(head.values("content-length"))
    if len(values) != 1:
        return None
    value = values.pop()
    return int(value) if re.fullmatch(r"[0-9]{1,15}", value) else None
