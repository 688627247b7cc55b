"""A host for people and for JSON: a line of the list, and all that is known of one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from linkcrawl.items import HostMemory, Order, iso
from linkcrawl.politeness.pacing.state import Pace
from linkcrawl.politeness.policy.limits import DAYS, Quota, requests_in
from linkcrawl.politeness.policy.rules import Applied, Policy
from linkcrawl.politeness.robots.cache import RobotsEntry
from linkcrawl.status.hosts import HostStatus, HostStatusReport
from linkcrawl.text import seconds_text, span

HEAD = ("HOST", "STATE", "DELAY", "FROM", "DUE", "ETA", "WAKE", "WALLS", "WHY")

#: Hosts of a shared gate that are named; of more, how many.
NAMED = 10

#: Origin of the number that is no number of its own while a host is as quick as ever.
SLOWER_THAN_USUAL = "answers slower than usual"

Facts = list[tuple[str, str]]


def line(view: HostStatus, now: float, walls: Mapping[str, int] = {}) -> tuple[str, ...]:
    """A host's line of the list, in the order of HEAD. `walls`: links behind each of its walls."""
    return (
        view.host,
        view.state,
        seconds_text(view.delay.seconds),
        view.delay.origin,
        str(view.due),
        "" if view.eta is None else span(view.eta - now),
        "" if view.wake is None else iso(view.wake),
        walls_text(walls),
        view.why,
    )


def walls_text(walls: Mapping[str, int]) -> str:
    """Links behind each wall, most first: `anubis 120, unnamed 3`."""
    return ", ".join(f"{wall} {links:,}" for wall, links in sorted(walls.items(), key=lambda item: (-item[1], item[0])))


def host_row(overview: HostStatusReport, host: str) -> dict[str, Any]:
    """All that is known of a host, for JSON."""
    view, outlook = overview.host(host), overview.outlook
    pace, memory = overview.pace(view), outlook.hosts.get(host)
    return {
        **view.row(),
        "members": list(view.members),
        "policies": [rule.name for rule in overview.keeper.applied(host).rules],
        "considered": [
            {"seconds": round(number.seconds, 3), "origin": number.origin}
            for number in overview.keeper.considered(view.gate)
        ],
        "answer_time": pace.answer_time,
        "requests_today": requests_in(pace.counts, DAYS, outlook.now()),
        "quotas": [
            {
                "key": quota.window.key,
                "most": quota.most,
                "requests": requests_in(pace.counts, quota.window, outlook.now()),
            }
            for quota in overview.keeper.pacing_limits(view.gate).quotas
        ],
        "robots": [robots_row(authority, entry) for authority, entry in robots_of(overview, host)],
        "head": head_word(overview, host),
        "failing_since": None if memory.failing_since is None else iso(memory.failing_since),
        "last_request": None if pace.last_end is None else iso(pace.last_end),
    }


def host_facts(overview: HostStatusReport, host: str) -> Facts:
    """All that is known of a host, a fact a line."""
    view, outlook = overview.host(host), overview.outlook
    pace, now = overview.pace(view), outlook.now()
    return [
        ("host", host),
        *gate_facts(view),
        ("state", " ".join(filter(None, [view.state, _until(view, now), f"({view.why})" if view.why else ""]))),
        *order_facts(view.order),
        *delay_facts(overview, view),
        ("links due", _consequence(view, pace, now)),
        *policy_facts(overview.keeper.applied(host)),
        *robots_facts(overview, host),
        ("HEAD", head_word(overview, host)),
        ("requests", _requests(pace, overview.keeper.pacing_limits(view.gate).quotas, outlook.hosts.get(host), now)),
    ]


def gate_facts(view: HostStatus) -> Facts:
    """The gate, and who shares it."""
    others = [host for host in view.members if host != view.host]
    if not others:
        return [("gate", view.gate if view.gate != view.host else "its own")]
    more = f" and {len(others) - NAMED} more" if len(others) > NAMED else ""
    return [("gate", f"{view.gate}, shared with {', '.join(others[:NAMED])}{more}")]


def delay_facts(overview: HostStatusReport, view: HostStatus) -> Facts:
    """The delay in force, and every number that was considered, but for those of nothing."""
    considered = overview.keeper.considered(view.gate)
    pace, limits = overview.pace(view), overview.keeper.pacing_limits(view.gate)
    if pace.slowdown == 1:
        considered = [number for number in considered if number.origin != SLOWER_THAN_USUAL]
    numbers = [f"{seconds_text(number.seconds)} {number.origin}" for number in considered if number.seconds]
    if pace.last_cost > 1:
        numbers.append(f"{pace.last_cost:g} times over, for the last request was expensive")
    numbers += [quota.text for quota in limits.quotas]
    return [
        ("delay", f"{seconds_text(view.delay.seconds)} from {view.delay.origin}"),
        ("considered", "; ".join(numbers)),
    ]


def order_facts(order: Order | None) -> Facts:
    """What a person has ordered last."""
    if order is None:
        return []
    until = "" if order.until is None else f" until {iso(order.until)}"
    return [("order", f"{order.act}{until}, given {iso(order.at)}" + (f": {order.reason}" if order.reason else ""))]


def policy_facts(applied: Applied) -> Facts:
    """The rules that match, and what each says."""
    names = ["policies", *[""] * len(applied.rules)]
    texts = [f"{rule.name}: {contribution(rule)}" for rule in applied.rules] or ["none matches"]
    return list(zip(names, texts, strict=False))


def contribution(rule: Policy) -> str:
    """What a rule says, in the words of the policy file."""
    said: list[str] = []
    for name in ("delay", "crawl_delay", "agreement", "method"):
        value = getattr(rule, name)
        if value is not None:
            said.append(f"{name} = {value:g}" if isinstance(value, float) else f"{name} = {value}")
    said += [f"{quota.window.key} = {quota.most}" for quota in rule.quotas]
    said += [name for name in ("group", "paused") if getattr(rule, name)]
    said += [f"quiet {window.text}" for window in rule.quiet]
    said += [f"skip {glob}" for glob in rule.skip]
    said += [f"expensive {glob} = {cost:g}" for glob, cost in rule.expensive.items()]
    said += [f"recheck {name} = {span(seconds)}" for name, seconds in rule.recheck.items()]
    return ", ".join(said) or "nothing but its name"


def robots_of(overview: HostStatusReport, host: str) -> Iterator[tuple[str, RobotsEntry]]:
    """What is known of a host's robots.txt files, by authority."""
    for scheme in ("http", "https"):
        entry = overview.outlook.robots.get(f"{scheme}://{host}")
        if entry is not None:
            yield f"{scheme}://{host}", entry


def robots_facts(overview: HostStatusReport, host: str) -> Facts:
    """What is known of a host's robots.txt files, for people."""
    told = [f"{authority}: {robots_text(entry)}" for authority, entry in robots_of(overview, host)]
    return [("robots.txt", text) for text in told] or [("robots.txt", "not read yet")]


def robots_text(entry: RobotsEntry) -> str:
    """What came of reading a robots.txt, and when it will be read again."""
    asked = f", Crawl-delay {entry.robots.crawl_delay:g} s" if entry.robots and entry.robots.crawl_delay else ""
    return f"{entry.note}{asked}; read {iso(entry.asked_at)}, again from {iso(entry.expires_at)} on"


def robots_row(authority: str, entry: RobotsEntry) -> dict[str, Any]:
    """What is known of a robots.txt, for JSON."""
    return {
        "authority": authority,
        "note": entry.note,
        "crawl_delay": None if entry.robots is None else entry.robots.crawl_delay,
        "asked_at": iso(entry.asked_at),
        "expires_at": iso(entry.expires_at),
    }


def head_word(overview: HostStatusReport, host: str) -> str:
    """What is known of HEAD there."""
    useless = overview.outlook.hosts.head_useless(host, overview.outlook.now())
    return "fails there where GET works: GET is asked at once" if useless else "has not failed where GET works"


def _until(view: HostStatus, now: float) -> str:
    return "" if view.wake is None else f"for {span(view.wake - now)}, until {iso(view.wake)}"


def _consequence(view: HostStatus, pace: Pace, now: float) -> str:
    """What the delay means for the links."""
    if view.eta is None:
        return f"{view.due}" + (", and none of them goes while it is blocked" if view.due else "")
    each = view.delay.seconds + (pace.answer_time or 0.0)
    whose = "they take" if len(view.members) == 1 else "all that is due in its gate takes"
    return f"{view.due}, one every {span(each)}: {whose} {span(view.eta - now)} at least, until {iso(view.eta)}"


def _requests(pace: Pace, quotas: Iterable[Quota], memory: HostMemory, now: float) -> str:
    if pace.last_end is None:
        return "none yet"
    took = "" if pace.answer_time is None else f", answers take {pace.answer_time:.3g} s"
    failing = "" if memory.failing_since is None else f", nothing answered since {iso(memory.failing_since)}"
    windows = dict.fromkeys((DAYS, *(quota.window for quota in quotas)))
    counts = ", ".join(f"{requests_in(pace.counts, window, now)} {window.current}" for window in windows)
    return f"{counts}, the last ended {iso(pace.last_end)}{took}{failing}"
