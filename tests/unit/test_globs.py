"""Globs of two rules: whether a host can match both, held against matching itself."""

from __future__ import annotations

import re
from fnmatch import translate
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkcrawl.politeness.policy.globs import may_meet

TEXTS = ["".join(letters) for length in range(7) for letters in product("ab", repeat=length)]
GLOBS = st.text("ab*?", max_size=3)


@given(GLOBS, GLOBS)
def test_they_meet_where_some_text_matches_both(one: str, other: str) -> None:
    both = [text for text in TEXTS if re.match(translate(one), text) and re.match(translate(other), text)]
    assert may_meet([one], [other]) == may_meet([other], [one]) == bool(both)


@pytest.mark.parametrize(
    ("some", "others", "meet"),
    [
        (["a.org"], ["b.org", "a.org"], True),
        (["*.a.org"], ["a.org"], False),
        (["*.a.org"], ["www.*"], True),
        (["*.a.org"], ["*.b.org"], False),
        (["a.org:8080"], ["a.org"], True),
        (["a.org:80*"], ["a.org:9090"], True),
        (["[2001:db8::1]"], ["[2001:db8::*]:8080"], True),
        ([], ["*"], False),
    ],
)
def test_hosts(some: list[str], others: list[str], meet: bool) -> None:
    assert may_meet(some, others) is meet
