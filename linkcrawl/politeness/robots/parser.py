"""Reads one robots.txt for one product token, by RFC 9309.

Lines, groups, escapes and rules are read here, and not by Protego, which reads Request-rate and Visit-time only (pace).
What Protego 0.7 does before it matches differs from the RFC: it ends a group at lines that don't, starts lines at VT,
NEL and U+2028, takes `bot` for everybody's group, doesn't take `linkcrawl/2.0` for ours, reads %3F as ?, decodes all
Latin-1 letters to the same one, lets a closing $ stand for a dollar sign too, and lets the last of several Crawl-delays
win. And what it makes of rules to match them takes 20 to 800 times the memory of their text (measured: 69 KB for five
rules, 14 MB for three thousand), where matching from the text takes no more time for files of usual length.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property

from attrs import frozen

from linkcrawl.politeness.robots.pace import RobotsPace, rate_of, robots_pace_of, seconds_of, visit_of

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

_VERDICTS = {"allow": True, "disallow": False}
_INDEX = "/index.html"

_FIELDS = _USER_AGENT | _ALLOW | _DISALLOW | _PACE.keys()

_SPACE = b" \t\x0b\x0c\0"
_LINE_END = re.compile(rb"\r\n|\r|\n")  # RFC 9309, 2.2; nothing else
_TOKEN = re.compile(rb"[A-Za-z_-]*")
_PIECE = re.compile(rb"%[0-9A-Fa-f]{2}|.", re.DOTALL)
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
        return not self.is_beyond(url) and _is_allowed(self.rules, _spelled_path(url))

    def is_beyond(self, url: str) -> bool:
        """True where the rules with * and the URL are too long to be matched (MAX_MATCHING)."""
        if len(self.rules) * len(url) <= MAX_MATCHING:
            return False
        return sum(len(rule) for rule in self.rules.split("\n") if "*" in rule) * len(url) > MAX_MATCHING

    @cached_property
    def pace(self) -> RobotsPace:
        """When and how often the file asks to be asked."""
        return robots_pace_of(self.rules)


def _is_allowed(rules: str, path: str) -> bool:
    """The longest rule that matches decides, `allow` where two are equally long, and none allows (RFC 9309, 2.2.2).
    Nothing is made of the rules beforehand: a crawl may hold those of a hundred thousand hosts."""
    longest, allowed = 0, True
    if path == "/robots.txt":
        return True
    for rule in rules.split("\n"):
        kind, _, pattern = rule.partition(": ")
        if kind not in _VERDICTS:
            continue
        allows = _VERDICTS[kind]
        # Who allows index.html allows the folder whose page it is; Google's parser takes it so, too.
        if allows and pattern.endswith(_INDEX) and len(pattern) - len(_INDEX) + 2 >= longest:
            folder = f"{pattern[: 1 - len(_INDEX)]}$"
            if _matches(folder, path):
                longest, allowed = len(folder), True
        length = len(pattern)
        if (length > longest or (length == longest and allows)) and _matches(pattern, path):
            longest, allowed = length, allows
    return allowed


def _matches(pattern: str, path: str) -> bool:
    """Whether a rule matches the beginning of a path, or all of it where it ends in $. * stands for any text (2.2.3):
    what follows it is searched for from the left, once, so that no rule takes more time than its length times the
    path's."""
    is_anchored = pattern.endswith("$")
    if not is_anchored and "*" not in pattern:
        return path.startswith(pattern)
    first, *parts = pattern.removesuffix("$").split("*")
    if not path.startswith(first):
        return False
    if not parts:
        return path == first
    last, at = parts.pop(), len(first)
    for part in parts:
        found = path.find(part, at)
        if found < 0:
            return False
        at = found + len(part)
    if is_anchored:
        return path.endswith(last) and len(path) - len(last) >= at
    return path.find(last, at) >= 0


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
    return tuple(f"{kind}: {_spelled(_rooted(spelling), rule=True)}" for spelling in spellings)


def _rooted(value: bytes) -> bytes:
    """A rule that was written as a whole URL by mistake is one for the path that has this URL in it, as with Protego:
    its author meant hardly anything else, and least of all everything."""
    return b"/" + value if value.lower().startswith((b"http://", b"https://")) else value


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


_READ: Mapping[str, Callable[[str], object]] = {
    "crawl-delay": seconds_of,
    "request-rate": rate_of,
    "visit-time": visit_of,
}
