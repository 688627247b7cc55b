"""What a crawler must make of each misbehaviour of the table (tests/site/table)."""

from __future__ import annotations

from typing import Any

from tests.crawl.expectation import (
    BOTH,
    Expected,
    broken,
    failed,
    lands,
    not_asked,
    ok,
    stops,
    timed_out,
    undetermined,
)
from tests.site.behaviours import PAGE
from tests.site.table import statuses

GET_WINS = ok(*BOTH)
#: A broken connection gets one fresh try; so does what is not HTTP on a connection that was kept open, for it may
#: belong to the answer before.
FRESH = ("HEAD /doc", "HEAD /doc", "GET /doc")

HEADS = {
    **{f"head-{status}": GET_WINS for status in (400, 403, 404, 405, 500, 501, 503)},
    "head-reset": ok(*FRESH),
    "head-empty": ok(*FRESH),
    "head-hang": GET_WINS,
    "head-garbage": ok(*FRESH),
    "head-loop": GET_WINS,
    "head-body": ok(mime="text/html", content_length=len(PAGE)),
    "head-mime": ok(mime="application/x-odd"),
    "head-404-get-404": broken("http_404", 404),
    "head-404-get-reset": undetermined("connection_reset", None, "HEAD /doc", "GET /doc", "GET /doc"),
}

_RESTRICTED = {401, 402, 403, 407, 451}
_OF_THE_RESOURCE = {400, 404, 410, 414, 422}


def _status(status: int) -> Expected:
    if status in _RESTRICTED:
        return failed("Restricted_Access", f"http_{status}", status)
    return (broken if status in _OF_THE_RESOURCE else undetermined)(f"http_{status}", status)


STATUSES = {
    **{f"status-{status}": ok(status=status) for status in statuses.ALIVE},
    "status-200": ok(mime="text/html", content_length=len(PAGE), mime_matches=None, expected_mime=None),
    "status-202": ok(*BOTH, status=202),
    "status-304": ok(status=304),
    **{f"status-{status}": _status(status) for status in (*statuses.FAILING, *statuses.SERVER_ERRORS, 401, 407)},
    "status-408": undetermined("http_408", 408, *FRESH),  # on a kept connection it may speak of the silence before
    "status-999": undetermined("bot_challenge", 999, "HEAD /doc"),
    "status-1000": undetermined("protocol_error", None, *FRESH),
    "status-300": undetermined("http_300", 300),
    "status-305": undetermined("http_305", 305),
    "status-302-nowhere": broken("redirect_nowhere", 302),
    "status-301-empty": broken("redirect_nowhere", 301),
    **{f"line-{name}": ok() for name in ("no-reason", "reason-escapes", "http-1.0", "http-2", "blank-first")},
    **{f"line-{name}": undetermined("protocol_error", None, *FRESH) for name in ("http-0.9", "garbage", "ssh")},
    "interim-100": ok(),
    "interim-103": ok(),
    "interim-endless": undetermined("protocol_error", None, *FRESH),
    "interim-101": undetermined("protocol_error", None, *FRESH),
}

_TOO_LARGE = undetermined("headers_too_large", None, "HEAD /doc")
HEADERS = {
    **{
        f"header-{name}": ok(mime="text/html")
        for name in ("no-colon", "obs-fold", "bare-lf", "latin-1", "utf-8", "nul", "twice", "empty-name")
    },
    "header-bad-mime": ok(mime=None),
    "header-mime-capitals": ok(mime="text/html"),
    **{f"header-{name}": ok(content_length=None) for name in ("bad-length", "negative-length", "huge-length")},
    "header-many": _TOO_LARGE,
    "header-long": _TOO_LARGE,
    "header-endless": _TOO_LARGE,
    "header-drip": timed_out(),
    "header-half": undetermined("connection_reset", None, *FRESH),
    "header-half-silence": timed_out(),
    "header-half-reset": undetermined("connection_reset", None, *FRESH),
}

_BODIES = ("endless", "terabyte", "short", "broken-chunks", "cut-chunk", "gzip-bomb", "not-gzip", "drip", "silence")
BODIES = {
    **{f"body-{name}": GET_WINS for name in (*_BODIES, "empty")},
    "slow-good": ok(),
    "slow-late": timed_out(),
    "slow-never": timed_out(),
    "slow-first-byte": timed_out(),
}

_TEN = tuple(f"HEAD /{left}" for left in range(10, -1, -1))
_ELEVEN = tuple(f"{method} /{left}" for method in ("HEAD", "GET") for left in range(11, 0, -1))


def _loop(length: int) -> Expected:
    asks = [f"{method} /{step}" for method in ("HEAD", "GET") for step in range(length)]
    return broken("redirect_loop", 302, *asks, redirects=length - 1)


def _other(*asks: str) -> dict[str, Any]:
    return {"other": asks, "redirects": 1}


_AWAY = ("HEAD /from",)
_TWICE = ("HEAD /from", "GET /from")
REDIRECTS = {
    **{f"redirect-{status}": lands("/to") for status in (300, 301, 302, 303, 307, 308)},
    "redirect-relative": lands("/x/to/there", start="/x/from"),
    "redirect-dots": lands("/to", start="/x/from"),
    "redirect-query": lands("/from?page=2"),
    **{
        f"redirect-{name}": lands("/to")
        for name in ("network-path", "scheme-capitals", "fragment", "padded", "userinfo", "two-locations")
    },
    "redirect-percent": lands("/a%2Fb%23c%3Fd"),
    "redirect-utf-8": lands("/stra%C3%9Fe/%C3%A9"),
    "redirect-latin-1": lands("/stra%DFe"),
    "redirect-space": lands("/two%20words"),
    "redirect-https-refused": broken("connection_refused", None, *_AWAY, method=None),
    **{
        f"redirect-{scheme}": stops("Invalid_URL", "unsupported_scheme")
        for scheme in ("ftp", "mailto", "javascript", "file", "data")
    },
    "redirect-broken-url": broken("redirect_nowhere", 302, "HEAD /from", "GET /from"),
    **{
        f"redirect-{name}": failed("Invalid_URL", "forbidden_address", None, *_AWAY, method=None)
        for name in ("private", "metadata", "mapped", "decimal")
    },
    "redirect-bad-port": stops("Invalid_URL", "forbidden_port"),
    "redirect-no-port": broken("redirect_nowhere", 302, "HEAD /from", "GET /from"),
    **{f"redirect-loop-{length}": _loop(length) for length in (1, 2, 3)},
    "redirect-chain-10": ok(*_TEN, redirects=10),
    "redirect-chain-11": undetermined("too_many_redirects", 302, *_ELEVEN, redirects=10),
    "redirect-cookie": ok("HEAD /doc", "HEAD /doc", redirects=1),
    "redirect-cookie-never": broken("redirect_loop", 302, *("HEAD /doc",) * 2, *("GET /doc",) * 2, redirects=1),
    "redirect-cookie-elsewhere": ok(*_AWAY, **_other("HEAD /to"), method="HEAD"),
    "redirect-cross-host": ok(*_AWAY, **_other("HEAD /to")),
    **{
        f"redirect-{status}": broken(
            f"http_{status}", status, "HEAD /from", "GET /from", **_other("HEAD /gone", "GET /gone")
        )
        for status in (404, 410)
    },
    "login-itself": ok("HEAD /cas/login"),
}
_LOGINS = {
    "saml": "/idp/profile/SAML2/Redirect/SSO?SAMLRequest=fZ%2B&RelayState=1",
    "shibboleth": "/Shibboleth.sso/Login?target=x",
    "cas": "/cas/login?service=http%3A%2F%2Fexample.org%2F",
    "adfs": "/adfs/ls/?wa=wsignin1.0",
    "oidc": "/authorize?response_type=code&client_id=a&scope=openid",
}
LOGINS = {
    **{
        f"login-{name}": failed(
            "Restricted_Access", "login_redirect", 200, *_TWICE, **_other(f"HEAD {path}", f"GET {path}"), method="GET"
        )
        for name, path in _LOGINS.items()
    },
    "login-403": failed(
        "Restricted_Access",
        "login_redirect",
        403,
        *_TWICE,
        **_other(f"HEAD {_LOGINS['saml']}", f"GET {_LOGINS['saml']}"),
        method="GET",
    ),
}

WALLS = {
    **{
        f"wall-challenge-{status}": undetermined("bot_challenge", status, "HEAD /doc")
        for status in (200, 403, 429, 503)
    },
    "wall-aws": undetermined("bot_challenge", 202, "HEAD /doc"),
    "wall-ray": broken("http_404", 404),
    **{
        f"wall-429{name}": undetermined("rate_limited", 429, "HEAD /doc")
        for name in ("", "-seconds", "-date", "-odd", "-malformed", "-years")
    },
    "wall-503": undetermined("http_503", 503),
    "wall-503-seconds": undetermined("rate_limited", 503, "HEAD /doc"),
    **{f"wall-{status}": undetermined("rate_limited", status, "HEAD /doc") for status in (420, 430, 509, 529)},
    "wall-503-then-200": GET_WINS,
    "wall-500-then-200": GET_WINS,
}

DISALLOWED = not_asked("Blocked_By_Robots_txt", "robots_disallowed")
UNREACHED = not_asked("Blocked_By_Robots_txt", "robots_unreachable")
ROBOTS = {
    **{
        f"robots-{name}": DISALLOWED
        for name in ("all", "ours", "star", "dollar", "bom", "cr", "long", "redirect", "redirect-host")
    },
    **{
        f"robots-{name}": ok()
        for name in (
            "others",
            "own-group",
            "substring",
            "longest",
            "html",
            "404",
            "403",
            "410",
            "redirect-loop",
            "delay",
        )
    },
    "robots-dollar-query": ok("HEAD /a.pdf?x=1"),
    **{f"robots-{name}": UNREACHED for name in ("500", "503", "429", "hang", "reset", "cut")},
    "robots-target": failed("Blocked_By_Robots_txt", "robots_disallowed", None, "HEAD /doc", method=None),
    "robots-other-host": failed("Blocked_By_Robots_txt", "robots_disallowed", None, "HEAD /doc", method=None),
}

CONNECTIONS = {
    "connect-refused": not_asked("Broken", "connection_refused", confirmed=False),
    "connect-reset": UNREACHED,
    "connect-close": UNREACHED,
    "connect-silence": UNREACHED,
    "connect-greeting": UNREACHED,
    "tls-good": ok(),
    "tls-self-signed": not_asked("Undetermined", "tls_self_signed"),
    "tls-expired": not_asked("Undetermined", "tls_expired"),
    "tls-other-host": not_asked("Undetermined", "tls_hostname"),
    "tls-untrusted": not_asked("Undetermined", "tls_untrusted"),
    "tls-old-protocol": not_asked("Undetermined", "tls_version"),
    "tls-no-cipher": not_asked("Undetermined", "tls_version"),
    "tls-plain": not_asked("Undetermined", "tls_error"),
    "tls-silence": UNREACHED,
    "tls-reset": UNREACHED,
}

EXPECTED: dict[str, Expected] = {
    **HEADS,
    **STATUSES,
    **HEADERS,
    **BODIES,
    **REDIRECTS,
    **LOGINS,
    **WALLS,
    **ROBOTS,
    **CONNECTIONS,
}
