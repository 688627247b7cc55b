"""URLs as linkcrawl reads them: the request that a text stands for, its host, and which texts are the same link."""

from linkcrawl.urls.target import (
    BAD_PORTS,
    MAX_URL,
    Refused,
    Target,
    has_scheme,
    host_key,
    identity,
    join,
    key,
    read,
    read_tidy,
    tidy,
)

__all__ = [
    "BAD_PORTS",
    "MAX_URL",
    "Refused",
    "Target",
    "has_scheme",
    "host_key",
    "identity",
    "join",
    "key",
    "read",
    "read_tidy",
    "tidy",
]
