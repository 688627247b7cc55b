"""The table of routes as an OpenAPI 3.1 file, and as the page docs/reference/api.md."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from linkcrawl import __version__
from linkcrawl.service import problems
from linkcrawl.service.schemas import SCHEMAS, ref
from linkcrawl.service.table import Parameter, Role, Route

LINES = "application/x-ndjson"

#: Problems that any call may answer, by status.
_ANY = {
    "400": "a parameter or the body can't be read",
    "503": "the store doesn't answer now; later would work",
}


def openapi(routes: Iterable[Route]) -> dict[str, Any]:
    """The OpenAPI file of a table."""
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "linkcrawl",
            "version": __version__,
            "description": "Links of a catalogue, their checks, and the hosts that they lead to.",
        },
        "paths": paths,
        "components": {"schemas": {name: dict(schema) for name, schema in SCHEMAS.items()}},
    }


def _operation(route: Route) -> dict[str, Any]:
    found: dict[str, Any] = {
        "operationId": route.operation,
        "summary": route.words,
        "parameters": [
            *(_parameter(parameter, "path") for parameter in route.path_parameters),
            *(_parameter(parameter, "query") for parameter in route.parameters),
        ],
        "responses": _responses(route),
    }
    if route.body is not None:
        content: dict[str, Any] = {"application/json": {"schema": dict(route.body.schema)}}
        if route.body.lines_of is not None:
            content["text/plain"] = {"schema": {"type": "string"}}
        found["requestBody"] = {
            "description": route.body.words,
            "required": route.body.required,
            "content": content,
        }
    return found


def _parameter(parameter: Parameter, place: str) -> dict[str, Any]:
    return {
        "name": parameter.name,
        "in": place,
        "description": parameter.words,
        "required": parameter.required or place == "path",
        "schema": dict(parameter.kind.schema),
    }


def _responses(route: Route) -> dict[str, Any]:
    content: dict[str, Any] = {"application/json": {"schema": dict(route.schema)}}
    if route.items is not None:
        content[LINES] = {"schema": {"type": "string", "description": f"one of the {route.items} a line, all of them"}}
    statuses = dict(_ANY)
    if route.method == "GET":
        statuses["304"] = "If-None-Match names the present ETag"
    if any(parameter.name == "cursor" for parameter in route.parameters):
        statuses["404"] = "the cursor is not one of this list"
    if {"since", "until"} <= {parameter.name for parameter in route.parameters}:
        statuses["409"] = "until is before since"
    if route.not_found is not None:
        statuses["404"] = route.not_found
    if route.body is not None:
        statuses |= {"413": "the body is too large", "415": "the body's media type is not read here"}
    problem = {problems.MEDIA_TYPE: {"schema": ref("Problem")}}
    failures = {
        status: {"description": words} if status == "304" else {"description": words, "content": problem}
        for status, words in sorted(statuses.items())
    }
    return {str(route.status): {"description": route.words, "content": content}, **failures}


def reference(routes: Iterable[Route]) -> str:
    """The table as Markdown."""
    parts = [
        "# Calls of the HTTP service\n\n"
        "Made of the table in `linkcrawl/service/routes.py`; a test compares them. `/v1/openapi.json` says the same\n"
        "to programs. [The HTTP service](../service.md) has what holds for all calls.\n"
    ]
    for route in routes:
        parts.append(f"## {route.method} {route.path}\n\n{route.words}\n")
        rows = [(parameter, "path") for parameter in route.path_parameters]
        rows += [(parameter, "query") for parameter in route.parameters]
        if rows:
            lines = [
                f"| `{parameter.name}` | {place} | {_type(parameter)} | {'yes' if parameter.required else 'no'} "
                f"| {parameter.words} |"
                for parameter, place in rows
            ]
            parts.append(
                "| parameter | in | type | needed | meaning |\n|---|---|---|---|---|\n" + "\n".join(lines) + "\n"
            )
        if route.body is not None:
            parts.append(f"Body: {route.body.words}.\n")
        about = []
        if route.items is not None:
            about.append(f"`Accept: {LINES}` streams all `{route.items}`, one a line.")
        if route.not_found is not None:
            about.append(f"404: {route.not_found}.")
        if route.role is Role.OPEN:
            about.append("Needs no token.")
        if about:
            parts.append(" ".join(about) + "\n")
    return "\n".join(parts)


def _type(parameter: Parameter) -> str:
    schema = parameter.kind.schema
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    if "maximum" in schema:
        return f"{schema['minimum']} to {schema['maximum']}, else {schema['default']}"
    return "time" if schema.get("format") == "date-time" else "text"
