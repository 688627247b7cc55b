"""Names into addresses: kept, shared, judged, and classified where there are none."""

import asyncio
import errno
import os
import socket
import subprocess
import sys
import threading
from ipaddress import ip_address, ip_network

import pytest

from linkcrawl.check.outcome import Failure
from linkcrawl.network.fault import Fault, describe
from linkcrawl.network.resolver import (
    PAUSES,
    TROUBLE_KEPT,
    WELL_KNOWN,
    Resolver,
    _names_of_hosts_file,
    absolute,
    be_patient,
)
from linkcrawl.urls import read

TARGET = read("http://host.example/")

PUBLIC, OTHER, PRIVATE, PUBLIC6 = "8.8.8.8", "9.9.9.9", "10.0.0.1", "2606:4700::1111"


class Names:
    """Stands for DNS: what each name answers (a list of answers: one after the other), and how often it was asked.
    Nothing else exists."""

    def __init__(self, **answers):
        self.answers, self.asked, self.tests = answers, [], 0

    def __call__(self, host):
        if host.endswith(".invalid"):
            self.tests += 1
            host = "invalid"
        else:
            self.asked.append(host)
        answer = self.answers.get(host, socket.gaierror(socket.EAI_NONAME, "Name or service not known"))
        if isinstance(answer, Exception):
            raise answer
        return answer


class Clock:
    now = 1000.0

    def __call__(self):
        return self.now


async def resolved(lookup, *hosts, **options):
    resolver = Resolver(lookup=lookup, **{"pauses": (), **options})
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
        (OSError(errno.EMFILE, "Too many open files"), Failure.LOCAL_SHORTAGE),
        (OSError(errno.ENFILE, "Too many open files in system"), Failure.LOCAL_SHORTAGE),
        (OSError(errno.ECONNREFUSED, "Connection refused"), Failure.DNS_TROUBLE),
        (UnicodeError("label empty or too long"), Failure.DNS_NOT_FOUND),
    ],
)
def test_what_a_lookup_gives(found, expected):
    (got,) = asyncio.run(resolved(Names(host=found), "host"))
    if isinstance(expected, Failure):
        assert isinstance(got, Fault)
        assert got.failure is expected
        assert PRIVATE not in describe(got, TARGET, 30.0)
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
        (socket.gaierror(socket.EAI_AGAIN, ""), TROUBLE_KEPT),
    ],
)
def test_answers_are_kept_for_their_time(found, kept_for):
    clock, names = Clock(), Names(host=found)

    async def run():
        resolver = Resolver(lookup=names, clock=clock, pauses=())
        await resolver.resolve("host")
        clock.now += kept_for - 0.1
        await resolver.resolve("host")
        before = len(names.asked)
        clock.now += 0.2
        await resolver.resolve("host")
        resolver.close()
        return before

    assert asyncio.run(run()) == 1
    assert len(names.asked) == 2


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
        assert release.wait(60)
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
        assert release.wait(60)
        return [PUBLIC]

    async def run():
        resolver = Resolver(lookup=lookup, timeout=0.05, pauses=(), trouble_ttl=0)
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


TROUBLE = socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")


@pytest.mark.parametrize("troubles", [1, 2])
def test_a_resolver_that_blinks_is_asked_again(troubles):
    """`troubles`: answers in a row that say nothing of the name."""
    asked = []

    def lookup(host):
        asked.append(host)
        if len(asked) <= troubles:
            raise TROUBLE
        return [PUBLIC]

    (got,) = asyncio.run(resolved(lookup, "host", pauses=(0.0, 0.0)))
    assert got == (ip_address(PUBLIC),)
    assert len(asked) == troubles + 1


def test_trouble_is_said_after_the_last_question_only_and_a_dead_name_at_once():
    names = Names(host=TROUBLE)
    got, dead = asyncio.run(resolved(names, "host", "dead", pauses=(0.0, 0.0)))
    assert got.failure is Failure.DNS_TROUBLE
    assert dead.failure is Failure.DNS_NOT_FOUND
    assert names.asked == ["host"] * 3 + ["dead"]
    assert sum(PAUSES) >= 5  # a resolver that is started anew takes seconds


def test_waiting_for_a_turn_is_on_nobodys_account():
    """2,000 names at a resolver that takes its time: none is trouble because others were asked before it."""
    most = [0, 0]
    lock = threading.Lock()

    def lookup(host):
        with lock:
            most[0] += 1
            most[1] = max(most)
        threading.Event().wait(0.02)
        with lock:
            most[0] -= 1
        return [f"8.8.4.{host.partition('.')[0][1:]}"]

    async def run():
        resolver = Resolver(lookup=lookup, lookups=4, timeout=0.5, pauses=())
        answers = await asyncio.gather(*(resolver.resolve(f"h{number}.example") for number in range(200)))
        resolver.close()
        return answers

    answers = asyncio.run(run())  # it takes a second in all
    assert [answer for answer in answers if isinstance(answer, Fault)] == []
    assert most[1] <= 4


def test_names_are_absolute():
    assert absolute("www.example.org") == "www.example.org."
    assert absolute("www.example.org.") == "www.example.org."
    assert absolute("single") == "single."
    assert absolute("127.1") == "127.1"  # no name: an address as inet_aton(3) reads it
    assert absolute("localhost") == "localhost"


def test_names_of_the_hosts_file_are_read_anew_when_it_changes(tmp_path):
    file = tmp_path / "hosts"
    assert _names_of_hosts_file(file) == set()
    file.write_text("127.0.0.1 localhost\n# 10.0.0.1 no\n10.0.0.2\tIntranet.example intranet # and more\n")
    assert _names_of_hosts_file(file) == {"localhost", "intranet.example", "intranet"}
    file.write_text("::1 other\n")
    os.utime(file, ns=(1, 1))
    assert _names_of_hosts_file(file) == {"other"}


def test_search_domains_are_not_asked():
    """A process whose search domain answers every name: a dead name stays dead. LOCALDOMAIN stands for resolv.conf."""
    code = (
        "import socket\n"
        "asked = []\n"
        "socket.getaddrinfo = lambda host, *a, **k: asked.append(host) or []\n"
        "from linkcrawl.network.resolver import system_lookup\n"
        "system_lookup('dead.example.org')\n"
        "assert asked == ['dead.example.org.'], asked"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_system_is_told_to_wait_unless_the_operator_says_otherwise(monkeypatch):
    monkeypatch.delenv("RES_OPTIONS", raising=False)
    be_patient()
    assert os.environ["RES_OPTIONS"] == "timeout:5 attempts:2"
    monkeypatch.setenv("RES_OPTIONS", "timeout:1")
    be_patient()
    assert os.environ["RES_OPTIONS"] == "timeout:1"


PORTAL = "10.9.9.9"


def test_a_portal_that_answers_every_name_is_noticed(caplog):
    names = Names(**{f"www.h{number}.org": [PORTAL] for number in range(5)}, invalid=[PORTAL])
    hosts = [f"www.h{number}.org" for number in range(5)]
    first, *others = asyncio.run(resolved(names, *hosts, exempt=[ip_network("10.0.0.0/8")]))
    assert first == (ip_address(PORTAL),)  # nothing to be seen yet
    assert {answer.failure for answer in others} == {Failure.DNS_TROUBLE}
    assert len([line for line in caplog.messages if "resolver lies" in line]) == 1


def test_what_was_believed_of_a_portal_is_forgotten():
    names = Names(**{"a.org": [PORTAL], "b.org": [PORTAL]}, invalid=[PORTAL])
    *_, again = asyncio.run(resolved(names, "a.org", "b.org", "a.org"))
    assert again.failure is Failure.DNS_TROUBLE


def test_a_portal_at_a_private_address_is_no_verdict_on_names():
    names = Names(**{"a.org": [PORTAL], "b.org": [PORTAL]}, invalid=[PORTAL])
    _, second = asyncio.run(resolved(names, "a.org", "b.org"))
    assert second.failure is Failure.DNS_TROUBLE


def test_a_provider_that_leads_dead_names_to_its_search_page_spoils_those_only():
    names = Names(**{"dead.org": [OTHER], "gone.net": [OTHER], "good.com": [PUBLIC]}, invalid=[OTHER])
    _, gone, good = asyncio.run(resolved(names, "dead.org", "gone.net", "good.com"))
    assert gone.failure is Failure.DNS_TROUBLE
    assert good == (ip_address(PUBLIC),)


def test_a_resolver_that_stops_lying_is_believed_again(caplog):
    clock = Clock()
    names = Names(**{"a.org": [PORTAL], "b.org": [PORTAL]}, invalid=[PORTAL])

    async def run():
        resolver = Resolver(lookup=names, clock=clock, pauses=(), exempt=[ip_network("10.0.0.0/8")])
        for host in ("a.org", "b.org"):
            await resolver.resolve(host)
        names.answers = {"a.org": [PUBLIC], "b.org": [PORTAL]}
        clock.now += 11
        answers = [await resolver.resolve(host) for host in ("a.org", "b.org")]
        resolver.close()
        return answers

    assert asyncio.run(run()) == [(ip_address(PUBLIC),), (ip_address(PORTAL),)]
    assert any("says again" in line for line in caplog.messages)


def test_hosts_that_share_a_server_are_no_lie_and_cost_few_questions():
    hosts = [f"www.h{number}.org" for number in range(50)]
    names = Names(**{host: [PUBLIC] for host in hosts})
    answers = asyncio.run(resolved(names, *hosts, clock=Clock()))
    assert set(answers) == {(ip_address(PUBLIC),)}
    assert names.tests == 1  # in ten seconds


@pytest.mark.parametrize(
    ("answers", "believed"),
    [
        ({WELL_KNOWN: [PUBLIC]}, True),
        ({}, False),
        ({WELL_KNOWN: socket.gaierror(socket.EAI_AGAIN, "Temporary failure")}, False),
        ({WELL_KNOWN: [PUBLIC], "invalid": [PUBLIC]}, False),
    ],
    ids=["it answers", "no such name", "trouble", "it lies"],
)
def test_a_resolver_is_believed_if_it_knows_a_name_that_exists(answers, believed):
    async def asked():
        resolver = Resolver(lookup=Names(**answers), pauses=())
        try:
            return await resolver.knows_names()
        finally:
            resolver.close()

    assert asyncio.run(asked()) is believed


def test_what_failed_is_asked_anew_when_it_was_our_own_network():
    names = Names(**{"a.example": [PUBLIC]})

    async def asked():
        resolver = Resolver(lookup=names, pauses=())
        try:
            for host in ("a.example", "b.example"):
                await resolver.resolve(host)
            resolver.forget_faults()
            names.answers["b.example"] = [OTHER]
            return [await resolver.resolve(host) for host in ("a.example", "b.example")]
        finally:
            resolver.close()

    assert asyncio.run(asked()) == [(ip_address(PUBLIC),), (ip_address(OTHER),)]
    assert names.asked == ["a.example", "b.example", "b.example"]
