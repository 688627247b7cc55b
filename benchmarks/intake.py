"""Rows a second of `scrapy seed`, and what limits it: reading, making entries, and the store, each by itself.

`python -m benchmarks.intake [--store mongodb://HOST:PORT/DB]`: rows as catalogues have them, with collection, record,
provider and media type; every sixth mentions a link that was there before. The database of a MongoDB URL is written to.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks import kit
from linkcrawl.ingest.ingest import BATCH, read_batches
from linkcrawl.items import Reject
from linkcrawl.sources import read
from linkcrawl.stores.contract import LinkEntry
from linkcrawl.stores.opening import open_store


def write_rows(path: Path, count: int) -> Path:
    with path.open("w") as file:
        for number in range(count):
            link = number if number % 6 else number // 2
            host = f"repository{link * 2654435761 % 4000}.example.org"
            row = {
                "url": f"https://{host}/object/{link}/content?version={link % 7}",
                "collection": f"Collection {number % 300}",
                "record": f"oai_{number // 4}.xml",
                "expected_mime": ("text/html", "application/pdf", "audio/x-wav")[number % 3],
                "provider": f"Provider {number % 60}",
                "resource_type": "Resource",
            }
            file.write(json.dumps(row) + "\n")
    return path


def timed(work: Callable[[], object]) -> float:
    """Processor seconds; nothing here waits but for the disk."""
    began = time.process_time()
    work()
    return time.process_time() - began


def stages(seeds: Path, folder: Path, store_url: str) -> dict[str, float]:
    """Processor seconds for each part of the way of all rows."""
    reading = timed(lambda: [None for row in read(str(seeds)) if isinstance(row, Reject)])
    made: list[Sequence[LinkEntry]] = []
    both = timed(lambda: made.extend(batch.entries for batch in read_batches([str(seeds)], folder / "rejects")))
    store = open_store(store_url)
    adding = timed(lambda: [store.add(entries) for entries in made])
    store.close()
    return {"reading": reading, "entries": both - reading, "store": adding}


def measure(folder: Path, rows: int, store: str | None) -> str:
    seeds = write_rows(folder / "seeds.jsonl", rows)
    url = store or f"sqlite:///{folder}/parts.db"
    parts = stages(seeds, folder, url)
    first = kit.run(
        kit.linkcrawl("seed", write_rows(folder / "one.jsonl", 1), LINKCRAWL_STORE="sqlite:///one.db"), folder
    )
    again = {} if store is None else {"LINKCRAWL_STORE": f"{store}_again"}
    whole = kit.run(kit.linkcrawl("seed", seeds, **again), folder)
    table = [
        {
            "rows": rows,
            "rows/s": round(rows / (whole.wall - first.wall)),
            "rows a CPU second": round(rows / (whole.cpu - first.cpu)),
            **{f"{name}, us a row": seconds / rows * 1e6 for name, seconds in parts.items()},
            "peak MB": whole.peak,
        }
    ]
    return kit.table(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=500_000)
    parser.add_argument("--store", help="a MongoDB URL; SQLite in a folder of its own without it")
    given = parser.parse_args()
    print(f"batches of {BATCH} rows")
    print(kit.in_folder(lambda folder: measure(folder, given.rows, given.store)))


if __name__ == "__main__":
    main()
