"""PURE, no I/O. A request as bytes, exactly as its target has it: what can't be sent so is refused, never mended."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache

from linkcrawl import urls
from linkcrawl.check.outcome import Failure
from linkcrawl.network.fault import Fault
from linkcrawl.urls import Refused, Target

#: An absolute URL that has a host and needs no repair of blanks, control characters or letters outside ASCII.
_SENDABLE = re.compile(r"https?://[^/?#\\][!-~]*", re.IGNORECASE | re.ASCII)
#: What a request line and a Host field may hold of a target: visible ASCII.
_VISIBLE = re.compile(r"[!-~]+")
_FIELD_VALUE = re.compile(rb"[ !-~\x80-\xff]*")
_TOKEN = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")

#: Fields that the handler sets itself; a request's own fields of these names are left out.
_OURS = frozenset({b"Host", b"Connection", b"Accept-Encoding", b"Content-Length", b"Transfer-Encoding"})


def read_target(url: str) -> Target | Fault:
    """The target of a request that another component made. A URL that a browser would repair is refused: the
    component's author must see what he sends."""
    if not _SENDABLE.fullmatch(url):
        detail = "not sent, the URL has no host or holds blanks, control characters or letters outside ASCII"
        return Fault(failure=Failure.PROTOCOL, detail=detail)
    target = urls.read(url)
    if isinstance(target, Refused):
        failure = Failure.FORBIDDEN_PORT if target.reason == "forbidden_port" else Failure.PROTOCOL
        return Fault(failure=failure, detail=f"not sent, {target.error}")
    return target


@lru_cache(maxsize=1024)
def _field_line(name: bytes, value: bytes) -> bytes | None:
    """A header line in title case, without its end; b"" for a field that the handler sets itself, None for a field that
    can't be sent. Cached, for the same few fields go with every request."""
    title = name.title()
    if title in _OURS:
        return b""
    return b"%s: %s" % (title, value) if _TOKEN.fullmatch(title) and _FIELD_VALUE.fullmatch(value) else None


def request_bytes(method: str, target: Target, headers: Mapping[bytes, Iterable[bytes]]) -> bytes | Fault:
    """The request without a body. `headers` are sent as they are, in title case.

    Nothing is compressed (`identity`): what isn't decompressed can't be a bomb.
    """
    if not (_VISIBLE.fullmatch(target.request_target) and _VISIBLE.fullmatch(target.host_field)):
        return Fault(failure=Failure.PROTOCOL, detail="not sent, the URL holds blanks or control characters")
    lines = [f"{method} {target.request_target} HTTP/1.1".encode(), f"Host: {target.host_field}".encode()]
    for name, values in headers.items():
        for value in values:
            line = _field_line(name, value)
            if line is None:
                detail = f"not sent, control characters in the field {name.title()!r}"
                return Fault(failure=Failure.PROTOCOL, detail=detail)
            if line:
                lines.append(line)
    if not _TOKEN.fullmatch(method.encode()):
        return Fault(failure=Failure.PROTOCOL, detail=f"not sent, {method!r} is no method")
    lines += [b"Accept-Encoding: identity", b"Connection: keep-alive", b"", b""]
    return b"\r\n".join(lines)
