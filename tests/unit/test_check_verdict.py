"""The table of verdicts is whole: every reason that can come up has a category and a sentence, and no other word."""

from __future__ import annotations

import pytest

from linkcrawl.check.outcome import UNJUDGED, Failure
from linkcrawl.check.procedure import DENIALS
from linkcrawl.check.verdict import HTTP, REASONS, judge, reason_of_answer, reason_of_failure, sentence
from linkcrawl.items import Category

HEADERS = [{}, {"retry-after": "9"}, {"cf-ray": "1"}]


@pytest.mark.parametrize("headers", HEADERS, ids=str)
def test_every_status_has_a_verdict(headers: dict[str, str]) -> None:
    for status in range(100, 1000):
        verdict = judge(reason_of_answer(status, headers))
        assert verdict.hard is (verdict.category is Category.BROKEN)
        assert (verdict.category is Category.OK) <= (200 <= status < 300 or status == 304)


def test_every_failure_and_every_bar_has_a_verdict() -> None:
    for reason in [*map(reason_of_failure, set(Failure) - UNJUDGED), *DENIALS]:
        assert judge(reason).category is not Category.OK


def test_what_is_our_own_fault_can_not_be_judged() -> None:
    for failure in UNJUDGED:
        with pytest.raises(ValueError, match="no reason"):
            judge(reason_of_failure(failure))


def test_only_these_reasons_condemn_a_link() -> None:
    """A hard verdict costs a provider its reputation: whoever adds one meets this list."""
    statuses = (f"http_{status}" for status in range(100, 1000))
    assert {reason for reason in [*REASONS, *statuses] if judge(reason).hard} == {
        "http_400", "http_404", "http_410", "http_414", "http_422",
        "redirect_nowhere", "redirect_loop", "dns_not_found", "connection_refused",
    }  # fmt: skip


def test_sentences_are_sentences() -> None:
    for reason in [*REASONS, *(f"http_{status}" for status in HTTP), "http_799"]:
        text = sentence(reason)
        assert text[0].isupper()
        assert text.endswith(".")
        assert text.isprintable()


def test_no_status_row_is_hidden_by_another_reason() -> None:
    for status in HTTP:
        assert reason_of_answer(status, {}) == f"http_{status}"


@pytest.mark.parametrize("word", ["", "http", "http_", "http_4040", "http_٤٠٤", "https_404", "teapot", "Ok"])
def test_other_words_are_refused(word: str) -> None:
    with pytest.raises(ValueError, match="is no reason"):
        judge(word)


@pytest.mark.parametrize(
    ("status", "headers", "reason"),
    [
        (403, {"cf-mitigated": "block"}, "http_403"),
        (403, {"cf-ray": "8f2b3c4d5e6f7-SJC", "server": "cloudflare"}, "http_403"),
        (200, {"x-amzn-waf-action": "allow"}, "ok"),
        (503, {"retry-after": "soon"}, "rate_limited"),
        (502, {"retry-after": "9"}, "http_502"),
        (304, {}, "ok"),
    ],
)
def test_headers_count(status: int, headers: dict[str, str], reason: str) -> None:
    assert reason_of_answer(status, headers) == reason
