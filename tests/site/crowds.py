"""Sites of many hosts that behave alike, for rules of pace, order and survival."""

from __future__ import annotations

from tests.site.behaviours import answer, redirect, robots, silence
from tests.site.misbehaviour import Ports
from tests.site.wire import Host


def healthy(number: int) -> str:
    """The address of a healthy host."""
    return f"127.{31 + number // 250}.{number % 250}.1"


def hanging(number: int) -> str:
    """The address of a host that never answers."""
    return f"127.41.{number}.1"


#: The address of a resolver of persistent identifiers: /N redirects to page /N of healthy host N % hosts.
RESOLVER = "127.51.0.1"


def crowd(
    ports: Ports,
    hosts: int = 0,
    silent: int = 0,
    after: float = 0.0,
    pages: int = 0,
    crossed: bool = False,
    doubled: bool = False,
) -> list[Host]:
    """`hosts` healthy hosts that answer `after` so many seconds, `silent` ones that never do, and a resolver that
    knows so many `pages`. `crossed`: each healthy host's robots.txt redirects to its neighbour (0 to 1 and back, 2 to
    3 and back), which forbids /secret there. `doubled`: a healthy host is at both ports of its address, and the
    resolver redirects to the other one."""
    page, never = answer(after=after), silence()
    free = answer(404, b"", mime="text/plain")
    routes = {"*": page, "/robots.txt": free}
    port = ports.tls if doubled else ports.plain
    where = [f"http://{healthy(number % hosts)}:{port}/{number}" for number in range(pages)]
    targets = {f"/{number}": redirect(url) for number, url in enumerate(where)}
    rules = robots("User-agent: *\nDisallow: /secret\n")
    elsewhere = [redirect(f"http://{healthy(number ^ 1)}:{ports.plain}/rules.txt", 301) for number in range(hosts)]
    return [
        *(
            Host(
                address=healthy(number),
                routes={"*": page, "/robots.txt": elsewhere[number], "/rules.txt": rules} if crossed else routes,
                plain_on_tls=doubled,
            )
            for number in range(hosts)
        ),
        *(Host(address=hanging(number), routes={"*": never, "/robots.txt": free}) for number in range(silent)),
        Host(address=RESOLVER, routes=targets),
    ]
