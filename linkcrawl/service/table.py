"""What a route is: method, path, parameters and body with their types and words. Routing, validation, the OpenAPI file
and docs/reference/api.md are made of it.

Types are JSON Schema (2020-12, as in OpenAPI 3.1), of which `validate` knows the few words that the table uses.
"""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from attrs import field, frozen

from linkcrawl.items import Category
from linkcrawl.service.problems import Problem
from linkcrawl.stores.rows import text
from linkcrawl.units import DAY

Schema = Mapping[str, Any]

#: Items of a page that are given unless `limit` says otherwise, and the most that it may say.
PAGE, LARGEST_PAGE = 100, 1000
#: URLs of one lookup or check request.
MOST_URLS = 10_000


class Role(StrEnum):
    """Who may call a route: anybody, who may read, or who may steer."""

    OPEN = "open"
    READ = "read"
    STEER = "steer"


@frozen(kw_only=True)
class Kind:
    """A type of parameters. `schema`: its JSON Schema; `parse`: the value of a text, or ValueError, whose text says
    what would work."""

    schema: Schema
    parse: Callable[[str], Any]


@frozen(kw_only=True)
class Parameter:
    """A parameter of the path or the query."""

    name: str
    kind: Kind
    words: str
    required: bool = False

    def value(self, given: str) -> Any:
        """The value of what was given. Raises Problem."""
        try:
            return self.kind.parse(given)
        except ValueError as fault:
            raise Problem(400, f"{self.name}: {_short(given)!r} {fault}") from None


@frozen(kw_only=True)
class Body:
    """What is posted. `lines_of`: the field whose items may come as text/plain instead, one a line."""

    schema: Schema
    words: str
    lines_of: str | None = None
    required: bool = True


@frozen(kw_only=True)
class Call:
    """A request that fits its route. `given`: the query as it came, for `links.next`; `wants_lines`: NDJSON is asked
    for; `by`: who asks, as a log and an order name them."""

    path: str
    values: Mapping[str, Any]
    given: Mapping[str, str] = field(factory=dict)
    body: Any = None
    wants_lines: bool = False
    by: str | None = None


@frozen(kw_only=True)
class Route:
    """A call of the service. `items`: the name of the list in the answer, where there is one: it pages by `cursor`, or
    streams as NDJSON. `schema`: of the answer. `answer`: the method that answers."""

    method: str
    path: str
    words: str
    answer: Callable[[Any, Call], Awaitable[Any]]
    schema: Schema
    role: Role = Role.READ
    path_parameters: tuple[Parameter, ...] = ()
    parameters: tuple[Parameter, ...] = ()
    body: Body | None = None
    items: str | None = None
    status: int = 200
    not_found: str | None = None

    @property
    def operation(self) -> str:
        """A name for programs that are made of the OpenAPI file."""
        words = re.findall(r"\w+", self.path.replace("/v1", ""))
        return "_".join([self.method.lower(), *(word.replace("-", "_") for word in words)])

    def values(self, query: Mapping[str, str]) -> dict[str, Any]:
        """The values of the query's parameters, None for those that weren't given. Raises Problem."""
        known = {parameter.name: parameter for parameter in self.parameters}
        for name in query:
            if name not in known:
                would_work = ", ".join(known) or "none"
                raise Problem(400, f"{_short(name)}: no such parameter; of {self.path} there are: {would_work}")
        for parameter in self.parameters:
            if parameter.required and parameter.name not in query:
                raise Problem(400, f"{parameter.name}: missing; {parameter.words}")
        return {name: known[name].value(query[name]) if name in query else None for name in known}


def _short(value: str) -> str:
    return value if len(value) <= 60 else f"{value[:60]}…"


# -- types of parameters ----------------------------------------------------------------------------------------


def _time(given: str) -> float:
    """Unix seconds of an ISO 8601 time; UTC where it has no zone."""
    would_work = "is not a time; 2026-11-30 or 2026-11-30T12:00:00Z would work"
    if re.search(r" \d\d:\d\d$", given):
        would_work = "is not a time; a + in an address must be written %2B: 2026-11-30T12:00:00%2B01:00 would work"
    # RFC 3339 has small letters, leap seconds and a year 0, which datetime has not
    written, late, early = given.upper(), 0, 0.0
    if re.search(r":\d\d:60", written):
        written, late = re.sub(r"(:\d\d):60", r"\1:59", written), 1
    if written.startswith("0000-"):
        written, early = f"0004{written[4:]}", 1461 * DAY  # four years, of which the first is a leap year in both
    try:
        when = datetime.fromisoformat(written)
        return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp() + late - early
    except (ValueError, OverflowError):
        raise ValueError(would_work) from None


def _flag(given: str) -> bool:
    if given not in ("0", "1", "false", "true"):
        raise ValueError("is neither yes nor no; 1 or 0 would work")
    return given in ("1", "true")


def _limit(given: str) -> int:
    if not re.fullmatch(r"[0-9]{1,4}", given, re.ASCII) or not 1 <= int(given) <= LARGEST_PAGE:
        raise ValueError(f"is not a number of items; 1 to {LARGEST_PAGE} would work")
    return int(given)


def _category(given: str) -> Category:
    try:
        return Category(given)
    except ValueError:
        raise ValueError(f"is not a category; {', '.join(Category)} would work") from None


TEXT = Kind(schema={"type": "string"}, parse=str)
TIME = Kind(schema={"type": "string", "format": "date-time"}, parse=_time)
FLAG = Kind(schema={"type": "string", "enum": ["0", "1", "false", "true"]}, parse=_flag)
CATEGORY = Kind(schema={"type": "string", "enum": [str(category) for category in Category]}, parse=_category)
LIMIT = Parameter(
    name="limit",
    kind=Kind(schema={"type": "integer", "minimum": 1, "maximum": LARGEST_PAGE, "default": PAGE}, parse=_limit),
    words="most items of a page; a stream of lines has all",
)
CURSOR = Parameter(name="cursor", kind=TEXT, words="where the page before ended: only by following links.next")


# -- bodies -----------------------------------------------------------------------------------------------------


def body_of(body: Body, media_type: str, content: bytes) -> Any:
    """The value of a posted body that fits its schema. Raises Problem."""
    if body.lines_of is not None and media_type == "text/plain":
        value: Any = {body.lines_of: _lines(content)}
    elif media_type in ("application/json", ""):
        value = _json(content, body.required)
    else:
        able = "application/json or text/plain" if body.lines_of else "application/json"
        raise Problem(415, f"Content-Type: {_short(media_type)!r} is not read here; {able} would work")
    validate(body.schema, value, "the body")
    return value


def _lines(content: bytes) -> list[str]:
    try:
        decoded = content.decode("utf-8-sig")
    except UnicodeDecodeError as fault:
        raise Problem(400, f"the body: not UTF-8 at byte {fault.start}; UTF-8, one item a line, would work") from None
    return [line for line in (line.rstrip("\r") for line in decoded.split("\n")) if line]


def _json(content: bytes, required: bool) -> Any:
    if not content and not required:
        return {}
    try:
        return json.loads(content)
    except (ValueError, RecursionError):  # not JSON, not Unicode, a number without end, or nested without end
        raise Problem(400, "the body: not JSON that can be read; a JSON object in UTF-8 would work") from None


_TYPES: Mapping[str, type | tuple[type, ...]] = {
    "object": dict,
    "array": list,
    "string": str,
    "integer": int,
    "boolean": bool,
    "null": type(None),
}


def validate(schema: Schema, value: Any, where: str) -> None:
    """Raise Problem where a value doesn't fit a schema of the table; `where` names the value."""
    kinds = [schema["type"]] if isinstance(schema.get("type"), str) else schema.get("type", [])
    if kinds and not any(_is_a(kind, value) for kind in kinds):
        raise Problem(400, f"{where}: not of type {' or '.join(kinds)}")
    if "enum" in schema and value not in schema["enum"]:
        raise Problem(
            400, f"{where}: {_short(str(value))!r} is not known; {', '.join(map(str, schema['enum']))} would work"
        )
    if isinstance(value, dict):
        _validate_object(schema, value, where)
    if isinstance(value, list):
        if len(value) > schema.get("maxItems", len(value)):
            raise Problem(400, f"{where}: {len(value)} items; up to {schema['maxItems']} would work")
        if len(value) < schema.get("minItems", 0):
            raise Problem(400, f"{where}: {len(value)} items; at least {schema['minItems']} would work")
        for number, part in enumerate(value):
            validate(schema.get("items", {}), part, f"{where}, item {number + 1}")
    if isinstance(value, str):
        if len(value) > schema.get("maxLength", len(value)):
            raise Problem(400, f"{where}: {len(value)} characters; up to {schema['maxLength']} would work")
        if len(value) < schema.get("minLength", 0):
            raise Problem(400, f"{where}: too short; at least {schema['minLength']} characters would work")


def _validate_object(schema: Schema, value: dict[str, Any], where: str) -> None:
    fields = schema.get("properties", {})
    for name in value:
        if name not in fields and schema.get("additionalProperties") is False:
            raise Problem(400, f"{_short(text(name))}: no such field; there are: {', '.join(fields)}")
    for name in schema.get("required", ()):
        if name not in value:
            raise Problem(400, f"{name}: missing in {where}")
    for name, part in fields.items():
        if name in value:
            validate(part, value[name], name)


def _is_a(kind: str, value: Any) -> bool:
    return isinstance(value, _TYPES[kind]) and (kind == "boolean" or not isinstance(value, bool))
