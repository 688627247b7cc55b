"""Fields that came several times, as the check room and pacing read them."""

from __future__ import annotations

import pytest

from linkcrawl.network.outcomes import answered
from linkcrawl.politeness.pacing.hints import retry_at


@pytest.mark.parametrize(
    ("name", "values", "read"),
    [
        ("location", ("/a", "/b"), "/a"),
        ("content-type", ("text/html", "text/plain"), "text/html, text/plain"),
        ("date", ("x", "y"), "x"),
        ("content-length", ("5", "6"), "5, 6"),
        ("retry-after", ("1", "3"), "1, 3"),
        ("ratelimit", ('"a";r=1;t=1', '"b";r=0;t=3'), '"a";r=1;t=1, "b";r=0;t=3'),
    ],
)
def test_what_several_fields_come_to(name: str, values: tuple[str, ...], read: str) -> None:
    outcome = answered([(name, value) for value in values], status=200, ip=None, sent_at=0.0, seconds=1.0)
    assert outcome.headers == {name: read}


@pytest.mark.parametrize("values", [("1", "60"), ("60", "1"), ("soon", "60"), ("60", ""), ("60", "-1", "0")])
def test_of_several_waits_the_longest_is_kept(values: tuple[str, ...]) -> None:
    fields = [("retry-after", value) for value in values]
    outcome = answered(fields, status=429, ip=None, sent_at=0.0, seconds=1.0)
    assert retry_at(outcome.status, outcome.headers, outcome.ended_at) == 61.0
