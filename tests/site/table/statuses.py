"""Status codes, usual and unusual, and status lines that are none."""

from __future__ import annotations

from tests.site.behaviours import PAGE, answer, head, raw, redirect
from tests.site.misbehaviour import page

_OK = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 0\r\n\r\n"
_NO_BODY = b"Content-Length: 0\r\nConnection: close\r\n\r\n"
_AUTHENTICATE = [("WWW-Authenticate", 'Basic realm="x"')]

ALIVE = (200, 201, 202, 203, 204, 206, 226)
#: 4xx and 5xx that are the same on HEAD and on GET.
FAILING = (400, 402, 403, 404, 405, 406, 408, 409, 410, 414, 418, 421, 422, 423, 425, 431, 451, 499)
SERVER_ERRORS = (500, 501, 502, 504, 505, 520, 599)

ROWS = [
    *(page(f"status-{status}", f"{status}", answer(status)) for status in ALIVE),
    page("status-304", "304 that nobody asked for", answer(304)),
    *(page(f"status-{status}", f"{status} on HEAD and GET", answer(status)) for status in FAILING),
    page("status-401", "401 with WWW-Authenticate", answer(401, headers=_AUTHENTICATE)),
    page("status-407", "407 from a server", answer(407)),
    *(page(f"status-{status}", f"{status} on HEAD and GET", answer(status)) for status in SERVER_ERRORS),
    page("status-999", "999, three digits beyond HTTP", answer(999)),
    page("status-1000", "a status of four digits", raw(b"HTTP/1.1 1000 Odd\r\n" + _NO_BODY)),
    page("status-300", "300 without Location", redirect(None, 300)),
    page("status-305", "305 with a Location", redirect("/to", 305)),
    page("status-302-nowhere", "302 without Location", redirect(None, 302)),
    page("status-301-empty", "301 with an empty Location", redirect("", 301)),
    page("line-no-reason", "a status line without a reason", raw(b"HTTP/1.1 200\r\n" + _NO_BODY)),
    page(
        "line-reason-escapes", "a reason with terminal escapes", raw(b"HTTP/1.1 200 \x1b[31mred\x1b[0m\r\n" + _NO_BODY)
    ),
    page("line-http-1.0", "HTTP/1.0 without any header", raw(b"HTTP/1.0 200 OK\r\n\r\n")),
    page("line-http-2", "a status line that says HTTP/2", raw(b"HTTP/2 200\r\n" + _NO_BODY)),
    page("line-http-0.9", "HTTP/0.9: the page without a head", raw(PAGE)),
    page("line-garbage", "bytes that are not HTTP", raw(b"\x15\x03\x01\x00\x02\x02\x50garbage\r\n\r\n")),
    page("line-ssh", "the greeting of another protocol", raw(b"SSH-2.0-OpenSSH_9.6\r\n")),
    page("line-blank-first", "empty lines before the status line", raw(b"\r\n\r\n" + _OK, "keep")),
    page("interim-100", "100 Continue before the answer", raw(b"HTTP/1.1 100 Continue\r\n\r\n" + _OK, "keep")),
    page(
        "interim-103", "103 with Link before the answer", raw(b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" + _OK)
    ),
    page("interim-endless", "100 Continue a thousand times", raw(b"HTTP/1.1 100 Continue\r\n\r\n" * 1000 + _OK)),
    page("interim-101", "101 to a protocol that nobody asked for", raw(head(101, [("Upgrade", "websocket")]), "hold")),
]
