"""What holds between two fetches of a robots.txt, and while it can't be had."""

from __future__ import annotations

import json
import tracemalloc

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from linkcrawl.check.outcome import Failure
from linkcrawl.items import RobotsFile
from linkcrawl.politeness.robots.cache import (
    CLOSED_FOR,
    ENTRY_COST,
    GIVEN_UP_AFTER,
    KEPT_FOR,
    MAX_TTL,
    MIN_TTL,
    Access,
    RobotsCache,
)
from linkcrawl.politeness.robots.fetch import Fetched, RobotsAvailability
from linkcrawl.politeness.robots.parser import Robots

HOME = "https://example.org"
START = 1_800_000_000.0
HOUR = 3600.0
DAY = 86400.0
#: What entries of the first versions don't have.
ADDED = {"timed_out", "failing_days"}


def good(body: bytes = b"User-agent: *\nDisallow: /private", authority: str = HOME, max_age: float | None = None):
    return Fetched(authority=authority, availability=RobotsAvailability.FOUND, note="200", body=body, max_age=max_age)


def bad(failure: Failure | None = None) -> Fetched:
    return Fetched(authority=HOME, availability=RobotsAvailability.UNREACHABLE, note="answered 503", failure=failure)


def access(cache: RobotsCache, path: str, now: float) -> Access:
    return cache.verdict(HOME, HOME + path, now).access


def cache_of(*fetched: tuple[Fetched, float], ttl: float = HOUR) -> RobotsCache:
    cache = RobotsCache("linkcrawl", ttl)
    for result, now in fetched:
        cache.take(result, now)
    return cache


def test_unknown_until_fetched_then_by_its_rules_until_its_time_is_over() -> None:
    cache = RobotsCache("linkcrawl", HOUR)
    assert access(cache, "/x", START) is Access.UNKNOWN
    cache.take(good(), START)
    assert access(cache, "/x", START + HOUR - 1) is Access.ALLOWED
    assert access(cache, "/private/x", START + HOUR - 1) is Access.DISALLOWED
    assert access(cache, "/x", START + HOUR) is Access.UNKNOWN


def test_scheme_host_and_port_have_files_of_their_own() -> None:
    cache = cache_of((good(), START))
    for other in ("http://example.org", "https://example.org:8443", "https://www.example.org"):
        assert cache.verdict(other, other + "/x", START).access is Access.UNKNOWN


@pytest.mark.parametrize(
    ("ttl", "max_age", "life"),
    [
        (HOUR, None, HOUR),
        (HOUR, 600.0, 600.0),
        (HOUR, 7200.0, HOUR),
        (HOUR, 0.0, MIN_TTL),
        (HOUR, 1.0, MIN_TTL),
        (10 * DAY, None, MAX_TTL),
        (10 * DAY, 9 * DAY, MAX_TTL),
        (2.0, None, 2.0),
        (2.0, 1.0, 2.0),
    ],
)
def test_life(ttl: float, max_age: float | None, life: float) -> None:
    cache = cache_of((good(max_age=max_age), START), ttl=ttl)
    assert access(cache, "/x", START + life - 0.01) is Access.ALLOWED
    assert access(cache, "/x", START + life) is Access.UNKNOWN


def test_an_unavailable_file_allows_everything_whatever_its_body_says() -> None:
    none = Fetched(
        authority=HOME, availability=RobotsAvailability.UNAVAILABLE, note="404", body=b"User-agent: *\nDisallow: /"
    )
    assert access(cache_of((none, START)), "/x", START) is Access.ALLOWED


@pytest.mark.parametrize("failure", [None, Failure.DNS_NOT_FOUND, Failure.TLS_EXPIRED])
def test_unreachable_closes_and_says_what_the_links_would_meet(failure: Failure | None) -> None:
    verdict = cache_of((bad(failure), START)).verdict(HOME, HOME + "/x", START)
    assert (verdict.access, verdict.failure, verdict.note) == (Access.UNREACHABLE, failure, "answered 503")


def test_a_time_limit_is_told_until_another_fetch_ends_otherwise() -> None:
    cache = cache_of((good(), START - DAY), (evolve(bad(), timed_out=True), START))
    again = RobotsCache("linkcrawl", HOUR)
    again.restore(stored(cache), START)
    assert cache.verdict(HOME, HOME + "/x", START).timed_out
    assert again.verdict(HOME, HOME + "/x", START).timed_out
    cache.take(bad(), START + HOUR)
    assert not cache.verdict(HOME, HOME + "/x", START + HOUR).timed_out


def test_what_an_older_version_kept_of_a_file_is_read() -> None:
    (file,) = stored(cache_of((bad(), START)))
    old = evolve(file, entry={name: value for name, value in file.entry.items() if name not in ADDED})
    again = RobotsCache("linkcrawl", HOUR)
    again.restore([old], START)
    assert again.verdict(HOME, HOME + "/x", START).access is Access.UNREACHABLE


def test_an_unreachable_file_is_asked_for_again_ever_more_rarely_up_to_the_time_to_live() -> None:
    cache = RobotsCache("linkcrawl", HOUR)
    waits, now = [], START
    for _ in range(7):
        entry = cache.take(bad(), now)
        waits.append(entry.expires_at - now)
        now = entry.expires_at
    assert waits == [300, 600, 1200, 2400, 3600, 3600, 3600]
    cache.take(good(), now)
    assert cache.take(bad(), now + 1).expires_at == now + 1 + MIN_TTL


@pytest.mark.parametrize(
    ("failing", "with_copy", "without"),
    [
        (0, Access.UNREACHABLE, Access.UNREACHABLE),
        (CLOSED_FOR - 1, Access.UNREACHABLE, Access.UNREACHABLE),
        (CLOSED_FOR, Access.DISALLOWED, Access.UNREACHABLE),
        (GIVEN_UP_AFTER - 1, Access.DISALLOWED, Access.UNREACHABLE),
        (GIVEN_UP_AFTER, Access.DISALLOWED, Access.ALLOWED),
    ],
)
def test_hours_and_days_without_an_answer(failing: float, with_copy: Access, without: Access) -> None:
    late = START + HOUR + failing
    looks = [*(START + HOUR + at for at in range(0, int(failing), int(5 * DAY))), late]
    failed = [(bad(), at) for at in looks]
    cache = cache_of((good(), START), *failed)
    assert access(cache, "/private", late) is with_copy
    if with_copy is not Access.UNREACHABLE:
        assert cache.verdict(HOME, HOME + "/private", late).note  # that it did so is recorded
        assert access(cache, "/public", late) is Access.ALLOWED
    assert access(cache_of(*failed), "/private", late) is without


def test_two_looks_a_month_apart_are_no_month() -> None:
    late = START + 31 * DAY
    with_copy = cache_of((good(), START - HOUR), (bad(), START), (bad(), late))
    assert access(with_copy, "/private", late) is Access.DISALLOWED
    assert access(with_copy, "/public", late) is Access.ALLOWED, "after a pause the last good copy holds at once"
    assert access(cache_of((bad(), START), (bad(), late)), "/x", late) is Access.UNREACHABLE


def days_of_looks(cache: RobotsCache, days: list[float]) -> RobotsCache:
    for day in days:
        cache.take(bad(), START + day * DAY)
    return cache


@pytest.mark.parametrize(
    ("days", "expected"),
    [
        ([0, 7, 14, 21, 28, 30], Access.ALLOWED),
        ([0, 7, 14, 21, 30], Access.ALLOWED),
        ([0, 10, 20, 30], Access.UNREACHABLE),  # four days
        ([0, 0.01, 0.02, 0.03, 10, 20, 30], Access.UNREACHABLE),  # four days
        ([0, 1, 2, 3, 29.9], Access.UNREACHABLE),
        ([0, 1, 2, 3, 4, 31], Access.UNREACHABLE),  # a pause: it begins anew
        ([0, 1, 2, 3, 4, 31, 38, 45, 52, 59], Access.UNREACHABLE),
        ([0, 1, 2, 3, 4, 31, 38, 45, 52, 59, 61], Access.ALLOWED),
        ([0, 7, 14, 21, 28, 30, 120], Access.ALLOWED),  # given up before the pause
    ],
)
def test_thirty_days_are_looks_on_five_days_without_a_pause(days: list[float], expected: Access) -> None:
    at = START + days[-1] * DAY
    assert access(days_of_looks(RobotsCache("linkcrawl", HOUR), days), "/private", at) is expected


def test_a_good_fetch_begins_the_thirty_days_anew() -> None:
    cache = days_of_looks(RobotsCache("linkcrawl", HOUR), [0, 7, 14, 21, 28])
    cache.take(good(), START + 29 * DAY)
    entry = days_of_looks(cache, [30]).get(HOME)
    assert entry is not None
    assert (entry.failing_since, entry.failing_days) == (START + 30 * DAY, (START + 30 * DAY,))


def test_days_of_looks_survive_a_restart() -> None:
    cache = RobotsCache("linkcrawl", HOUR)
    for day in (0, 7, 14, 21, 28, 30):
        files = stored(days_of_looks(cache, [day]))
        cache = RobotsCache("linkcrawl", HOUR)
        cache.restore(files, START + day * DAY)
    assert access(cache, "/x", START + 30 * DAY) is Access.ALLOWED


@given(st.lists(st.floats(0, 40), min_size=1, max_size=12), st.booleans())
def test_no_looks_make_a_file_that_was_good_absent(gaps: list[float], copy: bool) -> None:
    cache = cache_of((good(), START - HOUR)) if copy else RobotsCache("linkcrawl", HOUR)
    looks, day = [], 0.0
    for gap in gaps:
        day += gap
        looks.append(day)
    days_of_looks(cache, looks)
    verdict = access(cache, "/private", START + day * DAY)
    if copy:
        assert verdict in (Access.UNREACHABLE, Access.DISALLOWED)
    elif verdict is Access.ALLOWED:
        assert day - looks[0] >= 30
        assert len({(START + look * DAY) // DAY for look in looks}) >= 5
    else:
        assert verdict is Access.UNREACHABLE


def test_a_clock_that_is_moved_takes_the_days_with_it() -> None:
    cache = days_of_looks(RobotsCache("linkcrawl", HOUR), [-3, 0, 1])
    cache.shift(-2 * DAY, START)
    entry = cache.get(HOME)
    assert entry is not None
    assert entry.failing_since == START - 3 * DAY
    assert entry.failing_days == (START - 3 * DAY, START - 2 * DAY, START - DAY)
    again = days_of_looks(RobotsCache("linkcrawl", HOUR), [0])
    again.shift(DAY, START)
    moved = again.get(HOME)
    assert moved is not None
    assert (moved.failing_since, moved.failing_days) == (START + DAY, (START + DAY,))


def test_a_good_answer_ends_it_all() -> None:
    cache = cache_of((bad(), START), (good(b""), START + HOUR), (bad(), START + 2 * HOUR))
    assert access(cache, "/x", START + 2 * HOUR) is Access.UNREACHABLE
    cache.take(good(b""), START + 3 * HOUR)
    assert cache.verdict(HOME, HOME + "/private", START + 3 * HOUR).note is None


def test_a_clock_set_back_means_to_ask_again() -> None:
    cache = cache_of((good(), START))
    assert access(cache, "/x", START - 1) is Access.ALLOWED
    assert access(cache, "/x", START - DAY) is Access.UNKNOWN


def stored(cache: RobotsCache) -> list[RobotsFile]:
    """What has changed, as it comes back from a store."""
    return [evolve(file, entry=json.loads(json.dumps(file.entry))) for file in cache.take_changed()]


@pytest.mark.parametrize("last", [good(), bad(), bad(Failure.TLS_SELF_SIGNED)])
def test_what_is_stored_saves_a_new_fetch(last: Fetched) -> None:
    cache = cache_of((good(), START - HOUR), (last, START))
    again = RobotsCache("linkcrawl", HOUR)
    again.restore(stored(cache), START)
    for path in ("/x", "/private"):
        assert again.verdict(HOME, HOME + path, START + 10) == cache.verdict(HOME, HOME + path, START + 10)


def test_rules_of_another_product_token_are_not_ours() -> None:
    other = RobotsCache("another", HOUR)
    other.restore(stored(cache_of((good(), START))), START)
    assert access(other, "/x", START) is Access.UNKNOWN


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 2000)), max_size=60))
def test_size_is_bounded_and_the_last_used_stay(fetches: list[tuple[int, int]]) -> None:
    limit = 4000
    cache = RobotsCache("linkcrawl", HOUR, max_size=limit)
    for number, length in fetches:
        authority = f"https://host{number}.example"
        cache.take(good(b"User-agent: *\nDisallow: /" + b"x" * length, authority), START)
        assert cache.get(authority) is not None
        sizes = [ENTRY_COST + len(cache.get(name).robots.rules) for name in list(cache)]  # type: ignore[union-attr]
        assert sum(sizes) <= limit or len(sizes) == 1
    assert {file.authority for file in cache.take_changed()} <= set(cache)


def test_what_is_held_is_what_is_counted() -> None:
    """Wildcard names with a large robots.txt each: eight links to such a site once took 1.5 GB."""
    limit = 800_000
    rules = b"".join(b"Disallow: /%06d*x\n" % number for number in range(2_000))
    cache = RobotsCache("linkcrawl", HOUR, max_size=limit)
    tracemalloc.start()
    for number in range(40):
        authority = f"https://host{number}.example"
        cache.take(good(b"User-agent: *\nCrawl-delay: 2\n" + rules, authority), START)
        entry = cache.get(authority)
        assert entry is not None
        assert entry.robots is not None
        assert entry.robots.allowed("/page")
        assert entry.robots.pace.crawl_delay == 2.0
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held < limit * 1.1


def test_small_files_are_not_counted_too_low() -> None:
    cache = RobotsCache("linkcrawl", HOUR, max_size=10**9)
    tracemalloc.start()
    for number in range(2000):
        cache.take(good(b"User-agent: *\nDisallow: /private\nCrawl-delay: 2", f"https://host{number}.example"), START)
        assert cache.verdict(f"https://host{number}.example", "/x", START).access is Access.ALLOWED
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held < cache.size * 1.1


def test_a_note_and_what_means_nothing_are_not_kept_whole() -> None:
    cache = cache_of((evolve(good(b"User-agent: *\nCrawl-delay: soon"), note="x" * 10_000), START))
    entry = cache.get(HOME)
    assert entry is not None
    assert (len(entry.note), entry.robots) == (500, Robots())


def test_a_file_of_a_time_to_come_counts_as_of_now() -> None:
    for last in (good(), bad()):
        files = stored(cache_of((last, START + DAY)))
        again = RobotsCache("linkcrawl", HOUR)
        again.restore(files, START)
        entry = again.get(HOME)
        assert entry is not None
        assert (entry.asked_at, entry.failing_since) == (START, START if entry.tries else None)
        assert entry.failing_days == ((START,) if entry.tries else ())
        assert entry.expires_at <= START + HOUR


def test_what_the_store_has_does_not_replace_what_is_newer() -> None:
    files = stored(cache_of((good(b"User-agent: *\nDisallow: /"), START)))
    cache = cache_of((good(b""), START + 10))
    cache.restore(files, START + 20)
    assert access(cache, "/x", START + 20) is Access.ALLOWED
    cache.forget(HOME)
    cache.restore(files, START + 20)
    assert access(cache, "/x", START + 20) is Access.DISALLOWED


def test_a_file_is_of_use_for_as_long_as_its_last_good_copy() -> None:
    (fresh,) = stored(cache_of((good(), START)))
    (failing,) = stored(cache_of((good(), START), (bad(), START + DAY), (bad(), START + 2 * DAY)))
    assert fresh.until == START + HOUR + KEPT_FOR
    assert failing.until == START + 2 * DAY + KEPT_FOR


def test_what_the_store_has_not_taken_is_stored_next_time() -> None:
    cache = cache_of((good(), START))
    files = cache.take_changed()
    assert cache.take_changed() == []
    cache.still_changed(files)
    assert cache.take_changed() == files
