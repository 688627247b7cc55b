"""What every store does alike: storable text and numbers, globs, JSON, and hops as documents."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkcrawl.items import Hop, LinkState
from linkcrawl.stores import rows

ANY_TEXT = st.text(st.characters(exclude_categories=[]))


@given(ANY_TEXT)
def test_text_is_always_utf_8_and_changes_nothing_but_lone_surrogates(value: str) -> None:
    kept = rows.text(value)
    assert kept.encode().decode() == kept
    assert rows.text(kept) == kept
    if not any("\ud800" <= char <= "\udfff" for char in value):
        assert kept == value


@pytest.mark.parametrize(
    ("value", "kept"),
    [("\ud800", "\ufffd"), ("a\udfffb", "a\ufffdb"), ("\ud83d\ude00", "\U0001f600"), ("\ude00\ud83d", "\ufffd\ufffd")],
)
def test_surrogates(value: str, kept: str) -> None:
    assert rows.text(value) == rows.optional_text(value) == kept
    assert rows.optional_text(None) is None


@given(st.integers())
def test_whole_numbers_fit_64_bits(value: int) -> None:
    kept = rows.whole(value)
    assert -(2**63) <= kept < 2**63
    assert kept == value or abs(value) > 2**62


@pytest.mark.parametrize(
    ("pattern", "fits", "fits_not"),
    [
        ("", [""], ["a"]),
        ("*", ["", "a", "a\nb\0"], []),
        ("a?c", ["abc", "a\nc", "a\U0001f600c"], ["ac", "abbc", "Abc"]),
        ("*_Ag_EU_*", ["9_Ag_EU_x", "_Ag_EU_"], ["9_ag_eu_x"]),
        ("[ab]", ["[ab]"], ["a", "b"]),
        ("a.c+(x)|y", ["a.c+(x)|y"], ["abc+(x)|y", "y"]),
        ("a", ["a"], ["a\n", "a\0", "\na"]),
        ("\\*", ["\\", "\\x"], ["*"]),
    ],
)
def test_globs(pattern: str, fits: list[str], fits_not: list[str]) -> None:
    matches = rows.glob(pattern).fullmatch
    assert [text for text in fits + fits_not if matches(text)] == fits


@given(st.recursive(st.none() | st.booleans() | st.integers() | ANY_TEXT, lambda inner: st.lists(inner, max_size=3)))
def test_json_is_storable_and_comes_back(value: object) -> None:
    stored = rows.to_json(value)
    assert "\0" not in stored
    assert stored.encode()
    back = rows.from_json(stored)
    assert rows.to_json(back) == stored


def test_json_has_a_form_for_what_databases_hold() -> None:
    stored = rows.to_json({"at": datetime(2026, 11, 30, tzinfo=UTC), "n": 10**30, "$where": ["é", "\0"]})
    assert rows.from_json(stored) == {"at": "2026-11-30 00:00:00+00:00", "n": 10**30, "$where": ["é", "\0"]}


def test_a_hop_leaves_out_what_it_has_not() -> None:
    hop = Hop(
        url="https://a.example/",
        method="HEAD",
        status=None,
        location=None,
        duration_ms=None,
        ip=None,
        error="refused",
        at=1.5,
    )
    document = rows.hop_document(hop)
    assert document == {"url": "https://a.example/", "method": "HEAD", "error": "refused", "at": 1.5}
    assert rows.hop_of(json.loads(json.dumps(document))) == hop


@given(
    st.builds(
        LinkState,
        attempt=st.integers(0, 99),
        interval=st.floats(0, 1e9),
        hard_since=st.none() | st.floats(0, 4e9),
        hard_count=st.integers(0, 9),
        hard_by_get=st.booleans(),
    )
)
def test_a_links_state_comes_back(state: LinkState) -> None:
    assert rows.state_of(rows.state_document(state)) == state
