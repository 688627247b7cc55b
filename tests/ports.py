"""Ports for servers that are told theirs."""

from __future__ import annotations

import random
import socket
from pathlib import Path

#: Below what the system gives to connections and to sockets that ask for any port: one that was seen to be free stays
#: so until a server takes it, and while that server is away.
_FIRST = 15_000
_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")


def free_port() -> int:
    """A port of 127.0.0.1 that nobody listens at, and that nobody else is given by chance."""
    end = int(_RANGE.read_text().split()[0]) if _RANGE.exists() else 32_768
    while True:
        port = random.SystemRandom().randrange(_FIRST, max(end, _FIRST + 1000))
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
