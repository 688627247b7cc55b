"""Keys of Redis as a source that is only looked at: whatever kind of key scrapy-redis' users push to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from uuid import uuid4

import pytest
import redis

from linkcrawl import sources
from linkcrawl.errors import SourceLost
from linkcrawl.items import Reject, Retraction, Seed
from tests.contract.test_servers import server

#: More than are read at a time.
MANY = 1203
Push = Callable[[redis.Redis, str, list[str]], object]
KINDS: dict[str, Push] = {
    "list": lambda client, key, texts: client.lpush(key, *texts),
    "set": lambda client, key, texts: client.sadd(key, *texts),
    "sorted set": lambda client, key, texts: client.zadd(key, {text: n for n, text in enumerate(texts)}),
}


@pytest.fixture
def client() -> Iterator[redis.Redis]:
    with redis.Redis.from_url(server("TEST_REDIS_URL")) as client:
        yield client


@pytest.fixture
def key(client: redis.Redis) -> Iterator[str]:
    key = f"{uuid4().hex}:start_urls"
    yield key
    client.delete(key)


@pytest.mark.parametrize("kind", KINDS)
def test_looking_takes_nothing(client: redis.Redis, key: str, kind: str) -> None:
    texts = [f"http://a.example/{n}" for n in range(MANY)]
    KINDS[kind](client, key, [*texts, '{"url": 7}'])
    before = client.dump(key)
    for _ in range(2):
        rows = list(sources.peek(f"{server('TEST_REDIS_URL')}/0/{key}"))
        assert sorted(row.url for row in rows if isinstance(row, Seed)) == sorted(texts)
        assert sum(isinstance(row, Reject) for row in rows) == 1
    assert client.dump(key) == before
    assert client.keys(f"{key}:*") == []


def test_a_list_is_seen_oldest_first_whatever_comes_meanwhile(client: redis.Redis, key: str) -> None:
    texts = [f"http://a.example/{n}" for n in range(MANY)]
    client.lpush(key, *texts)
    seen = []
    for row in sources.peek(f"{server('TEST_REDIS_URL')}/0/{key}"):
        assert isinstance(row, Seed)
        seen.append(row.url)
        if len(seen) in (1, 700):
            client.lpush(key, f"http://new.example/{len(seen)}")
    assert [url for url in seen if "new" not in url] == texts


def test_nothing_there_is_nothing(key: str) -> None:
    assert list(sources.peek(f"{server('TEST_REDIS_URL')}/0/{key}")) == []


def test_another_kind_of_key_is_one_line(client: redis.Redis, key: str) -> None:
    client.hset(key, "url", "http://a.example/")
    with pytest.raises(SourceLost, match=f"0/{key}: WRONGTYPE"):
        list(sources.peek(f"{server('TEST_REDIS_URL')}/0/{key}"))


def test_a_mention_is_taken_back(client: redis.Redis, key: str) -> None:
    texts = [
        '{"url": "http://a.example/1", "collection": "A", "retire": true}',
        '{"url": "http://a.example/2", "retire": 1}',
    ]
    client.lpush(key, *texts, '{"url": "http://a.example/3", "retire": false}')
    rows = list(sources.peek(f"{server('TEST_REDIS_URL')}/0/{key}"))
    assert rows[0] == Retraction(url="http://a.example/1", collection="A")
    assert isinstance(rows[1], Reject)
    assert rows[1].why == "retire is 1, neither true nor false"
    assert rows[2] == Seed(url="http://a.example/3")
