"""Judges a record again by the present table, from the facts that it holds, without a request.

Where an answer came, its reason is decided again by its status, by the URLs of the deciding chain and by where those
redirected to. A record lacks other facts that reasons depend on: headers (most walls, a 503 with Retry-After), a
Location that could not be followed, the failure of a request. Such a reason stays, and only its category is looked up
again. A reason that was set later (`host_blocked`, a withdrawn record) stays as well. So does the reason of a HEAD
that would now speak against the link: HEAD alone decides nothing, and the next check asks by GET.

A record that is Broken because its host was silent for long (recheck.plan) doesn't say so. A link that has counted no
hard failure of its own stays Broken then; any other becomes what its reason says, and is asked again within hours.
"""

from __future__ import annotations

from attrs import evolve

from linkcrawl import urls
from linkcrawl.check.conclude import deciding_chain
from linkcrawl.check.fields import redirect_target
from linkcrawl.check.logins import leads_to_login
from linkcrawl.check.outcome import Outcome
from linkcrawl.check.procedure import Finding
from linkcrawl.check.recheck import UNANSWERED, Intervals, plan
from linkcrawl.check.statuses import REDIRECTS
from linkcrawl.check.suspects import soft_redirect_reason
from linkcrawl.check.verdict import VERDICT_VERSION, judge, reason_of_answer, sentence
from linkcrawl.check.walls import Wall, wall_of_answer, wall_of_redirect
from linkcrawl.items import Category, DueLink, Hop, LinkState, Record, Rejudged

#: Reasons of answers that said success, some with a doubt; the doubt follows from URLs.
_SUCCESS = frozenset({"ok", "soft_404", "redirected_home", "domain_for_sale"})
#: Reasons by URLs alone that speak against a link, or might.
_TOLD_BY_URLS = (_SUCCESS - {"ok"}) | {"login_redirect"}
#: Reasons of chains that only redirect.
_CIRCLING = frozenset({"redirect_loop", "too_many_redirects"})
#: Reasons of answers that also need what a record doesn't hold; the URLs may still show a login.
_OF_ANSWERS = _CIRCLING | {"rate_limited", "bot_challenge", "redirect_nowhere"}


def rejudge(link: DueLink, record: Record, intervals: Intervals, now: float) -> Rejudged:
    """The latest record of a link, judged by the table of VERDICT_VERSION. `link`: as the record left it. `intervals`:
    those of its checks. `now` (Unix seconds): a record that a clock ahead made in the future counts as made now.

    Where the judgement changes, the link's state and next check are planned as if the check had ended so; what it
    learned of earlier checks stays, as far as it can be told apart.
    """
    reason, wall = reason_again(record)
    after = evolve(record, reason=reason, wall=wall, verdict_version=VERDICT_VERSION)
    try:
        verdict = judge(reason)
    except ValueError:  # a word that the table doesn't have any more says too little to be judged
        return Rejudged(before=record, record=after)
    silent = record.category is Category.BROKEN and reason in UNANSWERED and link.state.hard_count == 0
    category = Category.BROKEN if silent else verdict.category
    if category is record.category and (reason == record.reason or category is Category.OK):
        return Rejudged(before=record, record=after)
    finding = Finding(verdict=verdict, status=record.status, method=record.method)
    planned = plan(_before(link.state, record), None, finding, min(record.checked_at, now), intervals, None)
    after = evolve(
        after,
        category=planned.category,
        confirmed=planned.confirmed,
        error=_error(record, reason, planned.category),
        attempt=planned.attempt,
        next_check_at=planned.next_check_at,
    )
    return Rejudged(before=record, record=after, state=planned.state)


def reason_again(record: Record) -> tuple[str, str | None]:
    """The reason of a record by the present rules, and the product of a wall; where its facts don't suffice, its
    present ones."""
    unchanged, status = (record.reason, record.wall), record.status
    base = None if status is None else _reason_of_status(record.reason, status)
    if base is None:
        return unchanged
    hops = deciding_chain(record.hops)
    targets = [urls.read(hop.url) for hop in hops]
    chain = [target for target in targets if isinstance(target, urls.Target)]
    if not chain:  # an older checker's result: it kept no hops
        return base, None if base != record.reason else record.wall
    wall = None if record.reason == "bot_challenge" else _wall(chain[0], hops)
    reason = base if wall is None else "bot_challenge"
    if leads_to_login(chain, status, circling=reason in _CIRCLING):
        reason = "login_redirect"
    elif reason == "ok":
        reason = soft_redirect_reason(chain[0], chain[-1]) or reason
    if reason == record.reason or (record.method == "HEAD" and reason in _TOLD_BY_URLS):
        return unchanged
    return reason, wall.product if wall is not None and reason == "bot_challenge" else None


def _wall(start: urls.Target, hops: list[Hop]) -> Wall | None:
    """The wall that a chain met, as far as statuses and redirects show it."""
    for hop in hops:
        if hop.status is None:
            continue
        target = urls.join(hop.url, redirect_target({"location": hop.location or ""}))
        asked = urls.read(hop.url)
        outcome = Outcome(sent_at=hop.at, ended_at=hop.at, duration_ms=None, status=hop.status)
        wall = wall_of_answer(outcome, asked.hostname if isinstance(asked, urls.Target) else "")
        if wall is None and hop.status in REDIRECTS and hop.location and isinstance(target, urls.Target):
            wall = None if wall_of_redirect(start, hop.status) else wall_of_redirect(target, hop.status)
        if wall is not None:
            return wall
    return None


def reason_of_status(status: int) -> str:
    """The reason of an answer with this status; nothing else of the answer is known."""
    answer = Outcome(sent_at=0.0, ended_at=0.0, duration_ms=None, status=status)
    return reason_of_answer(status, {}) if wall_of_answer(answer) is None else "bot_challenge"


def _reason_of_status(reason: str, status: int) -> str | None:
    """The reason before URLs are looked at; None where it can't be told from what is stored."""
    if reason == "login_redirect":  # a login that redirects was a circle, or led to what can't be followed
        return None if status in REDIRECTS else reason_of_status(status)
    if reason.startswith("http_") or reason in _SUCCESS or (reason == "rate_limited" and status != 503):
        return reason_of_status(status)
    return reason if reason in _OF_ANSWERS else None


def _before(state: LinkState, record: Record) -> LinkState:
    """The state that the check began on, as far as it can be told from the state after it."""
    was_hard = record.category is Category.BROKEN and state.hard_count > 0
    before = evolve(state, attempt=max(0, state.attempt - 1))
    if not was_hard:
        return before
    first = state.hard_count == 1
    return evolve(
        before,
        hard_count=state.hard_count - 1,
        hard_since=None if first else state.hard_since,
        hard_by_get=state.hard_by_get and not first,
    )


def _error(record: Record, reason: str, category: Category) -> str | None:
    if category is Category.OK:
        return None
    return sentence(reason) if record.error is None or reason != record.reason else record.error
