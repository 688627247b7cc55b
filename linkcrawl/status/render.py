"""The values of this room as text: rows of a table, and facts about one thing, which a terminal lays out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from linkcrawl import urls
from linkcrawl.items import Order, iso
from linkcrawl.politeness.policy.limits import DAYS
from linkcrawl.politeness.policy.rules import Applied, Policy
from linkcrawl.status.explain import Explanation, TargetAssessment
from linkcrawl.status.hosts import CollectionForecast, HostDetails, HostStatus
from linkcrawl.status.texts import head_text, policy_text, recorded_text, robots_text
from linkcrawl.stores.contract import NEVER
from linkcrawl.text import seconds_text, span

if TYPE_CHECKING:
    from linkcrawl.status.cluster import ClusterStatus  # it needs the extra `redis`

HOST_COLUMNS = ("HOST", "STATE", "DELAY", "FROM", "DUE", "ETA", "WAKE", "WALLS", "WHY")
WORKER_COLUMNS = ("WORKER", "SINCE", "GATES", "WITH WORK", "LEASES")

#: Hosts and gates that are named one by one; of more, only the number.
NAMED = 10

#: Origin of a number that changes nothing while a gate answers as fast as ever.
SLOWER_THAN_USUAL = "answers slower than usual"

#: Names with texts, a line each. An empty name continues the one before.
Facts = list[tuple[str, str]]


def host_line(status: HostStatus, now: float) -> tuple[str, ...]:
    """A host's row of the list, under HOST_COLUMNS."""
    return (
        status.host,
        status.state,
        seconds_text(status.delay.seconds),
        status.delay.origin,
        str(status.due),
        "" if status.eta is None else span(status.eta - now),
        "" if status.wake is None else iso(status.wake),
        walls_text(status.walls),
        status.why,
    )


def walls_text(walls: Mapping[str, int]) -> str:
    """Links behind each wall, most first: `anubis 120, unnamed 3`."""
    return ", ".join(f"{wall} {links:,}" for wall, links in sorted(walls.items(), key=lambda item: (-item[1], item[0])))


def forecast_text(forecast: CollectionForecast, now: float) -> str:
    """When a collection's due links will have been checked."""
    when = "not foreseeable" if forecast.eta is None else f"not before {span(forecast.eta - now)} from now"
    blocked = f"; {forecast.blocked} of them wait at blocked hosts" if forecast.blocked else ""
    return f"{forecast.due} links of {forecast.collection} are due; the last is asked {when}{blocked}"


def worker_lines(cluster: ClusterStatus) -> list[tuple[str, ...]]:
    """A row for each worker, under WORKER_COLUMNS."""
    return [
        (
            worker.name,
            iso(worker.since),
            str(len(worker.gates)),
            str(worker.gates_with_work),
            ", ".join(worker.gates[:NAMED]) + (" …" if len(worker.gates) > NAMED else ""),
        )
        for worker in cluster.workers
    ]


def host_facts(details: HostDetails, now: float) -> Facts:
    """All that is known of a host."""
    status = details.status
    walls = [("walls", walls_text(status.walls))] if status.walls else []
    leased = [] if status.leased_by is None else [("leased by", status.leased_by or "nobody")]
    return [
        ("host", status.host),
        *_gate_facts(status),
        ("state", " ".join(filter(None, [status.state, _until(status, now), f"({status.why})" if status.why else ""]))),
        *_order_facts(status.order),
        *_delay_facts(details),
        ("links due", _due_text(details, now)),
        *_policy_facts(details.policies),
        *_robots_facts(details),
        ("HEAD", head_text(details.head_useless)),
        ("requests", _requests_text(details)),
        *walls,
        *leased,
    ]


def explanation_facts(explanation: Explanation) -> Facts:
    """Everything that bears on a URL."""
    target = explanation.target
    if isinstance(target, urls.Refused):
        return [
            ("url", explanation.url),
            ("would be", recorded_text(target.reason, target.error)),
            ("due", _is_due_text(explanation)),
            *_history_facts(explanation),
        ]
    return [
        ("url", explanation.url),
        *_target_facts(target),
        ("due", _is_due_text(explanation)),
        *_history_facts(explanation),
    ]


def _target_facts(target: TargetAssessment) -> Facts:
    status = target.details.status
    method = f"{target.method}, by policy" if target.method_by_policy else None
    return [
        ("request", target.url),
        ("would be", target.forecast.text),
        ("host", f"{status.host}, {status.state}" + (f" ({status.why})" if status.why else "")),
        *_gate_facts(status),
        *_order_facts(status.order),
        *_delay_facts(target.details),
        *([("cost", f"{target.cost:g} delays")] if target.cost > 1 else []),
        *_limit_facts(target.applied),
        *_policy_facts(target.applied.rules),
        ("robots.txt", target.robots.text),
        ("method", method or f"{target.method}; HEAD {head_text(target.details.head_useless)}"),
    ]


def _is_due_text(explanation: Explanation) -> str:
    if explanation.link is None:
        return "not in the store; scrapy seed adds it"
    if explanation.link.is_retired:
        return "no, it is retired: no collection mentions it any more"
    if explanation.record is None:
        return "yes, it was never checked"
    if explanation.link.next_check_at <= NEVER:
        return "yes, as soon as it is its turn"
    return f"{'yes, since' if explanation.is_due else 'no, again at'} {iso(explanation.link.next_check_at)}"


def _history_facts(explanation: Explanation) -> Facts:
    facts: Facts = []
    link, record = explanation.link, explanation.record
    if link is not None:
        facts.append(("found in", ", ".join(link.collections) or "no collection"))
        facts.append(("attempt", f"{link.state.attempt} checks in a row were not Ok"))
    if record is not None:
        answer = record.error or f"{record.status} by {record.method}"
        reason = record.reason if record.confirmed else f"{record.reason}, suspected only"
        facts.append(("last check", f"{iso(record.checked_at)}: {record.category} ({reason}), {answer}"))
    return facts


def _gate_facts(status: HostStatus) -> Facts:
    others = [host for host in status.members if host != status.host]
    if not others:
        return [("gate", status.gate if status.gate != status.host else "its own")]
    more = f" and {len(others) - NAMED} more" if len(others) > NAMED else ""
    facts = [("gate", f"{status.gate}, shared with {', '.join(others[:NAMED])}{more}")]
    if status.strangers:
        more = f" and {len(status.strangers) - NAMED} more" if len(status.strangers) > NAMED else ""
        named = f"{', '.join(status.strangers[:NAMED])}{more}"
        facts.append(("strangers", f"{named}: they share the server, and nothing that they ask for holds here"))
    return facts


def _delay_facts(details: HostDetails) -> Facts:
    """The delay in force, and every number other than 0 that was considered."""
    delay, considered = details.status.delay, details.considered
    if not details.answers_slower:
        considered = tuple(number for number in considered if number.origin != SLOWER_THAN_USUAL)
    numbers = [f"{seconds_text(number.seconds)} {number.origin}" for number in considered if number.seconds]
    if details.last_cost > 1:
        numbers.append(f"{details.last_cost:g} times over, for the last request was expensive")
    numbers += [status.quota.text for status in details.quotas]
    return [("delay", f"{seconds_text(delay.seconds)} from {delay.origin}"), ("considered", "; ".join(numbers))]


def _order_facts(order: Order | None) -> Facts:
    if order is None:
        return []
    until = "" if order.until is None else f" until {iso(order.until)}"
    return [("order", f"{order.act}{until}, given {iso(order.at)}" + (f": {order.reason}" if order.reason else ""))]


def _policy_facts(rules: tuple[Policy, ...]) -> Facts:
    names = ["policies", *[""] * len(rules)]
    texts = [f"{rule.name}: {policy_text(rule)}" for rule in rules] or ["none matches"]
    return list(zip(names, texts, strict=False))


def _limit_facts(applied: Applied) -> Facts:
    return [("limit", limit.text) for limit in applied.limits]


def _robots_facts(details: HostDetails) -> Facts:
    texts = [f"{authority}: {robots_text(entry)}" for authority, entry in details.robots.items()]
    return [("robots.txt", text) for text in texts or ["not read yet"]]


def _until(status: HostStatus, now: float) -> str:
    return "" if status.wake is None else f"for {span(status.wake - now)}, until {iso(status.wake)}"


def _due_text(details: HostDetails, now: float) -> str:
    """How many links are due, and how long they take at this delay."""
    status = details.status
    if status.eta is None:
        return f"{status.due}" + (", and none of them goes while it is blocked" if status.due else "")
    seconds = status.delay.seconds + (details.answer_time or 0.0)
    what = "they take" if len(status.members) == 1 else "all that is due in its gate takes"
    return f"{status.due}, one every {span(seconds)}: {what} {span(status.eta - now)} at least, until {iso(status.eta)}"


def _requests_text(details: HostDetails) -> str:
    if details.last_request is None:
        return "none yet"
    took = "" if details.answer_time is None else f", answers take {details.answer_time:.3g} s"
    failing = "" if details.failing_since is None else f", nothing answered since {iso(details.failing_since)}"
    counts = {DAYS: details.requests_today} | {status.quota.window: status.requests for status in details.quotas}
    requests = ", ".join(f"{count} {window.current}" for window, count in counts.items())
    return f"{requests}, the last ended {iso(details.last_request)}{took}{failing}"
