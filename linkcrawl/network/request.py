"""PURE, no I/O. A request as bytes, exactly as given: what can't be sent so is refused, never mended."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache

from attrs import frozen

from linkcrawl.check.outcome import Failure
from linkcrawl.network.fault import Fault

_URL = re.compile(r"(https?)://([^/?#]*)([^?#]*)((?:\?[^#]*)?)", re.IGNORECASE)
_AUTHORITY = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^:\[\]]+)(?::([0-9]{0,5}))?")
_VISIBLE = re.compile(r"[!-~]*")
_FIELD_VALUE = re.compile(rb"[ !-~\x80-\xff]*")
_TOKEN = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_PORTS = {"http": 80, "https": 443}

#: What the handler itself says; a request's own fields of these names are left out.
_OURS = frozenset({b"Host", b"Connection", b"Accept-Encoding", b"Content-Length", b"Transfer-Encoding"})


@frozen(kw_only=True)
class Destination:
    """Where a URL leads: `host` in lower case without brackets, `target` is path and query as the URL has
    them (the origin-form of RFC 9112, 3.2.1)."""

    scheme: str
    host: str
    port: int
    target: str

    @property
    def host_field(self) -> str:
        """The Host field's value: the port only where it isn't the scheme's own (RFC 9110, 7.2)."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"


def read_destination(url: str) -> Destination | Fault:
    """Take a URL apart without changing a byte of its path and query. user:password@ and the fragment are left out."""
    parts = _URL.match(url)
    if parts is None or not _VISIBLE.fullmatch(url):
        return Fault(
            failure=Failure.PROTOCOL, detail="not sent, the URL has no host or holds blanks or control characters"
        )
    scheme, authority, path, query = parts.groups()
    place = _AUTHORITY.fullmatch(authority.rpartition("@")[2])
    scheme = scheme.lower()
    port = int(place[2] or _PORTS[scheme]) if place else 0
    if place is None or not 0 < port < 65536:
        return Fault(failure=Failure.PROTOCOL, detail="not sent, the URL's host or port can't be used")
    return Destination(scheme=scheme, host=place[1].strip("[]").lower(), port=port, target=(path or "/") + query)


@lru_cache(maxsize=1024)
def _field_line(name: bytes, value: bytes) -> bytes | None:
    """A header line in title case, without its end; b"" for those that are ours to say, None for what can't be sent.
    The same few are said with every request."""
    title = name.title()
    if title in _OURS:
        return b""
    return b"%s: %s" % (title, value) if _TOKEN.fullmatch(title) and _FIELD_VALUE.fullmatch(value) else None


def request_bytes(method: str, destination: Destination, headers: Mapping[bytes, Iterable[bytes]]) -> bytes | Fault:
    """The request without a body. `headers` are sent as they are, in title case.

    Nothing is compressed (`identity`): what isn't decompressed can't be a bomb.
    """
    lines = [f"{method} {destination.target} HTTP/1.1".encode(), f"Host: {destination.host_field}".encode()]
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
