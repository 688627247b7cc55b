"""The gates that this worker leases. Other modules only read the table; `cluster.leases` changes it."""

from __future__ import annotations

from itertools import islice

from attrs import define, field

from linkcrawl.cluster.coordinator import LeaseRelease
from linkcrawl.session import Session

#: Gates that Redis compares in one heartbeat, so that no script holds it for long.
COMPARED = 100


@define(eq=False)
class Lease:
    """A leased gate: its hosts, and by link id how many sessions died over the link."""

    hosts: set[str] = field(factory=set)
    deaths: dict[str, int] = field(factory=dict)


class LeaseTable:
    """`leases` by gate; `gate_of` a host that is fed; `closing`: gates where no check begins any more, and since when
    (Unix seconds); `releasing`: gates on their way back to Redis; `released_hosts`: the hosts of those."""

    def __init__(self, session: Session):
        self._session = session
        self.leases: dict[str, Lease] = {}
        self.gate_of: dict[str, str] = {}
        self.closing: dict[str, float] = {}
        self.releasing: dict[str, LeaseRelease] = {}
        self.released_hosts: set[str] = set()
        self._regrouping: set[str] = set()
        self._compared = 0

    def __len__(self) -> int:
        return len(self.leases)

    def has(self, gate: str) -> bool:
        """True where requests may go through the gate."""
        return gate in self.leases

    def feeds(self, gate: str) -> bool:
        """True where checks may begin at the gate."""
        return gate in self.leases and gate not in self.closing

    def feeds_host(self, host: str) -> bool:
        """True where due links of the host are to be fetched."""
        gate = self.gate_of.get(host)
        return gate is not None and self.feeds(gate)

    def knows(self, name: str) -> bool:
        """True where this worker stores the memory of this host or gate."""
        return name in self.leases or name in self.gate_of or name in self.releasing or name in self.released_hosts

    def some(self) -> dict[str, Lease]:
        """Some of the leases by gate, other ones each time, until all had their turn."""
        if self._compared >= len(self.leases):
            self._compared = 0
        found = dict(islice(self.leases.items(), self._compared, self._compared + COMPARED))
        self._compared += COMPARED
        return found

    def deaths(self, gate: str, link_id: int | str) -> int:
        """How many sessions died over a link."""
        lease = self.leases.get(gate)
        return 0 if lease is None else lease.deaths.get(str(link_id), 0)

    def regroup(self) -> None:
        """Policies have changed: the gates that are leased now were formed by the old ones."""
        self._regrouping.update(self.leases)

    @property
    def is_regrouping(self) -> bool:
        """True while a gate that the old policies formed is still leased: the new ones may put its hosts into another
        gate."""
        self._regrouping = {name for name in self._regrouping if name in self.leases or name in self.releasing}
        return bool(self._regrouping)

    @property
    def is_moving(self) -> bool:
        """True while a gate is about to go, and a crawl that ends waits for it."""
        now, patience = self._session.now(), self._session.config.patience
        return bool(self.releasing) or any(now - since < patience for since in self.closing.values())

    def clear(self) -> None:
        """All leases are lost."""
        self.leases.clear()
        self.gate_of.clear()
        self.closing.clear()
        self.releasing.clear()
        self.released_hosts.clear()
        self._regrouping.clear()
