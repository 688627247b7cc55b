"""Spans of time, in seconds."""

from __future__ import annotations

from typing import Final

MINUTE: Final = 60.0
HOUR: Final = 3600.0
DAY: Final = 86400.0
