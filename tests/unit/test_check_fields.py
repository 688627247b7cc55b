"""Header fields as servers really send them: media types by the Fetch standard, and formats of several names."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from linkcrawl.check.fields import MAX_MIME, SAME_FORMAT, bare_mime, mime_matches


@pytest.mark.parametrize(
    ("text", "mime"),
    [
        ("text/html", "text/html"),
        (" Text/HTML ; charset=utf-8", "text/html"),
        ("text/html;charset=utf-8, text/plain", "text/plain"),
        ("text/html, */*", "text/html"),
        ("text/html, cannot-parse", "text/html"),
        ("text/html,", "text/html"),
        (", text/html", "text/html"),
        # a comma within quotes divides nothing
        ('application/json; profile="a, text/plain; v=1"', "application/json"),
        ('application/json; profile="a, text/plain", text/csv', "text/csv"),
        ('application/json; profile="a\\", text/plain; b"', "application/json"),
        ('application/json; profile="a, text/plain', "application/json"),
        ('application/json; profile="a\\', "application/json"),
        ('multipart/mixed; boundary=",";x=y', "multipart/mixed"),
        ('"text/html", text/css', "text/css"),
        # none at all
        ('"text/html"', None),
        ("", None),
        ("*/*", None),
        ("html", None),
        ("text/", None),
        ("/html", None),
        ("text/ html", None),
        ("text/html charset=x", None),
        ("te xt/html", None),
    ],
)
def test_bare_mime(text: str, mime: str | None) -> None:
    assert bare_mime(text) == mime


@given(st.text(alphabet='ab/;,"\\ *=é', max_size=40))
@example('"' * 50_000)
@example('"\\' * 50_000)
@example("a/b;" + '"x",' * 50_000)
def test_any_text_gives_a_type_or_none(text: str) -> None:
    mime = bare_mime(text)
    assert mime is None or (len(mime) <= MAX_MIME and re.fullmatch(r"[!-~]+/[!-~]+", mime))


@given(st.sampled_from(["text/html", "application/pdf"]), st.text(alphabet="ab/;, *=", max_size=20))
def test_what_stands_in_a_quoted_parameter_is_no_type(mime: str, text: str) -> None:
    assert bare_mime(f'{mime}; p="{text}"') == mime


@pytest.mark.parametrize(("alias", "name"), SAME_FORMAT.items())
def test_names_of_one_format_match_each_other(alias: str, name: str) -> None:
    assert mime_matches(alias, name)
    assert mime_matches(name, alias)
    assert bare_mime(alias) == alias
    assert name not in SAME_FORMAT, "a name is one, not another's alias"


@pytest.mark.parametrize(
    ("expected", "actual"),
    [
        ("application/zip", "application/gzip"),
        ("application/x-tar", "application/gzip"),
        ("text/plain", "text/csv"),
        ("application/xml", "application/tei+xml"),
        ("text/html", "application/xhtml+xml"),
    ],
)
def test_other_formats_do_not(expected: str, actual: str) -> None:
    assert mime_matches(expected, actual) is False
