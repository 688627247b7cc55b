"""What would be done with a URL and why, by all that is known without a request."""

from __future__ import annotations

import ipaddress
from typing import Any

from attrs import frozen

from linkcrawl import urls
from linkcrawl.check.verdict import judge
from linkcrawl.config import Config
from linkcrawl.items import DueLink, Record, iso
from linkcrawl.network.guard import allowed
from linkcrawl.politeness.policy.rules import Applied
from linkcrawl.politeness.robots.cache import Access
from linkcrawl.politeness.robots.middleware import denial_of
from linkcrawl.status.hosts import HostStatus, HostStatusReport, State
from linkcrawl.status.render import (
    Facts,
    contribution,
    delay_facts,
    gate_facts,
    head_word,
    order_facts,
    policy_facts,
    robots_text,
)
from linkcrawl.status.snapshot import StoreSnapshot
from linkcrawl.stores.contract import Store


@frozen(kw_only=True)
class Forecast:
    """What would become of a check: `reason` where its record can be told without a request, and `says`, one line."""

    reason: str | None
    says: str


class Explanation:
    """All that bears on one URL. Raises StoreLost."""

    def __init__(self, store: Store, outlook: StoreSnapshot, text: str):
        self.url = urls.tidy(text)
        self.target = urls.read_tidy(self.url)
        self.outlook = outlook
        key = urls.key(self.url, self.target)
        self.link: DueLink | None = store.link(key)
        self.record: Record | None = store.latest(key)

    @property
    def is_due(self) -> bool:
        """Whether the store has it as due now."""
        return self.link is not None and self.link.next_check_at <= self.outlook.now()

    def _due_text(self) -> str:
        if self.link is None:
            return "not in the store; scrapy seed takes it up"
        if self.record is None:
            return "yes, it was never checked"
        return f"{'yes, since' if self.is_due else 'no, again at'} {iso(self.link.next_check_at)}"

    def facts(self) -> Facts:
        """For people, a fact a line."""
        told: Facts = [("url", self.url)]
        if isinstance(self.target, urls.Target):
            told += self._of_target(self.target)
        else:
            told.append(("would be", f"recorded as {_recorded(self.target.reason)}: {self.target.error}"))
        return [*told, ("due", self._due_text()), *self._of_history()]

    def _of_target(self, target: urls.Target) -> Facts:
        weighed = TargetAssessment(self.outlook, target, self.link)
        view, overview = weighed.view, weighed.overview
        return [
            ("request", target.url),
            ("would be", weighed.prospect.says),
            ("host", f"{target.host}, {view.state}" + (f" ({view.why})" if view.why else "")),
            *gate_facts(view),
            *order_facts(view.order),
            *delay_facts(overview, view),
            *([("cost", f"{weighed.cost:g} delays")] if weighed.cost > 1 else []),
            *[("limit", limit.text) for limit in weighed.applied.limits],
            *policy_facts(weighed.applied),
            ("robots.txt", weighed.robots_says),
            ("method", weighed.method_says),
        ]

    def _of_history(self) -> Facts:
        told: Facts = []
        if self.link is not None:
            told.append(("found in", ", ".join(self.link.collections) or "no collection"))
            told.append(("attempt", f"{self.link.state.attempt} checks in a row were not Ok"))
        record = self.record
        if record is not None:
            came = record.error or f"{record.status} by {record.method}"
            why = record.reason if record.confirmed else f"{record.reason}, suspected only"
            told.append(("last check", f"{iso(record.checked_at)}: {record.category} ({why}), {came}"))
        return told

    def row(self) -> dict[str, Any]:
        """For JSON."""
        link, record = self.link, self.record
        row: dict[str, Any] = {
            "url": self.url,
            "in_store": link is not None,
            "due": self.is_due,
            "next_check_at": None if link is None or record is None else iso(link.next_check_at),
            "attempt": None if link is None else link.state.attempt,
            "collections": [] if link is None else list(link.collections),
            "last": None if record is None else record.row(),
        }
        if isinstance(self.target, urls.Refused):
            return {**row, "request": None, "reason": self.target.reason, "would_be": self.target.error}
        return {**row, "request": self.target.url, **TargetAssessment(self.outlook, self.target, link).row()}


class TargetAssessment:
    """A URL that can be requested, and what host, policies and robots.txt say of it, in the frontier's own order."""

    def __init__(self, outlook: StoreSnapshot, target: urls.Target, link: DueLink | None):
        self._outlook, self._target = outlook, target
        self.overview = HostStatusReport(outlook, target.host)
        self.view: HostStatus = self.overview.host(target.host)
        collections, providers = ((), ()) if link is None else (link.collections, link.providers)
        self.applied: Applied = outlook.policies.of_link(target.host, collections, providers)
        self.cost = self.applied.cost(target.url)
        self._entry = outlook.robots.get(target.authority)
        self._robots = outlook.robots.verdict(target.authority, target.url, outlook.now())

    @property
    def method(self) -> str:
        """What is asked first."""
        useless = self._outlook.hosts.head_useless(self._target.host, self._outlook.now())
        return self.applied.method or ("GET" if useless else "HEAD")

    @property
    def method_says(self) -> str:
        if self.applied.method is not None:
            return f"{self.method}, by policy"
        return f"{self.method}; HEAD {head_word(self.overview, self._target.host)}"

    @property
    def robots_says(self) -> str:
        if self._entry is None:
            return "not read yet: it is read first"
        verdict = self._entry.verdict(self._target.url, self._outlook.now())
        said = f"{verdict.access}: {robots_text(self._entry)}"
        return f"{said}; that is over: it is read again first" if self._robots.access is Access.UNKNOWN else said

    @property
    def prospect(self) -> Forecast:
        """What would become of a check now."""
        skipped, bar = self.applied.skipped_by(self._target.url), denial_of(self._robots)
        if _is_forbidden(self._target.hostname, self._outlook.config):
            return Forecast(reason="forbidden_address", says=f"recorded as {_recorded('forbidden_address')}")
        if (paused := self._paused()) is not None:
            return Forecast(reason=None, says=f"not asked: {paused}; the link stays due")
        if skipped is not None:
            says = f"recorded as {_recorded('skipped_by_policy')}: policy {skipped} skips it"
            return Forecast(reason="skipped_by_policy", says=says)
        if bar is not None:
            return Forecast(reason=bar.reason, says=f"recorded as {_recorded(bar.reason)}: {self._entry_note()}")
        return Forecast(reason=None, says=f"asked by {self.method} {self._when()}")

    def row(self) -> dict[str, Any]:
        """For JSON."""
        keeper, prospect = self.overview.keeper, self.prospect
        return {
            **{name: value for name, value in self.view.row().items() if name != "due"},
            "due_at_host": self.view.due,
            "members": list(self.view.members),
            "reason": prospect.reason,
            "would_be": prospect.says,
            "cost": self.cost,
            "method": self.method,
            "considered": [
                {"seconds": round(number.seconds, 3), "origin": number.origin}
                for number in keeper.considered(self.view.gate)
            ],
            "policies": [{"name": rule.name, "says": contribution(rule)} for rule in self.applied.rules],
            "limits": [
                {
                    "name": limit.name,
                    "delay": limit.delay,
                    "quotas": {quota.window.key: quota.most for quota in limit.quotas},
                    "policy": limit.rule,
                }
                for limit in self.applied.limits
            ],
            "robots": {"authority": self._target.authority, "access": self._robots.access, "says": self.robots_says},
        }

    def _paused(self) -> str | None:
        """Why nothing of the kind is asked now, by an order, a ban, a pause or quiet hours."""
        if self.view.state in (State.BLOCKED, State.QUIET):
            return self.view.why
        if self.applied.paused_by is not None:
            return f"paused by policy {self.applied.paused_by}"
        return "quiet hours" if self.applied.open_at(self._outlook.now()) > self._outlook.now() else None

    def _when(self) -> str:
        moments = [self.overview.keeper.limit_opens(limit) for limit in self.applied.limits]
        wake = max([self.view.wake or 0.0, *moments])
        when = f"at {iso(wake)} at the earliest" if wake > self._outlook.now() else "as soon as it is its turn"
        return f"{when}, once robots.txt is read" if self._robots.access is Access.UNKNOWN else when

    def _entry_note(self) -> str:
        return self._robots.note or (self._entry.note if self._entry else "")


def _recorded(reason: str) -> str:
    return f"{judge(reason).category}, {reason}, without a request"


def _is_forbidden(hostname: str, config: Config) -> bool:
    """True where the URL's host is an address that may not be connected to; a name is judged when it is looked up."""
    try:
        address = ipaddress.ip_address(hostname)
    except ValueError:
        return False
    return not allowed(address, config.allowed_networks)
