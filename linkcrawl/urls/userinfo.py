"""`user:password@` in URLs: taken away before anything is kept, sent, shown or logged, whatever the scheme, from
URLs that can't be requested too.
"""

from __future__ import annotations

import re

SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.\-\t\r\n]*:")  # tabs and line ends within a URL count for nothing (WHATWG)
DROPPED = dict.fromkeys(map(ord, "\t\r\n"))

# fmt: off
#: What copying leaves at both ends of a URL and no URL begins or ends with: space of any script, control characters,
#: and marks that are not seen. Joiners of emoji (U+FE0F, U+E0020 and on) are none of them: they belong to a path.
SPACE = "".join(map(chr, (
    *range(33), 0x7F, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200C), 0x2028, 0x2029, 0x202F, 0x205F, 0x3000,  # space
    0xAD, 0x34F, 0x180E, 0x200C, 0x200D, *range(0x2060, 0x2065), 0xFEFF,  # soft hyphen, joiners, no-break marks
    0x61C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A),  # directions (Unicode Annex 9)
    *range(0x206A, 0x2070), *range(0xFFF9, 0xFFFD),  # deprecated ones; annotations, and the place of an object
)))
# fmt: on

_SLASHES = re.compile(r"[/\\\t\r\n]*")
_AUTHORITY_END = re.compile(r"[/\\?#]")
_IP_LITERAL = re.compile(r"\[[0-9A-Fa-f:.]*\]")
_LOGIN = re.compile(r"[^/?#\s@]*@[^@\s]")
# Any number of slashes, either way round, starts their host (url.spec.whatwg.org, special schemes).
_SPECIAL = frozenset(("http", "https", "ftp", "ws", "wss"))
# Their `name@domain` is an address or part of a name, not a login.
# fmt: off
_ADDRESSES = frozenset((
    "acct", "ark", "cid", "data", "doi", "hdl", "im", "info", "javascript", "mailto", "mid", "news", "oai", "pres",
    "sip", "sips", "tag", "urn", "xmpp",
))
# fmt: on
_WORD = re.compile(r"[^\s\"<>]+")
_START = re.compile(r"((?::|^)(?:\\?[/\\]){2,})")  # also without a scheme; JSON may write a slash as `\/`


def without_userinfo(text: str) -> str:
    """The text of one URL without `user:password@`; nothing else is changed. Takes time in proportion to the text.

    A password may hold the characters that end an authority (`http://me:a/b@host/`): then the port is no number and
    the URL is broken. It stays so, but everything up to the last @ goes, rather than show half a password.
    """
    last = text.rfind("@")
    start = _authority_start(text) if last >= 0 else None
    if start is None:
        return text
    kept = [text[:start]]
    while True:
        match = _AUTHORITY_END.search(text, start)
        end = match.start() if match else len(text)
        rest = text.rfind("@", start, end) + 1 or start
        if last >= end and _has_no_port(text[rest:end]):
            return "".join((*kept, ":", text[last + 1 :]))
        if rest == start:
            return "".join((*kept, text[rest:]))
        # What is left may be a whole URL again, that had only seemed to be a host.
        if not kept[0].strip(SPACE):  # `me:secret@http://…`: at most once, no @ is left before the next / or #
            return kept[0] + without_userinfo(text[rest:])
        slashes = _SLASHES.match(text, rest)
        start = slashes.end() if slashes else rest
        kept.append(text[rest:start])


def redact(text: str) -> str:
    """Any text, a line of a file or a note, without the `user:password@` of the URLs in it. Takes time in proportion to
    the text."""
    return _WORD.sub(_redact_word, text) if "@" in text else text


def _redact_word(match: re.Match[str]) -> str:
    if "@" not in match[0]:
        return match[0]
    before, *parts = _START.split(match[0])
    shown = [part if index % 2 == 0 else without_userinfo("//" + part)[2:] for index, part in enumerate(parts)]
    return before + "".join(shown)


def _authority_start(text: str) -> int | None:
    """Where the authority of a URL starts, or the login of a text like `me:secret@host` that only seems to have a
    scheme; None where there is neither.
    """
    begin = len(text) - len(text.lstrip(SPACE))
    match = SCHEME.match(text, begin)
    scheme = match[0][:-1].translate(DROPPED).lower() if match else ""
    after = match.end() if match else begin
    slashes = _SLASHES.match(text, after)
    end = slashes.end() if slashes else after
    if scheme in _SPECIAL or len(text[after:end].translate(DROPPED)) >= 2:
        return end
    if match and end == after and scheme not in _ADDRESSES and _LOGIN.match(text, after):
        return begin
    return None


def _has_no_port(authority: str) -> bool:
    """Whether what follows the host's colon can't be a port, so that it must be the start of a password."""
    literal = _IP_LITERAL.match(authority)
    after = authority[literal.end() :] if literal else "".join(authority.partition(":")[1:])
    port = after.removeprefix(":")
    if after in ("", ":"):
        return False
    return port == after or not (port.isascii() and port.isdigit() and len(port) <= 5 and int(port) <= 65535)
