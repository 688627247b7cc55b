"""The cookies of one chain of requests (RFC 6265), kept so that a redirect that only wants its own cookie back ends.

Narrower than a browser's jar, on purpose: a cookie goes back to the host and port that set it and to no other, so
that nothing that one host says is ever told to another. A jar is a value, and dies with its chain.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC
from email.utils import parsedate_to_datetime

from attrs import frozen

from linkcrawl.urls import Target

#: Bounds of a jar. RFC 6265, 6.1 has clients keep at least 4,096 bytes a cookie and 50 cookies a domain.
MAX_COOKIES = 50
MAX_COOKIE = 4096
#: Characters of an attribute; longer ones don't count (RFC 6265bis, 5.6).
MAX_ATTRIBUTE = 1024
#: Bytes of a Cookie header; common servers refuse more than 8 KiB in one header line.
MAX_HEADER = 8000

#: What can be sent as it is: RFC 6265's grammar, and what servers use besides (spaces, quotes, commas, backslashes).
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z\[\]/:@?<>(){}-]+")
_VALUE = re.compile(r"[ !-:<-~]*")


@frozen(kw_only=True)
class Cookie:
    """A cookie as it will be sent: `host` (urls.Target.host) and `path` say where, `secure` only over https."""

    name: str
    value: str
    host: str
    path: str
    secure: bool

    @property
    def key(self) -> tuple[str, str, str]:
        return self.name, self.host, self.path


@frozen(kw_only=True)
class Jar:
    """Cookies in the order in which they were first set."""

    cookies: tuple[Cookie, ...] = ()

    def take(self, lines: Iterable[str], target: Target, now: float) -> Jar:
        """The jar after an answer of `target` with these Set-Cookie lines, at `now` (Unix seconds). What can't be
        understood, doesn't fit the bounds or isn't the host's to set is left out."""
        kept = {cookie.key: cookie for cookie in self.cookies}
        for line in lines:
            cookie, lives = _read(line, target, now)
            if cookie is None:
                continue
            if not lives:
                kept.pop(cookie.key, None)
            elif cookie.key in kept or len(kept) < MAX_COOKIES:
                kept[cookie.key] = cookie
        return Jar(cookies=tuple(kept.values()))

    def header(self, target: Target) -> str | None:
        """The Cookie header's value for a request to `target`; longer paths first (RFC 6265, 5.4). None for none."""
        path = target.path
        fitting = [
            cookie
            for cookie in self.cookies
            if cookie.host == target.host
            and _path_matches(path, cookie.path)
            and (target.scheme == "https" or not cookie.secure)
        ]
        text = ""
        for cookie in sorted(fitting, key=lambda cookie: -len(cookie.path)):
            longer = f"{text}; {cookie.name}={cookie.value}" if text else f"{cookie.name}={cookie.value}"
            if len(longer) <= MAX_HEADER:
                text = longer
        return text or None


def _read(line: str, target: Target, now: float) -> tuple[Cookie | None, bool]:
    """The cookie of a Set-Cookie line, and whether it lives (False: this line deletes it)."""
    pair, *parts = line.split(";")
    name, equals, value = (text.strip() for text in pair.partition("="))
    if not equals or len(pair) > MAX_COOKIE or not _NAME.fullmatch(name) or not _VALUE.fullmatch(value):
        return None, False
    attributes = {}
    for part in parts:
        if len(part) <= MAX_ATTRIBUTE:
            attribute, _, setting = part.partition("=")
            attributes[attribute.strip().lower()] = setting.strip()
    secure = "secure" in attributes
    if (secure and target.scheme != "https") or not _may_set(attributes.get("domain", ""), target):
        return None, False
    path = attributes.get("path", "")
    cookie = Cookie(
        name=name,
        value=value,
        host=target.host,
        path=path if path.startswith("/") else _default_path(target.path),
        secure=secure,
    )
    return cookie, _lives(attributes, now)


def _lives(attributes: dict[str, str], now: float) -> bool:
    """Max-Age goes before Expires (RFC 6265, 5.3); what can't be read doesn't count."""
    age = attributes.get("max-age", "")
    if re.fullmatch(r"-?[0-9]{1,18}", age):
        return int(age) > 0
    try:
        expires = parsedate_to_datetime(attributes["expires"])
        return expires.replace(tzinfo=expires.tzinfo or UTC).timestamp() > now
    except (LookupError, TypeError, ValueError, OverflowError):
        return True


def _may_set(domain: str, target: Target) -> bool:
    """Whether `target` may name this Domain: its own host or one above it (RFC 6265, 5.3, step 6)."""
    domain = domain.removeprefix(".").lower()
    return not domain or target.hostname == domain or target.hostname.endswith("." + domain)


def _default_path(path: str) -> str:
    return path[: path.rfind("/")] or "/"


def _path_matches(path: str, cookie_path: str) -> bool:
    if not path.startswith(cookie_path):
        return False
    return len(path) == len(cookie_path) or cookie_path.endswith("/") or path[len(cookie_path)] == "/"
