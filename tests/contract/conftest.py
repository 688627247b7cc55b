"""The stores that the contract suite runs on. A second implementation is one more line in STORES."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest

from linkcrawl.stores import Store, open_store

#: By name: the URL of the nth new, empty store in a folder of the test's own.
STORES: dict[str, Callable[[Path, int], str]] = {
    "sqlite": lambda folder, n: f"sqlite:///{folder}/store{n}.db",
}


@pytest.fixture(params=sorted(STORES))
def new_url(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], str]:
    """Gives the URL of another new store each time (hypothesis runs many examples in one test)."""
    numbers = count()
    return lambda: STORES[request.param](tmp_path, next(numbers))


@pytest.fixture
def url(new_url: Callable[[], str]) -> str:
    return new_url()


@pytest.fixture
def opened() -> Iterator[Callable[[str], Store]]:
    """Opens stores, and closes them when the test ends."""
    stores: list[Store] = []

    def open_one(url: str) -> Store:
        stores.append(open_store(url))
        return stores[-1]

    yield open_one
    for store in stores:
        store.close()


@pytest.fixture
def store(url: str, opened: Callable[[str], Store]) -> Store:
    return opened(url)
