"""The exceptions of linkcrawl: faults of an operator's input, of a server that we depend on, or of the program.

What a check observes is never an exception but data (`check.outcome.Outcome`). The tree:

    LinkcrawlError
    ├── ConfigError             settings, arguments or input can't be used
    │   └── PolicyError         the policy file can't be used
    ├── BadRowError             a seed row that has nothing to check in it; the row is rejected
    ├── SourceLost              a source of seeds can't be read any more
    ├── StoreError              a store can't be used as configured
    │   ├── StoreBusy           another crawl holds the store
    │   └── StoreLost           the store worked and doesn't any more
    │       └── ClaimLost       another crawl holds the store by now
    └── ClusterError            what a worker shares with others is not as it was
        ├── SessionLost         the worker's session in Redis is over
        ├── LeaseLost           a lease ended before a record was stored
        └── UnreadableTransfer  a check of another worker can't be read

`network.handler.RequestFailed` is Scrapy's DownloadFailedError and stays with the handler: this file imports nothing.
"""

from __future__ import annotations


class LinkcrawlError(Exception):
    """The root. The text of those that an operator meets is one line that names the setting or file and what would
    work."""


class ConfigError(LinkcrawlError):
    """The configuration or the input is unusable. Its text is one line that names the setting and what would work."""


class PolicyError(ConfigError):
    """The policy file can't be used. Its text is one line that names the file, the place in it and the key."""


class BadRowError(LinkcrawlError):
    """A seed row has nothing to check in it. Its text says why the row is rejected."""


class SourceLost(LinkcrawlError):
    """A source of seeds can't be reached or read any more. Its text is one line for an operator."""


class StoreError(LinkcrawlError):
    """A store can't be used as configured: bad URL, other version, locked. Its text is one line for an operator."""


class StoreBusy(StoreError):
    """Another crawl holds this store."""


class StoreLost(StoreError):
    """The store worked and doesn't any more (disk full, server gone). The call may be tried again."""


class ClaimLost(StoreLost):
    """Another crawl has taken the store meanwhile: this one ends at once, for trying again is of no use."""


class ClusterError(LinkcrawlError):
    """What a worker shares with the other workers is not as it was."""


class SessionLost(ClusterError):
    """The worker's session in Redis is over: its leases are another worker's, or nobody's."""


class LeaseLost(ClusterError):
    """The lease ended before a record was stored: the link is another worker's to check, and due there."""


class UnreadableTransfer(ClusterError):
    """A text that should be a check of another worker can't be read."""
