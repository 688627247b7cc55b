"""Names into addresses: kept, shared, judged, and classified where there are none."""

import asyncio
import socket
import threading
from ipaddress import ip_address, ip_network

import pytest

from linkcrawl.check.outcome import Failure
from linkcrawl.network.fault import Fault
from linkcrawl.network.resolver import Resolver

PUBLIC, OTHER, PRIVATE, PUBLIC6 = "8.8.8.8", "9.9.9.9", "10.0.0.1", "2606:4700::1111"


class Names:
    """Stands for DNS: what each name answers, and how often it was asked."""

    def __init__(self, **answers):
        self.answers, self.asked = answers, []

    def __call__(self, host):
        self.asked.append(host)
        answer = self.answers[host]
        if isinstance(answer, Exception):
            raise answer
        return answer


class Clock:
    now = 1000.0

    def __call__(self):
        return self.now


async def resolved(lookup, *hosts, **options):
    resolver = Resolver(lookup=lookup, **options)
    try:
        return [await resolver.resolve(host) for host in hosts]
    finally:
        resolver.close()


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ([PUBLIC], [PUBLIC]),
        ([PUBLIC6, PUBLIC], [PUBLIC6, PUBLIC]),
        ([PUBLIC, PUBLIC], [PUBLIC]),
        ([PUBLIC, PRIVATE], [PUBLIC]),
        ([PRIVATE, "::1", PUBLIC6], [PUBLIC6]),
        (["fe80::1%lo", PUBLIC], [PUBLIC]),
        ([PRIVATE], Failure.FORBIDDEN_ADDRESS),
        (["::ffff:127.0.0.1", PRIVATE], Failure.FORBIDDEN_ADDRESS),
        ([], Failure.DNS_NOT_FOUND),
        (socket.gaierror(socket.EAI_NONAME, "Name or service not known"), Failure.DNS_NOT_FOUND),
        (socket.gaierror(socket.EAI_NODATA, "No address"), Failure.DNS_NOT_FOUND),
        (socket.gaierror(socket.EAI_AGAIN, "Temporary failure"), Failure.DNS_TROUBLE),
        (socket.gaierror(socket.EAI_FAIL, "Non-recoverable"), Failure.DNS_TROUBLE),
        (socket.gaierror(socket.EAI_SYSTEM, "System error"), Failure.DNS_TROUBLE),
        (OSError(24, "Too many open files"), Failure.DNS_TROUBLE),
        (UnicodeError("label empty or too long"), Failure.DNS_NOT_FOUND),
    ],
)
def test_what_a_lookup_gives(found, expected):
    (got,) = asyncio.run(resolved(Names(host=found), "host"))
    if isinstance(expected, Failure):
        assert isinstance(got, Fault)
        assert got.failure is expected
    else:
        assert got == tuple(map(ip_address, expected))


@pytest.mark.parametrize(
    ("literal", "expected"),
    [(PUBLIC, True), (PUBLIC6, True), ("127.0.0.1", False), ("::1", False), ("::ffff:10.0.0.1", False)],
)
def test_an_address_is_judged_without_a_lookup(literal, expected):
    names = Names()
    (got,) = asyncio.run(resolved(names, literal))
    assert got == (ip_address(literal),) if expected else got.failure is Failure.FORBIDDEN_ADDRESS
    assert names.asked == []


def test_exempt_networks_are_let_through():
    (got,) = asyncio.run(resolved(Names(host=[PRIVATE]), "host", exempt=[ip_network("10.0.0.0/8")]))
    assert got == (ip_address(PRIVATE),)


@pytest.mark.parametrize("odd", ["2130706433", "0x7f.1", "127.1", "017700000001"])
def test_odd_spellings_of_loopback_are_refused_where_the_system_understands_them(odd):
    (got,) = asyncio.run(resolved_by_the_system(odd))
    assert isinstance(got, Fault)
    assert got.failure in {Failure.FORBIDDEN_ADDRESS, Failure.DNS_NOT_FOUND}


async def resolved_by_the_system(*hosts):
    resolver = Resolver()
    try:
        return [await resolver.resolve(host) for host in hosts]
    finally:
        resolver.close()


@pytest.mark.parametrize("host", ["a" * 64 + ".example", "a..example", "x" * 300])
def test_impossible_names_do_not_exist(host):
    (got,) = asyncio.run(resolved_by_the_system(host))
    assert isinstance(got, Fault)
    assert got.failure is Failure.DNS_NOT_FOUND


@pytest.mark.parametrize(
    ("found", "kept_for"),
    [
        ([PUBLIC], 300),
        ([PRIVATE], 60),
        (socket.gaierror(socket.EAI_NONAME, ""), 60),
        (socket.gaierror(socket.EAI_AGAIN, ""), 0),
    ],
)
def test_answers_are_kept_for_their_time(found, kept_for):
    clock, names = Clock(), Names(host=found)

    async def run():
        resolver = Resolver(lookup=names, clock=clock)
        await resolver.resolve("host")
        clock.now += kept_for - 0.1
        await resolver.resolve("host")
        before = len(names.asked)
        clock.now += 0.2
        await resolver.resolve("host")
        resolver.close()
        return before

    before = asyncio.run(run())
    assert before == (1 if kept_for else 2)
    assert len(names.asked) == before + 1


def test_a_changed_answer_is_seen_after_its_time():
    clock, names = Clock(), Names(host=[PUBLIC])

    async def run():
        resolver = Resolver(lookup=names, clock=clock)
        first = await resolver.resolve("host")
        names.answers["host"] = [OTHER]
        second = await resolver.resolve("host")
        clock.now += 301
        third = await resolver.resolve("host")
        resolver.close()
        return first, second, third

    assert asyncio.run(run()) == tuple((ip_address(text),) for text in (PUBLIC, PUBLIC, OTHER))


def test_the_number_of_kept_names_is_bounded():
    names = Names(**{f"h{number}": [PUBLIC] for number in range(10)})
    hosts = [f"h{number}" for number in range(10)]
    asyncio.run(resolved(names, *hosts, "h9", "h0", limit=3))
    assert names.asked == [*hosts, "h0"]


def test_questions_for_one_name_share_a_lookup():
    release = threading.Event()
    asked = []

    def lookup(host):
        asked.append(host)
        assert release.wait(10)
        return [PUBLIC]

    async def run():
        resolver = Resolver(lookup=lookup)
        waiting = [asyncio.ensure_future(resolver.resolve("host")) for _ in range(20)]
        await asyncio.sleep(0)
        waiting[0].cancel()  # one that gives up takes nobody with him
        await asyncio.sleep(0)
        release.set()
        answers = await asyncio.gather(*waiting[1:])
        resolver.close()
        return answers

    assert asyncio.run(run()) == [(ip_address(PUBLIC),)] * 19
    assert asked == ["host"]


def test_a_slow_lookup_is_trouble_and_is_joined_later():
    release = threading.Event()
    asked = []

    def lookup(host):
        asked.append(host)
        assert release.wait(10)
        return [PUBLIC]

    async def run():
        resolver = Resolver(lookup=lookup, timeout=0.05)
        late = await resolver.resolve("host")
        release.set()
        for _ in range(200):
            answer = await resolver.resolve("host")
            if not isinstance(answer, Fault):
                break
        resolver.close()
        return late, answer

    late, answer = asyncio.run(run())
    assert late.failure is Failure.DNS_TROUBLE
    assert answer == (ip_address(PUBLIC),)
    assert asked == ["host"]
