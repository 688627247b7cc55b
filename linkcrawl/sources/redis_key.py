"""Names of keys in Redis databases, as sources of seeds."""

from __future__ import annotations

from urllib.parse import quote, unquote, urlsplit, urlunsplit

from attrs import frozen

from linkcrawl.errors import ConfigError
from linkcrawl.urls.servers import shown

SCHEMES = ("redis://", "rediss://", "unix://")
WOULD_WORK = "redis://HOST:PORT/0/resourceproxies:start_urls"
WOULD_WORK_LOCALLY = "unix:///PATH?db=0&key=resourceproxies:start_urls"


@frozen(kw_only=True)
class PushedKey:
    """A key of a Redis database. `server`: the URL of the database."""

    server: str
    key: str

    @property
    def rejects(self) -> str:
        """The list beside the key: `resourceproxies:rejects` beside `resourceproxies:start_urls`."""
        before, colon, _ = self.key.rpartition(":")
        return f"{before}{colon}rejects" if colon else f"{self.key}:rejects"

    @property
    def shown(self) -> str:
        """The key for messages, without user and password."""
        return f"{shown(self.server)}/{self.key}"

    @property
    def source(self) -> str:
        """The source that `parse_key` reads as this key."""
        scheme, netloc, path, query, _ = urlsplit(self.server)
        if scheme == "unix":
            options = [*filter(None, query.split("&")), f"key={quote(self.key, safe=':')}"]
            return f"unix://{netloc}{path}?{'&'.join(options)}"
        return urlunsplit((scheme, netloc, f"/{path.strip('/') or '0'}/{self.key}", query, ""))


def parse_key(source: str) -> PushedKey:
    """The key that `redis://HOST[:PORT]/DB/KEY` or `unix:///PATH?db=DB&key=KEY` names; other options of the URL are the
    client's (redis-py). Raises ConfigError."""
    try:
        scheme, netloc, path, query, _ = urlsplit(source)
    except ValueError:  # brackets that don't match
        raise ConfigError(f"seeds: {shown(source)!r} is not understood; {WOULD_WORK} would work") from None
    if scheme == "unix":
        options = query.split("&")
        key = next((unquote(option[4:]) for option in options if option.startswith("key=")), "")
        if not key:
            raise ConfigError(f"seeds: {shown(source)!r} names no key; {WOULD_WORK_LOCALLY} would work")
        rest = "&".join(option for option in options if not option.startswith("key="))
        return PushedKey(server=f"unix://{netloc}{path}{'?' if rest else ''}{rest}", key=key)
    database, slash, key = path.removeprefix("/").partition("/")
    if not (database.isdecimal() and slash and key):
        raise ConfigError(f"seeds: {shown(source)!r} names no database and key; {WOULD_WORK} would work")
    return PushedKey(server=urlunsplit((scheme, netloc, f"/{database}", query, "")), key=key)
