"""Which Redis workers may meet at, and what their cluster is called."""

from __future__ import annotations

from typing import Any

import pytest
import redis

from linkcrawl.cluster.meeting_place import cluster_name, find_cluster
from linkcrawl.errors import ConfigError

URL = "redis://me:s3cret@localhost:6379/2"


def answering(monkeypatch: pytest.MonkeyPatch, **sections: Any) -> None:
    monkeypatch.setattr(redis.Redis, "info", lambda client, section: sections[section])


@pytest.mark.parametrize("policy", ["allkeys-lru", "volatile-lru", "volatile-ttl", "allkeys-random"])
def test_a_redis_that_throws_keys_away_is_refused_in_one_line(monkeypatch: pytest.MonkeyPatch, policy: str) -> None:
    answering(monkeypatch, server={"run_id": "abc"}, memory={"maxmemory_policy": policy})
    with pytest.raises(ConfigError) as told:
        find_cluster(URL)
    text = str(told.value)
    assert text.startswith("LINKCRAWL_FRONTIER: the Redis at redis://localhost:6379/2 throws keys away")
    assert f"(maxmemory-policy {policy}); redis-cli config set maxmemory-policy noeviction would work" in text
    assert "\n" not in text


def test_one_that_keeps_all_has_its_run_id_and_database_for_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    answering(monkeypatch, server={"run_id": "abc"}, memory={"maxmemory_policy": "noeviction"})
    found = find_cluster(URL)
    assert (found.url, found.server) == ("redis://localhost:6379/2", "abc/2")
    assert cluster_name("redis://127.0.0.1:6379/2", "abc").server == found.server
    assert cluster_name("redis://localhost:6379/3", "abc").server != found.server
    assert cluster_name("unix:///run/redis.sock?db=2", "abc").server == found.server


def test_one_that_may_not_be_asked_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(client: redis.Redis, section: str) -> None:
        raise redis.exceptions.NoPermissionError("no permissions to run the 'info' command")

    monkeypatch.setattr(redis.Redis, "info", refuse)
    assert find_cluster(URL).server == ""


def test_one_that_is_away_is_one_line_without_a_password(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(client: redis.Redis, section: str) -> None:
        raise redis.ConnectionError("Error 111 connecting to localhost:6379.")

    monkeypatch.setattr(redis.Redis, "info", refuse)
    with pytest.raises(ConfigError, match=r"^LINKCRAWL_FRONTIER: redis://localhost:6379/2 can't be used: Error 111"):
        find_cluster(URL)
