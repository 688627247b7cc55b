"""Seconds that a weekly harvest takes to be taken up, and to be reconciled with what the store has.

`python -m benchmarks.reconcile [--store mongodb://HOST:PORT/DB]`: a catalogue of so many mentions is taken up; then the
harvest after it, which lacks one mention in twenty, is taken up and reconciled. The database of a MongoDB URL is
written to. The ratio is that of taking a harvest up to reconciling it: 0.5 or more is wanted.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks import kit
from benchmarks.intake import write_rows
from linkcrawl.ingest.harvest import HarvestNotes, RetireRules, Scope, reconcile
from linkcrawl.ingest.ingest import read_batches
from linkcrawl.stores.contract import Store
from linkcrawl.stores.opening import open_store

#: One mention of so many is missing in the harvest after.
MISSING = 20


def harvest_after(seeds: Path, path: Path) -> Path:
    """The same rows without one in MISSING."""
    with seeds.open() as rows, path.open("w") as file:
        file.writelines(row for number, row in enumerate(rows) if number % MISSING)
    return path


def seconds(work: Callable[[], object]) -> float:
    began = time.monotonic()
    work()
    return time.monotonic() - began


def peak() -> float:
    """Megabytes that this process has had in memory at most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def take_up(store: Store, seeds: Path, folder: Path, harvest: int) -> HarvestNotes:
    notes = HarvestNotes()
    for batch in read_batches([str(seeds)], folder / "rejects", notes):
        store.add(batch.entries, harvest)
    return notes


def measure(folder: Path, rows: int, url: str | None) -> str:
    seeds = write_rows(folder / "seeds.jsonl", rows)
    after = harvest_after(seeds, folder / "after.jsonl")
    store = open_store(url or f"sqlite:///{folder}/reconcile.db")
    first = seconds(lambda: take_up(store, seeds, folder, store.begin_harvest(1.0)))
    number = store.begin_harvest(2.0)
    notes: list[HarvestNotes] = []
    again = seconds(lambda: notes.append(take_up(store, after, folder, number)))
    before = peak()
    rules = RetireRules(scope=Scope.CATALOGUE, limit=1.0)
    reconciled = seconds(lambda: reconcile(store, number, notes[0], rules, 3.0))
    books = store.books(4.0)
    store.close()
    table = [
        {
            "mentions": rows,
            "taken up, s": first,
            "next harvest taken up, s": again,
            "reconciled, s": reconciled,
            "ratio": again / reconciled,
            "links retired": books.retired,
            "peak MB before": before,
            "peak MB": peak(),
        }
    ]
    return kit.table(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--store", help="a MongoDB URL; SQLite in a folder of its own without it")
    given = parser.parse_args()
    print(kit.in_folder(lambda folder: measure(folder, given.rows, given.store)))


if __name__ == "__main__":
    main()
