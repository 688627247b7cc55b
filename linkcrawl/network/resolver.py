"""Looks names up, lets the guard judge their addresses, and keeps the answers for a time.

Connections go to the addresses that it gives, and nothing asks DNS again in between: a name can't show one address to
the guard and another to the connection (DNS rebinding).
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import os
import secrets
import socket
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from weakref import WeakKeyDictionary

from attrs import evolve, frozen

from linkcrawl.check.outcome import Failure
from linkcrawl.network import descriptors
from linkcrawl.network.deadline import Deadline, StandstillMonitor
from linkcrawl.network.fault import Fault, of_lookup_error
from linkcrawl.network.guard import Address, Network, allowed

logger = logging.getLogger(__name__)

Addresses = tuple[Address, ...]
Lookup = Callable[[str], Iterable[str]]

#: Seconds that one question to the system may take, from when it is asked.
QUESTION = 15.0
#: Seconds before a name is asked for again that gave trouble: a resolver that is started anew is back by then.
PAUSES = (1.0, 4.0)
#: Seconds that trouble is kept: all that a host's gate has to say next meets the same, without three more questions.
TROUBLE_KEPT = 10.0
#: Seconds between two tests of whether the resolver lies, while there is reason to think so.
BETWEEN_TESTS = 10.0
#: Resolvers that answer late are waited for (resolv.conf(5)); a crawl has time, and a false verdict costs more.
PATIENT = "timeout:5 attempts:2"

#: A name that every resolver which reaches the Internet has an address for: that of a root server (RFC 8109).
WELL_KNOWN = "a.root-servers.net"

_HOSTS_FILE = Path("/etc/hosts")


def be_patient() -> None:
    """Have the system's resolver (glibc) wait longer than a desktop would, unless the operator says otherwise by
    RES_OPTIONS. It reads that once: call this before the first lookup of the process."""
    os.environ.setdefault("RES_OPTIONS", PATIENT)


def system_lookup(host: str) -> list[str]:
    """The addresses of a name, in the system's order of preference (RFC 6724). Blocks; raises OSError.

    The name is absolute: this machine's search domains would make another name of one that doesn't exist. AAAA is
    asked for also where this machine has no IPv6: a host that has nothing else exists all the same.
    """
    return [str(found[4][0]) for found in socket.getaddrinfo(absolute(host), None, type=socket.SOCK_STREAM)]


def absolute(host: str) -> str:
    """The name for getaddrinfo, with the root's dot (RFC 1034, 3.1) unless it is no DNS name: an IPv4 address in an odd
    spelling, or a name of the hosts file, which glibc doesn't find there with a dot."""
    if host.endswith(".") or host == "localhost" or host.lower() in _names_of_hosts_file():
        return host
    try:
        socket.inet_aton(host)
    except (OSError, UnicodeError):
        return f"{host}."
    return host


def _names_of_hosts_file(path: Path = _HOSTS_FILE) -> frozenset[str]:
    """All names in the hosts file (hosts(5)), in lower case; read again when the file has changed."""
    try:
        changed_at = path.stat().st_mtime_ns
        known = _hosts_files.get(path)
        if known is None or known[0] != changed_at:
            lines = (line.partition("#")[0].split() for line in path.read_text(errors="replace").splitlines())
            known = _hosts_files[path] = changed_at, frozenset(name.lower() for words in lines for name in words[1:])
    except OSError:
        return frozenset()
    return known[1]


_hosts_files: dict[Path, tuple[int, frozenset[str]]] = {}


@frozen(kw_only=True)
class _Found:
    """What a lookup gave: `addresses` as the system has them, none where there is a `fault`."""

    addresses: Addresses = ()
    fault: Fault | None = None

    @property
    def is_trouble(self) -> bool:
        """True if the lookup failed in a way that says nothing of the name."""
        return self.fault is not None and self.fault.failure in (Failure.DNS_TROUBLE, Failure.LOCAL_SHORTAGE)


class Resolver:
    """Answers are kept for `ttl` seconds, "no such name" for `negative_ttl`, trouble for `trouble_ttl`.

    At most `limit` names are kept, the oldest go first. At most `lookups` names are asked for at once, the others wait
    for their turn, which is on nobody's account. A name that gives trouble, or no answer within `timeout` seconds, is
    asked for again after each of `pauses` (seconds) before it counts as trouble; a lookup that takes longer goes on,
    and whoever asks for the same name meanwhile joins it. `clock` gives steady seconds.

    A resolver may lie: a captive portal answers every name with its own address, some providers each name that
    doesn't exist. Where names of two domains have the same addresses, a name that can't exist is asked for
    (RFC 6761, 6.4); names that lead to where that one does are trouble.
    """

    def __init__(
        self,
        *,
        exempt: Iterable[Network] = (),
        ttl: float = 300.0,
        negative_ttl: float = 60.0,
        trouble_ttl: float = TROUBLE_KEPT,
        limit: int = 20_000,
        lookups: int = descriptors.MOST_LOOKUPS,
        timeout: float = QUESTION,
        pauses: Iterable[float] = PAUSES,
        clock: Callable[[], float] = time.monotonic,
        lookup: Lookup = system_lookup,
    ) -> None:
        self._exempt = tuple(exempt)
        self._ttl, self._negative_ttl, self._trouble_ttl = ttl, negative_ttl, trouble_ttl
        self._limit, self._timeout, self._pauses = limit, timeout, tuple(pauses)
        self._clock = clock
        self._lookup = lookup
        self._threads = ThreadPoolExecutor(lookups, thread_name_prefix="resolver")
        self._turns = asyncio.Semaphore(lookups)
        self._standstills = StandstillMonitor()
        self._known: OrderedDict[str, tuple[float, _Found]] = OrderedDict()
        self._running: dict[str, asyncio.Future[_Found]] = {}
        self._asked: dict[str, asyncio.Task[_Found]] = {}
        self._domains: OrderedDict[Addresses, str] = OrderedDict()  # the first domain that was found at addresses
        self._lie: frozenset[Address] = frozenset()
        self._tested_at = float("-inf")
        self._test: asyncio.Task[None] | None = None

    async def resolve(self, host: str) -> Addresses | Fault:
        """The addresses of `host` (a name, or an address without brackets) that may be connected: at least one."""
        literal = _literal(host)
        if literal is not None:
            return self._judge((literal,))
        known = self._known.get(host)
        if known and self._clock() < known[0]:
            found = known[1]
        else:
            # Shielded: others may be waiting for the same name.
            found = await asyncio.shield(self._asked.get(host) or self._begin(host))
        return found.fault or self._judge(found.addresses)

    async def knows_names(self) -> bool:
        """True where the resolver gives an address to a name that is known to exist, and none to one that can't exist:
        what it says of other names may be believed."""
        await self._ask_again_about_lies()
        found = await self._ask(WELL_KNOWN)
        return bool(found.addresses) and not self._lie

    def forget_faults(self) -> None:
        """Ask anew for all names that were not found, or gave trouble: it was our own network's doing."""
        for name in [name for name, (_, found) in self._known.items() if found.fault is not None]:
            del self._known[name]

    def close(self) -> None:
        """Ask nothing more. A lookup that is under way can't be stopped; nobody waits for it."""
        for task in (*self._asked.values(), self._test):
            if task is not None:
                task.cancel()
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _begin(self, host: str) -> asyncio.Task[_Found]:
        task = self._asked[host] = asyncio.get_running_loop().create_task(self._find(host))
        task.add_done_callback(lambda _: self._asked.pop(host, None))
        return task

    async def _find(self, host: str) -> _Found:
        found = await self._believed(host, await self._ask(host))
        for pause in self._pauses:
            if not found.is_trouble:
                return found
            await asyncio.sleep(pause)
            found = await self._believed(host, await self._ask(host))
        if found.fault is not None and found.fault.failure is Failure.DNS_TROUBLE:
            self._keep(host, found)
        return found

    async def _ask(self, host: str) -> _Found:
        """One question to the system, or what comes of one that is under way."""
        running = self._running.get(host) or await self._start(host)
        try:
            async with Deadline(self._standstills, self._timeout):
                return await asyncio.shield(running)
        except TimeoutError:
            detail = f"no answer within {self._timeout:g} s"
            return _Found(fault=Fault(failure=Failure.DNS_TROUBLE, detail=detail))

    async def _start(self, host: str) -> asyncio.Future[_Found]:
        await self._turns.acquire()
        running = asyncio.get_running_loop().run_in_executor(self._threads, self._answer, host)
        self._running[host] = running
        running.add_done_callback(partial(self._answered, host))
        return running

    def _answer(self, host: str) -> _Found:
        """Runs in a thread."""
        try:
            addresses = tuple(dict.fromkeys(ipaddress.ip_address(text) for text in self._lookup(host)))
        except OSError as error:
            fault = of_lookup_error(error)
            if descriptors.are_short():
                fault = evolve(fault, failure=Failure.LOCAL_SHORTAGE)
            return _Found(fault=fault)
        except MemoryError:
            return _Found(fault=Fault(failure=Failure.LOCAL_SHORTAGE, detail="out of memory"))
        except ValueError as error:  # a label that is empty or over 63 bytes: no DNS has such a name
            return _Found(fault=Fault(failure=Failure.DNS_NOT_FOUND, detail=str(error)))
        if not addresses:
            return _Found(fault=Fault(failure=Failure.DNS_NOT_FOUND, detail="no address"))
        return _Found(addresses=addresses)

    def _answered(self, host: str, done: asyncio.Future[_Found]) -> None:
        del self._running[host]
        self._turns.release()
        if not done.cancelled() and done.exception() is None and not done.result().is_trouble:
            self._keep(host, done.result())

    def _judge(self, found: Addresses) -> Addresses | Fault:
        fit = tuple(address for address in found if allowed(address, self._exempt))
        if fit:
            return fit
        return Fault(failure=Failure.FORBIDDEN_ADDRESS)  # which address is nobody's business: records are public

    def _keep(self, host: str, found: _Found) -> None:
        if found.is_trouble:
            seconds = self._trouble_ttl
        elif found.fault is not None or isinstance(self._judge(found.addresses), Fault):
            seconds = self._negative_ttl
        else:
            seconds = self._ttl
        self._known[host] = self._clock() + seconds, found
        self._known.move_to_end(host)
        if len(self._known) > self._limit:
            self._known.popitem(last=False)

    async def _believed(self, host: str, found: _Found) -> _Found:
        """What was found, or trouble where it is what the resolver makes up."""
        if not found.addresses:
            return found
        domain = self._domains.setdefault(found.addresses, _domain(host))
        self._domains.move_to_end(found.addresses)
        if len(self._domains) > self._limit:
            self._domains.popitem(last=False)
        if domain == _domain(host) and not self._lie:
            return found
        await self._ask_again_about_lies()
        if not self._lie.issuperset(found.addresses):
            return found
        detail = "the resolver gives the same address to names that can't exist"
        return _Found(fault=Fault(failure=Failure.DNS_TROUBLE, detail=detail))

    async def _ask_again_about_lies(self) -> None:
        if self._clock() - self._tested_at >= BETWEEN_TESTS:
            self._test = self._test or asyncio.get_running_loop().create_task(self._test_resolver())
            await asyncio.shield(self._test)

    async def _test_resolver(self) -> None:
        """Ask for a name that can't exist, and remember what it leads to."""
        try:
            name = f"{secrets.token_hex(8)}.invalid"
            found = await self._ask(name)
            self._known.pop(name, None)
            self._tested_at = self._clock()
            if found.is_trouble:
                return
            lie = frozenset(found.addresses)
            if lie and not self._lie:
                logger.error(
                    "The DNS resolver lies: it gives %s to %s, a name that can't exist. Names that it gives the same "
                    "to count as not looked up; a captive portal, or a provider's search page, would do that",
                    ", ".join(sorted(map(str, lie))),
                    name,
                )
            elif self._lie and not lie:
                logger.warning("The DNS resolver says again which names don't exist")
            self._lie = lie
            made_up = [name for name, (_, kept) in self._known.items() if kept.addresses and lie >= {*kept.addresses}]
            for name in made_up:
                del self._known[name]
        finally:
            self._test = None


_resolvers: WeakKeyDictionary[object, Resolver] = WeakKeyDictionary()


def resolver_of(crawl: object, exempt: Iterable[Network]) -> Resolver:
    """The one resolver of a crawl (any object that stands for it), made where there is none yet: gates and both
    download handlers ask the same, so that a name is looked up once."""
    resolver = _resolvers.get(crawl)
    if resolver is None:
        lookups = descriptors.shares_now(0).lookups
        resolver = _resolvers[crawl] = Resolver(exempt=exempt, lookups=lookups)
    return resolver


def _domain(host: str) -> str:
    """The last two labels: names of one domain may well share an address."""
    return ".".join(host.rstrip(".").lower().split(".")[-2:])


def _literal(host: str) -> Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None
