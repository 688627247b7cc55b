"""A crawl is killed just when it has noticed a ban: the next one takes back what the first could not."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from attrs import evolve

from linkcrawl.frontier.gates.workbench import Gate
from linkcrawl.frontier.parts import Frontier
from linkcrawl.frontier.ports import context_of
from linkcrawl.items import Category
from linkcrawl.politeness.host_state import HostStateCache
from linkcrawl.stores.contract import Store
from linkcrawl.stores.worker import StoreWorker
from tests.contract.making import check, entry, link
from tests.contract.processes import line, process
from tests.unit.frontier_kit import T0, Clock, answer, frontier_of, request_to, session

HOST = "a.example"
CRAWL = """
from pathlib import Path
from tempfile import TemporaryDirectory
from tests.contract.test_ban_killed import turned_away
with TemporaryDirectory() as folder:
    turned_away(Path(folder), store, lambda: (say('banned'), input()))
"""


def crawl_on(folder: Path, store: Store) -> Frontier:
    """The frontier of a crawl on a store."""
    made = session(folder, Clock(T0 + 100))
    made.worker.close()
    return frontier_of(
        evolve(made, store=store, worker=StoreWorker(store), hosts=HostStateCache(store.hosts()), clean=False)
    )


def turned_away(folder: Path, store: Store, then: Callable[[], object]) -> None:
    """A crawl that is answered well six times, then refused until it takes that for a ban; all records are stored."""
    store.add([entry(number, host=HOST) for number in range(14)])
    frontier = crawl_on(folder, store)
    gate: Gate[object] = Gate(HOST, T0)
    frontier.keeper.add_host(gate, HOST)

    async def run() -> None:
        for number in range(14):
            one, at = link(store, number, host=HOST), T0 + 101 + number
            status = 200 if number < 6 else 403
            told = {"required": frontier.keeper.required(HOST), "outcome": answer(status, at=at), "link": one}
            frontier.session.clock.at = at  # type: ignore[attr-defined]
            request = request_to(f"http://{HOST}/{number}", **told)
            frontier.completion.note(gate, request, context_of(request))
            kind = {} if number < 6 else {"category": Category.RESTRICTED, "reason": "http_403", "status": status}
            store.finish([check(one, at, **kind)])
        await frontier.host_states.save()
        then()

    asyncio.run(run())


def test_what_a_killed_crawl_could_not_take_back(url: str, tmp_path: Path, opened: Callable[[str], Store]) -> None:
    with process(url, CRAWL) as crawl:
        assert line(crawl) == "banned"
        crawl.kill()
        crawl.wait()
    store = opened(url)
    assert [record.reason for record in store.records()].count("host_blocked") == 0

    async def again() -> None:
        frontier = crawl_on(tmp_path, store)
        frontier.withdrawals.resume(memory.host for memory in frontier.session.hosts)
        await frontier.completion.close()

    asyncio.run(again())
    assert [record.reason for record in store.records()].count("host_blocked") == 8
    assert [(line.host, line.due) for line in store.backlog(T0 + 200)] == [(HOST, 8)]
