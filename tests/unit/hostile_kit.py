"""Texts as nobody writes them in good faith: deep, long, and made of one delimiter."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import strategies as st

#: Pieces that readers of URLs, headers, JSON, robots.txt and policies take for something.
# fmt: off
PIECES = (
    "//a@", "/@", "a:b@", "//", "/", "\\", ":", "::", "@", "[", "]", "[[", "{", "}", "(", "%", "%2", "%25", "#", "?",
    "&", "=", ";", ",", ".", "..", "../", "*", "**", "*a", "$", "-", "_", '"', "'", "<", ">", " ", "\t", "\r", "\n",
    "\r\n", "\0", "\x1b", "\u2028", "\ufeff", "\u00df", "\u0130", "\U0001f600", "\ud800", "xn--", "a", "9", "0",
    "http:", "http://", "hdl:", "mailto:", "urn:nbn:", "notfound", "404", "login/", "/realms/", "mon,", "1;r=0,",
    "a=b; ", "path=/", "max-age=", 'a","\n',
)
# fmt: on


def _run(piece: str) -> Callable[[int], str]:
    return lambda n: piece * (n // len(piece))


#: By name: texts of about n characters.
LONG: dict[str, Callable[[int], str]] = {repr(piece): _run(piece) for piece in PIECES}
LONG |= {
    "word before an address": lambda n: "x" * n + " me@example.org",
    "address before a word": lambda n: "me@example.org " + "x" * n,
    "login behind slashes": lambda n: "http:" + "/" * n + "me:pw@example.org/",
    "logins in lines": lambda n: "http://me:pw@example.org/\n" * (n // 26),
    "spaces within a host": lambda n: "http:" + " " * n + "x/",
    "tabs within a URL": lambda n: "http:" + "\t" * n + "//x.example/",
    "path of one word": lambda n: "http://example.org/" + "a" * n,
    "path of many words": lambda n: "http://example.org" + "/a" * (n // 2),
    "dots to climb": lambda n: "http://example.org/" + "a/" * (n // 5) + "../" * (n // 5),
    "many arguments": lambda n: "http://example.org/?" + "a=1&" * (n // 4),
    "one long argument": lambda n: "http://example.org/?q=" + "notfound" * (n // 8) + "%0A",
    "long host": lambda n: "http://" + "a" * n + "/",
    "many labels": lambda n: "http://" + "a." * (n // 2) + "example/",
    "long host of another script": lambda n: "http://" + "\u00fc\u4e00\u0442." * (n // 4) + "example/",
    "long fragment": lambda n: "http://example.org/#" + "a#" * (n // 2),
    "escapes": lambda n: "http://example.org/?'" + "%27" * (n // 3),
    "brackets in brackets": lambda n: "http://" + "[" * (n // 2) + "]" * (n // 2) + "@/",
    "nested lists": lambda n: "[" * (n // 2) + "]" * (n // 2),
    "nested objects": lambda n: '{"a":' * (n // 6) + "1" + "}" * (n // 6),
}

#: Texts of whatever pieces, short and long.
hostile_texts: st.SearchStrategy[str] = st.one_of(
    st.text(),
    st.lists(st.sampled_from(PIECES), max_size=30).map("".join),
    st.builds(
        lambda start, piece, times, end: start + piece * times + end,
        st.sampled_from(("", "http://", "http://a.example/", "//", "hdl:", '{"url": "')),
        st.sampled_from(PIECES),
        st.sampled_from((1, 2, 100, 3000, 20_000)),
        st.sampled_from(("", "@", "@b.example/", "/", '"}', ":")),
    ),
)
