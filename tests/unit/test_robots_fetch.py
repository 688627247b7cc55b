"""Every way in which the fetch of a robots.txt can go (RFC 9309, 2.3.1)."""

from __future__ import annotations

import gzip
import zlib

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from linkcrawl.check.outcome import Failure, Outcome
from linkcrawl.check.statuses import REDIRECTS, SLOW_DOWN
from linkcrawl.politeness.robots.fetch import LINKS_OWN, Fetched, Fetching, RobotsAvailability, begin, step
from linkcrawl.politeness.robots.parser import MAX_BYTES

HOME = "http://example.org"
BODY = b"User-agent: *\nDisallow: /"
RAW = zlib.compress(BODY, wbits=-zlib.MAX_WBITS)


def answer(status: int | None = None, failure: Failure | None = None, **headers: str) -> Outcome:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Outcome(sent_at=0, ended_at=1, duration_ms=5, status=status, headers=named, failure=failure)


def follow(*locations: str, last: Outcome, body: bytes = BODY) -> Fetched:
    """The end of a fetch that is redirected to these and then answered so."""
    state: Fetching | Fetched = begin(HOME)
    for location in locations:
        assert isinstance(state, Fetching)
        state = step(state, answer(301, location=location))
    end = step(state, last, body) if isinstance(state, Fetching) else state
    if isinstance(end, Fetching):  # asked once more, and answered the same
        end = step(end, last, body)
    assert isinstance(end, Fetched)
    return end


def test_the_first_request_is_of_the_authority_itself() -> None:
    assert begin("https://example.org:8443").url == "https://example.org:8443/robots.txt"


@pytest.mark.parametrize(
    ("status", "availability"),
    [
        *((status, RobotsAvailability.FOUND) for status in (200, 203, 206)),
        *((status, RobotsAvailability.UNAVAILABLE) for status in (400, 401, 403, 404, 405, 410, 418, 451, 499)),
        *((status, RobotsAvailability.UNREACHABLE) for status in (420, 429, 430, 500, 502, 503, 520, 599, 999)),
        *((status, RobotsAvailability.UNAVAILABLE) for status in (304, 305)),
        *((status, RobotsAvailability.UNAVAILABLE) for status in (300, 301, 302, 307)),  # without a Location
    ],
)
def test_statuses(status: int, availability: RobotsAvailability) -> None:
    end = follow(last=answer(status))
    assert (end.availability, end.failure) == (availability, None)
    assert end.body == (BODY if availability is RobotsAvailability.FOUND else b"")


@pytest.mark.parametrize("status", sorted(REDIRECTS))
def test_redirects_are_those_that_links_follow(status: int) -> None:
    moved = step(begin(HOME), answer(status, location="/moved.txt"))
    assert isinstance(moved, Fetching)
    assert moved.url.endswith("/moved.txt")


@pytest.mark.parametrize("status", sorted(SLOW_DOWN))
def test_a_server_that_is_asked_too_often_has_not_said_that_there_is_no_file(status: int) -> None:
    assert follow(last=answer(status)).availability is RobotsAvailability.UNREACHABLE


def test_a_stale_connection_says_nothing_however_often() -> None:
    stale = evolve(answer(failure=Failure.RESET), stale=True)
    state = begin(HOME)
    for _ in range(5):
        again = step(state, stale)
        assert again == evolve(state, was_stale=True)
    assert isinstance(again, Fetching)
    assert step(state, answer(failure=Failure.RESET)) == evolve(state, retried=True)
    redirected = step(again, answer(301, location="/x"))
    assert isinstance(redirected, Fetching)
    assert step(redirected, answer(failure=Failure.RESET)) == evolve(redirected, retried=True)
    broken = step(again, answer(failure=Failure.RESET))
    assert isinstance(broken, Fetched), "it has failed on two connections"


@pytest.mark.parametrize("failure", list(Failure))
def test_failures(failure: Failure) -> None:
    end = follow(last=answer(failure=failure))
    assert end.availability is RobotsAvailability.UNREACHABLE
    assert end.failure is (failure if failure in LINKS_OWN else None)


@pytest.mark.parametrize("failure", list(Failure))
@pytest.mark.parametrize("redirects", [(), ("/moved.txt", "https://other.example/robots.txt")])
def test_a_time_limit_is_told_wherever_it_ended_the_fetch(failure: Failure, redirects: tuple[str, ...]) -> None:
    assert follow(*redirects, last=answer(failure=failure)).timed_out is failure.is_timeout


def test_a_file_that_breaks_off_and_then_takes_too_long_has_timed_out() -> None:
    again = step(begin(HOME), answer(200), BODY, cut=True)
    assert isinstance(again, Fetching)
    late, broken = step(again, answer(failure=Failure.TIMEOUT_ANSWER)), step(again, answer(200), BODY, cut=True)
    assert isinstance(late, Fetched)
    assert isinstance(broken, Fetched)
    assert (late.timed_out, broken.timed_out) == (True, False)


BROKEN_OFF = {
    "reset": (answer(failure=Failure.RESET), False),
    "no answer at all": (answer(failure=Failure.EMPTY_REPLY), False),
    "half a file": (answer(200), True),
    "half of a partial file": (answer(206), True),
}


@pytest.mark.parametrize(("outcome", "cut"), BROKEN_OFF.values(), ids=BROKEN_OFF)
@pytest.mark.parametrize("redirects", [0, 2])
def test_what_is_broken_off_is_asked_for_once_more(outcome: Outcome, cut: bool, redirects: int) -> None:
    state: Fetching | Fetched = begin(HOME)
    for number in range(redirects):
        assert isinstance(state, Fetching)
        state = step(state, answer(301, location=f"https://host{number}.example/robots.txt"))
    assert isinstance(state, Fetching)
    again = step(state, outcome, BODY, cut=cut)
    assert isinstance(again, Fetching)
    assert again.url == state.url

    well = step(again, answer(200), BODY)
    assert isinstance(well, Fetched)
    assert (well.availability, well.body) == (RobotsAvailability.FOUND, BODY)

    ill = step(again, outcome, BODY, cut=cut)
    assert isinstance(ill, Fetched)
    assert (ill.availability, ill.failure, ill.body) == (RobotsAvailability.UNREACHABLE, None, b"")


@pytest.mark.parametrize("status", [404, 500])
def test_half_an_error_page_is_as_good_as_a_whole_one(status: int) -> None:
    end = step(begin(HOME), answer(status), b"half", cut=True)
    assert isinstance(end, Fetched)
    assert end.availability is follow(last=answer(status)).availability


def test_a_time_out_or_a_reset_is_not_the_links_own() -> None:
    assert not LINKS_OWN & {Failure.RESET, Failure.EMPTY_REPLY, Failure.PROTOCOL, Failure.TOO_LARGE}
    assert Failure.TLS_EXPIRED in LINKS_OWN
    assert not any(failure.value.startswith("timeout") for failure in LINKS_OWN)


@pytest.mark.parametrize("count", range(9))
def test_five_redirects_are_followed_across_hosts(count: int) -> None:
    locations = [f"https://host{number}.example/robots.txt" for number in range(count)]
    end = follow(*locations[:6], last=answer(200))
    assert end.authority == HOME
    assert end.availability is (RobotsAvailability.FOUND if count <= 5 else RobotsAvailability.UNAVAILABLE)


@pytest.mark.parametrize(
    "locations",
    [
        ["http://example.org/robots.txt"],
        ["/a", "/b", "/a"],
        ["mailto:somebody@example.org"],
        ["ftp://example.org/robots.txt"],
        ["file:///etc/passwd"],
        ["http://example.org:25/robots.txt"],
        ["http://"],
        [""],
    ],
)
def test_redirects_that_lead_nowhere_are_unavailable(locations: list[str]) -> None:
    assert follow(*locations, last=answer(200)).availability is RobotsAvailability.UNAVAILABLE


@pytest.mark.parametrize(
    ("failure", "availability"),
    [
        (Failure.DNS_NOT_FOUND, RobotsAvailability.UNREACHABLE),
        (Failure.REFUSED, RobotsAvailability.UNREACHABLE),
        (Failure.TLS_EXPIRED, RobotsAvailability.UNREACHABLE),
        (Failure.FORBIDDEN_ADDRESS, RobotsAvailability.UNAVAILABLE),
        (Failure.FORBIDDEN_PORT, RobotsAvailability.UNAVAILABLE),
    ],
)
def test_failures_of_another_host_are_not_the_links_own(failure: Failure, availability: RobotsAvailability) -> None:
    end = follow("https://other.example/robots.txt", last=answer(failure=failure))
    assert (end.availability, end.failure) == (availability, None)


@pytest.mark.parametrize(
    ("coding", "body", "found"),
    [
        ("identity", BODY, True),
        ("gzip", gzip.compress(BODY, mtime=0), True),
        ("GZip", gzip.compress(BODY, mtime=0), True),
        ("deflate", zlib.compress(BODY), True),
        ("x-gzip", gzip.compress(BODY, mtime=0), True),
        ("deflate", RAW, True),
        ("gzip", RAW, True),
        ("gzip", zlib.compress(BODY), True),
        ("gzip, gzip", gzip.compress(gzip.compress(BODY, mtime=0), mtime=0), True),
        ("gzip, identity", gzip.compress(BODY, mtime=0), True),
        # wrong or unknown, and the text is plain
        *((coding, BODY, True) for coding in ("gzip", "deflate", "br", "zstd", "UTF-8", "none", "binary", "gzip, br")),
        # what nobody can read
        ("br", b"\x8b\x0c\x80User-agent: *\nDisallow: /\x03", False),
        ("zstd", b"\x28\xb5\x2f\xfd\x04\x00" + BODY, False),
        ("gzip", bytes(range(256)), False),
        ("deflate", RAW[:-3], False),
    ],
)
def test_packed_bodies(coding: str, body: bytes, found: bool) -> None:
    end = follow(last=answer(200, content_encoding=coding), body=body)
    assert (end.availability, end.body) == (
        (RobotsAvailability.FOUND, BODY) if found else (RobotsAvailability.UNREACHABLE, b"")
    )


@pytest.mark.parametrize("coding", ["br", "gzip", "deflate", "x"])
@given(st.binary(max_size=200))
def test_packed_rubbish_never_opens_a_host_by_chance(coding: str, body: bytes) -> None:
    """What is read is the text that was there, or what unpacks to its end."""
    end = follow(last=answer(200, content_encoding=coding), body=b"\x00" + body)
    if end.availability is RobotsAvailability.FOUND:
        assert zlib.decompressobj(-zlib.MAX_WBITS).decompress(b"\x00" + body) == end.body


@given(st.text(st.characters(exclude_categories=("Cc", "Cs")), max_size=99), st.sampled_from(["gzip", "deflate", "br"]))
def test_plain_text_is_read_whatever_coding_it_is_said_to_have(text: str, coding: str) -> None:
    body = text.encode()
    end = follow(last=answer(200, content_encoding=coding), body=body)
    assert (end.availability, end.body) == (RobotsAvailability.FOUND, body)


def test_a_bomb_is_unpacked_to_the_bound_only() -> None:
    end = follow(last=answer(200, content_encoding="gzip"), body=gzip.compress(BODY + bytes(50_000_000)))
    assert len(end.body) == MAX_BYTES


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("max-age=60", 60.0),
        ("public, max-age=7200, must-revalidate", 7200.0),
        ('Max-Age="30"', 30.0),
        ("no-store", 0.0),
        ("private, no-cache", 0.0),
        ("s-maxage=5", None),
        ("max-age=soon", None),
        ("max-age=-1", None),
        ("", None),
    ],
)
def test_life_by_cache_control(header: str, seconds: float | None) -> None:
    assert follow(last=answer(200, cache_control=header)).max_age == seconds
    assert follow(last=answer(404, cache_control=header)).max_age == seconds
