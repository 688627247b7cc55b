"""Checks a second of processor time: linkcrawl, politeness on and records stored, beside a bare spider on stock Scrapy.

`python -m benchmarks.throughput`: rounds of both in turn, so that a busy machine is busy for both. What starting costs
is measured by a run with one link, and taken off. linkcrawl's links are in its SQLite store beforehand (what that costs
is benchmarks.intake's), stock Scrapy's in a list; both ask by HEAD over connections that are kept.

`--tls`: the same for linkcrawl over https, with a new connection for each request and with kept ones.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable
from pathlib import Path

from attrs import frozen

from benchmarks import kit
from benchmarks.certificates import certificate

#: Settings of Scrapy's that don't bear on the cost of a request, but would fill the output.
QUIET = {"LOG_LEVEL": "INFO"}


@frozen(kw_only=True)
class Cost:
    """Processor seconds of one link and of starting."""

    check: float
    start: float
    peak: float


Subject = Callable[[Path, list[str]], kit.Usage]


def with_linkcrawl(folder: Path, urls: list[str], **settings: object) -> kit.Usage:
    seeds = kit.write_seeds(folder / "seeds.jsonl", urls)
    kit.run(kit.linkcrawl("seed", seeds), folder)
    return kit.run(kit.linkcrawl("crawl", "resourceproxies", **kit.UNHURT, **settings), folder)


def with_stock(folder: Path, urls: list[str]) -> kit.Usage:
    listed = kit.write_urls(folder / "urls.txt", urls)
    return kit.run(kit.stock(listed, **QUIET), folder)


def cost(subject: Subject, urls: list[str]) -> Cost:
    """The cost of one link of many, starting not counted."""
    start = kit.in_folder(lambda folder: subject(folder, urls[:1]))
    whole = kit.in_folder(lambda folder: subject(folder, urls))
    return Cost(check=(whole.cpu - start.cpu) / (len(urls) - 1), start=start.cpu, peak=whole.peak)


def row(name: str, costs: list[Cost], than: list[Cost]) -> dict[str, object]:
    """A line of the table. The ratio is that of rounds done one after the other."""
    each = [cost.check for cost in costs]
    ratios = [other.check / cost.check for cost, other in zip(costs, than, strict=True)]
    return {
        "subject": name,
        "ms CPU a check, best": min(each) * 1000,
        "median": statistics.median(each) * 1000,
        "checks a CPU second": round(1 / statistics.median(each)),
        "times the first": statistics.median(ratios),
        "start, s": statistics.median(cost.start for cost in costs),
        "peak MB": round(max(cost.peak for cost in costs)),
    }


def compare(subjects: dict[str, tuple[Subject, list[str]]], rounds: int) -> str:
    """All subjects in turn, so many times; a row for each."""
    costs: dict[str, list[Cost]] = {name: [] for name in subjects}
    for _ in range(rounds):
        for name, (subject, urls) in subjects.items():
            costs[name].append(cost(subject, urls))
    first = next(iter(costs.values()))
    return kit.table([row(name, measured, first) for name, measured in costs.items()])


def plain(folder: Path, links: int, hosts: int, rounds: int) -> str:
    names = kit.hosts(hosts)
    with kit.server(folder) as site:
        urls = [site.url(names[number % hosts], f"/{number}") for number in range(links)]
        return compare({"stock Scrapy": (with_stock, urls), "linkcrawl": (with_linkcrawl, urls)}, rounds)


def tls(folder: Path, links: int, hosts: int, rounds: int) -> str:
    names = kit.hosts(hosts)
    pem = certificate(folder, names)

    def trusting(inner: Path, urls: list[str]) -> kit.Usage:
        return with_linkcrawl(inner, urls, LINKCRAWL_CA_BUNDLE=pem)

    with (
        kit.server(folder) as http,
        kit.server(folder, tls=pem) as kept,
        kit.server(folder, "--close", tls=pem) as closing,
    ):
        where = {"http": http, "https, connections kept": kept, "https, a new connection each": closing}
        return compare(
            {
                name: (trusting, [site.url(names[number % hosts], f"/{number}") for number in range(links)])
                for name, site in where.items()
            },
            rounds,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--links", type=int, default=10_000)
    parser.add_argument("--hosts", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tls", action="store_true")
    given = parser.parse_args()
    benchmark = tls if given.tls else plain
    print(kit.in_folder(lambda folder: benchmark(folder, given.links, given.hosts, given.rounds)))


if __name__ == "__main__":
    main()
