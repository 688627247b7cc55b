"""Acknowledging rows to a source that forgets what it has handed out."""

from __future__ import annotations

from collections.abc import Callable

from attrs import frozen


@frozen(kw_only=True)
class Checkpoint:
    """Stands between rows. Call `ack` as soon as every row before it is in the store; a source that is not
    acknowledged hands its rows out again."""

    ack: Callable[[], None]
