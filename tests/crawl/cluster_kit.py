"""A cluster for tests: a Redis that can be stopped and started, a database of MongoDB, and workers in folders of their
own."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import redis
from attrs import define, field

from linkcrawl.audit.log import AuditEntry, read_line
from linkcrawl.cluster.coordinator import PREFIX, Coordinator
from linkcrawl.stores.contract import Query
from linkcrawl.stores.opening import open_store
from scripts.servers import ALL, ServerMissing, find
from tests.contract.mongodb import database, server_url
from tests.crawl.harness import SOON, Crawler, Running, Told, environment, until
from tests.crawl.measures import too_close
from tests.ports import free_port
from tests.site.client import Request

FAULTY = Path(__file__).parent / "faulty"

#: Short, so that faults are over soon; a beat is half a second.
LEASE = 4.0
SETTINGS: Mapping[str, str] = {"LINKCRAWL_LEASE": f"{LEASE:g}", "DOWNLOAD_DELAY": "0.4", "LINKCRAWL_PATIENCE": "20"}


@define
class RedisServer:
    """A Redis of a test's own, at a port that it keeps over restarts."""

    program: str
    folder: Path
    port: int
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    @property
    def client(self) -> redis.Redis:
        return redis.Redis(port=self.port, decode_responses=True)

    def start(self) -> None:
        arguments = ["--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self.folder), "--save", ""]
        with (self.folder / "redis.log").open("ab") as log:
            self.process = subprocess.Popen([self.program, *arguments], stdout=log, stderr=log)
        until(self._answers, "Redis answers")

    def stop(self, *, keep: bool = False) -> None:
        """`keep`: with its data, as they are now."""
        assert self.process is not None
        if keep:
            self.client.save()
        self.process.kill()
        self.process.wait()
        if not keep:
            (self.folder / "dump.rdb").unlink(missing_ok=True)

    def _answers(self) -> bool:
        with suppress(redis.RedisError):
            return bool(self.client.ping())
        return False


@contextmanager
def running_redis(folder: Path) -> Iterator[RedisServer]:
    (server,) = [each for each in ALL if each.program == "redis-server"]
    try:
        program = find(server)
    except ServerMissing as lack:
        pytest.skip(str(lack))
    made = RedisServer(program=program, folder=folder, port=free_port())
    made.start()
    try:
        yield made
    finally:
        made.stop()


@define
class Cluster:
    """Workers of one store."""

    folder: Path
    redis: RedisServer
    store: str
    settings: dict[str, str] = field(factory=dict)
    workers: list[Running] = field(factory=list)
    #: The port that workers ask Redis at, where it isn't its own.
    way: int | None = None

    @property
    def frontier(self) -> str:
        return self.redis.url if self.way is None else f"redis://127.0.0.1:{self.way}/0"

    def crawler(self, name: str) -> Crawler:
        folder = self.folder / name
        folder.mkdir(exist_ok=True)
        given = {"LINKCRAWL_STORE": self.store, "LINKCRAWL_FRONTIER": self.frontier, **SETTINGS, **self.settings}
        return Crawler(folder=folder, settings=given)

    def seed(self, seeds: Iterable[str | Mapping[str, object]]) -> None:
        crawler = self.crawler("seeding")
        path = crawler.seeds(seeds)
        told = crawler.tell("seed", str(path))
        assert told.status == 0, told.stderr

    def start(
        self,
        *arguments: str,
        clock_off: float = 0.0,
        poison: bool = False,
        stop_write: int | None = None,
        repeat: float | None = None,
    ) -> Running:
        """A worker, with faults that tests/crawl/faulty tells of."""
        crawler = self.crawler(f"worker{len(self.workers)}")
        feed = crawler.folder / "feed.jsonl"
        command = crawler.command("crawl", "resourceproxies", "-O", feed.name, *arguments)
        faults = {"TEST_POISON": "/deadly"} if poison else {}
        if clock_off:
            faults["TEST_CLOCK_OFF"] = str(clock_off)
        if stop_write is not None:
            faults["TEST_STOP_WRITE"] = str(stop_write)
        if repeat is not None:
            faults["TEST_REPEAT"] = str(repeat)
        told = environment() | faults
        told["PYTHONPATH"] = os.pathsep.join([str(FAULTY), told["PYTHONPATH"]])
        running = Running(command, told, crawler.folder, feed, fresh=bool(clock_off))
        self.workers.append(running)
        return running

    def kept(self) -> Counter[str]:
        """How many records there are of each URL, over all time."""
        return Counter(record["url"] for record in self.records())

    def records(self) -> list[dict[str, Any]]:
        """All records, over all time."""
        with closing(open_store(self.store)) as store:
            return [record.row() for record in store.records(Query(history=True))]

    def audit(self) -> Told:
        """`scrapy audit` over the logs of all workers."""
        logs = [str(path) for path in sorted(self.folder.glob("worker*/audit.jsonl"))]
        return self.crawler("seeding").tell("audit", *logs)

    def audited(self) -> list[AuditEntry]:
        """What all workers say that they have sent, in the order in which it left."""
        logs = self.folder.glob("worker*/audit.jsonl")
        return sorted((read_line(text) for log in logs for text in log.read_text().splitlines()), key=_sent)

    def judge(self, urls: Iterable[str], requests: list[Request], delay: float = 0.4) -> None:
        """Every link recorded once, no gap undercut: by the server's log, and by our own of all workers."""
        assert self.kept() == Counter(urls)
        assert too_close(requests, delay) == []
        proof = self.audit()
        assert proof.status == 0, proof.stdout + proof.stderr

    def end(self, *alive: Running, limit: float = SOON) -> None:
        """Wait for these workers, which must end by themselves."""
        deadline = time.monotonic() + limit
        for running in alive:
            ended = running.wait(max(1.0, deadline - time.monotonic()))
            assert ended.status == 0, ended.stderr[-3000:]
            assert "Traceback" not in ended.stderr, ended.stderr

    def kill(self) -> None:
        for running in self.workers:
            if not running.ended:
                with suppress(ProcessLookupError):
                    running.signal(signal.SIGCONT)
            running.kill()


async def begin_long_ago(server: RedisServer) -> None:
    """Have Redis look as after a crawl: at an empty one nobody leases anything for the time of a lease."""
    before = Coordinator.connect(server.url, LEASE)
    await before.join({}, policies="", pace="", protocol="")
    await before.leave()
    server.client.hset(f"{PREFIX}{before.generation}:state", "shut", 0)
    await before.close()


@contextmanager
def running_cluster(folder: Path, **settings: str) -> Iterator[Cluster]:
    with running_redis(folder) as server, database(server_url()) as store:
        asyncio.run(begin_long_ago(server))
        cluster = Cluster(folder=folder, redis=server, store=store, settings=settings)
        try:
            yield cluster
        finally:
            cluster.kill()


def _sent(line: AuditEntry) -> float:
    return line.sent


def stands_still(running: Running) -> bool:
    """Whether a worker has been stopped (SIGSTOP)."""
    state = Path(f"/proc/{running.process.pid}/stat").read_text().rpartition(")")[2].split()[0]
    return state == "T"


def holders(server: RedisServer) -> Counter[str]:
    """How many gates each session leases, as Redis has it."""
    client = server.client
    generation = client.get("{linkcrawl}:generation")
    return Counter(client.hvals(f"{{linkcrawl}}:{generation}:gates"))
