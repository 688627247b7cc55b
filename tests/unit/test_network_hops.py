"""Every request ends with an Outcome, whatever handler is configured."""

import errno
import socket
import ssl
from ipaddress import ip_address

import pytest
from scrapy import Request
from scrapy import exceptions as scrapy_errors
from scrapy.http import Response
from scrapy.utils.test import get_crawler
from twisted.internet import error as twisted_errors
from twisted.python.failure import Failure as TwistedFailure
from twisted.web._newclient import ParseError, ResponseFailed, ResponseNeverReceived

from linkcrawl.check.outcome import Failure, Outcome
from linkcrawl.hops import OUR_HANDLER, HopMiddleware
from linkcrawl.settings import DOWNLOAD_HANDLERS


def caused(error, cause):
    error.__cause__ = cause
    return error


def never_received(*reasons):
    return caused(
        scrapy_errors.DownloadFailedError("x"), ResponseNeverReceived([TwistedFailure(reason) for reason in reasons])
    )


def verification(code):
    error = ssl.SSLCertVerificationError(1, "failed")
    error.verify_code, error.verify_message = code, "why"
    return error


class Surprise(Exception):
    pass


EXCEPTIONS = [
    (scrapy_errors.CannotResolveHostError("x"), Failure.DNS_TROUBLE),
    (caused(scrapy_errors.CannotResolveHostError("x"), socket.gaierror(socket.EAI_NONAME, "")), Failure.DNS_NOT_FOUND),
    (caused(scrapy_errors.CannotResolveHostError("x"), socket.gaierror(socket.EAI_AGAIN, "")), Failure.DNS_TROUBLE),
    (scrapy_errors.DownloadConnectionRefusedError("x"), Failure.REFUSED),
    (caused(scrapy_errors.DownloadConnectionRefusedError("x"), verification(10)), Failure.TLS_EXPIRED),
    (scrapy_errors.DownloadTimeoutError("x"), Failure.TIMEOUT_ANSWER),
    (caused(scrapy_errors.DownloadTimeoutError("x"), twisted_errors.TCPTimedOutError()), Failure.TIMEOUT_CONNECT),
    (scrapy_errors.DownloadCancelledError("x"), Failure.TOO_LARGE),
    (scrapy_errors.ResponseDataLossError("x"), Failure.RESET),
    (never_received(twisted_errors.ConnectionLost()), Failure.RESET),
    (never_received(twisted_errors.ConnectionDone()), Failure.EMPTY_REPLY),
    (never_received(ParseError("wrong", b"x")), Failure.PROTOCOL),
    (caused(scrapy_errors.DownloadFailedError("x"), ResponseFailed([])), Failure.PROTOCOL),
    (twisted_errors.NoRouteError(), Failure.UNREACHABLE),
    (twisted_errors.ConnectionRefusedError(), Failure.REFUSED),
    (ConnectionResetError(errno.ECONNRESET, "reset"), Failure.RESET),
    (OSError(errno.ENETUNREACH, "no net"), Failure.UNREACHABLE),
    (verification(62), Failure.TLS_HOSTNAME),
    (scrapy_errors.NotSupported("no handler"), Failure.PROTOCOL),
    (Surprise("http://h/?secret=1"), Failure.PROTOCOL),
]


def asked(url="http://user:hush@host.example:8080/p?secret=1", **meta):
    request = Request(url, method="HEAD", meta=meta)
    HopMiddleware().process_request(request)
    return request


@pytest.mark.parametrize(("exception", "failure"), EXCEPTIONS, ids=lambda value: repr(value)[:60])
def test_an_exception_becomes_an_outcome(exception, failure):
    request = asked()
    HopMiddleware().process_exception(request, exception)
    outcome = request.meta["outcome"]
    assert outcome.failure is failure
    assert outcome.status is None
    assert "host.example" in outcome.error
    assert "secret" not in outcome.error
    assert "hush" not in outcome.error
    assert outcome.ended_at >= outcome.sent_at


def test_a_response_becomes_an_outcome():
    request = asked(download_latency=0.25)
    headers = [("Location", b"/caf\xe9"), ("Set-Cookie", "a=1"), ("Set-Cookie", "b=2"), ("Vary", "A"), ("Vary", "B")]
    response = Response(request.url, status=302, headers=headers, ip_address=ip_address("192.0.2.1"))
    assert HopMiddleware().process_response(request, response) is response
    outcome = request.meta["outcome"]
    assert (outcome.status, outcome.ip, outcome.failure, outcome.error) == (302, "192.0.2.1", None, None)
    assert outcome.headers == {"location": "/caf%E9", "vary": "A, B"}
    assert outcome.set_cookie == ("a=1", "b=2")
    assert outcome.duration_ms == 250
    assert outcome.ended_at - outcome.sent_at == pytest.approx(0.25)


@pytest.mark.parametrize(
    ("lines", "kept"),
    [
        ([("Content-Length", "5"), ("Content-Length", "10")], {"content-length": "5, 10"}),
        ([("Content-Type", "a/b"), ("Content-Type", "c/d")], {"content-type": "a/b"}),
        ([("Location", "/a"), ("Location", "/b")], {"location": "/a"}),
    ],
)
def test_a_field_that_came_twice(lines, kept):
    request = asked()
    HopMiddleware().process_response(request, Response(request.url, headers=lines))
    assert request.meta["outcome"].headers == kept


def test_the_handlers_own_outcome_stays():
    request = asked()
    own = Outcome(sent_at=1, ended_at=2, duration_ms=3, status=200)
    request.meta["outcome"] = own
    HopMiddleware().process_response(request, Response(request.url))
    HopMiddleware().process_exception(request, Surprise())
    assert request.meta["outcome"] is own


def test_a_request_sent_again_starts_anew():
    request = asked(outcome=Outcome(sent_at=1, ended_at=2, duration_ms=3, status=200))
    assert "outcome" not in request.meta


def test_a_dropped_request_has_no_outcome():
    request = asked()
    HopMiddleware().process_exception(request, scrapy_errors.IgnoreRequest())
    assert "outcome" not in request.meta


def test_a_request_that_failed_further_out_has_an_outcome_too():
    """A middleware further out may raise before this one has seen the request."""
    request = Request("https://host.example/")
    HopMiddleware().process_exception(request, Surprise())
    assert request.meta["outcome"].failure is Failure.PROTOCOL


@pytest.mark.parametrize(
    ("http", "https", "needed"),
    [(OUR_HANDLER, OUR_HANDLER, False), (OUR_HANDLER, "other.Handler", True), ("other.Handler", OUR_HANDLER, True)],
)
def test_it_is_there_only_for_foreign_handlers(http: str, https: str, needed: bool) -> None:
    """The name in hops.py must be that of settings.py, else every request would pay for it."""
    crawler = get_crawler(settings_dict={"DOWNLOAD_HANDLERS": {"http": http, "https": https}})
    if needed:
        assert isinstance(HopMiddleware.from_crawler(crawler), HopMiddleware)
    else:
        with pytest.raises(scrapy_errors.NotConfigured):
            HopMiddleware.from_crawler(crawler)


def test_our_handler_goes_by_the_name_that_is_wired() -> None:
    assert {DOWNLOAD_HANDLERS["http"], DOWNLOAD_HANDLERS["https"]} == {OUR_HANDLER}
