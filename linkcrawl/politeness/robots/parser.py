"""Reads one robots.txt for one product token, by RFC 9309.

Protego matches rules against paths. It is given one group only, in one spelling, because what it does before that
differs from the RFC (Protego 0.7): it ends a group at lines that don't, starts lines at VT, NEL and U+2028, takes
`bot` for everybody's group, doesn't take `linkcrawl/2.0` for ours, reads %3F as ?, decodes all Latin-1 letters to
the same one, lets a closing $ stand for a dollar sign too, and lets the last of several Crawl-delays win. So lines,
groups and escapes are read here.
"""

from __future__ import annotations

import codecs
import math
import re
from collections.abc import Iterator
from datetime import time
from functools import cached_property

from attrs import frozen
from protego import Protego

from linkcrawl.units import DAY

#: Bytes that are read of a robots.txt; the rest is ignored. RFC 9309, 2.5 asks for 500 KiB at least.
MAX_BYTES = 500 * 1024

#: What one verdict may cost: characters of the rules with *, times those of the URL. Every such rule may have to be
#: searched for in the whole URL; at this bound that took 0.1 s at most. No file that is shorter than 30 KB reaches it
#: with the longest URL (urls.MAX_URL), and no file at all with a URL of 1,000 characters. Beyond, nothing is allowed.
MAX_MATCHING = 500_000_000

#: Characters of a Crawl-delay, Request-rate or Visit-time; longer ones mean nothing.
_MAX_PACE = 5000
#: Characters that are kept, for the log, of a line that means nothing.
_SHOWN = 200
#: Lines of one kind that are looked at for pace and hours; no file in good faith has more.
_MAX_PACE_LINES = 100
#: Seconds a Request-rate may ask for, about 30 years: keeps its arithmetic within what a float holds.
_LONGEST = 1e9

_USER_AGENT = frozenset({b"user-agent", b"useragent", b"user agent"})
_ALLOW = frozenset({b"allow"})
# Misspellings that Google's parser and Protego accept, too.
_DISALLOW = frozenset({b"disallow", b"dissallow", b"dissalow", b"disalow", b"diasllow", b"disallaw"})
_PACE = {
    b"crawl-delay": "crawl-delay",
    b"crawl delay": "crawl-delay",
    b"request-rate": "request-rate",
    b"request rate": "request-rate",
    b"visit-time": "visit-time",
    b"visit time": "visit-time",
}

_FIELDS = _USER_AGENT | _ALLOW | _DISALLOW | _PACE.keys()

_SPACE = b" \t\x0b\x0c\0"
_LINE_END = re.compile(rb"\r\n|\r|\n")  # RFC 9309, 2.2; nothing else
_TOKEN = re.compile(rb"[A-Za-z_-]*")
_PIECE = re.compile(rb"%[0-9A-Fa-f]{2}|.", re.DOTALL)
_SECONDS = re.compile(r"[0-9]+(\.[0-9]*)?|\.[0-9]+")
_UNRESERVED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")  # RFC 3986, 2.3
_RESERVED = frozenset(
    b":/?[]@!&'()+,;="
)  # RFC 3986, 2.2, less #, which starts a comment, and * and $, which are rules'
_QUERY_PLAIN = frozenset(b":/?@")  # delimit nothing within a query (RFC 3986, 3.4)


@frozen
class Robots:
    """What a robots.txt says to one product token.

    `rules`: our groups' lines, merged and in one spelling, one a line; nothing else of the file is kept. `ignored`: our
    Crawl-delay, Request-rate and Visit-time lines that mean nothing, for the log.
    """

    rules: str = ""
    ignored: tuple[str, ...] = ()

    def allowed(self, url: str) -> bool:
        """True for a URL (or path and query) that may be requested; /robots.txt always may. False where matching would
        cost too much (`is_beyond`)."""
        if not self.rules:
            return True
        return not self.is_beyond(url) and self._protego.can_fetch("http://host" + _spelled_path(url), "*")

    def is_beyond(self, url: str) -> bool:
        """True where the rules with * and the URL are too long to be matched (MAX_MATCHING)."""
        return self._wildcards * len(url) > MAX_MATCHING

    @cached_property
    def _wildcards(self) -> int:
        """Characters of the rules with *."""
        return sum(len(rule) for rule in self.rules.split("\n") if "*" in rule)

    @cached_property
    def crawl_delay(self) -> float | None:
        """The largest usable Crawl-delay in seconds; None where there is none."""
        delays = [seconds for value in self._values("crawl-delay") if (seconds := _seconds(value)) is not None]
        return max(delays, default=None)

    def request_delay(self, now: float) -> float | None:
        """Seconds between two requests that Request-rate asks for at this time of the day (UTC); the largest of
        several."""
        return max((delay for delay, hours in self._rates if _within(hours, now)), default=None)

    @property
    def keeps_hours(self) -> bool:
        """True where a Request-rate is for some hours of the day only."""
        return any(hours is not None for _, hours in self._rates)

    def open_at(self, now: float) -> float:
        """When pages may be requested by Visit-time (UTC): `now` within its hours and without one. Several lines add
        up."""
        if not self._visits:
            return now
        return min(_next_within(hours, now) for hours in self._visits)

    @cached_property
    def _protego(self) -> Protego:
        return Protego.parse("User-agent: *\n" + self.rules)

    @cached_property
    def _rates(self) -> list[tuple[float, tuple[time, time] | None]]:
        return [rate for value in self._values("request-rate") if (rate := _rate(value)) is not None]

    @cached_property
    def _visits(self) -> list[tuple[time, time]]:
        return [hours for value in self._values("visit-time") if (hours := _visit(value)) is not None]

    def _values(self, kind: str) -> list[str]:
        found = [line.partition(": ")[2] for line in self.rules.split("\n") if line.startswith(kind)]
        return found[:_MAX_PACE_LINES]


def read_robots(body: bytes, token: str) -> Robots:
    """Read the body of a robots.txt for a product token. Never raises: lines that mean nothing are skipped, so an HTML
    page in place of a robots.txt allows everything."""
    own = token.lower().encode()
    rules: dict[bytes, list[str]] = {own: [], b"*": []}
    named = False  # a group names us: those for everybody don't count (RFC 9309, 2.2.1)
    # Only Allow and Disallow end a list of User-agent lines (2.2.4). But a Crawl-delay is for those named just before
    # it: most files that have one write a group of nothing else for another crawler, before everybody's.
    ruled: set[bytes] = set()
    paced: set[bytes] = set()
    in_rules = in_pace = False
    for field, value in _lines(body):
        if field in _USER_AGENT:
            ruled = set() if in_rules else ruled
            paced = set() if in_rules or in_pace else paced
            in_rules = in_pace = False
            who = _named(value)
            named = named or who == own
            ruled |= {who} & rules.keys()
            paced |= {who} & rules.keys()
            continue
        in_pace = in_pace or field in _PACE
        in_rules = in_rules or field not in _PACE
        for who in paced if field in _PACE else ruled:
            rules[who].extend(_rules(field, value))
    return _robots(rules[own if named else b"*"])


def _named(value: bytes) -> bytes:
    """Whom a User-agent line names: `*`, or a product token in lower case, without what follows it."""
    if value.split()[:1] == [b"*"]:
        return b"*"
    return _TOKEN.match(value).group().lower()  # type: ignore[union-attr]  # matches anything


def _robots(rules: list[str]) -> Robots:
    usable: dict[str, None] = {}
    ignored = []
    seen = dict.fromkeys(_PACE.values(), 0)
    for rule in rules:
        kind, _, value = rule.partition(": ")
        if kind in seen:
            seen[kind] += 1
            unread = seen[kind] > _MAX_PACE_LINES or len(value) > _MAX_PACE or not value.isprintable()
            if unread or _READ[kind](value) is None:
                ignored.append(rule[:_SHOWN])
                continue
        usable[rule] = None
    return Robots("\n".join(usable), tuple(ignored[:_MAX_PACE_LINES]))


def _lines(body: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Field in lower case, and value, of each line that means something."""
    for line in _LINE_END.split(_text(body)):
        content = line.partition(b"#")[0].strip(_SPACE)
        field, _, value = content.partition(b":")
        field = field.strip(_SPACE).lower()
        words = content.split()
        if field not in _FIELDS and len(words) == 2:  # `Disallow /x`: what is meant is plain; Google's parser takes it
            field, value = words[0].lower(), words[1]
        if field in _FIELDS:
            yield field, value.strip(_SPACE)


def _text(body: bytes) -> bytes:
    if body.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        body = body[: MAX_BYTES * 2].decode("utf-16", "replace").encode()
    if len(body) > MAX_BYTES:
        cut = body[: MAX_BYTES + 1]
        body = body[: max(cut.rfind(b"\n"), cut.rfind(b"\r"), 0)]
    return body.removeprefix(codecs.BOM_UTF8)


def _rules(field: bytes, value: bytes) -> tuple[str, ...]:
    if not value:
        return ()
    if field in _PACE:
        return (f"{_PACE[field]}: {value.decode('ascii', 'replace')}",)
    kind = "allow" if field in _ALLOW else "disallow"
    spellings = [value]
    if not value.isascii():
        try:
            value.decode()
        except UnicodeDecodeError:
            # A Latin-1 file: its server may spell paths in Latin-1 or in UTF-8.
            spellings.append(value.decode("latin-1").encode())
    return tuple(f"{kind}: {_spelled(spelling, rule=True)}" for spelling in spellings)


def _spelled_path(url: str) -> str:
    """Path and query of a URL in the spelling of the rules."""
    rest = url.partition("#")[0]
    if not rest.startswith("/"):
        rest = rest.partition("://")[2]
        start = re.search(r"[/?]", rest)
        rest = rest[start.start() :] if start else "/"
    path = _spelled(rest.encode("utf-8", "surrogatepass"), rule=False)
    return path if path.startswith("/") else f"/{path}"


def _spelled(text: bytes, *, rule: bool) -> str:
    """One spelling for everything that RFC 9309, 2.2.2 holds equal, of characters that Protego leaves alone.

    Unreserved characters stand for themselves, escaped or not. Reserved ones stand for themselves where they are
    not escaped: /a?b is not /a%3Fb; but within a query :, /, ? and @ delimit nothing, and the RFC's table has both
    spellings equal. All other octets are escaped: %E9 is written %u9, which Protego can't mistake for an escape of
    its own and which is as long, for the longest match wins. In a rule * and a closing $ keep their meaning (2.2.3).
    """
    anchor = ""
    if rule and text.endswith(b"$"):
        text, anchor = text[:-1], "$"
    spelled = []
    in_query = False
    for piece in _PIECE.findall(text):
        escaped = len(piece) == 3
        octet = int(piece[1:], 16) if escaped else piece[0]
        plain = octet in _UNRESERVED or (octet in _RESERVED and not escaped) or (in_query and octet in _QUERY_PLAIN)
        if plain or (rule and piece == b"*"):
            spelled.append(chr(octet))
            in_query = in_query or piece == b"?"
        else:
            spelled.append(f"%{chr(ord('g') + octet // 16)}{octet % 16:x}")
    return "".join(spelled) + anchor


def _seconds(value: str) -> float | None:
    seconds = float(value) if _SECONDS.fullmatch(value) else math.inf
    return seconds if math.isfinite(seconds) else None


def _rate(value: str) -> tuple[float, tuple[time, time] | None] | None:
    rate = Protego.parse(f"User-agent: *\nRequest-rate: {value}").request_rate("*")
    if rate is None:
        return None
    hours = None if rate.start_time is None or rate.end_time is None else (rate.start_time, rate.end_time)
    return min(rate.seconds, _LONGEST) / min(rate.requests, _LONGEST), hours


def _visit(value: str) -> tuple[time, time] | None:
    visit = Protego.parse(f"User-agent: *\nVisit-time: {value}").visit_time("*")
    return None if visit is None else (visit.start_time, visit.end_time)


_READ = {"crawl-delay": _seconds, "request-rate": _rate, "visit-time": _visit}


def _second_of_day(moment: time) -> int:
    return (moment.hour * 60 + moment.minute) * 60


def _within(hours: tuple[time, time] | None, now: float) -> bool:
    return hours is None or _next_within(hours, now) == now


def _next_within(hours: tuple[time, time], now: float) -> float:
    """`now` within the hours, else when they next begin. They may cross midnight; an equal start and end mean all
    day."""
    start, end = map(_second_of_day, hours)
    since_start = (now - start) % DAY
    length = (end - start) % DAY or DAY
    return now if since_start < length else now + DAY - since_start
