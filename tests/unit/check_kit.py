"""A check played through on paper: steps are (what must be asked, what comes of it)."""

from __future__ import annotations

from collections.abc import Iterable

from attrs import frozen

from linkcrawl.check.outcome import Failure, Outcome
from linkcrawl.check.procedure import Ask, Done, Next, Rules, answered, begin

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


@frozen
class Case:
    """`id`: of the user reports that it stands for. `want`: fields of the finding; `category` and `reason` are the
    verdict's."""

    id: str
    steps: list[Step]
    want: dict[str, object]
    url: str = f"{HOST}/doc"
    method: str = "HEAD"
    max_redirects: int = 10


def place(url: str) -> str:
    """`/doc` for a URL of HOST, else the whole."""
    return url.removeprefix(HOST) if url.startswith(f"{HOST}/") else url


def shown(ask: Ask) -> str:
    """`HEAD /doc`, and the cookie where there is one."""
    return f"{ask.method} {place(ask.target.url)}" + (f" [{ask.cookie}]" if ask.cookie else "")


def play(case: Case) -> Done:
    """The end of the check; every request must be the one that the step says, and the last step must end it."""
    step = begin(case.url, Rules(max_redirects=case.max_redirects), method=case.method)
    for number, (wanted, outcome) in enumerate(case.steps):
        assert isinstance(step, Next), f"ended before step {number}: {step}"
        assert shown(step.ask) == wanted, f"step {number}"
        step = answered(step.check, outcome)
    assert isinstance(step, Done), f"goes on: {shown(step.ask)}" if isinstance(step, Next) else step
    return step
