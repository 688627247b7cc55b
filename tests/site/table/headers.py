"""Header sections that bend or break the rules."""

from __future__ import annotations

from tests.site.behaviours import answer, drip, flood, raw
from tests.site.misbehaviour import page

_LINE = b"HTTP/1.1 200 OK\r\n"
_END = b"Content-Type: text/html\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
_LONG = b"b" * 65536

ROWS = [
    page("header-no-colon", "a header line without a colon", raw(_LINE + b"this is no header\r\n" + _END)),
    page("header-obs-fold", "a header value folded over two lines", raw(_LINE + b"X-Long: one\r\n  two\r\n" + _END)),
    page("header-bare-lf", "lines that end with LF alone", raw((_LINE + _END).replace(b"\r\n", b"\n"))),
    page("header-latin-1", "a value in Latin-1", raw(_LINE + b"X-Name: Universit\xe4t\r\n" + _END)),
    page("header-utf-8", "a value in UTF-8", raw(_LINE + "X-Name: Universität 🐘\r\n".encode() + _END)),
    page("header-nul", "a value with NUL and escapes", raw(_LINE + b"X-Odd: a\x00b\x1b[2Jc\r\n" + _END)),
    page("header-twice", "Content-Type and Content-Length twice", raw(_LINE + b"Content-Type: text/html\r\n" + _END)),
    page("header-empty-name", "a line that begins with the colon", raw(_LINE + b": nothing\r\n" + _END)),
    page("header-bad-mime", "a Content-Type that is none", answer(mime="html; ;;=")),
    page(
        "header-mime-capitals", "a Content-Type with capitals and parameters", answer(mime="Text/HTML; Charset=UTF-8")
    ),
    page("header-bad-length", "a Content-Length that is no number", raw(_LINE + b"Content-Length: lots\r\n\r\n")),
    page("header-negative-length", "a Content-Length below nought", raw(_LINE + b"Content-Length: -5\r\n\r\n")),
    page(
        "header-huge-length",
        "a Content-Length of 20 digits",
        raw(_LINE + b"Content-Length: 99999999999999999999\r\n\r\n"),
    ),
    page("header-many", "300,000 header lines", flood(_LINE, b"X-A: b\r\n" * 1000, 300)),
    page("header-long", "one header line of 5 MB", flood(_LINE + b"X-A: ", _LONG, 80)),
    page("header-endless", "a header line without end", flood(_LINE + b"X-A: ", _LONG)),
    page("header-drip", "a byte of the head every 0.4 s", drip(_LINE + _END)),
    page("header-half", "half a head, then closed", raw(_LINE + b"Content-Type: te")),
    page("header-half-silence", "half a head, then silence", raw(_LINE + b"Content-Type: te", "hold")),
    page("header-half-reset", "half a head, then reset", raw(_LINE + b"Content-Type: te", "reset")),
]
