"""The workers of a cluster, and the gates that each of them leases. Reads Redis; needs the extra `redis`."""

from __future__ import annotations

import json
from collections import defaultdict
from contextlib import closing
from functools import cached_property
from typing import Any

import redis
from attrs import frozen

from linkcrawl.cluster.coordinator import PREFIX
from linkcrawl.errors import ConfigError
from linkcrawl.redis_client import REDIS_FAULTS, connect, fault_text
from linkcrawl.urls.servers import shown


@frozen(kw_only=True)
class WorkerStatus:
    """A worker that is alive. `name`: its machine and process id. `since`: start of its session, Unix seconds. `gates`:
    those that it leases, by name; `gates_with_work`: how many of them have links due."""

    name: str
    since: float
    gates: tuple[str, ...]
    gates_with_work: int


@frozen(kw_only=True)
class ClusterStatus:
    """The workers that are alive, those with most leases first. `unleased`: gates that hops of checks wait for while
    no worker leases them."""

    workers: tuple[WorkerStatus, ...]
    unleased: int

    @cached_property
    def holders(self) -> dict[str, str]:
        """By gate the name of the worker that leases it."""
        return {gate: worker.name for worker in self.workers for gate in worker.gates}


def cluster_status(url: str) -> ClusterStatus:
    """The cluster that meets at a Redis URL. Raises ConfigError, one line, where Redis can't be asked."""
    try:
        with closing(connect(url, "LINKCRAWL_FRONTIER", decode=True)) as client:
            return _read(client)
    except REDIS_FAULTS as fault:
        raise ConfigError(f"LINKCRAWL_FRONTIER: {shown(url)} can't be asked: {fault_text(fault, url)}") from None


def _read(client: redis.Redis) -> ClusterStatus:
    generation = str(client.get(f"{PREFIX}generation"))
    seconds, microseconds = client.time()
    now = int(seconds) * 1000 + int(microseconds) // 1000

    def key(name: str) -> str:
        return f"{PREFIX}{generation}:{name}"

    alive = set(client.zrangebyscore(key("workers"), f"({now}", "+inf"))
    about = {session: json.loads(text) for session, text in client.hgetall(key("about")).items() if session in alive}
    loads = client.hgetall(key("load"))
    leases: dict[Any, list[str]] = defaultdict(list)
    leased = set()
    for gate, session in client.hgetall(key("gates")).items():
        if session in about:
            leases[session].append(str(gate))
            leased.add(gate)
    workers = [
        WorkerStatus(
            name=f"{worker['host']}:{worker['pid']}",
            since=worker["since"],
            gates=tuple(sorted(leases[session])),
            gates_with_work=int(loads.get(session, 0)),
        )
        for session, worker in about.items()
    ]
    return ClusterStatus(
        workers=tuple(sorted(workers, key=lambda worker: (-len(worker.gates), worker.name))),
        unleased=len(set(client.smembers(key("transfer_gates"))) - leased),
    )
