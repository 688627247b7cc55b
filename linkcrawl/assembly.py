"""Puts a crawl together, alone or as a worker of a cluster: the one place that knows both."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from linkcrawl.clock import Clock, machine_clock
from linkcrawl.config import LOCAL, Config
from linkcrawl.errors import ConfigError
from linkcrawl.frontier.parts import Membership
from linkcrawl.frontier.ports import LocalOwnership
from linkcrawl.session import Session
from linkcrawl.stores.contract import ClusterName


def open_session(settings: Mapping[str, Any], given: Mapping[str, Any]) -> Session:
    """The session of a crawl with these settings and spider arguments. Raises ConfigError or StoreError, each one
    line."""
    return Session.open(settings, given, _clock, _cluster)


def ownership_of(session: Session) -> Membership:
    """Which gates the crawl of a session may use: all of them, or those that it leases as a worker of a cluster."""
    if session.config.frontier == LOCAL:
        return LocalOwnership()
    from linkcrawl.cluster.coordinator import Coordinator  # they need the extra `redis`
    from linkcrawl.cluster.ownership import ClusterOwnership

    return ClusterOwnership(session, Coordinator.connect(session.config.frontier, session.config.lease))


def _cluster(config: Config) -> ClusterName | None:
    """The cluster that the crawl is a worker of; None for a crawl alone."""
    if config.frontier == LOCAL:
        return None
    try:
        from linkcrawl.cluster.meeting_place import find_cluster
    except ModuleNotFoundError as fault:
        raise ConfigError(
            f"LINKCRAWL_FRONTIER: Redis needs the package {fault.name}; pip install 'linkcrawl[redis]' would work"
        ) from fault
    return find_cluster(config.frontier)


def _clock(config: Config) -> Clock:
    """The time of a crawl: that of Redis where workers share it, whatever their own clocks say."""
    if config.frontier == LOCAL:
        return machine_clock()
    from linkcrawl.cluster.redis_time import redis_clock  # it needs the extra `redis`

    return redis_clock(config.frontier)
