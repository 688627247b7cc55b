"""Odd values in the fields of a row: whatever a row holds, it becomes a seed or a reject, and the rest goes on."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkcrawl.items import Reject, Seed
from linkcrawl.sources.lines import read_jsonl
from linkcrawl.sources.rows import FIELDS, MAX_DEPTH, seed_or_reject
from linkcrawl.sources.tables import read_csv


def nested(kind: str, levels: int) -> str:
    """JSON text of lists or objects within each other."""
    opened, closed = {"list": ("[", "]"), "object": ('{"a":', "}")}[kind]
    return opened * levels + "1" + closed * levels


@pytest.mark.parametrize("kind", ["list", "object"])
@pytest.mark.parametrize("levels", [MAX_DEPTH + 2, 200, 300, 450, 500, 700, 900, 1500, 100_000])
def test_deep_nesting_is_one_reject(kind: str, levels: int) -> None:
    data = f'{{"url": "http://a.example/", "note": {nested(kind, levels)}}}\n{{"url": "http://b.example/"}}\n'
    bad, good = read_jsonl(io.BytesIO(data.encode()), "it")
    assert isinstance(bad, Reject)
    assert bad.line == 1
    assert isinstance(good, Seed)


@pytest.mark.parametrize("kind", ["list", "object"])
def test_nesting_as_people_write_it_is_kept(kind: str) -> None:
    value = json.loads(nested(kind, MAX_DEPTH))
    seed = seed_or_reject({"url": "http://a.example/", "note": value}, source="it", line=1, text="")
    assert isinstance(seed, Seed)
    assert seed.extra == {"note": value}


TEXTS = ["+-3", "--3", "-+3", "+", "-", "3-", "3.5", "٣", "²", "1e3", "0x10", "1_000", "9" * 20]


@pytest.mark.parametrize("text", TEXTS)
def test_a_priority_that_is_no_integer_is_one_reject(text: str) -> None:
    rows = list(read_csv(io.BytesIO(f"url,priority\nhttp://a.example/,{text}\nhttp://b.example/,+3\n".encode()), "it"))
    assert [type(row) for row in rows] == [Reject, Seed]
    assert "priority" in rows[0].why  # type: ignore[union-attr]
    assert rows[1].priority == 3  # type: ignore[union-attr]


VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(codec=None)),
    lambda part: st.lists(part, max_size=3) | st.dictionaries(st.text(max_size=5), part, max_size=3),
    max_leaves=10,
)


@given(st.dictionaries(st.sampled_from([*sorted(FIELDS), "expectedMimeType", "note", ""]), VALUES), st.booleans())
def test_any_values_are_a_seed_or_a_reject(row: dict[str, Any], with_url: bool) -> None:
    row = row | {"url": "http://a.example/"} if with_url else row
    assert isinstance(seed_or_reject(row, source="it", line=1, text=""), (Seed, Reject))
