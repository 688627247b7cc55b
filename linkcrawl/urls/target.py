"""Reads URLs: the request that a text stands for, the text to keep and show, and which texts are the same link.

ada (`ada_url`) parses: the WHATWG URL standard is what browsers do with the odd texts of catalogues, and ada is run
against the standard's own tests. It sends what is legal byte for byte (%2F, |, [ and ] stay) and repairs the rest.
On top of it stand the rules that a crawler needs and the standard leaves to others: the limits of host names (RFC
1035, 2.3.4), the ports that browsers refuse, and user:password@, which is never kept, sent or shown.

Nothing here raises for any text: a URL that can't be requested comes back as `Refused`.
"""

from __future__ import annotations

import re
from hashlib import blake2b
from urllib.parse import quote

import ada_url
from attrs import frozen

from linkcrawl.urls import pids
from linkcrawl.urls.userinfo import DROPPED, SCHEME, SPACE, without_userinfo

#: Ports that nothing is requested from: fetch.spec.whatwg.org/#port-blocking.
# fmt: off
BAD_PORTS = frozenset((
    0, 1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103, 104, 109,
    110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465, 512, 513, 514, 515, 526, 530,
    531, 532, 540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993, 995, 1719, 1720, 1723, 2049, 3659, 4045, 4190,
    5060, 5061, 6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080,
))
# fmt: on

#: Bytes of a URL as it is sent. RFC 9110, 4.1 asks for 8,000 at least. By default Apache reads a request line of 8,190
#: bytes, nginx of 8 KiB; http.sys, AWS load balancers, HAProxy and Node.js 16 KiB: beyond, no common server answers.
MAX_URL = 16_384

_PORTS = {"http": 80, "https": 443}
_SURROGATE = re.compile("[\ud800-\udfff]")
_HOST_NAME = re.compile(r"(?:[^.]{1,63}\.)*[^.]{1,63}\.?")
_BARE_HOST = re.compile(r"\s*[A-Za-z]+:/*[^/?#\\]*(?:#|$)")
_ESCAPE = re.compile(r"%[0-9A-Fa-f]{2}")
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")  # RFC 3986, 2.3
_QUERY_SAFE = "".join(set(map(chr, range(33, 127))) - set('"#<>'))


@frozen(kw_only=True)
class Target:
    """A URL that can be requested, taken apart once: gate, robots.txt, connection, Host field, cookies and walls all
    read these parts, so that the host that was judged is the host that is connected to.

    `url`: ASCII, no fragment, no userinfo. `hostname`: a lower-case name without the root's dot, or an address without
    brackets. `port`: the URL's or the scheme's own. `host`: the host key, `hostname` (IPv6 in brackets) with `:port`
    only where the port isn't the scheme's own. `authority`: `scheme://host[:port]`, what a robots.txt is valid for;
    it keeps the root's dot.
    """

    url: str
    scheme: str
    hostname: str
    port: int
    host: str
    authority: str

    @property
    def host_field(self) -> str:
        """The value of the Host field (RFC 9110, 7.2): the port only where it isn't the scheme's own."""
        return self.authority[len(self.scheme) + 3 :]

    @property
    def request_target(self) -> str:
        """Path and query as the request line has them (origin-form: RFC 9112, 3.2.1)."""
        return self.url[len(self.authority) :]

    @property
    def path(self) -> str:
        """The path, at least `/`."""
        return self.request_target.partition("?")[0]

    @property
    def query(self) -> str:
        """What follows the question mark, "" for nothing."""
        return self.request_target.partition("?")[2]

    @property
    def is_address(self) -> bool:
        """True for an IP address: a host whose last label is a number is always one (URL standard, host parsing)."""
        return ":" in self.hostname or self.hostname.rpartition(".")[2].isdigit()


@frozen(kw_only=True)
class Refused:
    """Why nothing can be requested: `reason` is `invalid_url`, `url_too_long`, `unsupported_scheme` or
    `forbidden_port`; `error` is one printable line.
    """

    reason: str
    error: str


def has_scheme(text: str) -> bool:
    """True if the text starts, after any space, with a URI scheme (RFC 3986, 3.1)."""
    return SCHEME.match(text.lstrip(SPACE)) is not None


def tidy(text: str) -> str:
    """The text to keep of a URL and to show as `url`: as given, but with PIDs made actionable and `user:password@`
    removed, also from URLs that can't be requested and from other schemes.
    """
    cleaned = without_userinfo(text)
    return pids.actionable(cleaned.strip(SPACE)) or cleaned


def read(text: str) -> Target | Refused:
    """The target of a URL text as given in a seed."""
    return read_tidy(tidy(text))


def read_tidy(tidied: str) -> Target | Refused:
    """`read` for a text that `tidy` gave."""
    wanted = _well_formed(tidied.strip(SPACE))
    if (refused := _refuse_length(wanted)) is not None:
        return refused if _scheme(wanted) else _unreadable(tidied)
    try:
        return _target(ada_url.normalize_url(wanted), wanted)
    except ValueError:
        return _unreadable(tidied)


def join(base: str, location: str) -> Target | Refused:
    """The target of a Location header that the URL `base` answered with (RFC 9110, 10.2.2): absolute, relative,
    `//host` or `?query`.

    The text may be decoded as UTF-8, decoded as Latin-1 though it was UTF-8, or hold surrogate escapes (PEP 383), which
    stand for the bytes that were sent. An empty Location is refused: RFC 3986 would resolve it to `base`, a loop.
    """
    wanted = _header_text(location).strip(SPACE)
    if not wanted:
        return Refused(reason="invalid_url", error="Location is empty")
    wanted = _well_formed(without_userinfo(wanted))
    if (refused := _refuse_length(wanted)) is not None:
        return refused
    try:
        return _target(ada_url.join_url(base, wanted), wanted)
    except ValueError:
        return _unreadable(wanted)


def host_key(text: str) -> str | None:
    """The host key of what a person typed: a name, name:port, or a URL at the host; None where it is none of these."""
    scheme = "https" if text.endswith(":443") else "http"
    target = read(text if "://" in text else f"{scheme}://{text}/")
    if isinstance(target, Refused) or ("://" not in text and any(mark in text for mark in "/?#@ ")):
        return None
    return target.host


def identity(text: str) -> bytes:
    """16 bytes, equal for texts that are safely the same link.

    These make no difference: the case of scheme and host, the scheme's own port, the case of escapes, and escapes of
    unreserved characters (RFC 3986, 6.2.2). These do: the order of a query, a trailing slash, and the fragment, for
    catalogues tell links apart by `#?corpus=x`. A text that can't be requested is the same only as itself, tidied.
    """
    tidied = tidy(text)
    return key(tidied, read_tidy(tidied))


def key(tidied: str, reading: Target | Refused) -> bytes:
    """`identity` of a tidied text that has been read already."""
    normal = tidied
    if isinstance(reading, Target):
        # one request, but catalogues hold `http://host` and `http://host/` side by side
        url = reading.url.removesuffix("/") if _BARE_HOST.match(tidied) else reading.url
        normal = _ESCAPE.sub(_normal_escape, url)
        normal += tidied[tidied.index("#") :] if "#" in tidied else ""
    return blake2b(normal.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _well_formed(text: str) -> str:
    """The text without lone surrogates, which are no characters: pairs are joined, others become U+FFFD."""
    if text.isascii() or not _SURROGATE.search(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _header_text(location: str) -> str:
    if location.isascii():
        return location
    try:
        return location.encode("latin-1").decode()
    except UnicodeError:
        return re.sub("[\udc80-\udcff]", lambda match: f"%{ord(match[0]) - 0xDC00:02X}", location)


def _target(href: str, wanted: str) -> Target | Refused:
    """The target of a URL that ada has written; `wanted` is the text that it was made of."""
    scheme, mark, rest = href.partition("://")
    if not mark or scheme not in ("http", "https"):
        return _unsupported(href.partition(":")[0])
    netloc, _, path = rest.partition("#")[0].partition("/")
    host = netloc.rpartition("@")[2]  # a second lock: without_userinfo has taken it away
    refused = _refuse_host(host)
    if refused is not None:
        return refused
    name, colon, port = (host, "", "") if host.endswith("]") or ":" not in host else host.rpartition(":")
    name = name.removesuffix(".")
    authority = f"{scheme}://{host}"
    url = f"{authority}/{_legal_quotes(path, wanted)}"
    return _refuse_length(url) or Target(
        url=url,
        scheme=scheme,
        hostname=name.strip("[]"),
        port=int(port or _PORTS[scheme]),
        host=name + colon + port,
        authority=authority,
    )


def _refuse_length(url: str) -> Refused | None:
    """Refuses a URL, or the text of one before it is parsed, that is over MAX_URL bytes without its fragment."""
    length = len(url.partition("#")[0])
    if length <= MAX_URL:
        return None
    scheme = _scheme(url)
    if scheme is not None and scheme not in ("http", "https"):
        return _unsupported(scheme)
    return Refused(reason="url_too_long", error=f"the URL has {length} bytes; at most {MAX_URL} are sent")


def _refuse_host(host: str) -> Refused | None:
    name, port = host, ""
    if not host.endswith("]") and ":" in host:
        name, _, port = host.rpartition(":")
    if port and int(port) in BAD_PORTS:
        return Refused(reason="forbidden_port", error=f"port {port} is not for web servers (Fetch, port blocking)")
    if name.startswith("["):
        return None
    if len(name.removesuffix(".")) > 253 or not _HOST_NAME.fullmatch(name):
        shown = ascii(name if len(name) <= 80 else name[:77] + "...")
        return Refused(
            reason="invalid_url",
            error=f"host {shown} has an empty label, one over 63 characters, or more than 253 in all",
        )
    return None


def _legal_quotes(path: str, wanted: str) -> str:
    """The path and query with the apostrophes of the query as they were given: they are legal there (RFC 3986, 3.4),
    but the URL standard escapes them, and some servers tell `'` from `%27`.
    """
    if "%27" not in path or "?" not in path or "'" not in wanted:
        return path
    given = wanted.partition("#")[0].partition("?")[2].translate(DROPPED)
    return path.partition("?")[0] + "?" + quote(given, safe=_QUERY_SAFE)


def _unreadable(text: str) -> Refused:
    stripped = text.strip(SPACE)
    shown = ascii(stripped if len(stripped) <= 200 else stripped[:197] + "...")
    scheme = _scheme(stripped)
    if scheme is None:
        return Refused(reason="invalid_url", error=f"{shown} has no scheme")
    if scheme in ("http", "https"):
        return Refused(reason="invalid_url", error=f"{shown} is not a valid URL")
    return _unsupported(scheme)


def _scheme(text: str) -> str | None:
    """The scheme of a text without space around it, in lower case."""
    match = SCHEME.match(text)
    return None if match is None else match[0][:-1].translate(DROPPED).lower()


def _unsupported(scheme: str) -> Refused:
    return Refused(reason="unsupported_scheme", error=f"{scheme[:40]}: is not http or https")


def _normal_escape(match: re.Match[str]) -> str:
    character = chr(int(match[0][1:], 16))
    return character if character in _UNRESERVED else match[0].upper()
