"""Which gate hosts belong to, settled by workers in a real Redis while some names take long to look up."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import redis as sync_redis

from linkcrawl.cluster.coordinator import Coordinator
from linkcrawl.cluster.lease_table import LeaseTable
from linkcrawl.cluster.placement import GatePlacement
from linkcrawl.frontier.gates.gatekeeper import Gatekeeper
from linkcrawl.network.resolver import Resolver
from tests.contract.test_servers import redis_database
from tests.unit.frontier_kit import Clock, session

SLOW = "slow.example"


@pytest.fixture
def url() -> Iterator[str]:
    url = redis_database()
    with sync_redis.Redis.from_url(url) as client:
        client.flushdb()
        yield url
        client.flushdb()


def test_a_name_that_takes_long_holds_up_no_other(url: str, tmp_path: Path) -> None:
    answer = threading.Event()

    def lookup(host: str) -> list[str]:
        if host == SLOW:
            answer.wait(30)
        if not host.endswith(".example"):  # the resolver asks for a name that can't exist
            raise OSError("no such name")
        return ["8.8.8.8"]

    async def main(keeper: Gatekeeper) -> None:
        ledger, resolver = Coordinator.connect(url, 30.0), Resolver(lookup=lookup)
        await ledger.join({}, policies="p", pace="{}", protocol="1")
        frontier: Any = SimpleNamespace(session=at, keeper=keeper, resolver=resolver, host_states=None)
        places = GatePlacement(frontier, ledger, LeaseTable(at), close=lambda name: None)
        began = time.monotonic()
        both = (places.locate([SLOW, "a.example", "", "b.example"]), places.locate(["a.example", SLOW]))
        await asyncio.gather(*both)
        assert keeper.looked_up == {"a.example", "b.example", ""}
        assert time.monotonic() - began < 8.0  # a look-up may take ten
        assert keeper.gate_of("b.example") == "a.example"
        answer.set()
        while SLOW not in keeper.looked_up:
            await places.locate([SLOW])
        assert keeper.gate_of(SLOW) == "a.example"
        resolver.close()
        await ledger.close()

    at = session(tmp_path, Clock())
    try:
        asyncio.run(main(Gatekeeper(at)))
    finally:
        answer.set()
        at.worker.close()
