"""Redirects: where they lead, and where they must not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.site.behaviours import answer, needs_cookie, raw, redirect
from tests.site.misbehaviour import Misbehaviour, Place, Routes
from tests.site.wire import Behaviour

Location = str | bytes | Callable[[Place], str]


def _link(path: str) -> Callable[[Place], str]:
    return lambda at: at.url(path)


def _from(name: str, about: str, location: Location, to: str | None = None, **more: Any) -> Misbehaviour:
    """A redirect at `start`; `to` is the only target at the same address that is there."""
    status, start, headers = more.get("status", 302), more.get("start", "/from"), more.get("headers", ())
    there: Behaviour = more.get("there", answer())

    def routes(at: Place) -> Routes:
        where = location(at) if callable(location) else location
        return {start: redirect(where, status, headers), **({to: there} if to else {})}

    return Misbehaviour(
        name=name, about=about, routes=routes, other=more.get("other", lambda at: {}), link=_link(start)
    )


def _crossing(name: str, about: str, path: str, there: Behaviour) -> Misbehaviour:
    """A redirect to the other address, where every page is `there`."""
    return _from(name, about, lambda at: at.other_url(path), other=lambda at: {path: there})


def _chain(length: int) -> Misbehaviour:
    routes = {f"/{left}": redirect(f"/{left - 1}") for left in range(1, length + 1)} | {"/0": answer()}
    return Misbehaviour(
        name=f"redirect-chain-{length}",
        about=f"{length} redirects, then a page",
        routes=lambda at: routes,
        link=_link(f"/{length}"),
    )


def _loop(length: int) -> Misbehaviour:
    routes = {f"/{step}": redirect(f"/{(step + 1) % length}") for step in range(length)}
    name, about = f"redirect-loop-{length}", f"a loop of {length}"
    return Misbehaviour(name=name, about=about, routes=lambda at: routes, link=_link("/0"))


def _cookie(name: str, about: str, behaviour: Behaviour) -> Misbehaviour:
    return Misbehaviour(name=name, about=about, routes=lambda at: {"/doc": behaviour})


_FORM = answer(body=b"<form><input type=password></form>")
_LOGINS = {
    "saml": "/idp/profile/SAML2/Redirect/SSO?SAMLRequest=fZ%2B&RelayState=1",
    "shibboleth": "/Shibboleth.sso/Login?target=x",
    "cas": "/cas/login?service=http%3A%2F%2Fexample.org%2F",
    "adfs": "/adfs/ls/?wa=wsignin1.0",
    "oidc": "/authorize?response_type=code&client_id=a&scope=openid",
}
_TWO = b"HTTP/1.1 302 Found\r\nLocation: /to\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n"


def _https(at: Place) -> str:
    return at.tls_url("/to")


ROWS = [
    *(_from(f"redirect-{status}", f"{status}", "/to", "/to", status=status) for status in (301, 302, 303, 307, 308)),
    _from("redirect-300", "300 with a Location", "/to", "/to", status=300),
    _from("redirect-relative", "a Location relative to its page", "to/there", "/x/to/there", start="/x/from"),
    _from("redirect-dots", "a Location with dot segments", "../to", "/to", start="/x/from"),
    _from("redirect-query", "a Location that is a query alone", "?page=2", "/from?page=2"),
    _from("redirect-network-path", "//host/path", lambda at: f"//{at.here}:{at.ports.plain}/to", "/to"),
    _from("redirect-scheme-capitals", "HTTP://…", lambda at: at.url("/to").replace("http", "HTTP"), "/to"),
    _from("redirect-percent", "%2F %23 %3F in a Location", "/a%2Fb%23c%3Fd", "/a%2Fb%23c%3Fd"),
    _from("redirect-utf-8", "a Location in UTF-8", "/straße/é".encode(), "/stra%C3%9Fe/%C3%A9"),
    _from("redirect-latin-1", "a Location in Latin-1", "/stra\xdfe".encode("latin-1"), "/stra%DFe"),
    _from("redirect-space", "a Location with a space", "/two words", "/two%20words"),
    _from("redirect-fragment", "a Location with a fragment", "/to#part", "/to"),
    _from("redirect-padded", "a Location with white space around it", "  /to  ", "/to"),
    Misbehaviour(
        name="redirect-two-locations",
        about="two Location headers",
        routes=lambda at: {"/from": raw(_TWO, "keep"), "/to": answer()},
        link=_link("/from"),
    ),
    _from(
        "redirect-userinfo", "user:password@ in a Location", lambda at: f"http://u:secret@{at.url('/to')[7:]}", "/to"
    ),
    _from("redirect-https-refused", "to https where nothing listens", _https),
    *(
        _from(f"redirect-{location.partition(':')[0]}", location, location)
        for location in ("ftp://127.0.0.1/x", "mailto:a@example.org", "javascript:alert(1)", "file:///etc/passwd")
    ),
    _from("redirect-data", "data:", "data:text/html,hello"),
    _from("redirect-broken-url", "a Location that is no URL", "http://[::1"),
    _from("redirect-private", "to 10.0.0.1", "http://10.0.0.1/secret"),
    _from("redirect-metadata", "to a cloud's metadata service", "http://169.254.169.254/latest/meta-data/"),
    _from("redirect-mapped", "to a private address in IPv6 clothes", "http://[::ffff:10.0.0.1]/"),
    _from("redirect-decimal", "to a private address as one number", "http://167772161/"),
    _from("redirect-bad-port", "to a port that browsers refuse", lambda at: f"http://{at.here}:25/"),
    _from("redirect-no-port", "to a port that does not exist", lambda at: f"http://{at.here}:99999/"),
    *(_loop(length) for length in (1, 2, 3)),
    *(_chain(length) for length in (10, 11)),
    _cookie("redirect-cookie", "a loop that ends when its cookie comes back", needs_cookie(answer())),
    _cookie(
        "redirect-cookie-never", "a loop that a cookie doesn't end", redirect("/doc", 302, [("Set-Cookie", "a=1")])
    ),
    Misbehaviour(
        name="redirect-cookie-elsewhere",
        about="a cookie is set on the way to another host",
        routes=lambda at: {"/from": redirect(at.other_url("/to"), 302, [("Set-Cookie", "secret=1; Path=/")])},
        other=lambda at: {"/to": answer()},
        link=_link("/from"),
    ),
    _crossing("redirect-cross-host", "to a page of another host", "/to", answer()),
    _crossing("redirect-404", "to a page that is not there", "/gone", answer(404)),
    _crossing("redirect-410", "to a page that is gone", "/gone", answer(410)),
    *(_crossing(f"login-{name}", f"to a login page: {name}", path, _FORM) for name, path in _LOGINS.items()),
    _crossing("login-403", "to an identity provider that answers 403", _LOGINS["saml"], answer(403)),
    Misbehaviour(
        name="login-itself",
        about="a link that is a login page",
        routes=lambda at: {"/cas/login": _FORM},
        link=_link("/cas/login"),
    ),
]
