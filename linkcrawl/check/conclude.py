"""Makes, of a check that has ended, the record to store and the link's next state."""

from __future__ import annotations

from attrs import evolve

from linkcrawl.check.fields import mime_matches
from linkcrawl.check.outcome import Failure
from linkcrawl.check.procedure import Done, Finding
from linkcrawl.check.recheck import Intervals, Planned, plan
from linkcrawl.check.silence import Silence, is_recent
from linkcrawl.check.verdict import VERDICT_VERSION, judge, reason_of_failure
from linkcrawl.items import DueLink, Finished, Hop, Record

_REFUSED = reason_of_failure(Failure.REFUSED)


def conclude(
    link: DueLink,
    done: Done,
    now: float,
    crawler: str,
    intervals: Intervals,
    host_silence: Silence | None,
    *,
    retry_at: float | None = None,
    host_worked: bool = False,
) -> Finished:
    """The record of a check, and its link's next state.

    `now`: Unix seconds, used where no request was sent; else the time of the deciding answer counts. `crawler`:
    Config.crawler. `host_silence`, `retry_at`: see recheck.plan. `host_worked`: that host's server (scheme and port
    included) has answered before; that it refuses connections says nothing of the link then, until it has for a day.
    """
    finding = done.finding
    if host_worked and finding.verdict.reason == _REFUSED and is_recent(host_silence, now):
        finding = evolve(finding, verdict=judge("stopped_answering"))
    # in milliseconds, as records show it: queries by time must agree with that
    at = round(now if finding.at is None else finding.at, 3)
    early = at < link.next_check_at
    planned = plan(link.state, link.last_category, finding, at, intervals, host_silence, retry_at=retry_at, early=early)
    record = recorded(link, finding, planned, at, crawler, done.check.hops)
    return Finished(record=record, state=planned.state, of=link)


def deciding_chain(hops: tuple[Hop, ...]) -> list[Hop]:
    """The hops of the chain that decided: the last ones with one method. (A check's second chain begins again at the
    link's own URL, by another method.)"""
    first = len(hops)
    while first and hops[first - 1].method == hops[-1].method:
        first -= 1
    return list(hops[first:])


def recorded(
    link: DueLink, finding: Finding, planned: Planned, at: float, crawler: str, hops: tuple[Hop, ...] = ()
) -> Record:
    """The record of a finding and of what it means for the link. `at`: Unix seconds of the deciding moment."""
    return Record(
        link_id=link.id,
        url=link.url,
        collections=tuple(sorted(set(link.collections))),
        checked_at=at,
        category=planned.category,
        reason=finding.verdict.reason,
        confirmed=planned.confirmed,
        status=finding.status,
        method=finding.method,
        redirects=finding.redirects,
        final_url=finding.final_url,
        hops=hops,
        timeout=finding.timeout,
        duration_ms=finding.duration_ms,
        expected_mime=link.expected_mime,
        mime=finding.mime,
        mime_matches=mime_matches(link.expected_mime, finding.mime),
        content_length=finding.content_length,
        error=finding.error,
        attempt=planned.attempt,
        next_check_at=planned.next_check_at,
        crawler=crawler,
        wall=finding.wall,
        verdict_version=VERDICT_VERSION,
    )
