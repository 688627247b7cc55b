"""Whoever changes a verdict raises VERDICT_VERSION: else `scrapy rejudge` would leave the records of before alone."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from hashlib import sha256
from itertools import product
from types import ModuleType
from typing import Any

from linkcrawl.check import logins, statuses, suspects
from linkcrawl.check.outcome import UNJUDGED, Failure
from linkcrawl.check.rejudge import reason_again
from linkcrawl.check.verdict import REASONS, VERDICT_VERSION, judge, reason_of_answer, reason_of_failure
from linkcrawl.check.walls import WALLS, Sign
from linkcrawl.items import Category, Hop, Record

#: Version -> digest of all verdicts that a stored record can get from it: see `verdicts`. Old lines may go.
DIGESTS = {4: "f00ee58670857cf0", 5: "ce0be967dc63bba2"}

STARTS = ["https://a.example/doc", "https://a.example/", "https://a.example/login", "https://www.hugedomains.com/x"]
ENDS = [
    "https://a.example/doc",
    "https://a.example/",
    "https://a.example/404.html",
    "https://a.example/login?next=/doc",
    "https://idp.example/realms/x/protocol/saml?SAMLRequest=x",
    "https://idp.example/start",
    "https://www.hugedomains.com/a.example",
    "https://challenges.cloudflare.com/x",
]


def record(start: str, end: str, method: str, status: int, reason: str) -> Record:
    def hop(url: str, status: int, location: str | None) -> Hop:
        return Hop(url=url, method=method, status=status, location=location, duration_ms=1, ip=None, error=None, at=0.0)

    redirect = [hop(start, 302, end)] if end != start else []
    return Record(
        link_id=1, url=start, collections=(), checked_at=0.0, category=Category.OK, reason=reason, confirmed=True,
        status=status, method=method, redirects=len(redirect), final_url=end, hops=(*redirect, hop(end, status, None)),
        timeout=False, duration_ms=1, expected_mime=None, mime=None, mime_matches=None, content_length=None,
        error=None, attempt=0, next_check_at=0.0, crawler="",
    )  # fmt: skip


def plain(value: Any) -> Any:
    """A table of a module as values whose text is always the same."""
    if isinstance(value, re.Pattern):
        return value.pattern, value.flags
    if isinstance(value, frozenset):
        return sorted(value)
    if isinstance(value, Mapping):
        return [(name, plain(part)) for name, part in sorted(value.items())]
    return value


def tables(module: ModuleType) -> Iterator[Any]:
    """The constants of a module, private ones too."""
    for name, value in sorted(vars(module).items()):
        if name.isupper():
            yield name, plain(value)


def needs_no_fields(sign: Sign) -> bool:
    """True for a sign that a record keeps: a status, a host, a redirect's target."""
    return not (sign.fields or sign.cookie or sign.body)


def verdicts() -> Iterator[Any]:
    """Every word with its category, every status and failure with its word, what a grid of records is judged to be, and
    the tables by which URLs are recognised, for no grid has all URLs. Sentences don't count."""
    for word in [*sorted(REASONS), *(f"http_{status}" for status in range(100, 1000))]:
        yield word, str(judge(word).category)
    for status, headers in product(range(100, 1000), [{}, {"retry-after": "0"}, {"retry-after": "9"}]):
        yield status, reason_of_answer(status, headers)
    for failure in sorted(set(Failure) - UNJUDGED):
        yield str(failure), reason_of_failure(failure)
    for case in product(
        STARTS, ENDS, ["HEAD", "GET"], [200, 302, 403, 404, 503, 999], ["ok", "http_404", "redirect_loop"]
    ):
        yield case, reason_again(record(*case))
    for module in (logins, statuses, suspects):
        yield from tables(module)
    for name, signs in WALLS.items():
        for sign in filter(needs_no_fields, signs):
            yield name, plain(sign.statuses), plain(sign.host), plain(sign.target)


def test_a_verdict_that_changes_has_a_version_of_its_own() -> None:
    digest = sha256("\n".join(map(repr, verdicts())).encode()).hexdigest()[:16]
    assert DIGESTS.get(VERDICT_VERSION) == digest, (
        f"verdicts have changed since version {VERDICT_VERSION}: raise VERDICT_VERSION (linkcrawl/check/verdict.py) "
        f"and note {digest!r} for it here; if no record can get another verdict, note it for the present version"
    )
