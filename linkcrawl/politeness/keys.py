"""The keys of host memory. PURE. Hosts, the gates of policy groups and shared limits are remembered side by side.

A host key (`example.org`, `example.org:8080`) has no space. The gate of a group is `policy NAME`, a shared limit
`clock NAME`. Stores hold these keys from the first version on: they can't change.
"""

from __future__ import annotations

from enum import StrEnum


class MemoryKind(StrEnum):
    """What a memory is of; the value of all but HOST is the first word of the key."""

    HOST = "host"
    GROUP = "policy"
    LIMIT = "clock"


def group_gate(policy: str) -> str:
    """The gate that all hosts of a group rule share, by the rule's name; also the key of its memory."""
    return f"{MemoryKind.GROUP} {policy}"


def limit_key(limit: str) -> str:
    """The key of a shared limit's memory, by the limit's name."""
    return f"{MemoryKind.LIMIT} {limit}"


def kind_of(key: str) -> MemoryKind | None:
    """What the memory of this key is of; None for a key of another program."""
    first, space, _ = key.partition(" ")
    return _KINDS.get(first) if space else MemoryKind.HOST


_KINDS = {str(kind): kind for kind in (MemoryKind.GROUP, MemoryKind.LIMIT)}
