"""The rules of the policy file: which of them match a host or link, and what holds together.

Of several rules the largest delay and the smallest quotas hold, any pause or quiet hour counts, and skips add up.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from fnmatch import translate
from functools import cached_property
from typing import TypeVar

from attrs import field, frozen

from linkcrawl.politeness.policy.globs import may_meet
from linkcrawl.politeness.policy.limits import Quota, SharedLimit, stricter, strictest_quotas
from linkcrawl.politeness.policy.quiet_hours import Quiet, next_open

#: Most results that are remembered; beyond, all are forgotten.
_MEMORY = 100_000
_PORT = re.compile(r":[0-9]+$")

T = TypeVar("T")


@frozen(kw_only=True, eq=False)
class Policy:
    """One `[[policy]]` as written; docs/reference/policies.md has the keys. `quotas`: from keys such as `max_per_day`;
    `recheck`: seconds by the names of check.recheck.Intervals. In globs only `*` and `?` are special."""

    name: str
    hosts: tuple[str, ...] = ()
    collections: tuple[str, ...] = ()
    providers: tuple[str, ...] = ()
    delay: float | None = None
    group: bool = False
    quiet: tuple[Quiet, ...] = ()
    quotas: tuple[Quota, ...] = ()
    paused: bool = False
    skip: tuple[str, ...] = ()
    expensive: Mapping[str, float] = field(factory=dict)
    method: str | None = None
    crawl_delay: float | None = None
    agreement: str | None = None
    recheck: Mapping[str, float] = field(factory=dict)

    def has_host(self, host: str) -> bool:
        """True where a glob matches the host key, with or without its port."""
        return bool(self._hosts.match(host) or self._hosts.match(_PORT.sub("", host)))

    def has_collection(self, name: str) -> bool:
        return self._collections.match(name) is not None

    def has_provider(self, name: str) -> bool:
        return self._providers.match(name) is not None

    def skips(self, url: str) -> bool:
        """True for a URL that is never requested."""
        return _url_matches(self._skip, url)

    def cost(self, url: str) -> float:
        """How many delays a request for the URL counts for, 1 or more."""
        return max([1.0, *(cost for pattern, cost in self._expensive if _url_matches(pattern, url))])

    @cached_property
    def _hosts(self) -> re.Pattern[str]:
        return _pattern(self.hosts)

    @cached_property
    def _collections(self) -> re.Pattern[str]:
        return _pattern(self.collections)

    @cached_property
    def _providers(self) -> re.Pattern[str]:
        return _pattern(self.providers)

    @cached_property
    def _skip(self) -> re.Pattern[str]:
        return _pattern(self.skip, re.IGNORECASE)

    @cached_property
    def _expensive(self) -> list[tuple[re.Pattern[str], float]]:
        return [(_pattern([glob], re.IGNORECASE), cost) for glob, cost in self.expensive.items()]


#: Resolvers of persistent identifiers are built to be asked often. A `hosts` rule with a delay replaces this one.
BUILT_IN = Policy(name="built-in: resolvers of identifiers", hosts=("hdl.handle.net", "doi.org"), delay=0.1)


@frozen(kw_only=True, eq=False)
class Applied:
    """What the rules say together of a host, and of links there of some collections and providers.

    `floor`: seconds in place of DOWNLOAD_DELAY, None for no such rule; `floor_from`: the rule. `gate`: the group rule
    whose gate the host shares. `quotas`: of requests to the host, or to its gate. `crawl_delay`: as agreed on, by
    `agreement`. `method`: None for HEAD first. `limits`: shared limits that a check has to keep; for a host without
    collections and providers, those that every request has to keep. `rules`: all that match, in the file's order.
    """

    rules: tuple[Policy, ...] = ()
    floor: float | None = None
    floor_from: str | None = None
    gate: str | None = None
    quotas: tuple[Quota, ...] = ()
    crawl_delay: float | None = None
    agreement: str | None = None
    paused_by: str | None = None
    quiet: tuple[Quiet, ...] = ()
    method: str | None = None
    recheck: Mapping[str, float] = field(factory=dict)
    limits: tuple[SharedLimit, ...] = ()

    def skipped_by(self, url: str) -> str | None:
        """The name of a rule that forbids the URL; None where there is none."""
        return next((rule.name for rule in self.rules if rule.skips(url)), None)

    def cost(self, url: str) -> float:
        """How many delays a request for the URL counts for, 1 or more."""
        return max([1.0, *(rule.cost(url) for rule in self.rules)])

    def open_at(self, now: float) -> float:
        """When the next request may go by quiet hours (Unix seconds): `now` or later, infinite where they never end."""
        return next_open(self.quiet, now) if self.quiet else now


class Policies:
    """All rules of a file in their order. Results are remembered, for they are asked for several times a request."""

    def __init__(self, rules: Sequence[Policy] = ()):
        self.rules = tuple(rules)
        self._shared = _shared_beyond_gates(self.rules)
        self._links: dict[Hashable, Applied] = {}
        self._hosts: dict[Hashable, tuple[Policy, ...]] = {}
        self._names: dict[Hashable, tuple[Policy, ...]] = {}

    def of_host(self, host: str) -> Applied:
        """What holds for every request to a host."""
        return self.of_link(host)

    def of_link(self, host: str, collections: tuple[str, ...] = (), providers: tuple[str, ...] = ()) -> Applied:
        """What holds for a link of these collections and providers at a host."""
        key = (host, collections, providers)
        known = self._links.get(key)
        if known is not None:
            return known
        return _remembered(self._links, key, lambda: self._apply(host, collections, providers))

    def _apply(self, host: str, collections: tuple[str, ...], providers: tuple[str, ...]) -> Applied:
        by_host = _remembered(self._hosts, host, lambda: self._matching_host(host))
        by_name = {
            **{f"collection {name}": self._matching_name(name, Policy.has_collection) for name in collections},
            **{f"provider {name}": self._matching_name(name, Policy.has_provider) for name in providers},
        }
        matching = {*by_host, *(rule for rules in by_name.values() for rule in rules)}
        rules = tuple(rule for rule in (*self.rules, BUILT_IN) if rule in matching)
        floor = max(
            (rule for rule in by_host if rule.delay is not None), key=lambda rule: rule.delay or 0, default=None
        )
        agreed = max(
            (rule for rule in by_host if rule.crawl_delay is not None),
            key=lambda rule: rule.crawl_delay or 0,
            default=None,
        )
        methods = {rule.method for rule in rules if rule.method}
        return Applied(
            rules=rules,
            floor=floor.delay if floor else None,
            floor_from=floor.name if floor else None,
            gate=next((rule.name for rule in by_host if rule.group), None),
            quotas=strictest_quotas(quota for rule in by_host for quota in rule.quotas),
            crawl_delay=agreed.crawl_delay if agreed else None,
            agreement=agreed.agreement if agreed else None,
            paused_by=next((rule.name for rule in rules if rule.paused), None),
            quiet=tuple(window for rule in rules for window in rule.quiet),
            method="GET" if "GET" in methods else next(iter(methods), None),  # GET is wanted where HEAD lies
            recheck=_longest(rules),
            limits=_shared_limits(by_name | {f"host {host}": tuple(rule for rule in by_host if rule in self._shared)}),
        )

    def _matching_host(self, host: str) -> tuple[Policy, ...]:
        rules = tuple(rule for rule in self.rules if rule.has_host(host))
        if BUILT_IN.has_host(host) and all(rule.delay is None for rule in rules):
            return (*rules, BUILT_IN)
        return rules

    def _matching_name(self, name: str, has: Callable[[Policy, str], bool]) -> tuple[Policy, ...]:
        return _remembered(self._names, (name, has), lambda: tuple(rule for rule in self.rules if has(rule, name)))


def _shared_beyond_gates(rules: Sequence[Policy]) -> frozenset[Policy]:
    """The group rules whose gate alone can't keep their delay: they match collections or providers too, or a host that
    may be in the gate of an earlier group rule."""
    groups = [rule for rule in rules if rule.group and rule.hosts]
    return frozenset(
        rule
        for number, rule in enumerate(groups)
        if rule.collections or rule.providers or any(may_meet(rule.hosts, one.hosts) for one in groups[:number])
    )


def _shared_limits(by_name: Mapping[str, tuple[Policy, ...]]) -> tuple[SharedLimit, ...]:
    """A limit for each collection, provider or host with a rule, and one for each group rule; the strictest where
    several rules match."""
    limits: dict[str, SharedLimit] = {}
    for name, rules in by_name.items():
        for rule in rules:
            if rule.delay is None and not rule.quotas:
                continue
            shared_name = f"policy {rule.name}" if rule.group else name
            limit = SharedLimit(name=shared_name, delay=rule.delay or 0.0, quotas=rule.quotas, rule=rule.name)
            known = limits.get(shared_name)
            limits[shared_name] = limit if known is None else stricter(known, limit)
    return tuple(limits[name] for name in sorted(limits))


def _longest(rules: Sequence[Policy]) -> dict[str, float]:
    longest: dict[str, float] = {}
    for rule in rules:
        for name, seconds in rule.recheck.items():
            longest[name] = max(seconds, longest.get(name, 0.0))
    return longest


def _remembered(memory: dict[Hashable, T], key: Hashable, work_out: Callable[[], T]) -> T:
    known = memory.get(key)
    if known is None:
        if len(memory) >= _MEMORY:
            memory.clear()
        known = memory[key] = work_out()
    return known


def _pattern(globs: Sequence[str], flags: int = 0) -> re.Pattern[str]:
    """One pattern for several globs; without any it matches nothing. [ is not special: hosts may be IPv6 addresses."""
    return re.compile("|".join(translate(glob.replace("[", "[[]")) for glob in globs) or r"(?!)", flags)


def _url_matches(pattern: re.Pattern[str], url: str) -> bool:
    """True where a glob matches the URL, or the URL without query and fragment: `*.pdf` means /a.pdf?download=1,
    too."""
    return bool(pattern.match(url) or pattern.match(re.split(r"[?#]", url, maxsplit=1)[0]))
