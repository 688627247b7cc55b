"""Reads the policy file (TOML), checks it, and watches it for changes. Errors name file, line and key."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import ada_url

from linkcrawl.errors import PolicyError
from linkcrawl.politeness.policy.limits import WINDOWS, Quota
from linkcrawl.politeness.policy.quiet_hours import Quiet, parse_quiet
from linkcrawl.politeness.policy.rules import Policies, Policy
from linkcrawl.units import DAY, HOUR, MINUTE

#: The names in `recheck`, of check.recheck.Intervals.
RECHECK_KEYS = ("ok", "ok_longest", "broken", "transient", "transient_longest", "restricted")

#: Seconds after the last change of the file until it counts as written whole.
SETTLED = 0.5

#: Largest number that is no typing error; as a delay 30 years.
_LARGEST = 1e9
_UNITS = {"m": MINUTE, "h": HOUR, "d": DAY}
_HEADER = re.compile(r"\s*\[\[\s*[\"']?policy[\"']?\s*\]\]")


class _Wrong(Exception):
    """A key, and what is wrong with its value."""


def load(path: Path) -> Policies:
    """The rules of a file. Raises PolicyError."""
    return parse(_read(path), str(path))


def parse(text: str, name: str) -> Policies:
    """The rules in a text. `name`: of the file, for errors. Raises PolicyError."""
    try:
        document = tomllib.loads(text)
    except ValueError as error:  # TOMLDecodeError, or Python's for a number of thousands of digits
        raise PolicyError(f"{name}: not TOML: {error}") from None
    except RecursionError:
        raise PolicyError(f"{name}: is nested too deeply; one [[policy]] table for each rule would work") from None
    for key in document:
        if key != "policy":
            raise PolicyError(f"{_where(name, text, None, key)}: {key}: no such key; [[policy]] would work")
    tables = document.get("policy", [])
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise PolicyError(
            f"{_where(name, text, None, 'policy')}: policy: is not a list of tables; [[policy]] would work"
        )
    rules: list[Policy] = []
    for number, table in enumerate(tables):
        try:
            rules.append(_policy(table, {rule.name for rule in rules}))
        except _Wrong as wrong:
            key, problem = wrong.args
            rule = f"policy {table['name']!r}" if isinstance(table.get("name"), str) else f"policy {number + 1}"
            raise PolicyError(f"{_where(name, text, number, key)}: {rule}: {key}: {problem}") from None
    return Policies(rules)


class PolicyFile:
    """A policy file that is watched. `policies`: the last good rules. Raises PolicyError if the file can't be used."""

    def __init__(self, path: Path):
        self._path = path
        self._text = _read(path)
        self.policies = parse(self._text, str(path))

    def poll(self, now: float) -> Policies | PolicyError | None:
        """Read the file if it has changed. Returns the new rules; or, once, what is wrong with it, while the last good
        rules stay in force; or None for a file that is as before, or was written to just before `now` (Unix seconds):
        half a file can be good TOML, with half the rules."""
        try:
            text = _read(self._path)
            if text != self._text and _is_being_written(self._path, now):
                return None
        except PolicyError as error:
            gone, self._text = self._text != str(error), str(error)
            return error if gone else None
        if text == self._text:
            return None
        self._text = text
        try:
            self.policies = parse(text, str(self._path))
        except PolicyError as error:
            return error
        return self.policies


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise PolicyError(f"{path}: can't be read: {reason}; a readable TOML file would work") from None


def _is_being_written(path: Path, now: float) -> bool:
    try:
        return 0 <= now - path.stat().st_mtime < SETTLED
    except OSError:
        return True  # it was there a moment ago: an editor is replacing it


def _where(name: str, text: str, number: int | None, key: str) -> str:
    """`file:line` of a key in rule `number` (None: outside the rules), or of the rule where the key isn't found."""
    lines = text.split("\n")
    headers = [index for index, line in enumerate(lines) if _HEADER.match(line)]
    if number is not None and number >= len(headers):
        return name  # written in another way than [[policy]]
    begin = 0 if number is None else headers[number]
    end = len(lines) if number is None or number + 1 == len(headers) else headers[number + 1]
    quoted = re.escape(key)
    pattern = re.compile(rf"\s*(\[+\s*)?(policy\s*\.\s*)?([\"']?){quoted}\3\s*[=.\]]")
    found = next((index for index in range(begin, end) if pattern.match(lines[index])), begin)
    return f"{name}:{found + 1}"


def _policy(table: Mapping[str, Any], names: set[str]) -> Policy:
    values: dict[str, Any] = {}
    for key, value in table.items():
        reader = READERS.get(key)
        if reader is None:
            raise _Wrong(key, f"no such key; there are {', '.join(READERS)}")
        try:
            values[key] = reader(value)
        except ValueError as error:
            raise _Wrong(key, str(error)) from None
    if "name" not in values:
        raise _Wrong("name", "is missing; every rule needs one of its own")
    if values["name"] in names:
        raise _Wrong("name", f"{values['name']!r} stands twice; every rule needs one of its own")
    if not any(values.get(key) for key in ("hosts", "collections", "providers")):
        raise _Wrong("hosts", "nothing to match; hosts, collections or providers is needed")
    if "crawl_delay" in values and "agreement" not in values:
        raise _Wrong("crawl_delay", "needs agreement: with whom and when it was agreed on, in a few words")
    if "crawl_delay" in values and not values.get("hosts"):
        raise _Wrong("crawl_delay", "needs hosts: robots.txt is a host's")
    quotas = [Quota(window=window, most=values.pop(window.key)) for window in WINDOWS if window.key in values]
    return Policy(**values, quotas=tuple(quotas))


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value.strip() or not value.isprintable():
        raise ValueError(f"{value!r} is not a line of text")
    return value.strip()


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"{value!r} is neither true nor false")
    return value


def _number(value: Any, least: float = 0.0) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= _LARGEST:
        raise ValueError(f"{value!r} is not a number from {least:g} to {_LARGEST:g}")
    return float(value)


def _count(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError(f"{value!r} is not a whole number of at least 1; paused = true stops everything")
    return value


def _list(value: Any, read: Callable[[str], Any]) -> tuple[Any, ...]:
    if not isinstance(value, list):
        raise ValueError(f"{value!r} is not a list; [{value!r}] might be meant")
    return tuple(read(_text(item)) for item in value)


def _host_globs(value: Any) -> tuple[str, ...]:
    return _list(value, _host_glob)


def _host_glob(glob: str) -> str:
    """A glob for host keys. Labels in other scripts become what is looked up."""
    if re.search(r"[/@\s]", glob):
        raise ValueError(f"{glob!r} is not a host; example.org, *.example.org or example.org:8080 would work")
    labels = [_label(label) for label in glob.lower().removesuffix(".").split(".")]
    if not all(labels):
        raise ValueError(f"{glob!r} is not a host; example.org or *.example.org would work")
    return ".".join(labels)


def _label(text: str) -> str:
    """A label as it is looked up; empty for a wildcard within another script, which has no such form."""
    if text.isascii():
        return text
    return "" if re.search(r"[*?]", text) else ada_url.idna_to_ascii(text).decode()


def _name_globs(value: Any) -> tuple[str, ...]:
    return _list(value, str)


def _url_globs(value: Any) -> tuple[str, ...]:
    return _list(value, _url_glob)


def _url_glob(glob: str) -> str:
    if not re.match(r"[*?]|https?(:|\*|\?)", glob, re.IGNORECASE):
        raise ValueError(f"{glob!r} matches no URL, which begins with http; '*{glob}' would work")
    return glob


def _costs(value: Any) -> dict[str, float]:
    if not isinstance(value, dict):
        raise ValueError(f'{value!r} is not a table; {{ "*.pdf" = 4 }} would work')
    return {_url_glob(_text(glob)): _number(cost, least=1.0) for glob, cost in value.items()}


def _windows(value: Any) -> tuple[Quiet, ...]:
    return _list(value, parse_quiet)


def _method(value: Any) -> str:
    if value not in ("HEAD", "GET"):
        raise ValueError(f"{value!r} is not a method for checks; HEAD or GET would work")
    return str(value)


def _intervals(value: Any) -> dict[str, float]:
    if not isinstance(value, dict):
        raise ValueError(f'{value!r} is not a table; {{ ok = "14d" }} would work')
    unknown = next((key for key in value if key not in RECHECK_KEYS), None)
    if unknown is not None:
        raise ValueError(f"{unknown}: no such key; there are {', '.join(RECHECK_KEYS)}")
    return {key: _interval(text) for key, text in value.items()}


def _interval(value: Any) -> float:
    found = re.fullmatch(r"([0-9]{1,6})([mhd])", value) if isinstance(value, str) else None
    if found is None or int(found[1]) == 0:
        raise ValueError(f"{value!r} is not a time; '90m', '12h' or '14d' would work")
    return int(found[1]) * _UNITS[found[2]]


#: What reads the value of each key of a rule, in the order in which docs/reference/policies.md has them.
READERS: dict[str, Callable[[Any], Any]] = {
    "name": _text,
    "hosts": _host_globs,
    "collections": _name_globs,
    "providers": _name_globs,
    "delay": _number,
    "group": _flag,
    "quiet": _windows,
    **{window.key: _count for window in WINDOWS},
    "paused": _flag,
    "skip": _url_globs,
    "expensive": _costs,
    "method": _method,
    "crawl_delay": _number,
    "agreement": _text,
    "recheck": _intervals,
}
