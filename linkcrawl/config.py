"""The typed settings of a crawl: read from Scrapy's settings, validated, and passed on as plain values.

`KNOWN` has a row for every LINKCRAWL_ setting. Any other LINKCRAWL_ name is refused (`ConfigError`), so that a
misspelt name can't silently change how polite a crawl is. A test compares docs/reference/settings.md with `KNOWN`.
"""

from __future__ import annotations

import hashlib
import ipaddress
import json
import math
import os
import re
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from attrs import frozen

from linkcrawl import __version__
from linkcrawl.errors import ConfigError
from linkcrawl.urls.servers import shown
from linkcrawl.urls.userinfo import without_userinfo

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


@frozen
class Setting:
    """A setting of ours. `environment`: an environment variable may set it. `about`: what it is for, in one line."""

    default: Any
    environment: bool
    about: str


#: LINKCRAWL_FRONTIER of a crawl by a single process.
LOCAL = "local"

KNOWN: dict[str, Setting] = {
    "LINKCRAWL_STORE": Setting("sqlite:///linkcrawl.db", True, "where links, records and host memory are kept"),
    "LINKCRAWL_FRONTIER": Setting("local", True, "`local`, or `redis://HOST:PORT/DB` where workers share the work"),
    "LINKCRAWL_LEASE": Setting(
        15.0, False, "with a Redis frontier: seconds after a worker's last heartbeat until its gates go to others"
    ),
    "LINKCRAWL_METRICS_PORT": Setting(0, True, "port that Prometheus reads metrics at; 0: none"),
    "LINKCRAWL_METRICS_ADDRESS": Setting("127.0.0.1", True, "address that metrics are served at"),
    "LINKCRAWL_API_ADDRESS": Setting("127.0.0.1", True, "address that `scrapy serve` listens at"),
    "LINKCRAWL_API_PORT": Setting(8765, True, "port that `scrapy serve` listens at"),
    "LINKCRAWL_CONTACT": Setting(None, True, "URL or e-mail to write to, in User-Agent and From; required"),
    "LINKCRAWL_PRODUCT": Setting("linkcrawl", False, "product token, in User-Agent and for robots.txt groups"),
    "LINKCRAWL_POLICIES": Setting(None, True, "path of the policy file (TOML)"),
    "LINKCRAWL_ALLOWED_NETWORKS": Setting([], False, "CIDRs exempt from the address guard, a list or with commas"),
    "LINKCRAWL_MAX_REDIRECTS": Setting(10, False, "redirects followed in one chain"),
    "LINKCRAWL_TIMEOUT": Setting(30.0, False, "seconds for one request, from connecting to the last header"),
    "LINKCRAWL_PATIENCE": Setting(300.0, False, "seconds to wait for a silenced host, or for a lost store or network"),
    "LINKCRAWL_CA_BUNDLE": Setting(None, True, "file of certificate authorities, instead of the system's"),
    "LINKCRAWL_ROBOTS_TTL": Setting(3600.0, False, "seconds before a robots.txt is read again"),
    "LINKCRAWL_HISTORY_DAYS": Setting(
        365.0, False, "days that every check is kept; older history is thinned; 0 keeps all"
    ),
    "LINKCRAWL_PROBATION": Setting(
        0.0, False, "seconds until one request tries a host that has turned us away; 0: never"
    ),
    "LINKCRAWL_MAX_WAITING": Setting(20000, False, "checks held in memory because their next hop waits for its host"),
    "LINKCRAWL_AUDIT": Setting("audit.jsonl", False, "file that a line is added to for every request; empty: none"),
    "LINKCRAWL_RETIRE_LIMIT": Setting(
        0.2, False, "largest part of a collection's links that one complete harvest may retire"
    ),
    "LINKCRAWL_REJECTS": Setting("rejects.jsonl", False, "file that rejected seed lines are added to"),
}


@frozen(kw_only=True)
class Config:
    """The settings as plain typed values. Durations are seconds, unless a name says otherwise."""

    store: str
    frontier: str
    lease: float
    metrics_port: int
    metrics_address: str
    api_address: str
    api_port: int
    contact: str
    product: str
    policies: Path | None
    allowed_networks: tuple[Network, ...]
    max_redirects: int
    timeout: float
    patience: float
    ca_bundle: Path | None
    robots_ttl: float
    history_days: float
    probation: float | None
    max_waiting: int
    retire_limit: float
    rejects: Path
    audit: Path | None
    delay: float
    target_concurrency: float
    max_adaptive_delay: float
    concurrent_requests: int

    @property
    def user_agent(self) -> str:
        """`linkcrawl/0.1.0 (+https://…)`: product token, version, and contact."""
        about = f"+{self.contact}" if self.contact.startswith(("http://", "https://")) else self.contact
        return f"{self.product}/{__version__} ({about})"

    @property
    def sender(self) -> str:
        """The From header (RFC 9110, 10.1.2): the bare e-mail address, or the contact URL where there is none."""
        return self.contact.removeprefix("mailto:")

    @cached_property
    def crawler(self) -> str:
        """Version, and a fingerprint of the settings that change verdicts or pace; every record holds it."""
        values = {
            "max_redirects": self.max_redirects,
            "timeout": self.timeout,
            "delay": self.delay,
            "target_concurrency": self.target_concurrency,
            "max_adaptive_delay": self.max_adaptive_delay,
            "product": self.product,
        }
        digest = hashlib.blake2b(json.dumps(values, sort_keys=True).encode(), digest_size=4).hexdigest()
        return f"linkcrawl/{__version__} {digest}"


def read_config(settings: Mapping[str, Any], *, need_contact: bool = True) -> Config:
    """The typed settings of Scrapy's `settings`, which already hold those of the environment (settings.py).
    `need_contact`: False for a command that sends nothing.

    Raises ConfigError for an unknown LINKCRAWL_ name, or a value that can't be used.
    """
    _refuse_unknown(settings)
    return Config(
        store=_text(settings, "LINKCRAWL_STORE"),
        frontier=_frontier(settings),
        lease=_number(settings, "LINKCRAWL_LEASE", least=3),
        metrics_port=int(_number(settings, "LINKCRAWL_METRICS_PORT", least=0, most=65535, whole=True)),
        metrics_address=_text(settings, "LINKCRAWL_METRICS_ADDRESS"),
        api_address=_text(settings, "LINKCRAWL_API_ADDRESS"),
        api_port=int(_number(settings, "LINKCRAWL_API_PORT", least=1, most=65535, whole=True)),
        contact=_contact(settings, need_contact),
        product=_product(settings),
        policies=_file(settings, "LINKCRAWL_POLICIES"),
        allowed_networks=_networks(settings),
        max_redirects=int(_number(settings, "LINKCRAWL_MAX_REDIRECTS", least=0, whole=True)),
        timeout=_number(settings, "LINKCRAWL_TIMEOUT", least=0.1),
        patience=_number(settings, "LINKCRAWL_PATIENCE", least=0),
        ca_bundle=_file(settings, "LINKCRAWL_CA_BUNDLE"),
        robots_ttl=_number(settings, "LINKCRAWL_ROBOTS_TTL", least=1),
        history_days=_number(settings, "LINKCRAWL_HISTORY_DAYS", least=0),
        probation=_number(settings, "LINKCRAWL_PROBATION", least=0) or None,
        max_waiting=int(_number(settings, "LINKCRAWL_MAX_WAITING", least=1, whole=True)),
        retire_limit=_number(settings, "LINKCRAWL_RETIRE_LIMIT", least=0, most=1),
        rejects=Path(_text(settings, "LINKCRAWL_REJECTS")),
        audit=Path(str(settings["LINKCRAWL_AUDIT"])) if settings["LINKCRAWL_AUDIT"] else None,
        delay=_number(settings, "DOWNLOAD_DELAY", least=0),
        target_concurrency=_number(settings, "AUTOTHROTTLE_TARGET_CONCURRENCY", least=0.001),
        max_adaptive_delay=_number(settings, "AUTOTHROTTLE_MAX_DELAY", least=0),
        concurrent_requests=int(_number(settings, "CONCURRENT_REQUESTS", least=0, whole=True)),
    )


def _refuse_unknown(settings: Mapping[str, Any]) -> None:
    environment = (name for name, value in os.environ.items() if not _is_of_kubernetes(name, value))
    for name in [*settings, *environment]:
        if name.startswith("LINKCRAWL_") and name not in KNOWN:
            raise ConfigError(f"{name}: no such setting; there are {', '.join(sorted(KNOWN))}")


def environment_value(name: str) -> Any:
    """A setting's value in the environment, else its default. A variable that Kubernetes makes for a service counts as
    missing: that of a service `linkcrawl-metrics` is named LINKCRAWL_METRICS_PORT."""
    value, setting = os.environ.get(name), KNOWN[name]
    is_set = setting.environment and value is not None and not _is_of_kubernetes(name, value)
    return value if is_set else setting.default


def _is_of_kubernetes(name: str, value: str) -> bool:
    """True for a variable that Kubernetes, and Docker's links before it, set in every container for each service: of
    `linkcrawl` or `linkcrawl-…`, these begin with LINKCRAWL_ (kubernetes.io, Service, environment variables)."""
    if name.endswith("_PORT") and re.match(r"(tcp|udp|sctp)://", value):
        return True
    return re.search(r"_SERVICE_(HOST|PORT(_\w+)?)$|_PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?$", name) is not None


def _text(settings: Mapping[str, Any], name: str) -> str:
    value = settings[name]
    if not isinstance(value, str) or not value.strip():
        raise ConfigError(f"{name}: {value!r} is empty or not text; {KNOWN[name].default!r} would work")
    return value.strip()


def _frontier(settings: Mapping[str, Any]) -> str:
    value = _text(settings, "LINKCRAWL_FRONTIER")
    if value != LOCAL and not value.startswith(("redis://", "rediss://", "unix://")):
        raise ConfigError(
            f"LINKCRAWL_FRONTIER: {shown(value)!r} is not understood; {LOCAL} or redis://HOST:PORT/DB would work"
        )
    return value


def _number(
    settings: Mapping[str, Any], name: str, *, least: float, most: float | None = None, whole: bool = False
) -> float:
    value = settings[name]
    fit = f"at least {least:g}" if most is None else f"{least:g} to {most:g}"
    try:
        number = int(value) if whole else float(value)
    except (TypeError, ValueError, OverflowError):
        kind = "a whole number" if whole else "a number"
        raise ConfigError(f"{name}: {value!r} is not {kind}; {fit} would work") from None
    if not least <= number < math.inf or (most is not None and number > most):
        raise ConfigError(f"{name}: {value!r} is out of range; {fit} would work")
    return number


def _file(settings: Mapping[str, Any], name: str) -> Path | None:
    value = settings[name]
    if value in (None, ""):
        return None
    path = Path(value)
    if not path.is_file() or not os.access(path, os.R_OK):
        raise ConfigError(f"{name}: {str(value)!r} can't be read; the path of a readable file would work")
    return path


def _contact(settings: Mapping[str, Any], needed: bool) -> str:
    value = str(settings["LINKCRAWL_CONTACT"] or "").strip()
    if not value:
        if needed:
            raise ConfigError(
                "LINKCRAWL_CONTACT: not set; a URL or an e-mail address that administrators can write to is needed, "
                "such as https://example.org/crawler or mailto:crawler@example.org"
            )
        return ""
    # it becomes part of a comment in User-Agent (RFC 9110, 5.6.5), which brackets and backslashes would end or change
    visible = re.fullmatch(r"[!-~]+", value) and not re.search(r"[()\\]", value)
    is_url = re.fullmatch(r"https?://[^/?#@]+([/?#].*)?", value)
    is_mail = re.fullmatch(r"(mailto:)?[^@<>,;:\"]+@[^@<>,;:\"]+", value)
    if not visible or not (is_url or is_mail):
        raise ConfigError(
            f"LINKCRAWL_CONTACT: {without_userinfo(value)!r} is neither a URL nor an e-mail address that fits into a "
            "header; https://example.org/crawler or mailto:crawler@example.org would work (ASCII, no login or bracket)"
        )
    return value


def _product(settings: Mapping[str, Any]) -> str:
    value = _text(settings, "LINKCRAWL_PRODUCT")
    if not re.fullmatch(r"[A-Za-z_-]+", value):
        raise ConfigError(
            f"LINKCRAWL_PRODUCT: {value!r} can't be a product token; letters, - and _ would work (RFC 9309, 2.2.1)"
        )
    return value


def _networks(settings: Mapping[str, Any]) -> tuple[Network, ...]:
    value = settings["LINKCRAWL_ALLOWED_NETWORKS"]
    parts = value.split(",") if isinstance(value, str) else list(value or ())
    networks = []
    for part in filter(None, (str(part).strip() for part in parts)):
        try:
            networks.append(ipaddress.ip_network(part, strict=False))
        except ValueError:
            raise ConfigError(
                f"LINKCRAWL_ALLOWED_NETWORKS: {part!r} is not a network; 192.0.2.0/24 would work"
            ) from None
    return tuple(networks)
