"""docs/exports.md says what the formats do: same columns, same order, same limits."""

from __future__ import annotations

import json

from linkcrawl.exports import FORMATS, edgi, table
from linkcrawl.exports.rows import PROXY_FIELDS
from linkcrawl.items import RECORD_FIELDS
from tests.docs.pages import read, rows, section, word, words
from tests.unit.exports_kit import REDIRECTED, encoded

PAGE = read("docs/exports.md")
TITLES = {"jsonl": "JSON lines", "csv": "CSV", "parquet": "Parquet", "edgi": "EDGI", "vlo": "VLO"}


def names(heading: str) -> list[str]:
    """The first column of a section's table."""
    return [word(cells[0]) for cells in rows(section(PAGE, heading))]


def test_every_format_has_its_section() -> None:
    assert list(TITLES) == list(FORMATS)
    for name, title in TITLES.items():
        assert section(PAGE, title).lstrip().startswith(f"`{name}`: ")


def test_csv_columns() -> None:
    before, after = RECORD_FIELDS[: RECORD_FIELDS.index("hops")], RECORD_FIELDS[RECORD_FIELDS.index("hops") + 1 :]
    assert (*before, *names("CSV"), *after) == table.COLUMNS


def test_fields_of_a_resource_proxy() -> None:
    assert tuple(names("Rows")) == PROXY_FIELDS


def test_edgi_fields() -> None:
    version = json.loads(encoded("edgi", [REDIRECTED]))
    assert names("EDGI") == list(version)
    [metadata] = [cells[1] for cells in rows(section(PAGE, "EDGI")) if word(cells[0]) == "source_metadata"]
    assert words(metadata) == list(version["source_metadata"])
    assert f"at most {edgi.CHUNK:,} versions" in PAGE


def test_vlo_fields() -> None:
    assert names("VLO") == list(json.loads(encoded("vlo", [REDIRECTED])))
