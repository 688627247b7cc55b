"""Logins in any text: lines of files, notes, messages."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkcrawl.urls.userinfo import redact


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ('{"url": "http://me:secret@host/"', '{"url": "http://host/"'),
        ('{"url": "http:\\/\\/me:secret@host\\/"', '{"url": "http:\\/\\/host\\/"'),
        ("http://a/,http://me:secret@b/,c", "http://a/,http://b/,c"),
        ("see http://me:secret@host and me@example.org", "see http://host and me@example.org"),
        ("http://example.org/@me", "http://example.org/@me"),
        ("mongodb://me:secret@host/db", "mongodb://host/db"),
        ("http://me:secret@host http://me:secret@host", "http://host http://host"),
        ("http://@/@//me:secret@host", "http://///host"),
    ],
)
def test_redact(text: str, shown: str) -> None:
    assert redact(text) == shown


@given(st.text())
def test_text_without_urls_is_left_alone(text: str) -> None:
    text = text.replace("/", "").replace("\\", "")
    assert redact(text) == text
