"""The JSON Schemas of answers and bodies, by the names under which the OpenAPI file has them."""

from __future__ import annotations

from typing import Any

from linkcrawl.items import (
    BOOLEAN,
    CATEGORY,
    FIELDS_OF_RECORD,
    HOPS,
    INTEGER,
    TEXT,
    TEXTS,
    TIME,
    Category,
    FieldType,
    RecordField,
)
from linkcrawl.service.table import MOST_URLS, Schema


def ref(name: str) -> Schema:
    """A reference to one of SCHEMAS."""
    return {"$ref": f"#/components/schemas/{name}"}


def or_null(schema: Schema) -> Schema:
    return {"anyOf": [schema, {"type": "null"}]}


def fields(**properties: Schema) -> dict[str, Any]:
    """An object that always has these fields."""
    return {"type": "object", "required": list(properties), "properties": properties}


def list_of(name: str, items: Schema) -> Schema:
    """The answer of a list that pages."""
    return fields(**{name: {"type": "array", "items": items}, "links": ref("Links")})


_STRING: Schema = {"type": "string"}
_NUMBER: Schema = {"type": "number"}
_WHOLE: Schema = {"type": "integer"}
_TIME: Schema = {"type": "string", "format": "date-time", "description": "ISO 8601, UTC, milliseconds"}

_OF_TYPE: dict[FieldType, Schema] = {
    TEXT: _STRING,
    INTEGER: _WHOLE,
    BOOLEAN: {"type": "boolean"},
    TIME: _TIME,
    CATEGORY: {"type": "string", "enum": [str(category) for category in Category]},
    TEXTS: {"type": "array", "items": _STRING},
    HOPS: {"type": "array", "items": ref("Hop")},
}


def _of(kept: tuple[RecordField, ...]) -> Schema:
    typed = {part.name: _OF_TYPE[part.type] for part in kept}
    return fields(**{part.name: or_null(typed[part.name]) if part.null else typed[part.name] for part in kept})


SCHEMAS: dict[str, Schema] = {
    "Problem": {
        "type": "object",
        "description": "RFC 9457",
        "required": ["type", "title", "status", "detail"],
        "properties": {"type": _STRING, "title": _STRING, "status": _WHOLE, "detail": _STRING},
    },
    "Links": fields(next=or_null({"type": "string", "description": "address of the next page; null at the end"})),
    "Hop": {"type": "object", "description": "one request of a check; fields as in docs/reference/record.md"},
    "Record": _of(FIELDS_OF_RECORD),
    "Link": fields(
        url={"type": "string", "description": "as it was asked for, without user and password"},
        known={"type": "boolean", "description": "the store has this link"},
        state={"type": "string", "enum": ["due", "in_flight", "later", "retired", "unknown"]},
        why={"type": "string", "description": "the state in words"},
        next_check_at=or_null(_TIME),
        collections={"type": "array", "items": _STRING},
        record=or_null(ref("Record")),
    ),
    "Section": {
        **fields(name=or_null(_STRING), links=_WHOLE, checked=_WHOLE, never_checked=_WHOLE),
        "description": "a collection's links, as in a report (docs/reports.md)",
    },
    "Host": {
        **fields(host=_STRING, gate=_STRING, state=_STRING, delay=_NUMBER, due=_WHOLE, why=_STRING),
        "description": "as scrapy hosts --format json (docs/politeness.md)",
    },
    "Report": {"type": "object", "description": "as scrapy report --format json (docs/reports.md)"},
    "Health": fields(status={"type": "string", "enum": ["ok"]}, version=_STRING),
}

#: A list of URLs that is posted.
URLS: Schema = {
    "type": "object",
    "required": ["urls"],
    "additionalProperties": False,
    "properties": {"urls": {"type": "array", "maxItems": MOST_URLS, "items": _STRING}},
}
