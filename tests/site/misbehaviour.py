"""What a misbehaviour is: a name, what happens at which request target, and the link that leads there."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from attrs import field, frozen

from tests.site.behaviours import answer
from tests.site.wire import Behaviour, Host

Routes = Mapping[str, Behaviour]


@frozen(kw_only=True)
class Ports:
    """The ports of a running site, the same at every address."""

    plain: int
    tls: int


@frozen(kw_only=True)
class Place:
    """Where a misbehaviour lives: its own address, and another for whatever crosses hosts."""

    here: str
    other: str
    ports: Ports

    def url(self, path: str = "/doc") -> str:
        return f"http://{self.here}:{self.ports.plain}{path}"

    def tls_url(self, path: str = "/doc") -> str:
        return f"https://{self.here}:{self.ports.tls}{path}"

    def other_url(self, path: str = "/doc") -> str:
        return f"http://{self.other}:{self.ports.plain}{path}"


def _doc(at: Place) -> str:
    return at.url("/doc")


def _nothing(at: Place) -> Routes:
    return {}


@frozen(kw_only=True)
class Misbehaviour:
    """A row of the table. `routes` and `other` make the site at the two addresses; `link` is what to check."""

    name: str
    about: str
    routes: Callable[[Place], Routes] = _nothing
    other: Callable[[Place], Routes] = _nothing
    link: Callable[[Place], str] = _doc
    tls: str | None = None
    plain_on_tls: bool = False
    on_connect: Behaviour | None = None
    listening: bool = True

    def hosts(self, at: Place) -> list[Host]:
        mine = Host(
            address=at.here,
            routes=self.routes(at),
            tls=self.tls,
            plain_on_tls=self.plain_on_tls,
            on_connect=self.on_connect,
            listening=self.listening,
        )
        return [mine, Host(address=at.other, routes=self.other(at))]


@frozen
class _Page:
    """Routes with one page in them."""

    behaviour: Behaviour
    path: str
    more: Routes = field(factory=dict)

    def __call__(self, at: Place) -> Routes:
        return {self.path: self.behaviour, **self.more}


def page(name: str, about: str, behaviour: Behaviour) -> Misbehaviour:
    """A misbehaviour of the page /doc alone."""
    return Misbehaviour(name=name, about=about, routes=_Page(behaviour, "/doc"))


def robots_file(name: str, about: str, behaviour: Behaviour, path: str = "/doc") -> Misbehaviour:
    """A misbehaviour of robots.txt; the page itself is fine."""
    routes = _Page(answer(), path, {"/robots.txt": behaviour})
    return Misbehaviour(name=name, about=about, routes=routes, link=lambda at: at.url(path))


def place_of(number: int, ports: Ports) -> Place:
    """The addresses of the misbehaviour with this number in the table."""
    return Place(here=f"127.21.{number}.1", other=f"127.22.{number}.2", ports=ports)
