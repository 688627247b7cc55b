"""Opening the store that a LINKCRAWL_STORE URL names."""

from __future__ import annotations

import os

from linkcrawl.errors import StoreError
from linkcrawl.stores.contract import Store
from linkcrawl.urls.servers import shown


def open_store(url: str) -> Store:
    """The store that a `LINKCRAWL_STORE` URL names; made where it doesn't exist yet, migrated where it is older.

    Raises StoreError with one line for a URL that isn't understood, a path that can't be written, a store made
    by a newer version, or a server that can't be reached.
    """
    return _open(url, make=True)


def open_existing(url: str) -> Store:
    """The same for commands that only read: a file or database without a store is a mistake (StoreError), not a new
    store."""
    path = url.removeprefix("sqlite:///")
    if path != url and not os.path.exists(path):
        raise StoreError(f"LINKCRAWL_STORE: there is no store {path} yet; `scrapy seed` or a crawl makes one")
    return _open(url, make=False)


def display_name(url: str) -> str:
    """The store for messages: the file's absolute path, or the server and database without user and password."""
    if url.startswith("sqlite:///"):
        return f"sqlite:///{os.path.realpath(url.removeprefix('sqlite:///'))}"
    return shown(url)


def _open(url: str, *, make: bool) -> Store:
    if url.startswith("sqlite:"):
        from linkcrawl.stores.sqlite.store import SqliteStore

        return SqliteStore.open(url, to_write=make)
    if url.startswith(("mongodb:", "mongodb+srv:")):
        try:
            from linkcrawl.stores.mongo.store import MongoStore
        except ModuleNotFoundError as fault:
            raise StoreError(
                f"LINKCRAWL_STORE: MongoDB needs the package {fault.name}; pip install 'linkcrawl[mongo]' would work"
            ) from fault
        return MongoStore.open(url, make=make)
    raise StoreError(
        f"LINKCRAWL_STORE: {shown(url)!r} is not understood; sqlite:///linkcrawl.db or "
        "mongodb://HOST:PORT/DB would work"
    )
