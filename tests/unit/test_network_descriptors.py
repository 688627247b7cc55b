"""Too few descriptors, ports or memory are ours: fewer requests at once, another try, and never a verdict."""

import asyncio
import errno
import os
import resource
import socket
import ssl

import pytest
from network_kit import always, ask, everywhere, handler, serve

from linkcrawl import settings
from linkcrawl.assembly import open_session
from linkcrawl.check.outcome import Failure
from linkcrawl.errors import ConfigError
from linkcrawl.frontier.downloader import RECOVER, ConcurrencyLimit
from linkcrawl.frontier.ports import anew, context_of
from linkcrawl.network import connection, descriptors
from linkcrawl.network.connection import HANDSHAKE, WITHIN_HEAD
from linkcrawl.network.descriptors import LEAST, PER_LOOKUP, SPARE, limit, raise_limit, shares
from linkcrawl.network.fault import CONNECTING, of_os_error
from linkcrawl.network.resolver import PATIENT, Resolver
from tests.unit.frontier_kit import request_to

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
OURS = [errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM, errno.EAGAIN, errno.EADDRNOTAVAIL]


@pytest.mark.parametrize("number", OURS)
def test_what_this_machine_lacks_says_nothing_of_the_server(number):
    assert of_os_error(OSError(number, "x"), CONNECTING).failure is Failure.LOCAL_SHORTAGE
    assert of_os_error(OSError(number, "x"), HANDSHAKE).failure is Failure.LOCAL_SHORTAGE
    assert of_os_error(OSError(number, "x"), WITHIN_HEAD).failure is Failure.RESET  # it was sent: one fresh try


def test_one_address_that_could_not_be_tried_spoils_the_word_of_the_others():
    said = "Multiple exceptions: [Errno 24] Too many open files, [Errno 111] Connect call failed ('127.0.0.1', 9)"
    assert of_os_error(OSError(said), CONNECTING).failure is Failure.LOCAL_SHORTAGE


@pytest.mark.parametrize(
    ("addresses", "failure"), [(["2606:4700::1"], Failure.UNREACHABLE), (["127.0.0.1"], Failure.LOCAL_SHORTAGE)]
)
def test_a_machine_without_ipv6_is_not_short_of_ports(addresses, failure, monkeypatch):
    async def refused(*_, **__):
        raise OSError(errno.EADDRNOTAVAIL, "Cannot assign requested address")

    monkeypatch.setattr(connection.aiohappyeyeballs, "start_connection", refused)

    async def main():
        async with handler(LINKCRAWL_ALLOWED_NETWORKS="0.0.0.0/0,::/0") as made:
            made._resolver._lookup = lambda host: addresses
            return await ask(made, "http://a.example/")

    _, outcome = asyncio.run(main())
    assert outcome.failure is failure


def test_a_connection_is_tried_once_more_with_the_descriptors_of_idle_ones(monkeypatch):
    idle, start = [], connection.aiohappyeyeballs.start_connection

    async def main():
        async with serve(always(OK)) as peer, handler() as made:
            made._resolver._lookup = everywhere("127.0.0.1")

            async def short(infos, **options):
                idle.append(len(made._pool))
                if len(idle) == 2:  # the second host's first try
                    raise OSError(errno.EMFILE, "Too many open files")
                return await start(infos, **options)

            monkeypatch.setattr(connection.aiohappyeyeballs, "start_connection", short)
            return [(await ask(made, f"http://{host}.example:{peer.port}/"))[1].status for host in "ab"]

    assert asyncio.run(main()) == [200, 200]
    assert idle == [0, 1, 0]


def test_out_of_memory_is_no_verdict(monkeypatch):
    async def hungry(*_, **__):
        raise MemoryError

    monkeypatch.setattr(connection.aiohappyeyeballs, "start_connection", hungry)

    async def main():
        async with handler() as made:
            return await ask(made, "http://127.0.0.1:9999/")

    _, outcome = asyncio.run(main())
    assert outcome.failure is Failure.LOCAL_SHORTAGE


def test_authorities_that_could_not_be_read_are_no_verdict(monkeypatch):
    async def untrusted(*_, sock, **__):
        sock.close()
        error = ssl.SSLCertVerificationError(1, "unable to get local issuer certificate")
        error.verify_code, error.verify_message = 20, "unable to get local issuer certificate"
        raise error

    async def main():
        async with serve(always(OK)) as peer, handler() as made:
            monkeypatch.setattr(asyncio.get_running_loop(), "create_connection", untrusted)
            return await ask(made, f"https://127.0.0.1:{peer.port}/")

    _, outcome = asyncio.run(main())
    assert outcome.failure is Failure.TLS_UNTRUSTED
    monkeypatch.setattr(descriptors, "are_short", lambda: True)
    _, outcome = asyncio.run(main())
    assert outcome.failure is Failure.LOCAL_SHORTAGE


def test_a_name_that_could_not_be_asked_for_is_no_verdict(monkeypatch):
    """Without descriptors the system's resolver says that there is no such name."""

    def lookup(host):
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    async def main():
        resolver = Resolver(lookup=lookup, pauses=())
        answer = await resolver.resolve("a.example")
        resolver.close()
        return answer.failure

    assert asyncio.run(main()) is Failure.DNS_NOT_FOUND
    monkeypatch.setattr(descriptors, "are_short", lambda: True)
    assert asyncio.run(main()) is Failure.LOCAL_SHORTAGE


def test_are_short_sees_it():
    assert not descriptors.are_short()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    # The limit is one of descriptors' numbers, so it is set by the lowest free one: others may be free above it.
    lowest = os.dup(0)
    os.close(lowest)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest + 1, hard))
    try:
        assert descriptors.are_short()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize("room", [0, 5, 10, 16, 48, 200, 1000, 2**20])
@pytest.mark.parametrize("wanted", [0, 1, 512])
def test_shares_fit_into_the_room(room, wanted):
    given = shares(room, wanted)
    assert min(given.requests, given.idle, given.lookups) >= 1
    if wanted:
        assert given.requests <= wanted
    if room >= SPARE + PER_LOOKUP + 3:
        assert given.requests + 2 * given.idle + PER_LOOKUP * given.lookups + SPARE <= room + 2


def test_enough_room_gives_what_is_wanted():
    assert shares(1000, 512).requests == 512


def test_the_limit_is_raised_as_far_as_it_goes():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 256), hard))
    try:
        assert raise_limit() == limit() >= soft
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_too_low_a_limit_is_refused_at_start(monkeypatch):
    monkeypatch.setattr(descriptors, "limit", lambda: 5 + LEAST - 1)
    monkeypatch.setattr(descriptors, "in_use", lambda: 5)
    with pytest.raises(ConfigError, match=r"ulimit -n.*28 are too few.*261 would work"):
        raise_limit()


def test_fewer_at_once_while_short_and_more_again_later():
    given = ConcurrencyLimit(64, 64)
    given.shrink(40, 100.0)
    assert given.now == 35
    given.shrink(1, 100.0)
    assert given.now == 1
    given.grow(100.0 + RECOVER - 0.1)
    assert given.now == 1
    for step in range(1, 100):
        given.grow(100.0 + step * RECOVER)
    assert given.now == 64


def test_a_request_that_was_not_sent_begins_anew():
    request = request_to("http://a.example/", starts_limits=True, lease_epoch=3, body_limit=7)
    context = context_of(request)
    context.gate, context.cleared, context.outcome = "a.example", True, object()
    again = context_of(anew(request))
    assert (again.target, again.starts_limits, again.lease_epoch, again.body_limit) == (context.target, True, 3, 7)
    assert (again.gate, again.cleared, again.outcome) == ("", False, None)


def test_a_crawl_raises_the_limit_and_has_the_resolver_wait(tmp_path, monkeypatch):
    monkeypatch.delenv("RES_OPTIONS", raising=False)
    raised = []
    monkeypatch.setattr("linkcrawl.session.raise_limit", lambda: raised.append(True))
    told = {name: value for name, value in vars(settings).items() if name.isupper()}
    told |= {
        "LINKCRAWL_CONTACT": "ops@example.org",
        "LINKCRAWL_AUDIT": "",
        "LINKCRAWL_STORE": f"sqlite:///{tmp_path}/s.db",
    }
    open_session(told, {}).worker.close()
    assert raised == [True]
    assert os.environ["RES_OPTIONS"] == PATIENT
