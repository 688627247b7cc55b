"""MongoDB for tests: the server that `make test` starts, and databases of a test's own on it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from uuid import uuid4

import pymongo

from tests.contract.test_servers import server


def server_url() -> str:
    """The URL of the test server; skips, or fails on CI, where there is none."""
    return server("TEST_MONGODB_URL")


@contextmanager
def database(server: str) -> Iterator[str]:
    """The URL of a database that isn't there yet; dropped afterwards."""
    name = f"linkcrawl_test_{uuid4().hex}"
    try:
        yield f"{server.rstrip('/')}/{name}"
    finally:
        with pymongo.MongoClient(server) as client:
            client.drop_database(name)
