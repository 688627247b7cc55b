"""HEAD is refused, and what GET gives has a bad body: only the head counts. And answers that come late."""

from __future__ import annotations

from tests.site.behaviours import answer, drip, flood, head, per_method, raw, silence
from tests.site.misbehaviour import Misbehaviour, page
from tests.site.wire import Behaviour

_CHUNKED = head(200, [("Content-Type", "text/html"), ("Transfer-Encoding", "chunked")])
_GZIP = head(200, [("Content-Type", "text/html"), ("Content-Encoding", "gzip")])
_UNTIL_CLOSE = head(200, [("Content-Type", "text/html"), ("Connection", "close")])
_LONG = head(200, [("Content-Type", "text/html"), ("Content-Length", "1000000000000")])
_BOMB = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03" + b"\xec\xc1\x01\x01\x00\x00\x00\x80\x90\xfe\xaf\xee" * 8192


def _get(name: str, about: str, on_get: Behaviour) -> Misbehaviour:
    return page(name, about, per_method(answer(405), on_get))


ROWS = [
    _get("body-endless", "a body without end", flood(_UNTIL_CLOSE, b"x" * 65536)),
    _get("body-terabyte", "Content-Length of a terabyte, and it comes", flood(_LONG, b"x" * 65536)),
    _get("body-short", "a body shorter than Content-Length", raw(head(200, [("Content-Length", "5000")]) + b"short")),
    _get("body-broken-chunks", "a chunk size that is no number", raw(_CHUNKED + b"zz\r\nhello\r\n0\r\n\r\n")),
    _get("body-cut-chunk", "a chunk that breaks off", raw(_CHUNKED + b"ff\r\nhello", "reset")),
    _get("body-gzip-bomb", "Content-Encoding gzip that unpacks to gigabytes", flood(_GZIP, _BOMB)),
    _get("body-not-gzip", "Content-Encoding gzip, and it is not", raw(_GZIP + b"plain text")),
    _get("body-drip", "a body of a byte every 0.4 s", drip(b"x" * 40, start=_UNTIL_CLOSE)),
    _get("body-silence", "a head, then no body at all", raw(_LONG, "hold")),
    _get("body-empty", "an empty page", answer(200, b"")),
    page("slow-good", "an answer after 0.5 s", answer(after=0.5)),
    page("slow-late", "an answer after 8 s", answer(after=8.0)),
    page("slow-never", "a request that is never answered", silence()),
    page("slow-first-byte", "one byte, then silence", raw(b"H", "hold")),
]
