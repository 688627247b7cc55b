"""The jar of a chain: what RFC 6265 has a client send back, to whom, and nothing to anybody else."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkcrawl.check.cookies import MAX_COOKIE, MAX_COOKIES, MAX_FIELD, Jar, octets
from linkcrawl.urls import Target, read
from linkcrawl.urls.domains import is_public_suffix, registered_domain

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
        # where to: the host, and others where the cookie is set for a domain of theirs
        ("n=v; Path=/; Domain=a.example", "http://www.a.example/", "n=v"),
        ("n=v; Path=/; Domain=.A.Example", "http://www.a.example/", "n=v"),
        ("n=v; Path=/; Domain=a.example", "http://a.example/", "n=v"),
        ("n=v; Path=/; Domain=a.example", "http://other.a.example/", "n=v"),
        ("n=v; Path=/; Domain=a.example", "http://b.other.a.example:81/", "n=v"),
        ("n=v; Path=/; Domain=a.example", "http://ba.example/", None),
        ("n=v; Path=/; Domain=a.example; Domain=www.a.example", "http://a.example/", None),
        ("n=v; Path=/; Domain=", "http://www.a.example/", "n=v"),
        ("n=v; Path=/; Domain=", "http://a.example/", None),
        ("n=v; Path=/", "http://a.example/", None),
        ("n=v; Path=/", "http://b.www.a.example/", None),
        ("n=v; Path=/; Domain=www.a.example", "http://b.www.a.example/", "n=v"),
        ("n=v; Path=/; Domain=b.www.a.example", "http://www.a.example/", None),
        ("n=v; Path=/; Domain=example", "http://www.a.example/", None),  # a public suffix by the list's rule `*`
        ("n=v; Path=/; Domain=b.example", "http://www.a.example/", None),
        ("n=v; Path=/; Domain=b.example", "http://b.example/", None),
        ("n=v; Path=/; Domain=ww.a.example", "http://www.a.example/", None),
        ("n=v; Path=/", "http://www.a.example:8080/", "n=v"),  # cookies do not tell ports apart (8.5)
        ("n=v; Path=/", "http://www.a.example./", "n=v"),
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
        ("n=v; Expires=Thu, 30 Feb 2020 00:00:00 GMT", SET_AT, "n=v"),
        ("n=v; Expires=Thu, 01-Jan-70 00:00:00 GMT", SET_AT, None),
        ("n=v; Expires=Sun Nov  6 08:49:37 1994", SET_AT, None),
        ("n=v; Expires=1 january 2020 1:2:3", SET_AT, None),
        ("n=v; Expires=Wed, 01 Jan 2031 00:00:00 GMT", SET_AT, "n=v"),
        ("n=v; Max-Age=" + "9" * 5000, SET_AT, "n=v"),
        ("n=v; Max-Age=00", SET_AT, None),
        # what browsers send as it is
        ("n=é中", SET_AT, "n=é中"),
        ("n=\udce9", SET_AT, "n=\udce9"),
        ("n m=v", SET_AT, "n m=v"),
        ("n=v=w", SET_AT, "n=v=w"),
        ("n", SET_AT, "n"),
        ("=v", SET_AT, "v"),
        # what browsers ignore
        ("", SET_AT, None),
        ("=", SET_AT, None),
        ("; Path=/", SET_AT, None),
        ("n=v\r\nX: y", SET_AT, None),
        ("n=\x00", SET_AT, None),
        ("n=\ufffd", SET_AT, None),  # stands for a control character
        (f"n={chr(0xD800)}", SET_AT, None),
        ("n=" + "v" * (MAX_COOKIE - 2), SET_AT, "n=" + "v" * (MAX_COOKIE - 2)),
        ("n=" + "v" * MAX_COOKIE, SET_AT, None),
        ("n=" + "é" * (MAX_COOKIE // 2), SET_AT, None),
    ],
)
def test_one_cookie(line: str, asked: str, sent: str | None) -> None:
    field = Jar().take([line], target(SET_AT), NOW).field(target(asked))
    assert (field.value, field.complete) == (sent, True)


@pytest.mark.parametrize(
    ("host", "domain", "asked", "sent"),
    [
        ("a.co.uk", "co.uk", "b.co.uk", False),
        ("a.co.uk", "co.uk", "a.co.uk", False),
        ("co.uk", "co.uk", "co.uk", True),
        ("co.uk", "co.uk", "a.co.uk", False),
        ("one.github.io", "github.io", "two.github.io", False),
        ("x.one.github.io", "one.github.io", "y.one.github.io", True),
        ("localhost", "localhost", "localhost", True),
        ("set.pub.test", "pub.test", "www.pub.test", True),
        ("set.pub.test", "test", "www.pub.test", False),
        ("www.bücher.de", "BÜCHER.de", "bücher.de", True),
        ("www.bücher.de", "xn--bcher-kva.de", "shop.bücher.de", True),
        ("192.0.2.1", "192.0.2.1", "192.0.2.1", True),
        ("192.0.2.1", "0.2.1", "192.0.2.1", False),
        ("[2001:db8::1]", "2001:db8::1", "[2001:db8::1]", True),
        ("a.example", "a.example:80", "a.example", False),
    ],
)
def test_a_cookie_stays_within_a_registered_domain(host: str, domain: str, asked: str, sent: bool) -> None:
    jar = Jar().take([f"n=v; Domain={domain}; Path=/"], target(f"https://{host}/"), NOW)
    assert jar.field(target(f"https://{asked}/")).value == ("n=v" if sent else None)


HOSTS = ["192.0.2.1", "localhost"]
HOSTS += [f"{name}{domain}" for domain in ("a.org", "b.org", "a.co.uk", "x.github.io")
          for name in ("", "www.", "deep.er.")]  # fmt: skip
DOMAINS = st.sampled_from([*HOSTS, "org", "co.uk", "uk", "github.io", "io", "0.2.1", "", ".", "..org", "org."])


@given(st.sampled_from(HOSTS), DOMAINS, st.sampled_from(HOSTS))
def test_nothing_leaves_a_registered_domain_or_comes_from_outside(host: str, domain: str, asked: str) -> None:
    setting, other = target(f"https://{host}/"), target(f"https://{asked}/")
    sent = Jar().take([f"n=v; Domain={domain}"], setting, NOW).field(other).value is not None
    assert not sent or registered_domain(setting.host) == registered_domain(other.host)
    if setting.hostname != other.hostname and is_public_suffix(registered_domain(setting.host)):
        assert not sent


def test_secure_cookies_stay_on_https() -> None:
    jar = Jar().take(["n=v; Secure; Path=/"], target("https://a.example/"), NOW)
    assert jar.field(target("https://a.example/x")).value == "n=v"
    assert jar.field(target("http://a.example/x")).value is None


def test_a_later_line_replaces_and_deletes() -> None:
    here = target("http://a.example/")
    jar = Jar().take(["a=1", "b=2", "a=3"], here, NOW)
    assert jar.field(here).value == "a=3; b=2"
    assert jar.take(["a=; Max-Age=0"], here, NOW).field(here).value == "b=2"
    assert jar.field(here).value == "a=3; b=2"


def test_longer_paths_come_first() -> None:
    here = target("http://a.example/x/y")
    assert Jar().take(["a=1; Path=/", "b=2; Path=/x", "c=3; Path=/"], here, NOW).field(here).value == "b=2; a=1; c=3"


def test_bounds() -> None:
    here, there = target("http://a.example/"), target("http://b.example/")
    many = Jar().take([f"n{number}=v" for number in range(1000)], here, NOW)
    assert len(many.cookies) == MAX_COOKIES
    assert not many.field(here).complete
    large = Jar().take([f"n{number}={'é' * 1500}" for number in range(9)], here, NOW)
    field = large.field(here)
    assert field.value is not None
    assert 6000 < len(octets(field.value)) <= MAX_FIELD
    assert not field.complete, "a browser would send all of them"
    assert large.field(there).complete, "none is for this host"


@given(st.lists(st.text(max_size=60), max_size=4), st.lists(st.sampled_from("=;,/ \r\n\t\x00é"), max_size=9))
def test_any_line_is_survived_and_never_makes_a_header_line(lines: list[str], marks: list[str]) -> None:
    here = target("https://a.example/x/")
    dirty = [
        *lines,
        *(f"n{mark}=v{mark}; Path={mark}; Expires={line}; Max-Age={mark}" for mark in marks for line in lines),
    ]
    value = Jar().take(dirty, here, NOW).field(here).value
    assert value is None or re.fullmatch(rb"[ !-~\x80-\xff]+", octets(value))
