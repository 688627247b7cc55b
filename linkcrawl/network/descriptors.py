"""File descriptors: how many this process may open, and how a crawl shares them out.

A connection, a DNS lookup and a log each need some. A process without any can't reach any host, and that says nothing
about the hosts."""

from __future__ import annotations

import os
import resource
import socket
from contextlib import ExitStack, suppress

from attrs import frozen

from linkcrawl.errors import ConfigError

#: Descriptors that a crawl can't do without: store, logs, event loop, one lookup and some connections.
LEAST = 24
#: Kept free for what is opened later: feeds, seed files, the policy file, a store's temporary files.
SPARE = 6
#: Descriptors that one DNS lookup holds at most: its sockets, and a file of the system's resolver.
PER_LOOKUP = 3
#: DNS lookups at once. They only wait; more would overload a small resolver, and its silence be taken for trouble.
MOST_LOOKUPS = 32
#: Idle connections kept at most, by each of the handlers for http and https.
MOST_IDLE = 4096
#: Where the system sets no limit.
_UNLIMITED = 2**20


@frozen(kw_only=True)
class DescriptorShares:
    """What may be open at once: `requests` in flight, `idle` connections (by each of two handlers), DNS `lookups`."""

    requests: int
    idle: int
    lookups: int


def raise_limit() -> int:
    """Raise this process's limit of descriptors (ulimit -n) as far as the system allows; the limit that holds then.
    Raises ConfigError where it is too low for any crawl."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with suppress(OSError, ValueError):  # macOS has a lower limit than it says
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    most = limit()
    if most - in_use() < LEAST:
        raise ConfigError(
            f"open files (ulimit -n): {most} are too few, {in_use()} of which are in use; {max(256, in_use() + 256)} "
            "would work"
        )
    return most


def limit() -> int:
    """How many descriptors this process may have open."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _UNLIMITED if soft == resource.RLIM_INFINITY else soft


def in_use() -> int:
    """How many descriptors this process has open."""
    try:
        return len(os.listdir("/dev/fd")) - 1  # the one that it is listed by
    except OSError:
        return LEAST


def shares(room: int, wanted: int) -> DescriptorShares:
    """Share out `room` free descriptors. `wanted`: CONCURRENT_REQUESTS, of which as many are given as there is room
    for; 0 is without limit, as in Scrapy."""
    room = max(room - SPARE, 0)
    lookups = min(max(room // 8, 1), MOST_LOOKUPS)
    left = room - lookups * PER_LOOKUP
    requests = max(left - left // 8, 1)
    if 0 < wanted < requests:
        requests = wanted
    return DescriptorShares(requests=requests, idle=min(max((left - requests) // 2, 1), MOST_IDLE), lookups=lookups)


def shares_now(wanted: int) -> DescriptorShares:
    """`shares` of what is free in this process."""
    return shares(limit() - in_use(), wanted)


def are_short() -> bool:
    """Whether this process can't open what one lookup needs; then a lookup that failed says nothing of the name."""
    with ExitStack() as opened:
        try:
            for _ in range(PER_LOOKUP):
                opened.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        except OSError:
            return True
    return False
