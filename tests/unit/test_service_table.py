"""The table of routes: parameters, bodies, cursors, the OpenAPI file, and the page that is made of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from openapi_spec_validator import validate as validate_openapi

from linkcrawl.service.admission import is_loopback, refuse_foreign_host
from linkcrawl.service.cursors import cursor_of, position_of
from linkcrawl.service.openapi import openapi, reference
from linkcrawl.service.problems import Problem
from linkcrawl.service.routes import ROUTES
from linkcrawl.service.table import Body, Route, body_of, validate

ROOT = Path(__file__).parent.parent.parent


def route(path: str) -> Route:
    return next(route for route in ROUTES if route.path == path)


def test_the_file_is_openapi() -> None:
    document = json.loads(json.dumps(openapi(ROUTES)))
    validate_openapi(document)
    assert document["openapi"].startswith("3.1")
    assert {(path, method.upper()) for path, found in document["paths"].items() for method in found} == {
        (route.path, route.method) for route in ROUTES
    }


def test_operations_have_names_of_their_own() -> None:
    names = [route.operation for route in ROUTES]
    assert len(set(names)) == len(names)


def test_the_page_is_made_of_the_table() -> None:
    assert (ROOT / "docs" / "reference" / "api.md").read_text() == reference(ROUTES)


@pytest.mark.parametrize(
    "query",
    [
        {"since": ""},
        {"since": "yesterday"},
        {"since": "99999-01-01T00:00:00Z"},
        {"since": "2026-01-01T00:00:00 01:00"},
        {"limit": "0"},
        {"limit": "-1"},
        {"limit": "1001"},
        {"limit": "ten"},
        {"limit": "9" * 100},
        {"limit": "٣"},
        {"category": "Fine"},
        {"changed": "maybe"},
        {"offset": "3"},
    ],
)
def test_a_value_that_doesnt_fit_is_a_problem_that_names_it(query: dict[str, str]) -> None:
    with pytest.raises(Problem, match=next(iter(query))) as caught:
        route("/v1/checks").values(query)
    assert caught.value.status == 400


def test_values_are_parsed() -> None:
    values = route("/v1/checks").values({"since": "1970-01-02T00:00:00+01:00", "changed": "1", "limit": "7"})
    assert (values["since"], values["changed"], values["limit"], values["until"]) == (82800.0, True, 7, None)
    assert route("/v1/checks").values({"since": "1970-01-01"})["since"] == 0.0
    assert route("/v1/checks").values({"since": "0001-01-01T00:00:00+23:59"})["since"] < 0


def test_all_times_of_rfc_3339_are_read() -> None:
    def since(text: str) -> float:
        return float(route("/v1/checks").values({"since": text})["since"])

    assert since("1990-12-31t23:59:60z") == since("1991-01-01T00:00:00Z")
    assert since("0000-02-29T00:00:00.123456789Z") < since("0001-01-01T00:00:00Z")


SCHEMA = {
    "type": "object",
    "required": ["a"],
    "additionalProperties": False,
    "properties": {
        "a": {"type": "array", "minItems": 1, "maxItems": 2, "items": {"type": "string", "maxLength": 3}},
        "b": {"type": ["integer", "null"]},
        "c": {"type": "string", "enum": ["x"], "minLength": 1},
    },
}


@pytest.mark.parametrize("value", [{"a": ["x"]}, {"a": ["x", "yyy"], "b": None, "c": "x"}, {"a": ["x"], "b": 3}])
def test_what_fits_a_schema(value: object) -> None:
    validate(SCHEMA, value, "the body")


@pytest.mark.parametrize(
    ("value", "status", "named"),
    [
        ([], 400, "the body"),
        ({}, 400, "a"),
        ({"a": []}, 400, "a"),
        ({"a": ["x", "y", "z"]}, 400, "a"),
        ({"a": ["xxxx"]}, 400, "a, item 1"),
        ({"a": [1]}, 400, "a, item 1"),
        ({"a": ["x"], "b": True}, 400, "b"),
        ({"a": ["x"], "b": 1.5}, 400, "b"),
        ({"a": ["x"], "c": "y"}, 400, "c"),
        ({"a": ["x"], "d": 1}, 400, "d"),
    ],
)
def test_what_doesnt_fit_a_schema(value: object, status: int, named: str) -> None:
    with pytest.raises(Problem, match=f"^{named}") as caught:
        validate(SCHEMA, value, "the body")
    assert caught.value.status == status


def test_bodies_are_json_in_any_unicode_or_lines() -> None:
    body = Body(schema=SCHEMA, words="", lines_of="a")
    assert body_of(body, "application/json", json.dumps({"a": ["é"]}).encode("utf-16")) == {"a": ["é"]}
    assert body_of(body, "text/plain", "\ufeffé\r\n\r\nb\n".encode()) == {"a": ["é", "b"]}
    with pytest.raises(Problem, match="Content-Type"):
        body_of(body, "text/html", b"")


def test_a_cursor_is_read_where_it_was_made_and_nowhere_else() -> None:
    made = cursor_of("/v1/checks", {"category": "Ok"}, [1.5, 7])
    assert position_of(made, "/v1/checks", {"category": "Ok"}) == [1.5, 7]
    for cursor, path, conditions in [
        (made, "/v1/checks", {}),
        (made, "/v1/hosts", {"category": "Ok"}),
        (made[:-1], "/v1/checks", {"category": "Ok"}),
        (made + "'", "/v1/checks", {"category": "Ok"}),
        ("", "/v1/checks", {"category": "Ok"}),
        ("é", "/v1/checks", {"category": "Ok"}),
    ]:
        with pytest.raises(Problem, match="cursor"):
            position_of(cursor, path, conditions)


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:80", "127.0.0.1", "127.8.8.8:9", "[::1]:80", "[::1]"])
def test_names_of_this_machine(host: str) -> None:
    refuse_foreign_host([host])


@pytest.mark.parametrize(
    "hosts",
    [
        [],
        [""],
        ["evil.example"],
        ["localhost", "localhost"],
        ["127.0.0.1:80, evil.example"],
        ["localhost.evil.example"],
        ["127.0.0.1@evil.example"],
        ["10.0.0.1"],
        ["0.0.0.0"],
        ["[::1"],
        ["localhost:80x"],
    ],
)
def test_other_names_are_refused(hosts: list[str]) -> None:
    with pytest.raises(Problem, match="Host"):
        refuse_foreign_host(hosts)


def test_loopback() -> None:
    assert is_loopback("::1")
    assert not is_loopback("0.0.0.0")
    assert not is_loopback("::")
    assert not is_loopback("example.org")
