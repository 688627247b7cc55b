"""URLs of servers in messages: no password is shown, however malformed the URL is."""

from __future__ import annotations

import pytest

from linkcrawl.errors import ConfigError
from linkcrawl.redis_client import LEASE_TIMEOUT, TIMEOUT, connect, connect_async
from linkcrawl.sources import pushed
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
