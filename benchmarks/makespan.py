"""How long a polite crawl takes against the least that politeness allows, and whether it was polite: linkcrawl, stock
Scrapy and lychee on the same links.

`python -m benchmarks.makespan`: many hosts, few of them large, host by host with the largest last, which is the worst
order. A tenth of the links redirect to another host. Each subject has a server of its own that logs every request; gaps
between two requests to one host are counted from start to start, the mildest reading.

The bound is M = max(max over hosts of (n - 1) * delay + n * service, sum of all service / concurrency), where n counts
what has to be asked: each link, each redirect's target, and robots.txt for those who read it.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

from attrs import frozen

from benchmarks import kit

#: Seconds by which a gap may be under the delay: the grain of timers.
TOLERANCE = 0.002


@frozen(kw_only=True)
class Task:
    """Links given: pairs of host number and redirected or not; seconds between requests; requests at once."""

    names: list[str]
    links: list[tuple[int, int | None]]
    delay: float
    latency: float
    concurrency: int
    limit: float

    def urls(self, site: kit.Served) -> list[str]:
        return [
            site.url(self.names[host], f"/{number}" if target is None else f"/to/{self.names[target]}/r{number}")
            for number, (host, target) in enumerate(self.links)
        ]


def skewed(count: int, links: int, skew: float) -> list[int]:
    """Links of each host, largest first: Zipf's law."""
    weights = [1 / (rank + 1) ** skew for rank in range(count)]
    return [max(1, round(links * weight / sum(weights))) for weight in weights]


def worst_order(sizes: list[int]) -> list[tuple[int, int | None]]:
    """Host by host, the largest last; every tenth link redirects to the small host that comes next."""
    links: list[tuple[int, int | None]] = []
    for host in reversed(range(len(sizes))):
        small = len(sizes) // 2 + host % (len(sizes) // 2)
        links += [(host, small if number % 10 == 9 and small != host else None) for number in range(sizes[host])]
    return links


Request = tuple[float, float, float, str, str]  # start, end, slack, host, path


def requests(log: Path) -> list[Request]:
    found = []
    for line in log.read_text().splitlines():
        start, end, slack, host, path = line.split(" ", 4)
        found.append((float(start), float(end), float(slack), host, path))
    return sorted(found)


def bound(served: list[Request], task: Task) -> float:
    """The least makespan for what was asked, each URL once."""
    service: dict[str, dict[str, float]] = defaultdict(dict)
    for start, end, _, host, path in served:
        service[host].setdefault(path, end - start)
    chains = [(len(paths) - 1) * task.delay + sum(paths.values()) for paths in service.values()]
    return max(max(chains), sum(sum(paths.values()) for paths in service.values()) / task.concurrency)


def gaps(served: list[Request], delay: float) -> tuple[int, int, float]:
    """Gaps under the delay, gaps, and the smallest. What may have waited in the server for its turn is given."""
    last: dict[str, Request] = {}
    short = count = 0
    least = float("inf")
    for request in served:
        start, host = request[0], request[3]
        if host in last:
            gap = start - last[host][0] + last[host][2]
            count += 1
            least = min(least, gap)
            short += gap < delay - TOLERANCE
        last[host] = request
    return short, count, least


def race(name: str, start: Callable[[Path, list[str], Task], kit.Usage], task: Task) -> dict[str, object]:
    """One subject over all links: a row."""

    def go(folder: Path) -> dict[str, object]:
        with kit.server(folder, "--latency", task.latency, logged=True) as site:
            usage = start(folder, task.urls(site), task)
        served = requests(site.log)
        least = bound(served, task)
        makespan = max(request[1] for request in served) - served[0][0]
        short, count, smallest = gaps(served, task.delay)
        asked = {(host, path) for _, _, _, host, path in served if path != "/robots.txt"}
        wanted = len(task.links) + sum(target is not None for _, target in task.links)
        return {
            "subject": name + (" (cut)" if usage.status == "cut" else ""),
            "makespan / bound": makespan / least,
            "makespan, s": makespan,
            "bound, s": least,
            "asked of wanted": f"{len(asked)}/{wanted}",
            "gaps too short": f"{short}/{count}",
            "least gap, s": smallest,
            "CPU, s": usage.cpu,
        }

    return kit.in_folder(go)


def linkcrawl(folder: Path, urls: list[str], task: Task) -> kit.Usage:
    seeds = kit.write_seeds(folder / "seeds.jsonl", urls)
    settings = {**kit.SETTINGS, "DOWNLOAD_DELAY": task.delay, "CONCURRENT_REQUESTS": task.concurrency}
    command = kit.linkcrawl("crawl", "resourceproxies", "-a", f"seeds={seeds}", **settings)
    return kit.run(command, folder, limit=task.limit)


def stock(folder: Path, urls: list[str], task: Task) -> kit.Usage:
    listed = kit.write_urls(folder / "urls.txt", urls)
    settings = {
        "DOWNLOAD_DELAY": task.delay,
        "CONCURRENT_REQUESTS": task.concurrency,
        "CONCURRENT_REQUESTS_PER_DOMAIN": 1,
        "ROBOTSTXT_OBEY": True,
        "LOG_LEVEL": "INFO",
    }
    return kit.run(kit.stock(listed, **settings), folder, limit=task.limit)


def lychee(folder: Path, urls: list[str], task: Task) -> kit.Usage:
    listed = kit.write_urls(folder / "urls.txt", urls)
    interval = f"{round(task.delay * 1000)}ms"
    options = ["--method", "head", "--max-concurrency", task.concurrency, "--max-retries", 0, "--no-progress"]
    pace = ["--host-request-interval", interval, "--host-concurrency", 1]
    command = [kit.peer("lychee"), *options, *pace, "--output", folder / "found.txt", listed]
    return kit.run(["sh", "-c", '"$@" || [ $? -eq 2 ]', "sh", *command], folder, limit=task.limit)


SUBJECTS = {"linkcrawl": linkcrawl, "stock Scrapy": stock, "lychee": lychee}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hosts", type=int, default=200)
    parser.add_argument("--links", type=int, default=3000)
    parser.add_argument("--skew", type=float, default=0.6, help="exponent of Zipf's law")
    parser.add_argument("--delay", type=float, default=0.4)
    parser.add_argument("--latency", type=float, default=0.01)
    parser.add_argument("--concurrency", type=int, default=64)
    parser.add_argument("--limit", type=float, default=600, help="seconds after which a subject is ended")
    parser.add_argument("--subjects", default=",".join(SUBJECTS))
    given = parser.parse_args()
    task = Task(
        names=kit.hosts(given.hosts),
        links=worst_order(skewed(given.hosts, given.links, given.skew)),
        delay=given.delay,
        latency=given.latency,
        concurrency=given.concurrency,
        limit=given.limit,
    )
    print(
        json.dumps({"links": len(task.links), "hosts": given.hosts, "delay": task.delay, "at once": task.concurrency})
    )
    print(kit.table([race(name, SUBJECTS[name], task) for name in given.subjects.split(",")]))


if __name__ == "__main__":
    main()
