"""Bodies in every framing, whole and broken, and whether the connection is clean behind them."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkcrawl.network.answer import AnswerReader, ReceivedAnswer

OK = b"HTTP/1.1 200 OK\r\n"
LENGTH = OK + b"Content-Length: 5\r\n\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
CLOSE = OK + b"\r\n"


def read(*pieces, method="GET", limit=100, orderly=True):
    reader = AnswerReader(method, limit)
    for piece in pieces:
        got = reader.feed(piece)
        if got is not None:
            return got
    return reader.end(orderly=orderly)


BODIES = [
    # answer, body, broken, reusable
    (LENGTH + b"hello", b"hello", False, True),
    (LENGTH + b"hel", b"hel", True, False),
    (LENGTH + b"hello and more", b"hello", False, False),
    (OK + b"Content-Length: 0\r\n\r\n", b"", False, True),
    (OK + b"Content-Length: 0\r\n\r\nx", b"", False, False),
    (OK + b"Content-Length: 5, 5\r\n\r\nhello", b"hello", False, True),
    (OK + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello!", b"hello!", False, False),
    (OK + b"Content-Length: five\r\n\r\nhello", b"hello", False, False),
    (OK + b"Content-Length: -5\r\n\r\nhello", b"hello", False, False),
    (OK + b"Content-Length: 5\r\nConnection: close\r\n\r\nhello", b"hello", False, False),
    (CLOSE + b"hello", b"hello", False, False),
    (CLOSE, b"", False, False),
    (CHUNKED + b"5\r\nhello\r\n0\r\n\r\n", b"hello", False, True),
    (CHUNKED + b"2\r\nhe\r\n3;x=y\r\nllo\r\n0\r\nTrailer: x\r\n\r\n", b"hello", False, True),
    (CHUNKED + b"5\nhello\n0\n\n", b"hello", False, True),
    (CHUNKED + b"5".rjust(16, b"0") + b"\r\nhello\r\n" + b"0" * 16 + b"\r\n\r\n", b"hello", False, True),
    (CHUNKED + b"0" * 99 + b"5   ;x\r\nhello\r\n00\r\n\r\n", b"hello", False, True),
    (CHUNKED + b"1" * 16 + b"\r\nhello\r\n0\r\n\r\n", b"", True, False),
    (CHUNKED + b"0\r\n\r\n", b"", False, True),
    (CHUNKED + b"5\r\nhello\r\n0\r\n\r\nx", b"hello", False, False),
    (CHUNKED + b"5\r\nhello\r\n", b"hello", True, False),
    (CHUNKED + b"5\r\nhello\r\nzz\r\nmore", b"hello", True, False),
    (CHUNKED + b"5\r\nhello, longer\r\n0\r\n\r\n", b"hello", True, False),
    (CHUNKED + b"hello", b"", True, False),
    (CHUNKED + b"x" * 5000, b"", True, False),
    (CHUNKED + b"0\r\n" + b"a: b\r\n" * 200, b"", True, False),
    (CHUNKED + b"\r\n" * 100_000 + b"1\r\nx\r\n0\r\n\r\n", b"", True, False),
    (CHUNKED + b"1\r\nx\r\n" + b"\r\n" * 100_000 + b"0\r\n\r\n", b"x", True, False),
    (CHUNKED + b"1;ext=%s\r\nx\r\n" % (b"e" * 4000) * 50 + b"0\r\n\r\n", b"x" * 16, True, False),
    (CHUNKED + b"1\r\nx\r\n" * 90 + b"0\r\n\r\n", b"x" * 90, False, True),
    (CHUNKED + b"0\r\n" + b"a: %s\r\n" % (b"b" * 1000) * 90 + b"\r\n", b"", True, False),
    (OK + b"Transfer-Encoding: gzip, chunked\r\nContent-Length: 3\r\n\r\n1\r\nx\r\n0\r\n\r\n", b"x", False, True),
    (OK + b"Transfer-Encoding: identity\r\nContent-Length: 5\r\n\r\nhello", b"hello", False, True),
    (OK + b"Transfer-Encoding: chunked, identity\r\n\r\n5\r\nhello\r\n0\r\n\r\n", b"hello", False, True),
    (OK + b"Transfer-Encoding: gzip\r\nContent-Length: 3\r\n\r\nhello", b"hello", False, False),
    (LENGTH.replace(b"5", b"500") + b"x" * 500, b"x" * 100, False, False),
    (CLOSE + b"x" * 500, b"x" * 100, False, False),
    (CHUNKED + b"fffffff\r\n" + b"x" * 500, b"x" * 100, False, False),
    (LENGTH.replace(b"5", b"100") + b"x" * 100, b"x" * 100, False, True),
    (b"HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n", b"", False, True),
    (b"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\nhello", b"", False, False),
]


@pytest.mark.parametrize(("answer", "body", "broken", "reusable"), BODIES)
def test_a_body_is_read_as_far_as_it_goes(answer, body, broken, reusable):
    got = read(answer)
    assert (got.body, got.broken, got.reusable) == (body, broken, reusable)


@given(st.sampled_from(BODIES), st.lists(st.integers(1, 700), max_size=20))
def test_pieces_make_no_difference_to_the_body(row, cuts):
    answer, body, broken, _ = row
    places = sorted({min(cut, len(answer)) for cut in cuts} | {0, len(answer)})
    got = read(*(answer[start:end] for start, end in pairwise(places)))
    assert (got.body, got.broken) == (body, broken)


@given(st.binary(max_size=300), st.sampled_from([LENGTH, CHUNKED, CLOSE]), st.booleans())
def test_no_bytes_break_the_reader(data, head, orderly):
    got = read(head + data, limit=50, orderly=orderly)
    assert isinstance(got, ReceivedAnswer)
    assert len(got.body) <= 50


def test_endless_chunks_without_data_are_left():
    """A server that goes on sending what is no data is not listened to for as long as it likes."""
    for filler in (b"\r\n", b"\n", b"1;" + b"e" * 4000 + b"\r\nx\r\n"):
        reader, pieces = AnswerReader("GET", 500 * 1024), 0
        answer = reader.feed(CHUNKED + b"1\r\nx\r\n")
        while answer is None and pieces < 200_000:
            answer, pieces = reader.feed(filler), pieces + 1
        assert isinstance(answer, ReceivedAnswer)
        assert pieces * len(filler) < 100 * 1024
        assert (answer.broken, answer.reusable) == (True, False)


def test_every_byte_in_a_chunk_of_its_own_is_read():
    answer = read(CHUNKED, b"1\r\nx\r\n" * 100_000 + b"0\r\n\r\n", limit=500 * 1024)
    assert (answer.body, answer.broken) == (b"x" * 100_000, False)


@pytest.mark.parametrize("answer", [LENGTH + b"he", CHUNKED + b"5\r\nhe", CLOSE + b"he"])
def test_a_reset_leaves_a_broken_body(answer):
    got = read(answer, orderly=False)
    assert (got.body, got.broken, got.reusable) == (b"he", True, False)


@pytest.mark.parametrize(
    ("answer", "reusable"),
    [
        (LENGTH, False),
        (LENGTH + b"hel", False),
        (LENGTH + b"hello", True),
        (LENGTH + b"hello!", False),
        (CHUNKED + b"5\r\nhello\r\n0\r\n\r\n", True),
        (CHUNKED + b"5\r\nhello\r\n", False),
        (CLOSE + b"hello", False),
        (OK + b"Content-Length: 0\r\n\r\n", True),
    ],
)
def test_a_verdict_by_get_waits_for_no_body(answer, reusable):
    got = AnswerReader("GET", None).feed(answer)
    assert (got.body, got.broken, got.reusable) == (b"", False, reusable)


@pytest.mark.parametrize(("answer", "reusable"), [(LENGTH, True), (LENGTH + b"hello", False), (CHUNKED, True)])
def test_head_has_no_body(answer, reusable):
    got = AnswerReader("HEAD", None).feed(answer)
    assert (got.body, got.reusable) == (b"", reusable)


HTML = OK + b"Content-Type: text/HTML; charset=utf-8\r\n"
PAGES = [
    # answer, page
    (HTML + b"Content-Length: 5\r\n\r\nhello", b"hello"),
    (HTML + b"Content-Length: 9\r\n\r\nhello you", b"hello yo"),
    (HTML + b"Content-Encoding: identity\r\nContent-Length: 5\r\n\r\nhello", b"hello"),
    (HTML + b"Transfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n", b"hello"),
    (HTML.replace(b"text/HTML", b"application/xhtml+xml") + b"Content-Length: 5\r\n\r\nhello", b"hello"),
    (HTML + b"Content-Encoding: gzip\r\nContent-Length: 5\r\n\r\nhello", b""),
    (HTML.replace(b"text/HTML", b"text/csv") + b"Content-Length: 5\r\n\r\nhello", b""),
    (HTML.replace(b"200 OK", b"404 No") + b"Content-Length: 5\r\n\r\nhello", b""),
    (HTML.replace(b"200 OK", b"302 No") + b"Content-Length: 5\r\n\r\nhello", b""),
    (OK + b"Content-Length: 5\r\n\r\nhello", b""),
]


@pytest.mark.parametrize(("answer", "page"), PAGES)
def test_of_pages_so_much_is_read_as_was_asked_for_and_of_others_nothing(answer, page):
    heads = []
    reader = AnswerReader("GET", None, 8, on_head=lambda: heads.append(1))
    got = reader.feed(answer)
    assert (got.body, len(heads)) == (page, 1)
    assert AnswerReader("HEAD", None, 8).feed(answer.partition(b"\r\n\r\n")[0] + b"\r\n\r\n").body == b""
    assert AnswerReader("GET", None, None).feed(answer).body == b""


def test_a_page_that_comes_too_slowly_is_judged_by_what_has_come():
    reader = AnswerReader("GET", None, 100)
    assert reader.cut_short() is None
    assert reader.feed(HTML + b"Content-Length: 50\r\n\r\nhel") is None
    got = reader.cut_short()
    assert (got.head.status, got.body, got.reusable) == (200, b"hel", False)


def test_a_robots_txt_that_comes_too_slowly_is_none():
    reader = AnswerReader("GET", 100)
    assert reader.feed(HTML + b"Content-Length: 50\r\n\r\nhel") is None
    assert reader.cut_short() is None
