"""Seeds that people push to Redis, as with scrapy-redis: `lpush resourceproxies:start_urls '{"url": "…"}'`, or a bare
URL.

One script moves a batch to a list of the reader's own; the batch is acknowledged when it is in the store. So a reader
that dies in between loses none. Rejected seeds also go to a list beside the key.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from importlib import resources
from typing import Any
from uuid import uuid4

import redis
from attrs import asdict

from linkcrawl.errors import ConfigError, SourceLost
from linkcrawl.items import Reject, Retraction, Seed
from linkcrawl.redis_client import REDIS_FAULTS, connect, connect_async, fault_text
from linkcrawl.sources.checkpoint import Checkpoint
from linkcrawl.sources.lines import MAX_LINE
from linkcrawl.sources.redis_key import PushedKey, parse_key
from linkcrawl.sources.rows import internal_error, reject, seed_or_reject

logger = logging.getLogger(__name__)

#: Seeds of a batch.
BATCH = 500
#: Seconds without a sign of life after which a reader's batch goes back to the key; storing a batch takes far less.
READER_EXPIRES = 120

#: Rejects that are kept beside the key; older ones are in LINKCRAWL_REJECTS only.
KEPT_REJECTS = 10_000


def check(source: str) -> None:
    """Raise ConfigError, one line, where no seeds can be read."""
    key = parse_key(source)
    try:
        with _client(key) as client:
            client.ping()
    except REDIS_FAULTS as fault:
        why = fault_text(fault, source)
        raise ConfigError(f"seeds: {key.shown} can't be read: {why}; that of a running Redis would work") from None


class PushedSeeds:
    """Asks a key whether it holds seeds, over one connection. `source`: as `parse_key` reads it."""

    def __init__(self, source: str):
        self.source = source
        self._key = parse_key(source)
        self._client = connect_async(self._key.server, "seeds")

    async def are_there(self) -> bool:
        """Whether the key holds seeds, or another reader has a batch that it hasn't acknowledged. Raises SourceLost."""
        with _lost(self._key):
            return bool(await self._client.exists(self._key.key, f"{self._key.key}:takers"))

    async def close(self) -> None:
        """Close the connection."""
        await self._client.aclose()


def read(source: str) -> Iterator[Seed | Reject | Checkpoint]:
    """Take every seed that the key holds now. Call each Checkpoint's `ack` when the rows before it are in the store.
    Raises SourceLost."""
    key, reader = parse_key(source), uuid4().hex
    batch_key, readers = f"{key.key}:taking:{reader}", f"{key.key}:takers"
    script = resources.files("linkcrawl.sources").joinpath("pushed.lua").read_text(encoding="utf-8")
    number = 0
    with _lost(key), _client(key) as client:
        while texts := client.eval(script, 3, key.key, batch_key, readers, reader, BATCH, READER_EXPIRES):
            rejected = []
            for text in texts:
                number += 1
                row = _row(text, key.shown, number)
                if isinstance(row, Reject):
                    rejected.append(row)
                yield row
            yield Checkpoint(ack=partial(_acknowledge, client, key, batch_key, rejected))
        client.zrem(readers, reader)


def peek(source: str) -> Iterator[Seed | Reject]:
    """The seeds that the key holds now, which stay there. A seed that is pushed meanwhile may be among them. Raises
    SourceLost."""
    key = parse_key(source)
    with _lost(key), _client(key) as client:
        for number, text in enumerate(_texts(client, key.key), 1):
            yield _row(text, key.shown, number)


@contextmanager
def _lost(key: PushedKey) -> Iterator[None]:
    try:
        yield
    except REDIS_FAULTS as fault:
        raise SourceLost(f"{key.shown}: {fault_text(fault, key.server)}") from fault


def _client(key: PushedKey) -> redis.Redis:
    return connect(key.server, "seeds")


def _texts(client: redis.Redis, key: str) -> Iterator[Any]:
    kind = client.type(key)
    if kind == b"set":
        yield from client.sscan_iter(key, count=BATCH)
    elif kind == b"zset":
        yield from (text for text, _ in client.zscan_iter(key, count=BATCH))
    else:  # a list is read from its end, its oldest seed: pushing meanwhile doesn't move those
        last = -1
        while texts := client.lrange(key, last - BATCH + 1, last):
            yield from reversed(texts)
            last -= BATCH


def _acknowledge(client: redis.Redis, key: PushedKey, batch_key: str, rejected: list[Reject]) -> None:
    """Raises SourceLost; then the batch comes again, and its seeds are known ones."""
    with _lost(key), client.pipeline() as commands:
        if rejected:
            commands.lpush(key.rejects, *(json.dumps(asdict(row)) for row in rejected))
            commands.ltrim(key.rejects, 0, KEPT_REJECTS - 1)
        commands.delete(batch_key)
        commands.execute()


def _row(pushed: bytes, source: str, number: int) -> Seed | Reject:
    """The seed of a pushed text, a JSON object or else a URL. Never raises: a fault of ours is logged and costs only
    this text."""
    try:
        return _read_row(pushed, source, number)
    except Exception as fault:
        logger.exception("%s:%d: no seed could be made of this text", source, number)
        return reject(internal_error(fault), source=source, line=number)


def _read_row(pushed: bytes, source: str, number: int) -> Seed | Reject:
    if len(pushed) > MAX_LINE:
        return reject(f"longer than {MAX_LINE} bytes", source=source, line=number)
    text = pushed.decode("utf-8", "replace").strip()
    if not text.startswith("{"):
        return seed_or_reject({"url": text}, source=source, line=number, text=text)
    try:
        row: Any = json.loads(text)
    except (ValueError, RecursionError) as fault:
        return reject(f"not JSON: {fault}", source=source, line=number, text=text)
    retire = row.pop("retire", False)
    if not isinstance(retire, bool):
        return reject(f"retire is {retire!r:.60}, neither true nor false", source=source, line=number, text=text)
    seed = seed_or_reject(row, source=source, line=number, text=text)
    if retire and isinstance(seed, Seed):
        return Retraction(**asdict(seed))
    return seed
