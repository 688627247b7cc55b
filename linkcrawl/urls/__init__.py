"""URLs as linkcrawl reads them: what is requested, which host and gate it goes to, which URLs are the same."""

from linkcrawl.urls.target import (
    BAD_PORTS,
    MAX_URL,
    Refused,
    Target,
    has_scheme,
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
    "identity",
    "join",
    "key",
    "read",
    "read_tidy",
    "tidy",
]
