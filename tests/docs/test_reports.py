"""docs/reports.md names every field of the report's JSON, and no other."""

from __future__ import annotations

import re

import attrs
import pytest

from linkcrawl.reports.model import Excluded, HostTrouble, MonthRatio, Move, OutcomeTable, Report, Section, Slow
from linkcrawl.stores.contract import Mismatch, Totals
from tests.docs.pages import read

PAGE = read("docs/reports.md")
WHOLE, SECTION, HOST = re.split(r"^A section:$|^A host:$", PAGE.partition("## JSON")[2], flags=re.MULTILINE)


def fields(kind: type) -> set[str]:
    return {attribute.name for attribute in attrs.fields(kind)}


def words(text: str) -> set[str]:
    return set(re.findall(r"`([a-z_]+)`", text))


def row(text: str, name: str) -> str:
    return next(line for line in text.splitlines() if line.startswith("| ") and f"`{name}`" in line.split(" | ")[0])


@pytest.mark.parametrize(("text", "kind"), [(WHOLE, Report), (SECTION, Section), (HOST, HostTrouble)])
def test_each_table_has_a_row_for_every_field(text: str, kind: type) -> None:
    first_column = "".join(line.split(" | ")[0] for line in text.splitlines() if line.startswith("| "))
    assert words(first_column) == fields(kind)


@pytest.mark.parametrize(
    ("text", "name", "kind"),
    [
        (WHOLE, "books", Totals),
        (WHOLE, "months", MonthRatio),
        (WHOLE, "slowest", Slow),
        (WHOLE, "moves", Move),
        (WHOLE, "mismatches", Mismatch),
        (WHOLE, "excluded", Excluded),
        (SECTION, "categories", OutcomeTable),
    ],
)
def test_each_row_names_the_fields_inside(text: str, name: str, kind: type) -> None:
    assert words(row(text, name).partition(" | ")[2]) == fields(kind)
