"""The Redis that workers meet at, as it is when a crawl starts."""

from __future__ import annotations

from contextlib import closing

import redis

from linkcrawl.errors import ConfigError
from linkcrawl.redis_client import REDIS_FAULTS, connect, fault_text
from linkcrawl.stores.contract import ClusterName
from linkcrawl.urls.servers import shown
from linkcrawl.urls.userinfo import without_userinfo

#: The `maxmemory-policy` by which Redis throws nothing away.
KEEPS_ALL = "noeviction"


def find_cluster(url: str) -> ClusterName:
    """The cluster that meets at a Redis URL. Raises ConfigError, one line, where no Redis can be asked there, and for
    one that may throw away keys that say who leases what."""
    try:
        with closing(connect(url, "LINKCRAWL_FRONTIER", decode=True)) as client:
            server, memory = _info(client, "server"), _info(client, "memory")
    except REDIS_FAULTS as fault:
        raise ConfigError(
            f"LINKCRAWL_FRONTIER: {shown(url)} can't be used: {fault_text(fault, url)}; the URL of a running Redis, "
            "redis://HOST:PORT/DB, would work"
        ) from None
    policy = memory.get("maxmemory_policy", KEEPS_ALL)
    if policy != KEEPS_ALL:
        raise ConfigError(
            f"LINKCRAWL_FRONTIER: the Redis at {shown(url)} throws keys away when its memory is full (maxmemory-policy "
            f"{policy}); redis-cli config set maxmemory-policy {KEEPS_ALL} would work"
        )
    return cluster_name(url, server.get("run_id", ""))


def cluster_name(url: str, run_id: str) -> ClusterName:
    """The name of the cluster that meets at a Redis URL. `run_id`: of the server that is there now; or empty."""
    database = connect(url, "LINKCRAWL_FRONTIER").connection_pool.connection_kwargs.get("db", 0)
    return ClusterName(url=without_userinfo(url), server=f"{run_id}/{database}" if run_id else "")


def _info(client: redis.Redis, section: str) -> dict[str, str]:
    try:
        found: dict[str, str] = client.info(section)
    except redis.exceptions.NoPermissionError:
        return {}
    return found
