"""What a source that forgets what it has given needs besides rows: to know when they are safe."""

from __future__ import annotations

from collections.abc import Callable

from attrs import frozen


@frozen(kw_only=True)
class Checkpoint:
    """Between rows: `stored` is to be called as soon as all rows before it are in the store."""

    stored: Callable[[], None]
