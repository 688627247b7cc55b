"""Files and pipes as streams of bytes, decompressed where they are gzipped."""

from __future__ import annotations

import gzip
import io
import zlib
from typing import Protocol, cast

_GZIP = b"\x1f\x8b"

#: What reading a stream may raise: errors of the file system, and gzip data that is cut short or damaged.
STREAM_ERRORS = (OSError, EOFError, zlib.error)


class Stream(Protocol):
    """A binary stream that can be read in chunks."""

    def read(self, size: int = -1, /) -> bytes: ...

    def read1(self, size: int = -1, /) -> bytes: ...


def unpacked(raw: io.BufferedReader, *, gzipped: bool = False) -> Stream:
    """The stream, decompressed where it starts with gzip's magic number or `gzipped` is true (by the file's name)."""
    if gzipped or raw.peek(2)[:2] == _GZIP:
        return cast(Stream, gzip.GzipFile(fileobj=raw))
    return raw
