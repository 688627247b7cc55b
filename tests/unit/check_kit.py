"""A check played through on paper: steps are (what must be asked, what comes of it)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from attrs import frozen

from linkcrawl.check.outcome import Failure, Outcome
from linkcrawl.check.procedure import Done, Next, NextRequest, Rules, answered, begin

START = 1_800_000_000.0
HOST = "http://a.example"


def answer(status: int, location: str | None = None, *, cookies: Iterable[str] = (), **headers: str) -> Outcome:
    """An answer; header names are given with `_` for `-`."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    if location is not None:
        named["location"] = location
    return Outcome(
        sent_at=START,
        ended_at=START + 0.02,
        duration_ms=20,
        ip="192.0.2.1",
        status=status,
        headers=named,
        set_cookie=tuple(cookies),
    )


def failed(failure: Failure, error: str | None = "it failed at a.example:80") -> Outcome:
    return Outcome(sent_at=START, ended_at=START + 0.02, duration_ms=20, failure=failure, error=error)


Step = tuple[str, Outcome]
Facts = dict[str, object]


@frozen
class Case:
    """`id`: of the user reports that it stands for. `want`: fields of the finding; `category` and `reason` are the
    verdict's."""

    id: str
    steps: Sequence[Step]
    want: Mapping[str, object]
    url: str = f"{HOST}/doc"
    method: str = "HEAD"
    max_redirects: int = 10
    expected_mime: str | None = None


def place(url: str) -> str:
    """`/doc` for a URL of HOST, else the whole."""
    return url.removeprefix(HOST) if url.startswith(f"{HOST}/") else url


def shown(request: NextRequest) -> str:
    """`HEAD /doc`, and the cookie where there is one."""
    return f"{request.method} {place(request.target.url)}" + (f" [{request.cookie}]" if request.cookie else "")


def play(case: Case, seen: Callable[[NextRequest], object] = lambda request: None) -> Done:
    """The end of the check; every request must be the one that the step says, and the last step must end it. `seen` is
    shown each request."""
    rules = Rules(max_redirects=case.max_redirects)
    step = begin(case.url, rules, method=case.method, expected_mime=case.expected_mime)
    for number, (wanted, outcome) in enumerate(case.steps):
        assert isinstance(step, Next), f"ended before step {number}: {step}"
        assert shown(step.request) == wanted, f"step {number}"
        seen(step.request)
        step = answered(step.check, outcome)
    assert isinstance(step, Done), f"goes on: {shown(step.request)}" if isinstance(step, Next) else step
    return step


def assert_finding(case: Case) -> None:
    """Plays the check; its finding must be as wanted, and its hops must be the steps."""
    done = play(case)
    finding = done.finding
    facts = {"category": finding.verdict.category, "reason": finding.verdict.reason}
    seen = {name: facts[name] if name in facts else getattr(finding, name) for name in case.want}
    assert seen == case.want
    assert [f"{hop.method} {place(hop.url)}" for hop in done.check.hops] == [
        step.partition(" [")[0] for step, _ in case.steps
    ]
    assert [hop.status for hop in done.check.hops] == [outcome.status for _, outcome in case.steps]


# Parts of many cases: what is wanted of a finding, what a server does, whole checks.

OK: Facts = {"category": "Ok", "reason": "ok", "error": None, "timeout": False}
ALIVE = OK | {"status": 200}
ON_GET = ALIVE | {"method": "GET", "redirects": 0}
OPEN: Facts = {"category": "Undetermined"}
BROKEN: Facts = {"category": "Broken"}
WALLED: Facts = {"category": "Restricted_Access"}
SILENT: Facts = {"status": None, "mime": None, "content_length": None}

RESET, EMPTY = failed(Failure.RESET), failed(Failure.EMPTY_REPLY)
LATE = failed(Failure.TIMEOUT_ANSWER, "timed out after 30 s waiting for the answer of a.example:80")
GOOD = answer(200, content_type="text/html")
IDP = "https://idp.b.example/idp/profile/SAML2/Redirect/SSO?SAMLRequest=x"


def both(case: str, outcome: Outcome, want: Facts) -> Case:
    """HEAD and GET come to the same."""
    return Case(case, [("HEAD /doc", outcome), ("GET /doc", outcome)], {"method": "GET"} | want)


def once(case: str, outcome: Outcome, want: Facts) -> Case:
    """HEAD alone decides."""
    return Case(case, [("HEAD /doc", outcome)], {"method": "HEAD", "redirects": 0} | want)


def lied(case: str, *outcomes: Outcome) -> Case:
    """HEAD fails so, GET is fine."""
    return Case(case, [*(("HEAD /doc", outcome) for outcome in outcomes), ("GET /doc", GOOD)], ON_GET)
