"""The real servers that `make test` starts: they answer, and keep what they are given."""

import os

import pymongo
import pytest
import redis


def server(variable: str) -> str:
    """The URL of a test server. A missing one is a skip that says what lacks; on CI, as any skip, a failure."""
    url = os.environ.get(variable)
    if not url:
        pytest.skip(f"{variable} is not set; `make test` starts the server and sets it")
    return url


def redis_database() -> str:
    """The URL of a Redis database that no other worker of pytest-xdist uses: of the sixteen, one after 0 and 1."""
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    return f"{server('TEST_REDIS_URL')}/{2 + worker % 14}"


def test_redis_answers_and_keeps_what_it_is_given() -> None:
    with redis.Redis.from_url(server("TEST_REDIS_URL"), decode_responses=True) as client:
        assert client.ping()
        client.set("test_servers", "kept", ex=60)
        assert client.get("test_servers") == "kept"


def test_redis_runs_scripts_by_its_own_clock() -> None:
    with redis.Redis.from_url(server("TEST_REDIS_URL")) as client:
        seconds, microseconds = client.eval("return redis.call('TIME')", 0)
        assert int(seconds) > 1_700_000_000
        assert 0 <= int(microseconds) < 1_000_000


def test_mongodb_answers_and_keeps_what_it_is_given() -> None:
    with pymongo.MongoClient(server("TEST_MONGODB_URL"), serverSelectionTimeoutMS=10_000) as client:
        assert client.admin.command("ping")["ok"] == 1
        collection = client["test_servers"]["kept"]
        collection.replace_one({"_id": 1}, {"_id": 1, "url": "http://example.org/"}, upsert=True)
        assert collection.find_one({"_id": 1}) == {"_id": 1, "url": "http://example.org/"}
        client.drop_database("test_servers")
