"""URLs of servers in messages: no password is shown, however malformed the URL is."""

from __future__ import annotations

import pytest

from linkcrawl.errors import ConfigError
from linkcrawl.redis_client import LEASE_TIMEOUT, TIMEOUT, connect, connect_async
from linkcrawl.sources import pushed
from linkcrawl.sources.redis_key import PushedKey, parse_key
from linkcrawl.urls.servers import shown, without_login


@pytest.mark.parametrize(
    ("url", "text"),
    [
        ("redis://localhost:6379/0", "redis://localhost:6379/0"),
        ("redis://me:s3cret@localhost/0/key", "redis://localhost/0/key"),
        ("redis://:s3/cret@localhost/0", "redis://localhost/0"),
        ("redis://me:12?s3cret@localhost/0", "redis://localhost/0"),
        ("redis://me:#s3cret@localhost/0", "redis://localhost/0"),
        ("redis://localhost/0?password=s3cret", "redis://localhost/0"),
        ("unix:///run/redis.sock?password=s3cret", "unix:///run/redis.sock"),
        ("mongodb://me:s3?c@ret@localhost/db?tls=true", "mongodb://localhost/db"),
        ("me:s3cret@localhost", "localhost"),
        ("", ""),
    ],
)
def test_a_url_is_shown_without_login_and_options(url: str, text: str) -> None:
    assert shown(url) == text


def test_what_a_library_says_is_shown_unless_it_quotes_the_login() -> None:
    assert without_login("Invalid\n IPv6  URL", "redis://me:s3/cret@[::1/0") == "Invalid IPv6 URL"
    assert "s3" not in without_login("Port 's3' is no number", "redis://me:s3/cret@localhost/0")


MALFORMED = [
    "redis://me:s3/cret@localhost:6379/0",
    "redis://:s3cret@[::1/0",
    "redis://me:s3cret@localhost:port/0",
    "redis://localhost/0?db=x&password=s3cret",
    "redis://localhost/0?passwort=s3cret",
    "rediss://:s3cret@localhost/0?ssl_cert_reqs=maybe",
]


@pytest.mark.parametrize("url", MALFORMED)
@pytest.mark.parametrize("client", [connect, connect_async], ids=["blocking", "async"])
def test_a_malformed_redis_url_is_one_line_without_a_password(url: str, client: object) -> None:
    with pytest.raises(ConfigError, match=r"^LINKCRAWL_FRONTIER: .*; redis://HOST:PORT/DB would work$") as told:
        client(url, "LINKCRAWL_FRONTIER")  # type: ignore[operator]
    assert "s3" not in str(told.value)


@pytest.mark.parametrize("url", [url for url in MALFORMED if "passwort" not in url])
def test_so_is_a_malformed_source(url: str) -> None:
    with pytest.raises(ConfigError, match=r"^seeds: .* would work$") as told:
        pushed.check(url)
    assert "s3" not in str(told.value)


def test_one_policy_of_time_outs() -> None:
    clients = (connect("redis://localhost/0", "x"), TIMEOUT), (connect_async("redis://localhost/0", "x"), LEASE_TIMEOUT)
    for client, seconds in clients:
        options = client.connection_pool.connection_kwargs
        assert (options["socket_timeout"], options["socket_connect_timeout"]) == (seconds, seconds)


@pytest.mark.parametrize(
    "frontier",
    [
        "redis://localhost",
        "redis://localhost/",
        "redis://localhost:6380/3",
        "redis://me:s3cret@localhost:6380?db=3",
        "redis://localhost/2?db=3&health_check_interval=2",
        "redis://[::1]:6379/1",
        "rediss://me:s%2Fcret@localhost:6380/1?ssl_cert_reqs=none&ssl_ca_certs=/a/b.pem",
        "unix:///run/redis.sock",
        "unix://me:s3cret@/run/redis.sock?db=3",
        "unix:///run/redis.sock?db=3&health_check_interval=2",
    ],
)
def test_seeds_can_be_pushed_to_every_redis_that_workers_may_share(frontier: str) -> None:
    key = PushedKey(server=frontier, key="resourceproxies:start_urls")
    found = parse_key(key.source)
    assert found.key == key.key

    def arguments(url: str) -> dict[str, object]:
        client = connect(url, "LINKCRAWL_FRONTIER")
        return {"db": 0, "class": client.connection_pool.connection_class, **client.connection_pool.connection_kwargs}

    asked, given = arguments(found.server), arguments(frontier)
    for values in (asked, given):
        for name in [name for name in values if "retry" in name or "event" in name or "maint" in name]:
            del values[name]
    assert {name: str(value) for name, value in asked.items()} == {name: str(value) for name, value in given.items()}
    assert "s3cret" not in key.shown


def test_a_key_of_a_socket_may_hold_any_character() -> None:
    assert parse_key(PushedKey(server="unix:///run/redis.sock?db=1", key="a&b=c d?é").source).key == "a&b=c d?é"


def test_a_socket_without_a_key_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"^seeds: 'unix:///run/redis.sock' names no key; unix:///PATH\?db="):
        parse_key("unix:///run/redis.sock?db=1")
