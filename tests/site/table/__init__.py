"""Every misbehaviour, by name."""

from __future__ import annotations

from tests.site.misbehaviour import Misbehaviour
from tests.site.table import bodies, connections, headers, heads, redirects, robots, statuses, walls

ROOMS = (heads, statuses, headers, bodies, redirects, walls, robots, connections)
MISBEHAVIOURS: tuple[Misbehaviour, ...] = tuple(row for room in ROOMS for row in room.ROWS)
