"""Names into addresses that may be connected, with a time to live.

The connection goes to the addresses that come out of here and nothing asks DNS again in between, so a name can't
show one address to the guard and another to the connection.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from weakref import WeakKeyDictionary

from linkcrawl.check.outcome import Failure
from linkcrawl.network.fault import Fault, of_lookup_error
from linkcrawl.network.guard import Address, Network, allowed

Addresses = tuple[Address, ...]
Lookup = Callable[[str], Iterable[str]]

#: Lookups at once. They only wait; more would overload a small resolver, and its silence be taken for trouble.
THREADS = 32


def system_lookup(host: str) -> list[str]:
    """The addresses of a name, in the system's order of preference (RFC 6724). Blocks; raises OSError.

    AAAA is asked for also where this machine has no IPv6: a host that has nothing else exists all the same.
    """
    return [str(found[4][0]) for found in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)]


class Resolver:
    """Answers are kept for `ttl` seconds, "no such name" for `negative_ttl`, trouble not at all.

    At most `limit` names are kept, the oldest go first. A question waits `timeout` seconds at most; a lookup that
    takes longer goes on, and whoever asks for the same name meanwhile joins it. `clock` gives steady seconds.
    """

    def __init__(
        self,
        *,
        exempt: Iterable[Network] = (),
        ttl: float = 300.0,
        negative_ttl: float = 60.0,
        limit: int = 20_000,
        timeout: float = 10.0,
        clock: Callable[[], float] = time.monotonic,
        lookup: Lookup = system_lookup,
    ) -> None:
        self._exempt = tuple(exempt)
        self._ttl, self._negative_ttl, self._limit, self._timeout = ttl, negative_ttl, limit, timeout
        self._clock = clock
        self._lookup = lookup
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="resolver")
        self._known: OrderedDict[str, tuple[float, Addresses | Fault]] = OrderedDict()
        self._asked: dict[str, asyncio.Future[Addresses | Fault]] = {}

    async def resolve(self, host: str) -> Addresses | Fault:
        """The addresses of `host` (a name, or an address without brackets) that may be connected: at least one."""
        literal = _literal(host)
        if literal is not None:
            return self._judge((literal,))
        known = self._known.get(host)
        if known and self._clock() < known[0]:
            return known[1]
        try:
            async with asyncio.timeout(self._timeout):
                # Shielded: others may be waiting for the same lookup.
                return await asyncio.shield(self._asked.get(host) or self._ask(host))
        except TimeoutError:
            return Fault(failure=Failure.DNS_TROUBLE, detail=f"no answer within {self._timeout:g} s")

    def close(self) -> None:
        """Ask nothing more. A lookup that is under way can't be stopped; nobody waits for it."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _ask(self, host: str) -> asyncio.Future[Addresses | Fault]:
        future = asyncio.get_running_loop().run_in_executor(self._threads, self._answer, host)
        self._asked[host] = future
        future.add_done_callback(lambda done: self._keep(host, done))
        return future

    def _answer(self, host: str) -> Addresses | Fault:
        """Runs in a thread."""
        try:
            return self._judge(tuple(dict.fromkeys(ipaddress.ip_address(text) for text in self._lookup(host))))
        except OSError as error:
            return of_lookup_error(error)
        except ValueError as error:  # a label that is empty or over 63 bytes: no DNS has such a name
            return Fault(failure=Failure.DNS_NOT_FOUND, detail=str(error))

    def _judge(self, found: Addresses) -> Addresses | Fault:
        if not found:
            return Fault(failure=Failure.DNS_NOT_FOUND, detail="no address")
        fit = tuple(address for address in found if allowed(address, self._exempt))
        if fit:
            return fit
        return Fault(failure=Failure.FORBIDDEN_ADDRESS, detail=", ".join(map(str, found[:4])))

    def _keep(self, host: str, done: asyncio.Future[Addresses | Fault]) -> None:
        del self._asked[host]
        if done.cancelled():
            return
        answer = done.result()
        if isinstance(answer, Fault) and answer.failure is Failure.DNS_TROUBLE:
            return
        self._known[host] = (self._clock() + (self._negative_ttl if isinstance(answer, Fault) else self._ttl), answer)
        self._known.move_to_end(host)
        if len(self._known) > self._limit:
            self._known.popitem(last=False)


_resolvers: WeakKeyDictionary[object, Resolver] = WeakKeyDictionary()


def resolver_of(crawl: object, exempt: Iterable[Network]) -> Resolver:
    """The one resolver of a crawl (any object that stands for it), made where there is none yet: gates and both
    download handlers ask the same, so that a name is looked up once."""
    resolver = _resolvers.get(crawl)
    if resolver is None:
        resolver = _resolvers[crawl] = Resolver(exempt=exempt)
    return resolver


def _literal(host: str) -> Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None
