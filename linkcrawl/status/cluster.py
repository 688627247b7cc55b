"""The cluster as `scrapy hosts` shows it: which workers live, and who leases what. Read only."""

from __future__ import annotations

import json
from collections import Counter
from contextlib import closing

import redis
from attrs import frozen
from scrapy_redis.connection import get_redis

from linkcrawl.cluster.coordinator import PREFIX, TIMEOUT
from linkcrawl.errors import ConfigError
from linkcrawl.urls.userinfo import without_userinfo


@frozen(kw_only=True)
class WorkerView:
    """A worker. `name`: its machine and process. `since`: Unix seconds; `leases`: gates, `load` of them with work."""

    name: str
    since: float
    leases: int
    load: int
    busy: bool


@frozen(kw_only=True)
class ClusterView:
    """The workers alive, most leases first; by gate the name of who leases it; gates that hops of checks wait for
    while nobody does."""

    workers: tuple[WorkerView, ...]
    holders: dict[str, str]
    waited_for: int


def cluster_view(url: str) -> ClusterView:
    """The cluster at a redis:// URL. Raises ConfigError, one line, where there is no Redis."""
    try:
        with closing(
            get_redis(url=url, decode_responses=True, socket_timeout=TIMEOUT, socket_connect_timeout=TIMEOUT)
        ) as client:
            return _view(client)
    except (redis.RedisError, OSError, ValueError) as fault:
        said = " ".join(str(fault).split())
        raise ConfigError(f"LINKCRAWL_FRONTIER: {without_userinfo(url)} can't be asked: {said}") from None


def _view(client: redis.Redis) -> ClusterView:
    generation = str(client.get(f"{PREFIX}generation"))
    seconds, microseconds = client.time()
    now = int(seconds) * 1000 + int(microseconds) // 1000

    def key(name: str) -> str:
        return f"{PREFIX}{generation}:{name}"

    alive = set(client.zrangebyscore(key("workers"), f"({now}", "+inf"))
    about = {session: json.loads(text) for session, text in client.hgetall(key("about")).items() if session in alive}
    names = {session: f"{told['host']}:{told['pid']}" for session, told in about.items()}
    loads, busy = client.hgetall(key("load")), client.hgetall(key("busy"))
    holders = {str(gate): names[session] for gate, session in client.hgetall(key("gates")).items() if session in names}
    leases = Counter(holders.values())
    workers = [
        WorkerView(
            name=names[session],
            since=told["since"],
            leases=leases[names[session]],
            load=int(loads.get(session, 0)),
            busy=busy.get(session) == "1",
        )
        for session, told in about.items()
    ]
    return ClusterView(
        workers=tuple(sorted(workers, key=lambda worker: (-worker.leases, worker.name))),
        holders=holders,
        waited_for=len(set(client.smembers(key("hopgates"))) - holders.keys()),
    )
