"""Answers that read the whole store: the report, and the status of all hosts. Each is computed once for many readers.

An answer is kept as long as the store's fingerprint is the same and no moment has passed at which the clock alone would
change it. Beside a crawl the store changes all the time: there an answer is kept for a few times as long as it took to
compute, so that readers take a bounded part of a processor whatever they ask.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from attrs import frozen

from linkcrawl.config import Config
from linkcrawl.errors import ConfigError, PolicyError
from linkcrawl.politeness.policy.rules import Policies
from linkcrawl.reports.make import make_report
from linkcrawl.service.readers import StoreReaders
from linkcrawl.status.hosts import HostStatusReport, cluster_of
from linkcrawl.status.snapshot import StoreSnapshot, policies_of
from linkcrawl.stores.contract import Store
from linkcrawl.units import DAY, HOUR

logger = logging.getLogger(__name__)

T = TypeVar("T")

#: An answer is kept for so many times as long as it took to compute, although the store has changed since.
KEPT = 4
#: Seconds for which an answer is kept at most while nothing has changed: rare changes that no fingerprint shows.
LONGEST_KEPT = 60.0
#: Seconds after which the status of hosts is computed again: waits end by the clock.
HOSTS_KEPT = 1.0
#: Seconds that a report on millions of links may take.
REPORT_SECONDS = HOUR


@frozen(kw_only=True)
class _Kept(Generic[T]):
    """An answer. `fingerprint`: the store's before it was read; `at`: when it was computed, `took`: how long that took;
    `until`: when the clock changes it (all in seconds)."""

    value: T
    fingerprint: str
    at: float
    took: float
    until: float

    def holds(self, fingerprint: str, now: float) -> bool:
        if now - self.at < KEPT * self.took and now < self.until:
            return True
        return fingerprint == self.fingerprint and now < self.until


class View(Generic[T]):
    """An answer that is kept. `compute` gives it, and the moment until which the clock leaves it as it is (Unix
    seconds); it runs on a reader's thread. `same`: True where two answers differ in nothing that matters, so that the
    older one is kept while the store is the same."""

    def __init__(
        self,
        readers: StoreReaders,
        watcher: StoreReaders,
        compute: Callable[[Store, float], tuple[T, float]],
        same: Callable[[T, T], bool] = lambda before, now: False,
    ):
        self._readers = readers
        self._watcher = watcher
        self._compute = compute
        self._same = same
        self._kept: _Kept[T] | None = None
        self._lock = asyncio.Lock()

    async def value(self) -> T:
        """The answer. Many who ask at once cause one computation. Raises StoreError, Problem."""
        async with self._lock:
            fingerprint = await self._watcher.call(lambda store: store.fingerprint())
            now, kept = time.time(), self._kept
            if kept is not None and kept.holds(fingerprint, now):
                return kept.value
            value, until = await self._readers.call(lambda store: self._compute(store, now), REPORT_SECONDS)
            at = now
            if (
                kept is not None
                and kept.fingerprint == fingerprint
                and now - kept.at < LONGEST_KEPT
                and self._same(kept.value, value)
            ):
                value, at = kept.value, kept.at
            took = time.time() - now
            self._kept = _Kept(value=value, fingerprint=fingerprint, at=at, took=took, until=until)
            return value


def report_view(config: Config) -> Callable[[Store, float], tuple[dict[str, Any], float]]:
    """Computes the report as JSON. By the clock it changes when a link becomes due, or a day begins."""

    def compute(store: Store, now: float) -> tuple[dict[str, Any], float]:
        row = make_report(store, now, config.delay).row()
        next_due = store.next_due_at(now)
        midnight = (now // DAY + 1) * DAY
        return row, min(midnight, now + LONGEST_KEPT, midnight if next_due is None else next_due)

    return compute


@frozen(kw_only=True)
class HostsAnswer:
    """The status of all hosts at a moment. `rows`: as JSON, ordered by host."""

    report: HostStatusReport
    snapshot: StoreSnapshot
    rows: dict[str, dict[str, Any]]

    def details(self, store: Store, host: str) -> dict[str, Any]:
        """All that is known of one of these hosts, as JSON. Raises StoreLost."""
        files = store.robots([f"http://{host}", f"https://{host}"])
        self.snapshot.robots.restore(files, self.snapshot.now())
        return self.report.details(host).row()


def same_hosts(before: HostsAnswer, now: HostsAnswer) -> bool:
    """True where nothing but ETAs differs: those of hosts that nobody asks move with the clock."""
    if before.rows.keys() != now.rows.keys():
        return False
    return all({**row, "eta": None} == {**now.rows[host], "eta": None} for host, row in before.rows.items())


class HostsReader:
    """Computes the status of all hosts, as `scrapy hosts list` does. A policy file that can't be used any more leaves
    the rules of before in force, as in a crawl; a Redis that can't be asked leaves leases out."""

    def __init__(self, config: Config, policies: Policies):
        self._config = config
        self._policies = policies
        self._said = ""

    def __call__(self, store: Store, now: float) -> tuple[HostsAnswer, float]:
        try:
            self._policies = policies_of(self._config)
        except PolicyError as fault:
            self._say(str(fault))
        snapshot = StoreSnapshot.of(store, self._config, self._policies, now)
        try:
            cluster = cluster_of(self._config)
        except ConfigError as fault:
            self._say(str(fault))
            cluster = None
        report = HostStatusReport.read(store, snapshot, cluster=cluster)
        rows = {status.host: status.row() for status in report.hosts()}
        ordered = {host: rows[host] for host in sorted(rows)}
        return HostsAnswer(report=report, snapshot=snapshot, rows=ordered), now + HOSTS_KEPT

    def _say(self, fault: str) -> None:
        """Log a fault once, not at every request."""
        if fault != self._said:
            self._said = fault
            logger.warning("%s", fault)
