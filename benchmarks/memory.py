"""Peak memory of a crawl by the number of links that are due: few, many, and many behind ten times the hosts.

`python -m benchmarks.memory`: the store is seeded by a process of its own, whose peak is a column of its own; then a
crawl checks as many links as the smallest store has, and ends.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

from attrs import frozen

from benchmarks import kit


@frozen(kw_only=True)
class Size:
    links: int
    hosts: int


def urls(site: kit.Served, size: Size) -> Iterator[str]:
    names = kit.hosts(size.hosts)
    return (site.url(names[number % size.hosts], f"/item/{number}") for number in range(size.links))


def measure(size: Size, checks: int) -> dict[str, object]:
    def go(folder: Path) -> dict[str, object]:
        with kit.server(folder) as site:
            seeds = kit.write_seeds(folder / "seeds.jsonl", urls(site, size))
            seeding = kit.run(kit.linkcrawl("seed", seeds), folder)
            crawl = kit.linkcrawl("crawl", "resourceproxies", "-a", f"limit={checks}", **kit.UNHURT)
            crawling = kit.run(crawl, folder)
        return {
            "links due": size.links,
            "hosts": size.hosts,
            "checked": checks,
            "peak of the crawl, MB": crawling.peak,
            "peak of seeding, MB": seeding.peak,
            "store, MB": (folder / "linkcrawl.db").stat().st_size / 2**20,
        }

    return kit.in_folder(go)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--few", type=int, default=20_000)
    parser.add_argument("--many", type=int, default=1_000_000)
    parser.add_argument("--hosts", type=int, default=2_000)
    given = parser.parse_args()
    sizes = [
        Size(links=given.few, hosts=given.hosts),
        Size(links=given.many, hosts=given.hosts),
        Size(links=given.many, hosts=given.hosts * 10),
    ]
    rows = [measure(size, given.few) for size in sizes]
    first = rows[0]["peak of the crawl, MB"]
    assert isinstance(first, float)
    print(kit.table([{**row, "times the first": float(str(row["peak of the crawl, MB"])) / first} for row in rows]))


if __name__ == "__main__":
    main()
