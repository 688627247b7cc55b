"""Heads of answers, sound and broken, in every kind of pieces."""

import time
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkcrawl.check.outcome import Failure
from linkcrawl.network.fault import Fault
from linkcrawl.network.head import MAX_HEAD, MAX_INTERIM, MAX_LINES, Head, HeadParser


def parse(*pieces):
    """The first result, with what was not fed yet added to its rest."""
    parser = HeadParser()
    for number, piece in enumerate(pieces):
        got = parser.feed(piece)
        if isinstance(got, Head):
            return Head(
                status=got.status,
                reason=got.reason,
                version=got.version,
                headers=got.headers,
                rest=got.rest + b"".join(pieces[number + 1 :]),
            )
        if got is not None:
            return got
    return None


OK = b"HTTP/1.1 200 OK\r\n"

TOLERATED = [
    # answer, status, reason, headers, rest
    (OK + b"A: b\r\n\r\n", 200, "OK", (("a", "b"),), b""),
    (b"HTTP/1.1 200\r\n\r\n", 200, "", (), b""),
    (b"HTTP/1.1 200 \r\n\r\n", 200, "", (), b""),
    (b"HTTP/1.1 200OK\r\n\r\n", 200, "OK", (), b""),
    (b"HTTP/1.1  404   Not  Found\r\n\r\n", 404, "Not  Found", (), b""),
    (b"http/1.1 200 OK\r\n\r\n", 200, "OK", (), b""),
    (b"HTTP/1.0 200 OK\r\n\r\nx", 200, "OK", (), b"x"),
    (b"HTTP/2 200\r\n\r\n", 200, "", (), b""),
    (b"HTTP/1.1 999 Request denied\r\n\r\n", 999, "Request denied", (), b""),
    (b"HTTP/1.1 600\r\n\r\n", 600, "", (), b""),
    (b"HTTP/1.1 200 OK\nA: b\nC: d\n\nrest", 200, "OK", (("a", "b"), ("c", "d")), b"rest"),
    (b"\r\n\n\r\n" + OK + b"\r\n", 200, "OK", (), b""),
    (OK + b"no colon here\r\nA: b\r\n\r\n", 200, "OK", (("a", "b"),), b""),
    (OK + b": nameless\r\nA: b\r\n\r\n", 200, "OK", (("a", "b"),), b""),
    (OK + b"<b>Warning</b>: x\r\n y\r\nA: b\r\n\r\n", 200, "OK", (("a", "b"),), b""),
    (OK + b"A : b\r\n\r\n", 200, "OK", (("a", "b"),), b""),
    (OK + b"A:b\r\nA: c\r\na:\td \r\n\r\n", 200, "OK", (("a", "b"), ("a", "c"), ("a", "d")), b""),
    (OK + b"A: b\r\n c\r\n\td\r\nE: f\r\n\r\n", 200, "OK", (("a", "b c d"), ("e", "f")), b""),
    (OK + b" folded onto nothing\r\nA: b\r\n\r\n", 200, "OK", (("a", "b"),), b""),
    (OK + b"A: caf\xc3\xa9\r\nB: caf\xe9\r\n\r\n", 200, "OK", (("a", "café"), ("b", "café")), b""),
    (OK + b"A: x\x00y\x1b[31m\rz\x85\r\n\r\n", 200, "OK", (("a", "x\ufffdy\ufffd[31m\ufffdz\ufffd"),), b""),
    (b"HTTP/1.1 200 \x1b]0;x\x07\r\n\r\n", 200, "\ufffd]0;x\ufffd", (), b""),
    (OK + b"Location: /caf\xe9\r\n\r\n", 200, "OK", (("location", "/caf%E9"),), b""),
    (OK + b"Location: /caf\xc3\xa9\r\n\r\n", 200, "OK", (("location", "/café"),), b""),
    (b"HTTP/1.1 100 Continue\r\n\r\n" + OK + b"\r\n", 200, "OK", (), b""),
    (b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + OK + b"A: b\r\n\r\n", 200, "OK", (("a", "b"),), b""),
    (b"HTTP/1.1 100\r\n\r\n" * MAX_INTERIM + OK + b"\r\n", 200, "OK", (), b""),
    (OK + b"A: b\r\n" * MAX_LINES + b"\r\n", 200, "OK", (("a", "b"),) * MAX_LINES, b""),
]

REFUSED = [
    (b"SSH-2.0-OpenSSH_9.2\r\n", Failure.PROTOCOL),
    (b"220 mail.example ESMTP", Failure.PROTOCOL),
    (b"<html>", Failure.PROTOCOL),
    (b"\x15\x03\x03\x00\x02\x02\x16", Failure.PROTOCOL),
    (b"\x00" * 9, Failure.PROTOCOL),
    (b"ICY 200 OK\r\n\r\n", Failure.PROTOCOL),
    (b"HTTP/1.1 OK\r\n", Failure.PROTOCOL),
    (b"HTTP/1.1 20\r\n", Failure.PROTOCOL),
    (b"HTTP/1.1 2000\r\n", Failure.PROTOCOL),
    (b"HTTP/1.1 099\r\n", Failure.PROTOCOL),
    (b"HTTP/x 200 OK\r\n", Failure.PROTOCOL),
    (b"HTTP/1.1\r\n", Failure.PROTOCOL),
    (b"HTT\n", Failure.PROTOCOL),
    (b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\n\r\n", Failure.PROTOCOL),
    (b"HTTP/1.1 100\r\n\r\n" * (MAX_INTERIM + 1), Failure.PROTOCOL),
    (OK + b"A: b\r\n" * (MAX_LINES + 1), Failure.TOO_LARGE),
    (OK + b"x\r\n" * (MAX_LINES + 1), Failure.TOO_LARGE),
    (b"\r\n" * (MAX_LINES + 1), Failure.TOO_LARGE),
    (OK + b"A: " + b"b" * MAX_HEAD, Failure.TOO_LARGE),
    (b"HTTP/1.1 200 " + b"b" * MAX_HEAD, Failure.TOO_LARGE),
    (OK + b"A: " + b"b" * MAX_HEAD + b"\r\n\r\n", Failure.TOO_LARGE),
]

UNFINISHED = [b"", b"\r", b"\r\n", b"H", b"htt", b"HTTP/1.1 200 OK", OK, OK + b"A: b", OK + b"A: b\r\n", OK + b"\r"]


@pytest.mark.parametrize(("answer", "status", "reason", "headers", "rest"), TOLERATED)
def test_sloppy_answers_are_understood(answer, status, reason, headers, rest):
    got = parse(answer)
    assert isinstance(got, Head)
    assert (got.status, got.reason, got.headers, got.rest) == (status, reason, headers, rest)


@pytest.mark.parametrize(("answer", "failure"), REFUSED)
def test_what_is_no_http_or_too_much(answer, failure):
    got = parse(answer)
    assert isinstance(got, Fault)
    assert got.failure is failure
    assert got.detail.isprintable()


@pytest.mark.parametrize("answer", UNFINISHED)
def test_an_unfinished_head_is_waited_for(answer):
    assert parse(answer) is None


ODD = st.lists(
    st.one_of(
        st.binary(max_size=12),
        st.sampled_from(
            [
                b"HTTP/",
                b"HTTP/1.1 200 OK",
                b"HTTP/1.1 100",
                b"\r\n",
                b"\n",
                b"\r",
                b"\r\n\r\n",
                b":",
                b" ",
                b"\t",
                b"T",
            ],
        ),
        st.sampled_from(
            [b"A: b\r\n", b" c\r\n", b"Location: \xe9", b"\x00", b"H"],
        ),
    ),
    max_size=20,
).map(b"".join)


@given(ODD, st.lists(st.integers(0, 300), max_size=30))
def test_pieces_make_no_difference(data, cuts):
    places = sorted({min(cut, len(data)) for cut in cuts} | {0, len(data)})
    pieces = [data[start:end] for start, end in pairwise(places)]
    whole = parse(data)
    assert parse(*pieces) == whole
    assert parse(*(bytes([byte]) for byte in data)) == whole


@pytest.mark.parametrize("answer", [answer for answer, *_ in TOLERATED if len(answer) < 500])
def test_every_byte_on_its_own(answer):
    assert parse(*(bytes([byte]) for byte in answer)) == parse(answer)


@pytest.mark.parametrize(
    "flood",
    [
        OK + b"A: " + b"b" * (MAX_HEAD - 100),
        OK + b"A: b\r\n" + b" c\r\n" * (MAX_LINES - 2) + b" " * (MAX_HEAD - 8000),
        b"\r" * MAX_HEAD,
    ],
)
def test_a_drip_costs_no_more_than_its_bytes(flood):
    """Byte by byte, a long head may cost some microseconds a byte; anything quadratic would take minutes."""
    parser = HeadParser()
    began = time.process_time()
    for byte in flood:
        assert parser.feed(bytes([byte])) is None
    assert time.process_time() - began < 20


@pytest.mark.parametrize(
    ("answer", "persistent"),
    [
        (b"HTTP/1.1 200 OK\r\n\r\n", True),
        (b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n", False),
        (b"HTTP/1.1 200 OK\r\nConnection: Keep-Alive, CLOSE\r\n\r\n", False),
        (b"HTTP/1.1 200 OK\r\nConnection: x\r\nConnection: close\r\n\r\n", False),
        (b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n\r\n", False),
        (b"HTTP/2 200\r\n\r\n", False),
    ],
)
def test_who_keeps_the_connection(answer, persistent):
    assert parse(answer).persistent is persistent
