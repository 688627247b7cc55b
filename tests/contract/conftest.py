"""The stores that the contract suite runs on. A further implementation is one more line in STORES."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from itertools import count
from pathlib import Path

import pytest

from linkcrawl.stores.contract import Store
from linkcrawl.stores.opening import open_store
from tests.contract.mongodb import database, server_url


@contextmanager
def _sqlite_url(folder: Path, n: int) -> Iterator[str]:
    yield f"sqlite:///{folder}/store{n}.db"


@contextmanager
def _mongodb_url(folder: Path, n: int) -> Iterator[str]:
    with database(server_url()) as url:
        yield url


#: By name: the URL of the nth new, empty store of a test that has a folder of its own.
STORES: dict[str, Callable[[Path, int], AbstractContextManager[str]]] = {
    "mongodb": _mongodb_url,
    "sqlite": _sqlite_url,
}


@pytest.fixture(params=sorted(STORES))
def new_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[], str]]:
    """Gives the URL of another new store each time (hypothesis runs many examples in one test), and throws the store
    before away."""
    numbers = count()
    with ExitStack() as stores:

        def another() -> str:
            stores.close()
            return stores.enter_context(STORES[request.param](tmp_path, next(numbers)))

        yield another


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
