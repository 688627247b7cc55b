"""Judging a record again by the present table, from what it holds: no request is made.

Where an answer came, its reason follows again from the status and from the URLs of the deciding chain. What the reason
was made of besides isn't in a record: headers (`bot_challenge`, a 503 with Retry-After), a Location that could not be
followed, the failure of a request. There the reason stays, and only its category is looked up anew. A reason that was
put in later (`host_blocked`, a withdrawn record) stays as well.

A record that is Broken because its host was silent for long (recheck.plan) doesn't say so. A link that has counted no
hard failure of its own stays Broken then; any other becomes what its reason says, and is asked again within hours.
"""

from __future__ import annotations

from attrs import evolve

from linkcrawl import urls
from linkcrawl.check.conclude import deciding_chain
from linkcrawl.check.procedure import Finding
from linkcrawl.check.recheck import SILENCE, Intervals, plan
from linkcrawl.check.suspects import soft_redirect_reason
from linkcrawl.check.verdict import REDIRECTS, VERDICT_VERSION, judge, reason_of_answer, sentence
from linkcrawl.check.walls import leads_to_login
from linkcrawl.items import Category, DueLink, LinkState, Record, Rejudged

#: Reasons of answers that said success, some with a doubt; the doubt follows from URLs.
_SUCCESS = frozenset({"ok", "soft_404", "redirected_home", "domain_for_sale"})
#: Reasons of chains that only redirect.
_CIRCLING = frozenset({"redirect_loop", "too_many_redirects"})
#: Reasons of answers that also need what a record doesn't hold; the URLs may still show a login.
_OF_ANSWERS = _CIRCLING | {"rate_limited", "bot_challenge", "redirect_nowhere"}


def rejudge(link: DueLink, record: Record, intervals: Intervals) -> Rejudged:
    """The latest record of a link, judged by the table of VERDICT_VERSION. `link`: as it stands after the record.
    `intervals`: those of its checks.

    Where the judgement changes, the link's state and next check are planned as if the check had ended so; what it
    learned of earlier checks stays, as far as it can be told apart.
    """
    reason = reason_again(record)
    after = evolve(record, reason=reason, verdict_version=VERDICT_VERSION)
    try:
        verdict = judge(reason)
    except ValueError:  # a word that the table doesn't have any more says too little to be judged
        return Rejudged(before=record, record=after)
    silent = record.category is Category.BROKEN and reason in SILENCE and link.state.hard_count == 0
    category = Category.BROKEN if silent else verdict.category
    if category is record.category and (reason == record.reason or category is Category.OK):
        return Rejudged(before=record, record=after)
    finding = Finding(verdict=verdict, status=record.status, method=record.method)
    planned = plan(_before(link.state, record), None, finding, record.checked_at, intervals, None)
    after = evolve(
        after,
        category=planned.category,
        confirmed=planned.confirmed,
        error=_error(record, reason, planned.category),
        attempt=planned.attempt,
        next_check_at=planned.next_check_at,
    )
    return Rejudged(before=record, record=after, state=planned.state)


def reason_again(record: Record) -> str:
    """The reason of a record by the present rules; the one that it has where its facts don't suffice."""
    reason, status = record.reason, record.status
    base = None if status is None else _reason_of_status(reason, status)
    if base is None:
        return reason
    targets = [urls.read(hop.url) for hop in deciding_chain(record.hops)]
    chain = [target for target in targets if isinstance(target, urls.Target)]
    if not chain:  # an older checker's result: it kept no hops
        return base
    if leads_to_login(chain, status, circling=base in _CIRCLING):
        return "login_redirect"
    return soft_redirect_reason(chain[0], chain[-1]) or base if base == "ok" else base


def _reason_of_status(reason: str, status: int) -> str | None:
    """The reason before URLs are looked at; None where it can't be told from what is stored."""
    if reason == "login_redirect":  # a login that redirects was a circle, or led to what can't be followed
        return None if status in REDIRECTS else reason_of_answer(status, {})
    if reason.startswith("http_") or reason in _SUCCESS or (reason == "rate_limited" and status != 503):
        return reason_of_answer(status, {})
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
