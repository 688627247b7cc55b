"""What a crawl would do with a URL and why, by everything that is known without a request."""

from __future__ import annotations

import ipaddress
from typing import Any

from attrs import frozen

from linkcrawl import urls
from linkcrawl.config import Config
from linkcrawl.items import DueLink, Record, iso
from linkcrawl.network.guard import allowed
from linkcrawl.politeness.policy.rules import Applied
from linkcrawl.politeness.robots.cache import Access, RobotsEntry, RobotsVerdict
from linkcrawl.politeness.robots.middleware import denial_of
from linkcrawl.status.hosts import HostDetails, HostStatusReport, State, delay_rows
from linkcrawl.status.snapshot import StoreSnapshot
from linkcrawl.status.texts import policy_text, recorded_text, robots_text
from linkcrawl.stores.contract import Store


@frozen(kw_only=True)
class Forecast:
    """What would become of a check now. `reason`: of its record, where no request is needed to know it; `text`: one
    line."""

    reason: str | None
    text: str


@frozen(kw_only=True)
class RobotsAssessment:
    """robots.txt on a URL. `access`: the verdict now, UNKNOWN where the file has to be fetched first. `entry`: the copy
    that was read last, and `copy_access`, its verdict; None where it was never read."""

    authority: str
    access: Access
    entry: RobotsEntry | None
    copy_access: Access | None

    @property
    def text(self) -> str:
        """One line."""
        if self.entry is None:
            return "not read yet: it is read first"
        verdict = f"{self.copy_access}: {robots_text(self.entry)}"
        return f"{verdict}; that is over: it is read again first" if self.access is Access.UNKNOWN else verdict


@frozen(kw_only=True)
class TargetAssessment:
    """A URL that can be requested, as host, policies and robots.txt have it. `url`: as it would be requested. `method`:
    of the first request, `method_by_policy` where a rule says so. `cost`: delays that a request for it counts for."""

    url: str
    details: HostDetails
    applied: Applied
    cost: float
    method: str
    method_by_policy: bool
    robots: RobotsAssessment
    forecast: Forecast

    def row(self) -> dict[str, Any]:
        """The assessment for JSON."""
        status = self.details.status
        return {
            "request": self.url,
            **{name: value for name, value in status.row().items() if name not in ("due", "walls")},
            "due_at_host": status.due,
            "members": list(status.members),
            "reason": self.forecast.reason,
            "would_be": self.forecast.text,
            "cost": self.cost,
            "method": self.method,
            "considered": delay_rows(self.details.considered),
            "policies": [{"name": rule.name, "says": policy_text(rule)} for rule in self.applied.rules],
            "limits": [
                {
                    "name": limit.name,
                    "delay": limit.delay,
                    "quotas": {quota.window.key: quota.most for quota in limit.quotas},
                    "policy": limit.rule,
                }
                for limit in self.applied.limits
            ],
            "robots": {"authority": self.robots.authority, "access": self.robots.access, "says": self.robots.text},
        }


@frozen(kw_only=True)
class Explanation:
    """All facts about one URL. `url`: tidied. `target`: its assessment, or the refusal of a URL that can't be
    requested. `link`: as the store has it, None where it doesn't; `is_due`: it is due now. `record`: of its last check,
    None where it was never checked."""

    url: str
    target: TargetAssessment | urls.Refused
    link: DueLink | None
    is_due: bool
    record: Record | None

    def row(self) -> dict[str, Any]:
        """The explanation for JSON."""
        link, record = self.link, self.record
        row: dict[str, Any] = {
            "url": self.url,
            "in_store": link is not None,
            "due": self.is_due,
            "retired": link is not None and link.is_retired,
            "next_check_at": None if link is None or record is None or link.is_retired else iso(link.next_check_at),
            "attempt": None if link is None else link.state.attempt,
            "collections": [] if link is None else list(link.collections),
            "last": None if record is None else record.row(),
        }
        if isinstance(self.target, urls.Refused):
            return {**row, "request": None, "reason": self.target.reason, "would_be": self.target.error}
        return {**row, **self.target.row()}


def explain(store: Store, snapshot: StoreSnapshot, text: str) -> Explanation:
    """The explanation of a URL, which may stand in the store or not. Raises StoreLost."""
    url = urls.tidy(text)
    target = urls.read_tidy(url)
    key = urls.key(url, target)
    link = store.link(key)
    return Explanation(
        url=url,
        target=target if isinstance(target, urls.Refused) else _assess(snapshot, target, link),
        link=link,
        is_due=link is not None and link.next_check_at <= snapshot.now(),
        record=store.latest(key),
    )


def _assess(snapshot: StoreSnapshot, target: urls.Target, link: DueLink | None) -> TargetAssessment:
    report, now = HostStatusReport(snapshot, target.host), snapshot.now()
    details = report.details(target.host)
    collections, providers = ((), ()) if link is None else (link.collections, link.providers)
    applied = snapshot.policies.of_link(target.host, collections, providers)
    entry = snapshot.robots.get(target.authority)
    verdict = snapshot.robots.verdict(target.authority, target.url, now)
    method = applied.method or ("GET" if details.head_useless else "HEAD")
    opens_at = max([details.status.wake or 0.0, *map(report.opens_at, applied.limits)])
    return TargetAssessment(
        url=target.url,
        details=details,
        applied=applied,
        cost=applied.cost(target.url),
        method=method,
        method_by_policy=applied.method is not None,
        robots=RobotsAssessment(
            authority=target.authority,
            access=verdict.access,
            entry=entry,
            copy_access=None if entry is None else entry.verdict(target.url, now).access,
        ),
        forecast=_forecast(snapshot, target, details, applied, verdict, method, opens_at),
    )


def _forecast(
    snapshot: StoreSnapshot,
    target: urls.Target,
    details: HostDetails,
    applied: Applied,
    robots: RobotsVerdict,
    method: str,
    opens_at: float,
) -> Forecast:
    """The forecast, in the order in which the frontier decides."""
    now = snapshot.now()
    if _is_forbidden(target.hostname, snapshot.config):
        return _recorded("forbidden_address")
    if (why := _paused(details, applied, now)) is not None:
        return Forecast(reason=None, text=f"not asked: {why}; the link stays due")
    if (rule := applied.skipped_by(target.url)) is not None:
        return _recorded("skipped_by_policy", f"policy {rule} skips it")
    if (denial := denial_of(robots)) is not None:
        entry = snapshot.robots.get(target.authority)
        return _recorded(denial.reason, robots.note or (entry.note if entry else ""))
    when = f"at {iso(opens_at)} at the earliest" if opens_at > now else "as soon as it is its turn"
    first = ", once robots.txt is read" if robots.access is Access.UNKNOWN else ""
    return Forecast(reason=None, text=f"asked by {method} {when}{first}")


def _paused(details: HostDetails, applied: Applied, now: float) -> str | None:
    """Why no such link is asked now: an order, a ban, a pause or quiet hours; None where one may be."""
    status = details.status
    if status.state in (State.BLOCKED, State.QUIET):
        return status.why
    if applied.paused_by is not None:
        return f"paused by policy {applied.paused_by}"
    return "quiet hours" if applied.open_at(now) > now else None


def _recorded(reason: str, why: str | None = None) -> Forecast:
    return Forecast(reason=reason, text=recorded_text(reason, why))


def _is_forbidden(hostname: str, config: Config) -> bool:
    """True where the URL's host is an address that may not be connected to; a name is judged when it is looked up."""
    try:
        address = ipaddress.ip_address(hostname)
    except ValueError:
        return False
    return not allowed(address, config.allowed_networks)
