"""The cookies of one chain of requests, as browsers keep and send them: a redirect that only wants its own cookie back
ends. RFC 6265 counts, and the draft of its successor (draft-ietf-httpbis-rfc6265bis) where browsers follow that.

A jar is a value and dies with its chain: nothing is told to a later check. Between hosts only what a host has set for
its registered domain is shared, never for a public suffix. Texts hold octets outside ASCII as UTF-8 or, where they are
none, as surrogate escapes (PEP 383); `Jar.field` gives them back as they came.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime

from attrs import frozen

from linkcrawl.urls import Target, read
from linkcrawl.urls.domains import is_public_suffix

#: Bounds of a jar. RFC 6265, 6.1 has clients keep at least 50 cookies a domain; browsers keep 150 to 180.
MAX_COOKIES = 180
#: Bytes of a cookie's name and value with the sign between; browsers ignore a longer one.
MAX_COOKIE = 4096
#: Characters of an attribute; longer ones don't count (RFC 6265bis, 5.6).
MAX_ATTRIBUTE = 1024
#: Bytes of a Cookie field; common servers refuse more than 8 KiB in one line.
MAX_FIELD = 8000

#: A cookie that browsers ignore: control characters, or what the reader of heads has put in place of one.
_UNSENDABLE = re.compile("[\x00-\x1f\x7f\ufffd]")

# The cookie-date of RFC 6265, 5.1.1.
_DELIMITERS = re.compile(r"[\t\x20-\x2f\x3b-\x40\x5b-\x60\x7b-\x7e]+")
_TIME = re.compile(r"([0-9]{1,2}):([0-9]{1,2}):([0-9]{1,2})(?:[^0-9].*)?", re.DOTALL)
_DAY = re.compile(r"([0-9]{1,2})(?:[^0-9].*)?", re.DOTALL)
_YEAR = re.compile(r"([0-9]{2,4})(?:[^0-9].*)?", re.DOTALL)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")


@frozen(kw_only=True)
class Cookie:
    """A cookie as it will be sent. `domain`: a host name; with `host_only` it goes to that host alone, else to hosts
    below it as well. `path`: where it goes, and below. `secure`: over https only."""

    name: str
    value: str
    domain: str
    host_only: bool
    path: str
    secure: bool

    @property
    def key(self) -> tuple[str, str, str]:
        return self.name, self.domain, self.path

    @property
    def pair(self) -> str:
        """Name and value as they are sent; a cookie without a name is its value."""
        return f"{self.name}={self.value}" if self.name else self.value

    def goes_to(self, target: Target) -> bool:
        """True where a browser would send it with a request to `target` (RFC 6265, 5.4)."""
        if self.secure and target.scheme != "https":
            return False
        at_host = target.hostname == self.domain or (not self.host_only and _is_below(target, self.domain))
        return at_host and _path_matches(target.path, self.path)


@frozen(kw_only=True)
class CookieField:
    """The value of a Cookie field, None for no such field. `complete`: nothing was left out that a browser would
    send."""

    value: str | None
    complete: bool


@frozen(kw_only=True)
class Jar:
    """Cookies in the order in which they were first set. `complete`: none was left out for want of room."""

    cookies: tuple[Cookie, ...] = ()
    complete: bool = True

    def take(self, lines: Iterable[str], target: Target, now: float) -> Jar:
        """The jar after an answer of `target` with these Set-Cookie lines, at `now` (Unix seconds). What browsers
        ignore is ignored."""
        kept, complete = {cookie.key: cookie for cookie in self.cookies}, self.complete
        for line in lines:
            cookie, lives = _read(line, target, now)
            if cookie is None:
                continue
            if not lives:
                kept.pop(cookie.key, None)
            elif cookie.key in kept or len(kept) < MAX_COOKIES:
                kept[cookie.key] = cookie
            else:
                complete = False
        return Jar(cookies=tuple(kept.values()), complete=complete)

    def field(self, target: Target) -> CookieField:
        """The Cookie field of a request to `target`; longer paths come first (RFC 6265, 5.4)."""
        text, complete = "", self.complete
        for cookie in sorted(self.cookies, key=lambda cookie: -len(cookie.path)):
            if not cookie.goes_to(target):
                continue
            longer = f"{text}; {cookie.pair}" if text else cookie.pair
            if len(octets(longer)) <= MAX_FIELD:
                text = longer
            else:
                complete = False
        return CookieField(value=text or None, complete=complete)


def octets(text: str) -> bytes:
    """A cookie's text as the octets that the server had sent."""
    return text.encode("utf-8", "surrogateescape")


def _read(line: str, target: Target, now: float) -> tuple[Cookie | None, bool]:
    """The cookie of a Set-Cookie line, None where browsers ignore the line; and whether it lives (False: this line
    deletes it)."""
    pair, *parts = line.split(";")
    before, equals, after = pair.partition("=")
    name, value = (before.strip(" \t"), after.strip(" \t")) if equals else ("", pair.strip(" \t"))
    if not (name or value) or _UNSENDABLE.search(name + value) or _is_too_long(pair):
        return None, False
    attributes = {}
    for part in parts:
        if len(part) <= MAX_ATTRIBUTE:
            attribute, _, setting = part.partition("=")
            attributes[attribute.strip(" \t").lower()] = setting.strip(" \t")
    secure = "secure" in attributes
    scope = _scope(attributes.get("domain", ""), target)
    if scope is None or (secure and target.scheme != "https"):
        return None, False
    domain, host_only = scope
    path = attributes.get("path", "")
    cookie = Cookie(
        name=name,
        value=value,
        domain=domain,
        host_only=host_only,
        path=path if path.startswith("/") else _default_path(target.path),
        secure=secure,
    )
    return cookie, _lives(attributes, now)


def _is_too_long(pair: str) -> bool:
    try:
        return len(octets(pair)) > MAX_COOKIE
    except UnicodeEncodeError:  # lone surrogates that stand for no octet: no server has sent them
        return True


def _scope(attribute: str, target: Target) -> tuple[str, bool] | None:
    """The domain that a cookie is set for, and whether for that host alone; None where `target` may not set it
    (RFC 6265, 5.3, steps 5 and 6)."""
    domain = _canonical(attribute.removeprefix("."))
    if not domain:
        return target.hostname, True
    if target.hostname == domain:
        return domain, target.is_address or is_public_suffix(domain)
    return (domain, False) if _is_below(target, domain) and not is_public_suffix(domain) else None


def _canonical(domain: str) -> str:
    """A Domain attribute in the form of `Target.hostname` (RFC 6265, 5.1.2)."""
    if domain.isascii():
        return domain.lower()
    found = read(f"http://{domain}/")
    return found.hostname if isinstance(found, Target) else domain


def _is_below(target: Target, domain: str) -> bool:
    return not target.is_address and target.hostname.endswith("." + domain)


def _lives(attributes: dict[str, str], now: float) -> bool:
    """Max-Age goes before Expires (RFC 6265, 5.3); what can't be read doesn't count."""
    age = attributes.get("max-age", "")
    if re.fullmatch(r"-?[0-9]+", age):
        return not age.startswith("-") and bool(age.strip("0"))
    expires = _cookie_date(attributes.get("expires", ""))
    return expires is None or expires > now


def _cookie_date(text: str) -> float | None:
    """A date as RFC 6265, 5.1.1 reads it, in Unix seconds; None where it is none."""
    time = day = month = year = None
    for token in _DELIMITERS.split(text):
        if time is None and (time := _TIME.fullmatch(token)):
            continue
        if day is None and (day := _DAY.fullmatch(token)):
            continue
        if month is None and token[:3].lower() in _MONTHS:
            month = _MONTHS.index(token[:3].lower()) + 1
        elif year is None:
            year = _YEAR.fullmatch(token)
    if time is None or day is None or month is None or year is None:
        return None
    number = int(year[1])
    number += 1900 if 70 <= number <= 99 else 2000 if number <= 69 else 0
    try:
        moment = datetime(number, month, int(day[1]), int(time[1]), int(time[2]), int(time[3]), tzinfo=UTC)
    except ValueError:
        return None
    return moment.timestamp() if number >= 1601 else None


def _default_path(path: str) -> str:
    return path[: path.rfind("/")] or "/"


def _path_matches(path: str, cookie_path: str) -> bool:
    if not path.startswith(cookie_path):
        return False
    return len(path) == len(cookie_path) or cookie_path.endswith("/") or path[len(cookie_path)] == "/"
