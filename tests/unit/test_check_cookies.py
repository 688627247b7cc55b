"""The jar of a chain: what RFC 6265 has a client send back, and nothing to anybody else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkcrawl.check.cookies import MAX_COOKIE, MAX_COOKIES, MAX_HEADER, Jar
from linkcrawl.urls import Target, read

NOW = 1_800_000_000.0  # 2027-01-15


def target(url: str) -> Target:
    found = read(url)
    assert isinstance(found, Target)
    return found


SET_AT = "http://www.a.example/x/y"


@pytest.mark.parametrize(
    ("line", "asked", "sent"),
    [
        ("n=v", SET_AT, "n=v"),
        (" n = v ; HttpOnly; SameSite=Lax; Unknown", SET_AT, "n=v"),
        ("n=", SET_AT, "n="),
        ('n="a b=c"', SET_AT, 'n="a b=c"'),
        # where to: the path
        ("n=v", "http://www.a.example/x/z", "n=v"),
        ("n=v", "http://www.a.example/x", "n=v"),
        ("n=v", "http://www.a.example/xx", None),
        ("n=v", "http://www.a.example/", None),
        ("n=v; Path=/", "http://www.a.example/", "n=v"),
        ("n=v; Path=/x/", "http://www.a.example/x/q?z", "n=v"),
        ("n=v; Path=relative", "http://www.a.example/", None),
        # where to: the host, this one alone
        ("n=v; Path=/; Domain=a.example", "http://www.a.example/", "n=v"),
        ("n=v; Path=/; Domain=.A.Example", "http://www.a.example/", "n=v"),
        ("n=v; Path=/; Domain=a.example", "http://a.example/", None),
        ("n=v; Path=/; Domain=a.example", "http://other.a.example/", None),
        ("n=v; Path=/; Domain=b.example", "http://www.a.example/", None),
        ("n=v; Path=/; Domain=b.example", "http://b.example/", None),
        ("n=v; Path=/; Domain=ww.a.example", "http://www.a.example/", None),
        ("n=v; Path=/", "http://www.a.example:8080/", None),
        ("n=v; Path=/", "https://www.a.example/", "n=v"),
        # over http, nothing secure is set
        ("n=v; Path=/; Secure", "https://www.a.example/", None),
        # deleted at once
        ("n=v; Max-Age=0", SET_AT, None),
        ("n=v; Max-Age=-1; Expires=Fri, 31 Dec 2099 23:59:59 GMT", SET_AT, None),
        ("n=v; Max-Age=60; Expires=Thu, 01 Jan 1970 00:00:00 GMT", SET_AT, "n=v"),
        ("n=v; Max-Age=soon", SET_AT, "n=v"),
        ("n=v; Expires=Thu, 01 Jan 1970 00:00:00 GMT", SET_AT, None),
        ("n=v; Expires=Thu, 14-Jan-2027 00:00:00 GMT", SET_AT, None),
        ("n=v; Expires=Sat, 16 Jan 2027 00:00:00 -0000", SET_AT, "n=v"),
        ("n=v; Expires=Thu, 14 Jan 2027 00:00:00 -0000", SET_AT, None),
        ("n=v; Expires=tomorrow", SET_AT, "n=v"),
        ("n=v; Expires=Thu, 99", SET_AT, "n=v"),
        # what can't be sent is not kept
        ("", SET_AT, None),
        ("n", SET_AT, None),
        ("=v", SET_AT, None),
        ("n=v\r\nX: y", SET_AT, None),
        ("n=\x00", SET_AT, None),
        ("n=é", SET_AT, None),
        ("n m=v", SET_AT, None),
        ("n=" + "v" * (MAX_COOKIE - 2), SET_AT, "n=" + "v" * (MAX_COOKIE - 2)),
        ("n=" + "v" * MAX_COOKIE, SET_AT, None),
    ],
)
def test_one_cookie(line: str, asked: str, sent: str | None) -> None:
    assert Jar().take([line], target(SET_AT), NOW).header(target(asked)) == sent


def test_secure_cookies_stay_on_https() -> None:
    jar = Jar().take(["n=v; Secure; Path=/"], target("https://a.example/"), NOW)
    assert jar.header(target("https://a.example/x")) == "n=v"
    assert jar.header(target("http://a.example/x")) is None


def test_a_later_line_replaces_and_deletes() -> None:
    here = target("http://a.example/")
    jar = Jar().take(["a=1", "b=2", "a=3"], here, NOW)
    assert jar.header(here) == "a=3; b=2"
    assert jar.take(["a=; Max-Age=0"], here, NOW).header(here) == "b=2"
    assert jar.header(here) == "a=3; b=2"


def test_longer_paths_come_first() -> None:
    here = target("http://a.example/x/y")
    assert Jar().take(["a=1; Path=/", "b=2; Path=/x", "c=3; Path=/"], here, NOW).header(here) == "b=2; a=1; c=3"


def test_bounds() -> None:
    here = target("http://a.example/")
    many = Jar().take([f"n{number}=v" for number in range(1000)], here, NOW)
    assert len(many.cookies) == MAX_COOKIES
    large = Jar().take([f"n{number}={'v' * 3000}" for number in range(9)], here, NOW).header(here)
    assert large is not None
    assert 6000 < len(large) <= MAX_HEADER


@given(st.lists(st.text(max_size=60), max_size=4), st.lists(st.sampled_from("=;,/ \r\n\t\x00é"), max_size=9))
def test_any_line_is_survived_and_never_makes_a_header_line(lines: list[str], marks: list[str]) -> None:
    here = target("https://a.example/x/")
    dirty = [
        *lines,
        *(f"n{mark}=v{mark}; Path={mark}; Expires={line}; Max-Age={mark}" for mark in marks for line in lines),
    ]
    header = Jar().take(dirty, here, NOW).header(here)
    assert header is None or (header.isascii() and header.isprintable())
