"""Connections to Redis, by scrapy-redis: the one place that says how long Redis is waited for. Needs the extra `redis`.

A worker's coordination waits LEASE_TIMEOUT seconds to connect and for an answer: less than any lease lasts, because a
Redis that hangs must not cost one. Everything else (seeds, the shared clock, `scrapy hosts`) waits TIMEOUT seconds:
nothing is lost by waiting there, and a Redis under load may answer late.
"""

from __future__ import annotations

import re
from typing import Any

import redis
from redis.asyncio import Redis as AsyncRedis
from scrapy_redis.connection import get_redis

from linkcrawl.errors import ConfigError
from linkcrawl.urls.servers import shown, without_login

TIMEOUT = 5.0
LEASE_TIMEOUT = 2.0

#: What using a client raises where Redis is away, refuses the login, or breaks off.
REDIS_FAULTS = (redis.RedisError, OSError)


def connect(url: str, setting: str, *, decode: bool = False) -> redis.Redis:
    """A client for the `redis://`, `rediss://` or `unix://` URL of a setting; nothing is asked of Redis yet. `decode`:
    answers are text instead of bytes. Raises ConfigError, one line, for a URL that can't be used."""
    client: redis.Redis = _client(url, setting, redis.Redis, TIMEOUT, decode)
    return client


def connect_async(url: str, setting: str) -> AsyncRedis:
    """A client for an event loop, whose answers are text; otherwise as `connect`, with LEASE_TIMEOUT."""
    client: AsyncRedis = _client(url, setting, AsyncRedis, LEASE_TIMEOUT, True)
    return client


def fault_text(fault: Exception, url: str) -> str:
    """What Redis, or the network, says to a client of this URL: one line, without its login."""
    return without_login(str(fault), url)


def _client(url: str, setting: str, redis_class: type, timeout: float, decode: bool) -> Any:
    try:
        client = get_redis(
            url=url,
            redis_cls=redis_class,
            decode_responses=decode,
            socket_timeout=timeout,
            socket_connect_timeout=timeout,
            max_connections=1000,  # more than are ever in use, so that none is refused
        )
        pool = client.connection_pool
        pool.connection_class(**pool.connection_kwargs)  # an unknown option of the URL comes out only here
    except (redis.RedisError, ValueError, TypeError) as fault:
        option = re.search(r"unexpected keyword argument ('\w+')", str(fault))
        said = f"there is no option {option[1]}" if option else without_login(str(fault), url)
        raise ConfigError(
            f"{setting}: {shown(url)} is not understood: {said}; redis://HOST:PORT/DB would work"
        ) from None
    return client
