"""The procedure of a check: given what just happened, the next request (Next) or the end (Done).

A check is one or two *chains* of requests. The first asks by HEAD and follows redirects. HEAD alone never decides
against a link: where its chain ends in a failure that HEAD may be to blame for, at a login, a home page, a "not found"
page, another media type than the metadata's or a 202, a second chain asks by GET, from the link's own URL again, so
that its redirects, time and answer stand for themselves; the last chain decides, also where it fails otherwise than the
first. Nothing is asked after a wall (walls.py). A method is kept over all hops, 303 included. A broken connection gets
one fresh try in a check. So a check makes at most 2 * (max_redirects + 1) + 1 requests, and one more for each server
that breaks kept connections: after the first the handler keeps none of that server's.

Everything here is a value. The caller sends `Next.request`, and hands what came of it to `answered`; where the request
may not be sent at all, it says so to `denied`.
"""

from __future__ import annotations

from attrs import evolve, field, frozen

from linkcrawl.check.cookies import Jar
from linkcrawl.check.fields import bare_mime, is_html, length, mime_matches, redirect_target
from linkcrawl.check.logins import leads_to_login
from linkcrawl.check.outcome import ACCIDENTS, Failure, Outcome
from linkcrawl.check.statuses import REDIRECTS
from linkcrawl.check.suspects import soft_redirect_reason
from linkcrawl.check.verdict import Verdict, judge, reason_of_answer, reason_of_failure, sentence
from linkcrawl.check.walls import BODY_LIMIT, Wall, wall_of_answer, wall_of_page, wall_of_redirect
from linkcrawl.items import Category, Hop
from linkcrawl.text import one_line
from linkcrawl.urls import MAX_URL, Refused, Target, join, read
from linkcrawl.urls.userinfo import without_userinfo

#: Failures that a server's handling of HEAD may cause; all others come before the server sees a method.
_METHOD_MATTERS = ACCIDENTS | {Failure.TIMEOUT_ANSWER, Failure.PROTOCOL}

#: Doubts with which a link may still be Ok.
_MILD = frozenset({"accepted", "media_type", "redirected_home", "soft_404", "domain_for_sale"})

#: Ends of a chain that only redirects.
_CIRCLING = frozenset({"redirect_loop", "too_many_redirects"})

#: Reasons to refuse a redirect's target that no other request could help.
_NOWHERE = frozenset({"invalid_url", "url_too_long"})

#: Reasons for which the caller may deny a request; a Failure is the other kind.
DENIALS = frozenset(
    {
        "robots_disallowed",
        "robots_unreachable",
        "host_blocked",
        "skipped_by_policy",
        "poison_link",
        "too_many_names",
    }
)

#: Denials after which a link may still be judged as leading to a login: what the identity provider's robots.txt allows
#: says nothing of the link.
_DENIALS_AT_LOGIN = frozenset({"robots_disallowed", "robots_unreachable"})


@frozen(kw_only=True)
class Rules:
    """What an operator may set. `max_redirects`: redirects followed in one chain, that number included."""

    max_redirects: int = 10


@frozen(kw_only=True)
class NextRequest:
    """A request that the check wants sent. `cookie`: the value of its Cookie field, None for no such field.
    `page_limit`: bytes of the body that Outcome.page should hold where the answer is an HTML page; None: no body is
    read."""

    method: str
    target: Target
    cookie: str | None = None
    page_limit: int | None = None


@frozen(kw_only=True)
class Denial:
    """Why the next request may not be sent: one of DENIALS, or the Failure that kept robots.txt from being fetched.
    `timed_out`: a time limit ended the fetch of robots.txt."""

    reason: str | Failure
    timed_out: bool = False
    error: str | None = None


@frozen(kw_only=True)
class RequestChain:
    """Requests by one method from the link's own URL onwards.

    `first`: index in Check.hops of its first request. `requests`: what it has sent or is about to send, in order, a
    fresh try not counted. `jar`: its cookies. `cookies_complete`: every request had all cookies that a browser would
    have sent.
    """

    first: int = 0
    requests: tuple[NextRequest, ...] = ()
    jar: Jar = field(factory=Jar)
    cookies_complete: bool = True


@frozen(kw_only=True)
class Check:
    """A check under way. `expected_mime`: the media type that the metadata want, None for any. `request`: the one whose
    outcome it waits for, None once the check is done. `retried`: its fresh try is used up. `was_stale`: the last
    outcome was that of a stale connection.

    Set in the second chain: `head_doubt`, what the first one ended in (a reason, or a word of _MILD), and
    `head_doubted_at`, the host (key) where it did.
    """

    url: str
    rules: Rules
    expected_mime: str | None = None
    request: NextRequest | None = None
    start: Target | None = None
    hops: tuple[Hop, ...] = ()
    chain: RequestChain = field(factory=RequestChain)
    retried: bool = False
    was_stale: bool = False
    head_doubt: str | None = None
    head_doubted_at: str | None = None

    @property
    def chain_hops(self) -> tuple[Hop, ...]:
        return self.hops[self.chain.first :]


@frozen(kw_only=True)
class Finding:
    """The facts of the deciding request, and the verdict.

    `status`, `method`, `mime`, `content_length`: None where nothing was answered (asked). `final_url`: where the
    deciding answer came from, failed to come from, or was not allowed to be asked for; None for an unusable URL.
    `redirects`: followed by a request. `duration_ms`: sum over the deciding chain. `at`: Unix seconds of the deciding
    moment; None where there was none. `error`: one line, None only with Ok. `wall`: the product behind a bot_challenge,
    None where it can't be named (walls.WALLS).
    """

    verdict: Verdict
    status: int | None = None
    method: str | None = None
    redirects: int = 0
    final_url: str | None = None
    timeout: bool = False
    duration_ms: int | None = None
    mime: str | None = None
    content_length: int | None = None
    error: str | None = None
    at: float | None = None
    wall: str | None = None


@frozen(kw_only=True)
class Next:
    """The check goes on: send `request`, which is `check.request`."""

    check: Check
    request: NextRequest


@frozen(kw_only=True)
class Done:
    """The check has ended. `head_useless`: True where GET succeeded after HEAD had not at the link's own host, None
    where nothing was learned of that host's HEAD."""

    check: Check
    finding: Finding
    head_useless: bool | None = None


def begin(url: str, rules: Rules, *, method: str = "HEAD", expected_mime: str | None = None) -> Next | Done:
    """The first request of a link's check; Done at once where there is nothing that could be requested.

    `method`: "GET" where HEAD is known to lie; no HEAD is sent then. `expected_mime`: see Check.
    """
    target = read(url)
    if isinstance(target, Refused):
        finding = Finding(verdict=judge(target.reason), error=_error(target.error, target.reason))
        return Done(check=Check(url=url, rules=rules, expected_mime=expected_mime), finding=finding)
    check = Check(url=url, rules=rules, expected_mime=expected_mime, start=target)
    return _send(check, _request(check, method, target), RequestChain())


def answered(check: Check, outcome: Outcome) -> Next | Done:
    """What follows from the outcome of `check.request`. Raises ValueError where the check waits for no request, or for
    an outcome that is neither an answer nor a failure."""
    request = _pending(check)
    was_stale = check.was_stale
    check = evolve(check, hops=(*check.hops, _hop(request, outcome)), was_stale=outcome.stale)
    if outcome.stale:
        return Next(check=check, request=request)
    if outcome.failure is not None:
        if outcome.failure in ACCIDENTS and not check.retried:
            check = evolve(check, retried=True)
            if not was_stale:  # else this was the fresh try: the request has failed on two connections
                return Next(check=check, request=request)
        return _ended(check, request, outcome, reason_of_failure(outcome.failure), outcome.error)
    if outcome.status is None:
        raise ValueError(f"the outcome for {request.target.url} has neither a status nor a failure")
    location = redirect_target(outcome.headers) if outcome.status in REDIRECTS else ""
    wall = _wall(check, request, outcome, location)
    if wall is not None:
        return _ended(check, request, outcome, "bot_challenge", None, wall)
    if location:
        return _redirected(check, request, outcome, location)
    return _ended(check, request, outcome, reason_of_answer(outcome.status, outcome.headers), None)


def denied(check: Check, denial: Denial, at: float) -> Next | Done:
    """What follows where the next request may not be sent, at `at` (Unix seconds): the end; or, at a login that only
    HEAD has led to, the second chain. No hop is added; those before stay. Raises ValueError for a word that is not one
    of DENIALS."""
    request = _pending(check)
    if isinstance(denial.reason, Failure):
        reason, login_shows = reason_of_failure(denial.reason), True
    elif denial.reason in DENIALS:
        reason, login_shows = denial.reason, denial.reason in _DENIALS_AT_LOGIN
    else:
        raise ValueError(f"{denial.reason!r} denies no request; {', '.join(sorted(DENIALS))} or a Failure do")
    error = _error(denial.error, reason)
    if login_shows and _login(check, None, reason):
        if request.method == "HEAD" and check.start is not None:
            return _ask_by_get(check, check.start, request, "login_redirect")
        reason = "login_redirect"
    finding = Finding(
        verdict=judge(reason),
        redirects=_redirects(check),
        final_url=request.target.url,
        timeout=denial.timed_out or (isinstance(denial.reason, Failure) and denial.reason.is_timeout),
        duration_ms=_duration(check),
        error=error,
        at=at,
    )
    return Done(check=evolve(check, request=None), finding=finding)


def aborted(check: Check, error: str, at: float) -> Done:
    """The end of a check that a fault of ours stopped, at `at` (Unix seconds): Undetermined, as `protocol_error`."""
    finding = Finding(
        verdict=judge(reason_of_failure(Failure.PROTOCOL)),
        redirects=_redirects(check),
        final_url=None if check.request is None else check.request.target.url,
        duration_ms=_duration(check),
        error=_error(error, reason_of_failure(Failure.PROTOCOL)),
        at=at,
    )
    return Done(check=evolve(check, request=None), finding=finding)


def _request(check: Check, method: str, target: Target, cookie: str | None = None) -> NextRequest:
    wants_page = check.expected_mime is None or is_html(bare_mime(check.expected_mime))
    limit = None if method == "HEAD" or wants_page else BODY_LIMIT
    return NextRequest(method=method, target=target, cookie=cookie, page_limit=limit)


def _send(check: Check, request: NextRequest, chain: RequestChain) -> Next:
    sent = RequestChain(
        first=chain.first,
        requests=(*chain.requests, request),
        jar=chain.jar,
        cookies_complete=chain.cookies_complete,
    )
    return Next(check=evolve(check, request=request, chain=sent), request=request)


def _pending(check: Check) -> NextRequest:
    if check.request is None:
        raise ValueError(f"the check of {check.url!r} waits for no request")
    return check.request


def _redirected(check: Check, request: NextRequest, outcome: Outcome, location: str) -> Next | Done:
    target = join(request.target.url, location)
    if isinstance(target, Refused):
        reason = "redirect_nowhere" if target.reason in _NOWHERE else target.reason
        return _ended(check, request, outcome, reason, f"redirected to what can't be followed: {target.error}")
    jar = check.chain.jar.take(outcome.set_cookie, request.target, outcome.ended_at)
    cookies = jar.field(target)
    follow = _request(check, request.method, target, cookies.value)
    limit = check.rules.max_redirects
    over = sum(hop.status is not None for hop in check.chain_hops) > limit
    known = any(sent.target.url == target.url for sent in check.chain.requests)
    # A page that hands out new cookies for ever never repeats itself exactly; it goes in a circle all the same.
    if follow in check.chain.requests or (over and known):
        return _ended(check, request, outcome, "redirect_loop", f"redirected in a circle, to {target.url} again")
    if over:
        return _ended(
            check, request, outcome, "too_many_redirects", f"more than {limit} redirects, next to {target.url}"
        )
    complete = check.chain.cookies_complete and cookies.complete
    return _send(check, follow, evolve(check.chain, jar=jar, cookies_complete=complete))


def _wall(check: Check, request: NextRequest, outcome: Outcome, location: str) -> Wall | None:
    """The wall that an answer shows or leads to. `location`: where it redirects to, "" for nowhere.

    A link that is itself the address of a challenge is judged like any other.
    """
    assert outcome.status is not None
    wall = wall_of_answer(outcome, request.target.hostname) or (wall_of_page(outcome.page) if outcome.page else None)
    if wall is not None or not location:
        return wall
    target = join(request.target.url, location)
    if isinstance(target, Refused) or (check.start is not None and wall_of_redirect(check.start, outcome.status)):
        return None
    return wall_of_redirect(target, outcome.status)


def _ended(
    check: Check, request: NextRequest, outcome: Outcome, reason: str, error: str | None, wall: Wall | None = None
) -> Next | Done:
    """A chain has ended: the second chain, or the finding."""
    start = check.start
    login = _login(check, outcome, reason)
    doubt = _doubt(check, request, outcome, reason, login)
    if request.method == "HEAD" and start is not None and doubt is not None:
        return _ask_by_get(check, start, request, doubt)
    if login:
        error, reason = _error(error, "login_redirect"), "login_redirect"
    if reason == "ok":
        reason = soft_redirect_reason(check.chain.requests[0].target, request.target) or reason
    elif outcome.status is not None and not check.chain.cookies_complete and judge(reason).hard:
        error, reason = _error(error, reason), "cookies_withheld"
    verdict = judge(reason)
    finding = Finding(
        verdict=verdict,
        status=outcome.status,
        method=request.method,
        redirects=_redirects(check),
        final_url=request.target.url,
        timeout=outcome.failure is not None and outcome.failure.is_timeout,
        duration_ms=_duration(check),
        mime=bare_mime(outcome.headers.get("content-type", "")),
        content_length=length(outcome.headers.get("content-length", "")),
        error=None if verdict.category is Category.OK else _error(error, reason),
        at=outcome.ended_at,
        wall=wall.product if wall is not None and reason == "bot_challenge" else None,
    )
    better = verdict.category is Category.OK and (doubt is None or check.head_doubt not in _MILD)
    learned = better and start is not None and check.head_doubted_at == start.host
    return Done(check=evolve(check, request=None), finding=finding, head_useless=learned or None)


def _ask_by_get(check: Check, start: Target, request: NextRequest, doubt: str) -> Next:
    """The second chain, after a first one by HEAD that ended in this doubt with `request`."""
    check = evolve(check, head_doubt=doubt, head_doubted_at=request.target.host)
    return _send(check, _request(check, "GET", start), RequestChain(first=len(check.hops)))


def _doubt(check: Check, request: NextRequest, outcome: Outcome, reason: str, login: bool) -> str | None:
    """What speaks against the link at the end of a chain, and may do so by HEAD only.

    None where nothing does, and where GET must not be tried: a server that says it is asked too often, a challenge (it
    is not for us to pass), a failure before the server sees a method.
    """
    if reason in ("bot_challenge", "rate_limited"):
        return None
    if login:
        return "login_redirect"
    if reason != "ok":
        return reason if _head_may_be_to_blame(reason, outcome.failure) else None
    if outcome.status == 202:
        return "accepted"
    if mime_matches(check.expected_mime, bare_mime(outcome.headers.get("content-type", ""))) is False:
        return "media_type"
    return soft_redirect_reason(check.chain.requests[0].target, request.target)


def _head_may_be_to_blame(reason: str, failure: Failure | None) -> bool:
    """True where GET may do better than this failure; not where a redirect leads to another protocol."""
    if failure is not None:
        return failure in _METHOD_MATTERS
    return reason.startswith("http_") or reason == "redirect_nowhere" or reason in _CIRCLING


def _login(check: Check, outcome: Outcome | None, reason: str) -> bool:
    if reason in ("unsupported_scheme", "forbidden_port", "forbidden_address"):
        return False
    targets = [sent.target for sent in check.chain.requests]
    return leads_to_login(targets, outcome.status if outcome else None, circling=reason in _CIRCLING)


def _redirects(check: Check) -> int:
    """Redirects of the chain that a request followed: the last answer's was not."""
    statuses = [hop.status for hop in check.chain_hops]
    return sum(status is not None for status in statuses[:-1])


def _duration(check: Check) -> int | None:
    times = [hop.duration_ms for hop in check.chain_hops if hop.duration_ms is not None]
    return sum(times) if times else None


def _hop(request: NextRequest, outcome: Outcome) -> Hop:
    location = outcome.headers.get("location")
    return Hop(
        url=request.target.url,
        method=request.method,
        status=outcome.status,
        location=None if location is None else _shown(one_line(without_userinfo(location))),
        duration_ms=outcome.duration_ms,
        ip=outcome.ip,
        error=_error(outcome.error, reason_of_failure(outcome.failure)) if outcome.failure else None,
        at=outcome.sent_at,
    )


def _shown(location: str) -> str:
    """A Location as it is recorded; of one that is too long to be followed, its beginning."""
    return location if len(location) <= MAX_URL else f"{location[:MAX_URL]}…"


def _error(text: str | None, reason: str) -> str:
    return one_line(text or "").strip() or sentence(reason)
