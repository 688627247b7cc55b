"""A check on its way from one worker to another, as JSON: everything that its next hop needs, and nothing executable.

cattrs structures it: a check that isn't what the types say is refused, not guessed.
"""

from __future__ import annotations

import json
from uuid import uuid4

import cattrs
from attrs import frozen
from cattrs.preconf.json import make_converter

from linkcrawl.check.procedure import Check
from linkcrawl.errors import UnreadableTransfer
from linkcrawl.items import DueLink
from linkcrawl.urls import Refused, Target, read

#: The layout of a transferred check; another is refused.
VERSION = 4

_converter = make_converter(forbid_extra_keys=True)


def _read_target(text: str, _: type) -> Target:
    target = read(text)
    if isinstance(target, Refused):
        raise ValueError(target.error)
    return target


# A target travels as its URL: its parts are never taken from a stranger, and reading a target's URL gives the target.
_converter.register_unstructure_hook(Target, lambda target: target.url)
_converter.register_structure_hook(Target, _read_target)


@frozen(kw_only=True)
class Ticket:
    """Identifies one check of a link. `home_gate`: the gate of the link's own host, whose holder must not begin another
    check of the link meanwhile."""

    link: int | str
    host: str
    home_gate: str
    nonce: str

    @classmethod
    def of(cls, link: DueLink, home_gate: str) -> Ticket:
        """A ticket for a check that goes to another worker now."""
        return cls(link=link.id, host=link.host, home_gate=home_gate, nonce=uuid4().hex)

    @property
    def token(self) -> str:
        """The ticket as Redis keeps it, under its home gate."""
        return json.dumps([self.link, self.host, self.nonce])


def ticket_from_token(token: str, home_gate: str) -> Ticket:
    """The ticket that `Ticket.token` gave."""
    link, host, nonce = json.loads(token)
    return Ticket(link=link, host=host, home_gate=home_gate, nonce=nonce)


@frozen(kw_only=True)
class TransferredCheck:
    """A check between two hops: `check.request` is what comes next."""

    version: int
    ticket: Ticket
    link: DueLink
    check: Check

    def text(self) -> str:
        """The check as JSON."""
        return str(_converter.dumps(self))


def read_ticket(text: str) -> Ticket | None:
    """The ticket of a transferred check of any version; None where it can't be read either. Its layout stays."""
    try:
        return _converter.structure(json.loads(text)["ticket"], Ticket)
    except (ValueError, TypeError, KeyError, RecursionError, cattrs.BaseValidationError):
        return None


def read_transfer(text: str) -> TransferredCheck:
    """The check of a JSON text. Raises UnreadableTransfer."""
    try:
        found: TransferredCheck = _converter.loads(text, TransferredCheck)
    except (ValueError, AttributeError, TypeError, RecursionError, cattrs.BaseValidationError) as fault:
        raise UnreadableTransfer(f"not a transferred check: {text[:80]!r}") from fault
    if found.version != VERSION or found.check.request is None:
        raise UnreadableTransfer(f"a transferred check of version {found.version}; {VERSION} would work")
    return found
