"""Sentences about hosts that both JSON and tables hold."""

from __future__ import annotations

from linkcrawl.check.verdict import judge
from linkcrawl.items import iso
from linkcrawl.politeness.policy.rules import Policy
from linkcrawl.politeness.robots.cache import RobotsEntry
from linkcrawl.text import span


def policy_text(rule: Policy) -> str:
    """What a rule asks for, with the keys of the policy file."""
    parts: list[str] = []
    for name in ("delay", "crawl_delay", "agreement", "method"):
        value = getattr(rule, name)
        if value is not None:
            parts.append(f"{name} = {value:g}" if isinstance(value, float) else f"{name} = {value}")
    parts += [f"{quota.window.key} = {quota.most}" for quota in rule.quotas]
    parts += [name for name in ("group", "paused") if getattr(rule, name)]
    parts += [f"quiet {window.text}" for window in rule.quiet]
    parts += [f"skip {glob}" for glob in rule.skip]
    parts += [f"expensive {glob} = {cost:g}" for glob, cost in rule.expensive.items()]
    parts += [f"recheck {name} = {span(seconds)}" for name, seconds in rule.recheck.items()]
    return ", ".join(parts) or "nothing but its name"


def robots_text(entry: RobotsEntry) -> str:
    """The result of the last fetch of a robots.txt, and when it is fetched again."""
    seconds = None if entry.robots is None else entry.robots.pace.crawl_delay
    delay = f", Crawl-delay {seconds:g} s" if seconds else ""
    return f"{entry.note}{delay}; read {iso(entry.asked_at)}, again from {iso(entry.expires_at)} on"


def recorded_text(reason: str, why: str | None = None) -> str:
    """The record that a link gets without a request."""
    text = f"recorded as {judge(reason).category}, {reason}, without a request"
    return text if why is None else f"{text}: {why}"


def head_text(useless: bool) -> str:
    """Whether HEAD works at a host."""
    return "fails there where GET works: GET is asked at once" if useless else "has not failed where GET works"
