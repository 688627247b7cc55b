"""What the workers of a cluster share in Redis: the leases of gates, and what one worker hands to another.

A worker has a *session*; its leases are the session's, and end with it. Redis' own clock decides, in Lua scripts that
change all or nothing. What is due is in the store alone: whatever Redis loses is found there again.

Keys (docs/cluster.md has the table) stand under a *generation*. Where Redis was restarted, is another server, or has
lost keys, what it holds may be older than what workers did since: a new generation begins, and nothing of the old one
counts.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterable, Mapping, Sequence
from importlib import resources
from typing import Any
from uuid import uuid4

import redis
from attrs import frozen
from redis.asyncio import Redis

from linkcrawl.clock import boot_time
from linkcrawl.errors import SessionLost
from linkcrawl.politeness.policy.limits import SharedLimit, redis_windows
from linkcrawl.redis_client import connect_async
from linkcrawl.units import DAY

#: Of all keys. The braces are a hash tag: all keys of a script in one slot, as Redis Cluster needs it.
PREFIX = "{linkcrawl}:"
#: The layout of the keys. Workers of different ones never work at the same time; `generation`, `workers`, `about` and
#: `protocol` must stay as they are, for by these they know of each other.
LAYOUT = 2
#: Seconds before the end of a session from which its leases are not used any more.
MARGIN = 1.0
#: A ticket of a transferred check expires after so many lease periods without renewal.
KEEP_LEASES = 4
#: Longest wait that Redis passes on to the next holder of a gate, in seconds: longer ones are in the store as well.
MAX_WAIT = 2 * DAY


@frozen(kw_only=True)
class TimeReading:
    """A reading of Redis' clock. `now`: Unix seconds; `at`: when it was made, by our steady clock (clock.boot_time),
    give or take `error` seconds."""

    now: float
    at: float
    error: float

    @classmethod
    def of(cls, milliseconds: int, sent: float) -> TimeReading:
        """The reading in an answer that has just come to what was sent at `sent` (clock.boot_time)."""
        came = boot_time()
        return cls(now=milliseconds / 1000, at=(sent + came) / 2, error=(came - sent) / 2)


@frozen(kw_only=True)
class HeartbeatReply:
    """How the cluster is. `others`: workers alive besides us; `busy` of them have something to do; `load`: gates with
    work that they lease. `agreed`: all have the same policies. `paces`: what they have published as their pace, each
    text once. `notifications`: gates of ours that others have something for. `missing`: gates that we hold, as we said,
    and that are not ours in Redis. `time`: Redis' clock."""

    others: int
    busy: int
    load: int
    agreed: bool
    paces: tuple[str, ...]
    notifications: tuple[str, ...]
    missing: tuple[str, ...]
    time: TimeReading


@frozen(kw_only=True)
class JoinReply:
    """How joining went. `time`: Redis' clock; `run_id`: which server it is, empty where it doesn't say. `blocked_by`: a
    worker of another protocol that is alive, for people; then no session has begun."""

    time: TimeReading
    run_id: str = ""
    blocked_by: str | None = None


@frozen(kw_only=True)
class LeaseResult:
    """A gate that was asked for. `standing`: `taken` (now ours), `mine` (was before), `held` by another, `empty`,
    `lapsing` (as `empty`, but a check of its links was under way at a worker that is dead: it is begun anew when its
    ticket expires), or `shut` (leases of a generation before may still be used).

    `wait`: seconds until it may send, as its last holder reported; None where that is unknown. `transfers`: checks
    whose next hop waits for it, as JSON; `Coordinator.take_in` takes them. `tickets`: tokens of its links' checks that
    are under way at other workers. `deaths`: by link id, how often a session died over it."""

    standing: str
    wait: float | None = None
    transfers: tuple[str, ...] = ()
    tickets: tuple[str, ...] = ()
    deaths: Mapping[str, int]


@frozen(kw_only=True)
class HostAddress:
    """A host to be placed. `domain`: its registered domain; `address`: where it is asked, empty where its name has
    none, None to be told only what is recorded; `group`: the gate of its policy group, else empty."""

    host: str
    domain: str
    address: str | None
    group: str = ""


@frozen(kw_only=True)
class Placements:
    """Where hosts belong. `found`: gate and address by host; `new`: those that nothing is recorded of. Those that are
    in neither have to wait until gates are given back, ours (`closing`) or others'."""

    found: Mapping[str, tuple[str, str]]
    new: frozenset[str]
    closing: tuple[str, ...]


@frozen(kw_only=True)
class LeaseRelease:
    """A gate that is given back. `wait`: seconds until it may send, None where that is unknown. `done`: no link is due
    there."""

    gate: str
    wait: float | None
    done: bool


@frozen(kw_only=True)
class WaitingTransfer:
    """A check (a JSON text) that waits for a gate."""

    gate: str
    text: str


class Coordinator:
    """One worker's client. Every method but `join` raises SessionLost when the session is over, and redis.RedisError
    when Redis can't be asked. The script may have run even then, if only its answer was lost: every call may be
    repeated."""

    def __init__(self, client: Redis, lease: float):
        self._client = client
        self._lease = lease
        self._sources = {name: _source(name) for name in _SCRIPTS}
        self._shas = {name: hashlib.sha1(text.encode()).hexdigest() for name, text in self._sources.items()}
        self.session = ""
        self.generation = ""
        #: The generation that this worker has found void; empty for none.
        self._void = ""
        #: Seconds since the machine's start (clock.boot_time) until which the leases are ours.
        self.deadline = float("-inf")
        self._moves: int | None = None  # the number of the last move that is known of; None before anything is
        self._moved: list[str] = []
        #: Seconds spent waiting for Redis, and scripts run; for metrics.
        self.seconds, self.calls = 0.0, 0

    @classmethod
    def connect(cls, url: str, lease: float) -> Coordinator:
        """A client of the Redis at a redis:// URL; nothing is asked yet."""
        return cls(connect_async(url, "LINKCRAWL_FRONTIER"), lease)

    async def join(self, about: Mapping[str, Any], *, policies: str, pace: str, protocol: str) -> JoinReply:
        """Begin a session, and a new generation where the last one is void. `about`: what people are shown of this
        worker; `pace`: its settings that pace requests; `protocol`: the layout of what it passes on. Raises
        redis.RedisError."""
        self.session, self.deadline = uuid4().hex, float("-inf")
        self._moves, self._moved = None, []
        sent = boot_time()
        given = {
            "lease": _ms(self._lease),
            "about": json.dumps(about),
            "policies": policies,
            "pace": pace,
            "protocol": protocol,
            "known": int(self.generation or 0),
            "void": self._void,
        }
        reply = await self._run("join", given)
        read = TimeReading.of(reply["now"], sent)
        if "generation" not in reply:
            other = json.loads(reply["about"])
            return JoinReply(
                time=read, blocked_by=f"{other.get('host')}:{other.get('pid')}, protocol {reply['protocol']}"
            )
        self.generation, self._void = reply["generation"], ""
        self.deadline = sent + self._lease - MARGIN
        return JoinReply(time=read, run_id=reply["run_id"])

    def declare_void(self) -> None:
        """What Redis holds of this generation is not to be used, by any worker: the next `join` begins a new one,
        unless another worker has begun it before."""
        self._void = self.generation

    async def heartbeat(
        self, *, busy: bool, load: int, policies: str, held: Sequence[str] = (), idle: bool = False
    ) -> HeartbeatReply:
        """Renew the session. `load`: how many gates with work it leases; `held`: some of its gates, which Redis
        compares with what it knows; `idle`: nothing but heartbeats was sent since the last one."""
        sent = boot_time()
        given = {
            "lease": _ms(self._lease),
            "busy": busy,
            "load": load,
            "policies": policies,
            "held": held,
            "idle": idle,
        }
        reply = await self._run("heartbeat", given)
        self.deadline = sent + self._lease - MARGIN
        return HeartbeatReply(
            others=reply["others"],
            busy=reply["busy"],
            load=reply["load"],
            agreed=reply["agreed"],
            paces=tuple(reply["paces"]),
            notifications=tuple(reply["notifications"]),
            missing=tuple(reply["missing"]),
            time=TimeReading.of(reply["now"], sent),
        )

    async def leave(self) -> None:
        """End the session; its gates were given back before."""
        await self._run("leave", {})

    async def place(self, hosts: Sequence[HostAddress], *, few: int, policies: str) -> Placements:
        """The gates of hosts, recorded now where they are new. `few`: registered domains up to which an address is one
        gate; `policies`: the digest of those that the groups are of."""
        if not hosts:
            return Placements(found={}, new=frozenset(), closing=())
        rows = [(each.host, each.domain, False if each.address is None else each.address, each.group) for each in hosts]
        reply = await self._run("place", {"hosts": rows, "few": few, "policies": policies})
        if self._moves is None:
            self._moves = reply["moves"]
        return Placements(
            found={host: (gate, address) for host, (gate, address) in dict(reply["found"]).items()},
            new=frozenset(reply["new"]),
            closing=tuple(reply["closing"]),
        )

    def take_moved(self) -> list[str]:
        """What has moved, as the calls of `take` since the last one have heard: `host NAME`, or `gate NAME` for all
        hosts of a gate."""
        moved, self._moved = self._moved, []
        return moved

    async def take(
        self, gates: Sequence[tuple[str, float, int]], now: float, *, wanted: bool = False
    ) -> list[LeaseResult]:
        """Lease gates; with each, when its due links were counted (Unix seconds), and how many. `now`: Redis' time as
        this worker has it; where Redis' clock has just been set forward, no wait gets shorter by that. `wanted`: have
        another worker that leases it give it back."""
        # before the first refresh nothing has been seen: minus infinity is no number of milliseconds
        asked = [(gate, _ms(max(seen_at, 0.0)), due) for gate, seen_at, due in gates]
        lapsing = self._lease * (KEEP_LEASES - 1)  # tickets are renewed far more often than once a lease
        given = {"gates": asked, "wanted": wanted, "now": _ms(now), "lapsing": _ms(lapsing)}
        reply = await self._run("take", given | {"moves": self._moves or 0})
        if self._moves is not None:
            self._moved += reply["moved"]
        self._moves = reply["moves"]
        return [_taken(row) for row in reply["taken"] if row]

    async def give(self, gates: Iterable[LeaseRelease]) -> None:
        """Give gates back."""
        rows = [(release.gate, _wait(release.wait), release.done) for release in gates]
        await self._run("give", {"gates": rows})

    async def transfer_gates(self, most: int) -> list[str]:
        """Some of the gates that transferred checks wait for."""
        found = await self._client.srandmember(f"{PREFIX}{self.generation}:transfer_gates", most)
        return list(map(str, found or ()))

    async def send(self, transfer: WaitingTransfer, home_gate: str, token: str, idempotency_key: str) -> None:
        """Pass a check on to whoever leases the gate, or will, with a ticket under the gate of its link. Idempotent by
        `idempotency_key`."""
        given = {"gate": transfer.gate, "check": transfer.text, "home_gate": home_gate, "token": token}
        await self._run("send", given | {"idempotency_key": idempotency_key} | self._keep)

    async def collect(self, gates: Sequence[str]) -> tuple[list[WaitingTransfer], dict[str, bool]]:
        """Answer notifications: the checks that wait for gates of ours, and the gates that another worker wants, each
        with whether that worker comes before us where both want a gate of each other."""
        reply = await self._run("collect", {"gates": gates})
        return [WaitingTransfer(gate=gate, text=text) for gate, text in reply["checks"]], dict(reply["wanted"])

    async def take_in(self, transfers: Sequence[WaitingTransfer], tickets: Sequence[tuple[str, str]]) -> list[bool]:
        """Take checks out of Redis, and renew the tickets (home gate, token) of the first of them: which of these are
        ours and have a valid ticket."""
        arrived = [(transfer.gate, transfer.text) for transfer in transfers]
        given = {"arrived": arrived, "renewed": tickets, "watched": (), "ended": ()}
        reply = await self._run("tickets", given | self._keep)
        return [ours and valid for ours, valid in zip(reply["arrived"], reply["renewed"], strict=False)]

    async def tickets(
        self,
        *,
        renewed: Sequence[tuple[str, str]] = (),
        watched: Sequence[tuple[str, str]] = (),
        ended: Sequence[tuple[str, str]] = (),
    ) -> tuple[list[bool], list[bool]]:
        """Renew and end tickets (home gate, token) of foreign checks, and ask after those of remote checks. Returns
        which of the renewed and of the watched are valid."""
        given = {"arrived": (), "renewed": renewed, "watched": watched, "ended": ended}
        reply = await self._run("tickets", given | self._keep)
        return list(reply["renewed"]), list(reply["watched"])

    async def acquire_permit(self, limits: Sequence[SharedLimit], permit: str, at: float) -> list[float]:
        """Ask for a permit under all these limits, now or not at all. Returns the seconds that each limit has to wait;
        all 0: it is granted, until `settle_permit`. `permit`: its name; `at`: Unix seconds, whose windows it counts
        in."""
        rows = [limit.redis_row() for limit in limits]
        reply = await self._run("acquire_permit", {"limits": rows, "permit": permit, "windows": redis_windows(at)})
        return [wait / 1000 for wait in reply["waits"]]

    async def settle_permit(self, limits: Sequence[SharedLimit], permit: str, at: float, *, used: bool) -> None:
        """Report a permit as used, or return it. `at`: as it was asked for."""
        given = {"limits": [limit.redis_row() for limit in limits], "permit": permit, "used": used}
        await self._run("settle_permit", given | {"windows": redis_windows(at)})

    async def report_in_flight(self, links: Mapping[str, str]) -> None:
        """Report the link in flight at each gate."""
        await self._run("in_flight", {"in_flight": links})

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    @property
    def _keep(self) -> dict[str, int]:
        return {"keep": _ms(self._lease * KEEP_LEASES)}

    async def _run(self, script: str, given: Mapping[str, Any]) -> Any:
        began = time.monotonic()
        arguments = (1, PREFIX, self.session, self.generation, json.dumps(given))
        try:
            reply = await self._client.evalsha(self._shas[script], *arguments)
        except redis.exceptions.NoScriptError:
            reply = await self._client.eval(self._sources[script], *arguments)
        finally:
            self.calls += 1
            self.seconds += time.monotonic() - began
        if reply.startswith(LOST):
            raise SessionLost(reply.removeprefix(LOST))
        return json.loads(reply)


#: Stands before the reason in the answer to a session that is over, or whose generation is void (lua/alive.lua).
LOST = "lost: "

_SCRIPTS = (
    "join",
    "heartbeat",
    "place",
    "take",
    "give",
    "send",
    "collect",
    "tickets",
    "acquire_permit",
    "settle_permit",
    "in_flight",
    "leave",
)


def _read(name: str) -> str:
    return resources.files("linkcrawl.cluster").joinpath("lua", name).read_text(encoding="utf-8")


def _source(script: str) -> str:
    parts = ["common.lua", *([] if script == "join" else ["alive.lua"]), f"{script}.lua"]
    return "".join(map(_read, parts))


def _ms(seconds: float) -> int:
    return round(seconds * 1000)


def _wait(seconds: float | None) -> int:
    return -1 if seconds is None else _ms(min(max(seconds, 0.0), MAX_WAIT))


def _taken(row: Mapping[str, Any]) -> LeaseResult:
    deaths = row.get("deaths") or []
    wait = row.get("wait", -1)
    return LeaseResult(
        standing=row["standing"],
        wait=None if wait < 0 else wait / 1000,
        transfers=tuple(row.get("transfers") or ()),
        tickets=tuple(row.get("tickets") or ()),
        deaths={link: int(count) for link, count in zip(deaths[::2], deaths[1::2], strict=True)},
    )
