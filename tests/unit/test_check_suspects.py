"""Redirects that end well and are to be looked at: home pages, "not found" pages that say 200, sold domains."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkcrawl.check.outcome import Outcome
from linkcrawl.check.procedure import Done, Next, Rules, answered, begin
from linkcrawl.check.suspects import soft_redirect_reason
from linkcrawl.check.verdict import judge
from linkcrawl.items import Category
from linkcrawl.urls import Target, read


def target(url: str) -> Target:
    found = read(url)
    assert isinstance(found, Target)
    return found


LINK = "http://a.example/corpus/12?lang=en"


@pytest.mark.parametrize(
    ("end", "reason"),
    [
        # D23: to a home page
        ("http://a.example/", "redirected_home"),
        ("http://a.example", "redirected_home"),
        ("https://www.a.example/index.html", "redirected_home"),
        ("https://b.example/index.php", "redirected_home"),
        ("https://b.example/Home", "redirected_home"),
        ("https://b.example/default.aspx", "redirected_home"),
        ("https://b.example/index.php?id=12", None),
        ("https://b.example/corpus/", None),
        ("https://b.example/corpus/index.html", None),
        ("https://b.example/homepage-of-the-corpus", None),
        # S05: pages that say "not found" with 200
        ("http://a.example/404", "soft_404"),
        ("http://a.example/404.html", "soft_404"),
        ("http://a.example/en/404/", "soft_404"),
        ("http://a.example/error-404", "soft_404"),
        ("http://a.example/Page_Not_Found.aspx", "soft_404"),
        ("http://a.example/errors/notfound", "soft_404"),
        ("http://a.example/index.php?page=not-found", "soft_404"),
        ("http://a.example/error?code=404", "soft_404"),
        ("http://a.example/Error.aspx?aspxerrorpath=/corpus/12", "soft_404"),
        ("http://a.example/corpus/1404", None),
        ("http://a.example/corpus/40412", None),
        ("http://404.example/corpus/12", None),
        ("http://a.example/found/12", None),
        # pages that agencies of PIDs point deleted identifiers to
        ("https://www.datacite.org/invalid.html", "soft_404"),
        ("https://datacite.org/invalid.html", "soft_404"),
        ("http://datacite.org/invalidDOI", "soft_404"),
        ("http://www.crossref.org/deleted_DOI.html", "soft_404"),
        ("https://www.crossref.org/_deleted-doi/", "soft_404"),
        ("https://ezid.cdlib.org/tombstone/id/doi:10.5072/FK2", "soft_404"),
        ("https://a.example/invalid.html", None),
        ("https://www.datacite.org/", "redirected_home"),
        ("https://www.datacite.org/blog/invalid.html", None),
        ("https://a.example/arizona/tombstone/id/", None),
        ("https://notdatacite.org/invalid.html", None),
        # S09: parked domains
        ("https://www.hugedomains.com/domain_profile.cfm?d=a.example", "domain_for_sale"),
        ("http://ww1.sedoparking.com/", "domain_for_sale"),
        ("http://sedo.com.a.example/12", None),
        ("http://notdan.com/12", None),
        # where it should be
        (LINK, None),
        ("https://a.example/corpus/12?lang=en", None),
    ],
)
def test_where_a_link_leads(end: str, reason: str | None) -> None:
    assert soft_redirect_reason(target(LINK), target(end)) == reason


@pytest.mark.parametrize(
    ("start", "end"),
    [
        ("http://a.example/", "https://www.a.example/"),
        ("http://a.example/index.html", "http://a.example/"),
        ("http://a.example/docs/404", "https://a.example/docs/404"),
        ("http://a.example/papers/not-found-in-translation", "https://a.example/papers/not-found-in-translation.pdf"),
        ("http://dan.com/x", "https://dan.com/"),
    ],
)
def test_what_the_link_names_itself_is_no_reason(start: str, end: str) -> None:
    assert soft_redirect_reason(target(start), target(end)) in (None, "redirected_home" if "dan.com" in start else None)


@given(st.text(), st.text())
def test_any_path_is_judged(start: str, end: str) -> None:
    reason = soft_redirect_reason(target(f"http://a.example/{start}"), target(f"http://a.example/{end}"))
    assert reason is None or judge(reason).category is Category.OK


def led(location: str, status: int = 200) -> Done:
    """The end of a check whose HEAD chain, and GET chain where there is one, lead there."""
    step = begin(LINK, Rules())
    for code, headers in ((302, {"location": location}), (status, {})) * 2:
        if isinstance(step, Done):
            break
        step = answered(step.check, Outcome(sent_at=1.0, ended_at=2.0, duration_ms=9, status=code, headers=headers))
    assert isinstance(step, Done)
    return step


def test_a_suspicion_is_no_verdict() -> None:
    finding = led("/404").finding
    assert (finding.verdict.category, finding.verdict.reason, finding.error) == (Category.OK, "soft_404", None)
    assert not finding.verdict.hard
    assert led("/").finding.verdict.reason == "redirected_home"
    assert led("/corpus/13").finding.verdict.reason == "ok"


def test_a_suspicion_by_head_only_is_none() -> None:
    """A server that sends HEAD to its home page, and GET to the resource."""
    step = begin(LINK, Rules())
    for code, headers in ((302, {"location": "/"}), (200, {}), (200, {})):
        assert isinstance(step, Next)
        step = answered(step.check, Outcome(sent_at=1.0, ended_at=2.0, duration_ms=9, status=code, headers=headers))
    assert isinstance(step, Done)
    assert (step.finding.verdict.reason, step.finding.method, step.head_useless) == ("ok", "GET", True)
    assert led("/").head_useless is None


def test_what_says_more_goes_before_a_suspicion() -> None:
    assert led("/login?next=/404").finding.verdict.reason == "login_redirect"
    assert led("/404", 429).finding.verdict.reason == "rate_limited"
