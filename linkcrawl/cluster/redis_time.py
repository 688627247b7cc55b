"""The time that the workers of a cluster share: Redis' own, so that their clocks don't matter."""

from __future__ import annotations

from contextlib import closing

import redis

from linkcrawl.clock import Clock, boot_time
from linkcrawl.errors import ConfigError
from linkcrawl.redis_client import REDIS_FAULTS, connect, fault_text
from linkcrawl.urls.servers import shown

#: Readings of the clock, of which the one that came back soonest counts; and the seconds within which one is good
#: enough: what a reading took is how wrong it may be, and on a busy machine several in a row are slow.
READINGS, GOOD_READING = 50, 0.002


def redis_clock(url: str) -> Clock:
    """Redis' clock, carried on by our steady one between readings. Raises ConfigError, one line, where there is no
    Redis at the URL."""
    try:
        with closing(connect(url, "LINKCRAWL_FRONTIER")) as client:
            offset = _offset(client)
    except REDIS_FAULTS as fault:
        raise ConfigError(
            f"LINKCRAWL_FRONTIER: {shown(url)} can't be used: {fault_text(fault, url)}; the URL of a running Redis, "
            "redis://HOST:PORT/DB, would work"
        ) from None
    return Clock.of_server(boot_time() + offset)


def _offset(client: redis.Redis) -> float:
    """What has to be added to our steady clock, by the best of several readings."""
    best = _reading(client)
    for _ in range(READINGS - 1):
        if best[0] <= GOOD_READING:
            break
        best = min(best, _reading(client))
    return best[1]


def _reading(client: redis.Redis) -> tuple[float, float]:
    """How long a reading took, and what has to be added to our steady clock."""
    sent = boot_time()
    seconds, microseconds = client.time()
    came = boot_time()
    return came - sent, float(seconds) + float(microseconds) / 1e6 - (sent + came) / 2
