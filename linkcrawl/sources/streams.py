"""Files and pipes as streams of bytes, gunzipped where they are gzipped."""

from __future__ import annotations

import gzip
import io
import zlib
from typing import Protocol, cast

_GZIP = b"\x1f\x8b"

#: What reading a stream may raise: the file system's troubles, and gzip data that is cut short or damaged.
STREAM_ERRORS = (OSError, EOFError, zlib.error)


class Stream(Protocol):
    """What the readers need of a stream."""

    def read(self, size: int = -1, /) -> bytes: ...

    def read1(self, size: int = -1, /) -> bytes: ...


def unpacked(raw: io.BufferedReader, *, gzipped: bool = False) -> Stream:
    """The stream, gunzipped where it starts like gzip data, or where `gzipped` says that it should be."""
    if gzipped or raw.peek(2)[:2] == _GZIP:
        return cast(Stream, gzip.GzipFile(fileobj=raw))
    return raw
