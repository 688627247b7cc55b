"""What each misbehaviour shows to a plain socket, by name."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple


class Seen(NamedTuple):
    """What a client sees: the bytes (the first MOST), and how it ended: closed, reset, refused, silent, or more."""

    data: bytes
    end: str

    @property
    def status(self) -> int | None:
        found = re.match(rb"HTTP/\S+ (\d{3})\b", self.data)
        return int(found[1]) if found else None


Check = Callable[[Seen], object]


def has_status(status: int) -> Check:
    return lambda seen: seen.status == status


def _starts(data: bytes, end: str) -> Check:
    return lambda seen: seen.data.startswith(data) and seen.end == end


def _holds(data: bytes) -> Check:
    return lambda seen: data in seen.data


def _ends(end: str) -> Check:
    return lambda seen: seen == Seen(b"", end)


_OK = b"HTTP/1.1 200 OK\r\n"
_DRIPPED: Check = lambda seen: len(seen.data) > 0 and seen.data in _OK and seen.end == "silent"  # noqa: E731

#: Name -> what a HEAD of the link shows, where the name alone does not say it.
HEAD: dict[str, Check] = {
    "head-reset": _ends("reset"),
    "head-empty": _ends("closed"),
    "head-hang": _ends("silent"),
    "head-garbage": _starts(b"\x00", "closed"),
    "head-loop": _holds(b"Location: /doc\r\n"),
    "head-body": _holds(b"\r\n\r\n<!doctype"),
    "head-mime": _holds(b"Content-Type: application/x-odd\r\n"),
    "head-404-get-404": has_status(404),
    "head-404-get-reset": has_status(404),
    "status-1000": _holds(b" 1000 "),
    "line-no-reason": _holds(b"HTTP/1.1 200\r\n"),
    "line-reason-escapes": _holds(b" 200 \x1b[31m"),
    "line-http-1.0": _starts(b"HTTP/1.0 200 OK\r\n\r\n", "closed"),
    "line-http-2": _starts(b"HTTP/2 200\r\n", "closed"),
    "line-http-0.9": _starts(b"<!doctype", "closed"),
    "line-garbage": _starts(b"\x15\x03", "closed"),
    "line-ssh": _starts(b"SSH-", "closed"),
    "line-blank-first": _holds(b"\r\n\r\nHTTP/1.1 200"),
    "interim-100": _holds(b"100 Continue\r\n\r\nHTTP/1.1 200"),
    "interim-103": _holds(b"</x>\r\n\r\nHTTP/1.1 200"),
    "interim-endless": lambda seen: seen.data.count(b" 100 ") == 1000,
    "interim-101": _starts(b"HTTP/1.1 101 Switching", "silent"),
    "header-no-colon": _holds(b"\r\nthis is no header\r\n"),
    "header-obs-fold": _holds(b"one\r\n  two\r\n"),
    "header-bare-lf": lambda seen: b"\n\n" in seen.data and b"\r" not in seen.data,
    "header-latin-1": _holds(b"Universit\xe4t"),
    "header-utf-8": _holds("Universität 🐘".encode()),
    "header-nul": _holds(b"a\x00b\x1b[2Jc"),
    "header-twice": lambda seen: seen.data.count(b"Content-Type") == 2,
    "header-empty-name": _holds(b"\r\n: nothing\r\n"),
    "header-bad-mime": _holds(b"html; ;;="),
    "header-mime-capitals": _holds(b"Text/HTML; Charset"),
    "header-bad-length": _holds(b"Length: lots"),
    "header-negative-length": _holds(b"Length: -5"),
    "header-huge-length": _holds(b"Length: 99999999999999999999\r"),
    "header-many": lambda seen: seen.data.count(b"X-A: b\r\n") > 10_000 and seen.end == "more",
    "header-long": lambda seen: seen.data.count(b"\r\n") == 1 and seen.end == "more",
    "header-endless": lambda seen: seen.data.count(b"\r\n") == 1 and seen.end == "more",
    "header-drip": _DRIPPED,
    "header-half": _starts(_OK + b"Content-Type: te", "closed"),
    "header-half-silence": _starts(_OK + b"Content-Type: te", "silent"),
    "header-half-reset": lambda seen: seen.end == "reset",
    "slow-good": has_status(200),
    "slow-late": _ends("silent"),
    "slow-never": _ends("silent"),
    "slow-first-byte": _starts(b"H", "silent"),
    "redirect-relative": _holds(b"Location: to/there\r\n"),
    "redirect-dots": _holds(b"Location: ../to\r\n"),
    "redirect-query": _holds(b"Location: ?page=2\r\n"),
    "redirect-network-path": _holds(b"Location: //127."),
    "redirect-scheme-capitals": _holds(b"Location: HTTP://"),
    "redirect-percent": _holds(b"/a%2Fb%23c%3Fd\r\n"),
    "redirect-utf-8": _holds("/straße/é\r\n".encode()),
    "redirect-latin-1": _holds(b"/stra\xdfe\r\n"),
    "redirect-space": _holds(b"/two words\r\n"),
    "redirect-fragment": _holds(b"/to#part\r\n"),
    "redirect-padded": _holds(b"Location:   /to  \r\n"),
    "redirect-two-locations": lambda seen: seen.data.count(b"Location: ") == 2,
    "redirect-userinfo": _holds(b"//u:secret@127."),
    "redirect-https-refused": _holds(b"Location: https://"),
    "redirect-ftp": _holds(b"Location: ftp:"),
    "redirect-mailto": _holds(b"Location: mailto:"),
    "redirect-javascript": _holds(b"Location: javascript:"),
    "redirect-file": _holds(b"Location: file:"),
    "redirect-data": _holds(b"Location: data:"),
    "redirect-broken-url": _holds(b"http://[::1\r\n"),
    "redirect-private": _holds(b"http://10.0.0.1/"),
    "redirect-metadata": _holds(b"http://169.254.169.254/"),
    "redirect-mapped": _holds(b"http://[::ffff:10.0.0.1]/"),
    "redirect-decimal": _holds(b"http://167772161/"),
    "redirect-bad-port": _holds(b":25/\r\n"),
    "redirect-no-port": _holds(b":99999/\r\n"),
    "redirect-cookie": _holds(b"Location: /doc\r\nSet-Cookie: seen=1"),
    "redirect-cookie-never": _holds(b"Location: /doc\r\nSet-Cookie: a=1"),
    "redirect-cookie-elsewhere": _holds(b"Set-Cookie: secret=1"),
    "redirect-cross-host": _holds(b"Location: http://127.22."),
    "status-302-nowhere": lambda seen: seen.status == 302 and b"Location" not in seen.data,
    "status-301-empty": _holds(b"Location: \r\n"),
    "login-itself": has_status(200),
    "login-403": _holds(b"/idp/profile/SAML2/"),
    "login-saml": _holds(b"/idp/profile/SAML2/"),
    "login-shibboleth": _holds(b"/Shibboleth.sso/Login"),
    "login-cas": _holds(b"/cas/login"),
    "login-adfs": _holds(b"/adfs/ls/"),
    "login-oidc": _holds(b"response_type=code"),
    "wall-ray": lambda seen: seen.status == 404 and b"cf-mitigated" not in seen.data,
    "wall-aws": _holds(b"x-amzn-waf-action: challenge"),
    "wall-429-seconds": _holds(b"Retry-After: 3600\r\n"),
    "wall-429-date": _holds(b" GMT\r\nRetry-After: "),
    "wall-429-odd": _holds(b"Retry-After: 1m30s"),
    "wall-429-malformed": _holds(b"Retry-After: soon"),
    "wall-429-years": _holds(b"Retry-After: 999999999"),
    "wall-503-seconds": _holds(b"Retry-After: 3600\r\n"),
    "wall-503-then-200": has_status(503),
    "connect-refused": _ends("refused"),
    "connect-reset": _ends("reset"),
    "connect-close": lambda seen: seen.data == b"" and seen.end in {"closed", "reset"},
    "connect-silence": _ends("silent"),
    "connect-greeting": _starts(b"220 mail", "silent"),
}
#: A GET where it differs from what HEAD shows, and is no plain 200.
GET: dict[str, Check] = {
    "head-404-get-404": has_status(404),
    "head-404-get-reset": _ends("reset"),
    "body-endless": lambda seen: seen.status == 200 and seen.end == "more",
    "body-terabyte": lambda seen: b"Length: 1000000000000\r" in seen.data and seen.end == "more",
    "body-short": lambda seen: b"Length: 5000\r" in seen.data and seen.data.endswith(b"short"),
    "body-broken-chunks": _holds(b"\r\n\r\nzz\r\n"),
    "body-cut-chunk": lambda seen: seen.end == "reset",
    "body-gzip-bomb": lambda seen: b"gzip\r\n\r\n\x1f\x8b" in seen.data and seen.end == "more",
    "body-not-gzip": _holds(b"gzip\r\n\r\nplain"),
    "body-drip": lambda seen: re.search(rb"\r\n\r\nx{1,4}$", seen.data) and seen.end == "silent",
    "body-silence": lambda seen: seen.data.endswith(b"\r\n\r\n") and seen.end == "silent",
    "body-empty": lambda seen: b"Length: 0\r\n" in seen.data and seen.end == "closed",
}
#: robots.txt, where it is not simply a file with the rules of its name.
ROBOTS: dict[str, Check] = {
    "robots-bom": _holds(b"\r\n\r\n\xef\xbb\xbfUser-agent"),
    "robots-cr": _holds(b"*\rDisallow: /\r"),
    "robots-html": _holds(b"<!doctype"),
    "robots-404": lambda seen: seen.status == 404 and b"Disallow: /" in seen.data,
    "robots-403": has_status(403),
    "robots-410": has_status(410),
    "robots-500": has_status(500),
    "robots-503": has_status(503),
    "robots-429": has_status(429),
    "robots-hang": _ends("silent"),
    "robots-reset": _ends("reset"),
    "robots-redirect-loop": _holds(b"Location: /robots.txt\r\n"),
    "robots-redirect": _holds(b"Location: /rules.txt\r\n"),
    "robots-redirect-host": _holds(b"Location: http://127.22."),
    "robots-long": lambda seen: b"Disallow: /\n# more" in seen.data and seen.end == "more",
    "robots-cut": lambda seen: b"Length: 999\r\n" in seen.data and seen.end == "closed",
    "robots-delay": _holds(b"Crawl-delay: 1\n"),
}
TLS_FAULTS = {
    "tls-self-signed": "self-signed certificate",
    "tls-expired": "expired",
    "tls-other-host": "IP address mismatch",
    "tls-untrusted": "unable to get local issuer",
    "tls-old-protocol": "ALERT_PROTOCOL_VERSION|alert protocol version",
    "tls-no-cipher": "ALERT_HANDSHAKE_FAILURE|alert handshake failure",
    "tls-plain": "WRONG_VERSION_NUMBER|wrong version number",
}


def status_in_name(name: str) -> Check | None:
    """What the name itself says: `head-405`, `status-404`, `wall-429`, `redirect-301`."""
    if re.match(r"redirect-(loop|chain|404|410)", name):
        return has_status(302)
    found = re.fullmatch(r"(head|status|wall|wall-challenge|redirect)-(\d{3})(-then-200)?", name)
    if found:
        return has_status(int(found[2]))
    return has_status(405) if name.startswith("body-") else None


#: What says nothing at all, and what says something and then nothing more for long.
SILENT = {"head-hang", "slow-late", "slow-never", "connect-silence", "robots-hang", "tls-silence"}
CUT_SHORT = {
    *("interim-101", "header-drip", "header-half-silence", "slow-first-byte", "connect-greeting"),
    *("body-drip", "body-silence"),
}
