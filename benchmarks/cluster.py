"""How a crawl grows with its workers, and what sharing costs.

    python scripts/servers.py python -m benchmarks.cluster

Two workloads, both without delays. *By permits*: hosts that take a tenth of a second to answer, and workers that may
have 32 requests in flight; what binds is each worker's own permits, so the table shows how evenly the gates are shared.
*By processor*: hosts that answer at once; what binds is the processor, which workers share here with the server,
MongoDB and Redis. The cost of sharing is the processor time of a worker in a cluster of one, beside that of a crawl
alone on the same store.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from datetime import datetime
from pathlib import Path
from uuid import uuid4

import pymongo
import redis
from attrs import frozen

from benchmarks import kit
from linkcrawl.stores.opening import open_store

HOSTS = 300
#: Figures of a table are the medians of so many rounds.
ROUNDS = 3
#: Options of the server, links, and settings of the workers, by workload.
BY_PERMITS = (("--latency", 0.1), 9_000, {"CONCURRENT_REQUESTS": 32})
BY_PROCESSOR = ((), 15_000, {"CONCURRENT_REQUESTS": 256})

Workload = tuple[tuple[object, ...], int, Mapping[str, object]]


@frozen(kw_only=True)
class Round:
    """`rate`: checks a second while all workers work. `cpu`: processor seconds of all of them. `least`: share of
    the checks (0 to 1) of the worker that made fewest."""

    rate: float
    cpu: float
    least: float


@contextmanager
def databases() -> Iterator[Mapping[str, object]]:
    """Settings that name an empty MongoDB database and an empty Redis."""
    mongodb, server = os.environ["TEST_MONGODB_URL"], f"{os.environ['TEST_REDIS_URL']}/8"
    name = f"linkcrawl_bench_{uuid4().hex}"
    with redis.Redis.from_url(server) as client, pymongo.MongoClient[dict[str, object]](mongodb) as mongo:
        client.flushdb()
        try:
            yield {"LINKCRAWL_STORE": f"{mongodb}/{name}", "LINKCRAWL_FRONTIER": server}
        finally:
            mongo.drop_database(name)


def crawl(folder: Path, served: kit.Served, workload: Workload, workers: int) -> Round:
    """One crawl by so many workers; 0: a crawl alone."""
    _, links, settings = workload
    hosts = kit.hosts(HOSTS)
    seeds = kit.write_seeds(folder / "seeds.jsonl", (served.url(hosts[n % HOSTS], f"/{n}") for n in range(links)))
    with databases() as where:
        options = {**kit.UNHURT, **settings, **where}
        if not workers:
            options["LINKCRAWL_FRONTIER"] = "local"
        kit.run(kit.linkcrawl("seed", seeds, **options), folder)
        running = [_start(folder / f"worker{number}", options) for number in range(max(1, workers))]
        usages = [os.wait4(process.pid, 0) for process in running]
        for process, (_, status, _) in zip(running, usages, strict=True):
            process.returncode = os.waitstatus_to_exitcode(status)
        if any(process.returncode for process in running):
            raise SystemExit(f"a worker failed; its log is in {folder}")
        with closing(open_store(str(where["LINKCRAWL_STORE"]))) as store:
            assert store.books(time.time()).records == links
    check_times = [_times(folder / f"worker{number}" / "feed.jsonl") for number in range(len(running))]
    assert sum(map(len, check_times)) == links
    start, end = max(times[0] for times in check_times), min(times[-1] for times in check_times)
    return Round(
        rate=sum(start <= time <= end for times in check_times for time in times) / (end - start),
        cpu=sum(usage.ru_utime + usage.ru_stime for _, _, usage in usages),
        least=min(map(len, check_times)) / links,
    )


def _start(folder: Path, options: Mapping[str, object]) -> subprocess.Popen[bytes]:
    folder.mkdir(exist_ok=True)
    command = kit.linkcrawl("crawl", "resourceproxies", "-O", "feed.jsonl", **options)
    environment = {**os.environ, "PYTHONPATH": str(kit.ROOT)}
    with (folder / "output.txt").open("wb") as output:
        return subprocess.Popen(
            [str(part) for part in command], cwd=folder, env=environment, stdout=output, stderr=output
        )


def _times(feed: Path) -> list[float]:
    """When the checks of a feed were made."""
    with feed.open() as lines:
        return sorted(datetime.fromisoformat(json.loads(line)["checked_at"]).timestamp() for line in lines)


def rounds(folder: Path, workload: Workload, numbers: list[int]) -> dict[int, list[Round]]:
    """The rounds by number of workers, taken in turn so that a busy machine is unfair to none of them."""
    found: dict[int, list[Round]] = {number: [] for number in numbers}
    with kit.server(folder, *workload[0]) as served:
        for turn in range(ROUNDS):
            for number in numbers:
                place = folder / f"{time.monotonic_ns()}-{turn}-{number}"
                place.mkdir()
                found[number].append(crawl(place, served, workload, number))
    return found


def growth(folder: Path, workload: Workload, numbers: list[int]) -> str:
    """A table by number of workers."""
    found = rounds(folder, workload, numbers)
    rates = {number: statistics.median(crawled.rate for crawled in found[number]) for number in numbers}
    return kit.table(
        [
            {
                "workers": number or "alone",
                "checks/s": round(rates[number]),
                "x one worker": f"{rates[number] / rates[1]:.2f}",
                "processor seconds": f"{statistics.median(crawled.cpu for crawled in found[number]):.1f}",
                "smallest share": f"{statistics.median(crawled.least for crawled in found[number]):.0%}",
            }
            for number in numbers
        ]
    )


def main() -> int:
    if not {"TEST_MONGODB_URL", "TEST_REDIS_URL"} <= os.environ.keys():
        print("run it as: python scripts/servers.py python -m benchmarks.cluster", file=sys.stderr)
        return 2
    print("By permits:\n")
    print(kit.in_folder(lambda folder: growth(folder, BY_PERMITS, [1, 2, 3, 4])))
    print("\nBy processor:\n")
    print(kit.in_folder(lambda folder: growth(folder, BY_PROCESSOR, [0, 1, 2])))
    return 0


if __name__ == "__main__":
    sys.exit(main())
