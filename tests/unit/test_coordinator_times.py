"""What the coordinator sends to Redis are numbers, whatever has not been seen yet."""

from __future__ import annotations

import asyncio
import json
from types import SimpleNamespace
from typing import Any

from linkcrawl.cluster.coordinator import Coordinator


def test_a_gate_is_asked_for_before_anything_was_seen() -> None:
    sent: list[Any] = []

    async def evalsha(sha: str, keys: int, *arguments: str) -> str:
        sent.append(json.loads(arguments[-1]))
        return json.dumps({"moves": 0, "moved": [], "taken": [{"standing": "held"}]})

    client: Any = SimpleNamespace(connection_pool=SimpleNamespace(connection_kwargs={}), evalsha=evalsha)
    asyncio.run(Coordinator(client, 15.0).take([("a.example", float("-inf"), 3)], 0.0))
    assert sent[0]["gates"] == [["a.example", 0, 3]]
