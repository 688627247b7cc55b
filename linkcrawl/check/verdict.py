"""The table of verdicts: what happened to a link (a reason), what we make of it (a category), and what that means.

A reason has one category. A record keeps reason and facts apart from the judgement, so records of an older table can be
judged again without a request: `judge(record.reason)`. Any change of the table raises VERDICT_VERSION: a test keeps a
digest of each version's verdicts (tests/unit/test_check_version.py).

`Broken` is a *hard* verdict: it says that the fault is the link's. It is suspected first and confirmed later
(recheck.py). Whatever may as well be the fault of our request, of the moment or of the way there is `Undetermined`.
"""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

from linkcrawl.check.outcome import Failure
from linkcrawl.check.statuses import REDIRECTS, TOO_OFTEN
from linkcrawl.items import Category

#: Version of the table, which every record has; 1 also stands for records from before there was this number.
VERDICT_VERSION = 5

_OK = Category.OK
_BROKEN = Category.BROKEN
_OPEN = Category.UNDETERMINED
_WALLED = Category.RESTRICTED
_ROBOTS = Category.BLOCKED_BY_ROBOTS
_INVALID = Category.INVALID

#: Reason -> category and what it means. The reasons `http_NNN` follow below.
# fmt: off
REASONS: Mapping[str, tuple[Category, str]] = {
    # An answer came.
    "ok": (_OK, "The server answered with success (2xx) or that nothing has changed (304)."),
    "redirected_home": (_OK, "The link leads to a home page, which answers well; what the link meant may be gone."),
    "soft_404": (_OK, "The link leads to a page that answers well, and whose address says that nothing was found "
                       "or the identifier is deleted."),
    "domain_for_sale": (_OK, "The link leads to a service that parks or sells domain names, which answers well."),
    "login_redirect": (_WALLED, "The link leads to a login."),
    "bot_challenge": (_OPEN, "The server wants proof of a human visitor, which a crawler must not give."),
    "rate_limited": (_OPEN, "The server says that it is asked too often (429, 420, 430, 509, 529) or to come back "
                            "later (503 with Retry-After)."),
    "redirect_nowhere": (_BROKEN, "The server redirects without saying where to, or to what is no usable URL."),
    "redirect_loop": (_BROKEN, "The server redirects in a circle."),
    "cookies_withheld": (_OPEN, "The server wants more cookies back than we send (180, and 8,000 bytes); what it "
                                "answered without them says nothing certain."),
    "too_many_redirects": (_OPEN, "There are more redirects than LINKCRAWL_MAX_REDIRECTS; where they end is unknown."),
    # No answer came.
    "dns_not_found": (_BROKEN, "The host name does not exist, or has no address."),
    "dns_trouble": (_OPEN, "The host name could not be looked up; this says nothing of the name."),
    "connection_refused": (_BROKEN, "Nothing listens at the host's port."),
    "stopped_answering": (_OPEN, "The host answered until less than a day ago, and refuses connections now: it may be "
                                 "down, or have shut us out."),
    "host_unreachable": (_OPEN, "There was no way through the network to the host."),
    "connection_reset": (_OPEN, "The connection was broken off before the answer, twice."),
    "empty_reply": (_OPEN, "The connection was closed without an answer, twice."),
    "timeout": (_OPEN, "No answer within LINKCRAWL_TIMEOUT; the error tells what was being waited for."),
    "tls_expired": (_OPEN, "The server's certificate has expired, or is not valid yet."),
    "tls_self_signed": (_OPEN, "The server's certificate is signed by nobody but itself."),
    "tls_untrusted": (_OPEN, "The server's certificate comes from an authority that we don't know, or its chain is "
                             "incomplete."),
    "tls_hostname": (_OPEN, "The server's certificate is for another name."),
    "tls_version": (_OPEN, "The server and we have no TLS version or cipher in common."),
    "tls_error": (_OPEN, "No TLS connection came about, for another reason."),
    "protocol_error": (_OPEN, "What the server answered is not HTTP."),
    "headers_too_large": (_OPEN, "The head of the answer is larger than we are ready to read."),
    # Nothing was asked, or not to the end.
    "robots_disallowed": (_ROBOTS, "The host's robots.txt asks us not to request this."),
    "robots_unreachable": (_ROBOTS, "The host's robots.txt could not be had, so nothing may be requested (RFC 9309)."),
    "host_blocked": (_OPEN, "The host seems to have banned us, or an operator has blocked it."),
    "skipped_by_policy": (_OPEN, "A rule of the policy file says not to request this."),
    "poison_link": (_OPEN, "Workers of a cluster have died over this link, again and again; it needs a person's eyes."),
    "too_many_names": (_OPEN, "Redirects lead to more new host names of one registered domain than are followed: 1,000 "
                              "a day."),
    "not_recorded": (_OPEN, "The result was taken over from an older checker, which did not say why."),
    "invalid_url": (_INVALID, "There is no usable URL."),
    "url_too_long": (_INVALID, "The URL is longer than 16,384 bytes, which is more than common servers read."),
    "unsupported_scheme": (_INVALID, "Only http and https can be checked, on every redirect too."),
    "forbidden_port": (_INVALID, "The port belongs to another protocol than HTTP (the Fetch standard's bad ports)."),
    "forbidden_address": (_INVALID, "The host's address is private or reserved; see LINKCRAWL_ALLOWED_NETWORKS."),
}
# fmt: on

#: Statuses whose reason is `http_NNN` and whose meaning is known; any other status is Undetermined.
HTTP: Mapping[int, tuple[Category, str]] = {
    # 3xx that lead nowhere by themselves
    300: (_OPEN, "The server offers several choices and names no default."),
    305: (_OPEN, "The server wants a proxy to be used (obsolete)."),
    306: (_OPEN, "The server used a redirect status that no longer means anything."),
    # 4xx that speak of the resource
    400: (_BROKEN, "The server can't make sense of this URL."),
    404: (_BROKEN, "The server has nothing at this URL."),
    410: (_BROKEN, "The server says that the resource is gone for good."),
    414: (_BROKEN, "The server says that this URL is too long."),
    422: (_BROKEN, "The server understands the URL and can't do what it asks."),
    # 4xx that speak of who may have it
    401: (_WALLED, "The resource needs a login."),
    402: (_WALLED, "The resource must be paid for."),
    403: (_WALLED, "The server does not give us the resource."),
    407: (_WALLED, "A proxy in front of the resource needs a login."),
    451: (_WALLED, "The resource is withheld for legal reasons."),
    # 4xx that speak of our request or of the moment
    405: (_OPEN, "The server allows neither HEAD nor GET for this URL."),
    406: (_OPEN, "The server has nothing that fits our Accept header."),
    408: (_OPEN, "The server gave up waiting for our request."),
    409: (_OPEN, "The request is in conflict with the present state of the resource."),
    411: (_OPEN, "The server wants a request with a body's length."),
    412: (_OPEN, "The server wants a condition that the request did not meet."),
    413: (_OPEN, "The server finds the request too large."),
    415: (_OPEN, "The server does not take this form of request."),
    416: (_OPEN, "The server can't give the range that it thinks it was asked for."),
    417: (_OPEN, "The server can't meet an expectation that the request did not have."),
    418: (_OPEN, "The server says that it is a teapot: some use this against robots."),
    421: (_OPEN, "The request came to a server that does not answer for this host."),
    423: (_OPEN, "The resource is locked at the moment."),
    424: (_OPEN, "The request failed because another one had failed."),
    425: (_OPEN, "The server thinks that the request came too early."),
    426: (_OPEN, "The server wants another protocol."),
    428: (_OPEN, "The server wants a conditional request."),
    431: (_OPEN, "The server finds the request's headers too large."),
    # 5xx
    500: (_OPEN, "The server failed."),
    501: (_OPEN, "The server can't do what was asked, neither by HEAD nor by GET."),
    502: (_OPEN, "A gateway got no sound answer from the server behind it."),
    503: (_OPEN, "The server is overloaded or being maintained."),
    504: (_OPEN, "A gateway got no answer in time from the server behind it."),
    505: (_OPEN, "The server does not speak this version of HTTP."),
}


@frozen(kw_only=True)
class Verdict:
    """A judgement. `hard`: the link itself is at fault; such a verdict is suspected until recheck.py confirms it."""

    category: Category
    reason: str
    hard: bool


def judge(reason: str) -> Verdict:
    """The verdict of a reason. Raises ValueError for a word that is no reason."""
    category, _ = _row(reason)
    return Verdict(category=category, reason=reason, hard=category is Category.BROKEN)


def sentence(reason: str) -> str:
    """A reason's meaning in one sentence. Raises ValueError for a word that is no reason."""
    return _row(reason)[1]


def reason_of_answer(status: int, headers: Mapping[str, str]) -> str:
    """The reason of an answer that is not followed any further and shows no wall (walls.py): front ends send those with
    200, 202, 403, 405, 429 and 503, so they go before. `headers` have lower-case names.

    A 503 whose Retry-After is 0 is no "too often": the server says that it may be asked again at once."""
    if 200 <= status < 300 or status == 304:
        return "ok"
    if status in TOO_OFTEN or (status == 503 and headers.get("retry-after", "").strip(" 0")):
        return "rate_limited"
    if status in REDIRECTS - {300}:
        return "redirect_nowhere"
    return f"http_{status}"


def reason_of_failure(failure: Failure) -> str:
    """The reason of a request that got no answer. All time limits are one word; the error text tells the phase."""
    return "timeout" if failure.is_timeout else failure.value


def _row(reason: str) -> tuple[Category, str]:
    if reason in REASONS:
        return REASONS[reason]
    family, _, digits = reason.partition("_")
    if family != "http" or not (len(digits) == 3 and digits.isascii() and digits.isdigit()):
        raise ValueError(f"{reason!r} is no reason; {', '.join(REASONS)} and http_NNN are")
    # A code that nobody has defined is no proof that the resource is gone: many are inventions against robots.
    return HTTP.get(int(digits), (_OPEN, f"The server answered with status {digits}, which tells us nothing certain."))
