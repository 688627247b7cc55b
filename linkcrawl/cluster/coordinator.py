"""What the workers of a cluster share, in Redis: who leases which gate, and everything that goes from one to the next.

A worker has a *session*; its leases are the session's, and end with it. Redis' own clock decides, in Lua scripts that
change all or nothing. What is due is in the store alone: whatever Redis loses is found there again.

Keys (docs/cluster.md has the table) stand under a *generation*. A Redis that doesn't know our scripts has been
restarted, or is another one: what it holds may be older than what workers did since, so a new generation begins, and
nothing of the old one counts.
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

from linkcrawl.errors import SessionLost
from linkcrawl.politeness.policy.limits import SharedLimit, redis_windows
from linkcrawl.redis_client import connect_async

#: Of all keys. The braces are a hash tag: all keys of a script in one slot, as Redis Cluster needs it.
PREFIX = "{linkcrawl}:"
#: What a session may hold is used until so many seconds before its end.
MARGIN = 1.0
#: Leases that a check on its way between two workers is believed in without a word of it.
KEEP_LEASES = 4
#: Longest wait that is told to the next holder of a gate, in seconds: what is longer stands in the store as well.
MAX_WAIT = 2 * 86400.0


@frozen(kw_only=True)
class HeartbeatReply:
    """How the cluster is. `others`: workers alive besides us, `busy` of them have something to do, `load`: gates with
    work that they hold. `agreed`: all have the same policies. `bells`: gates of ours that others have something for."""

    others: int
    busy: int
    load: int
    agreed: bool
    bells: tuple[str, ...]


@frozen(kw_only=True)
class LeaseResult:
    """A gate that was asked for. `standing`: `taken` (now ours), `mine` (was before), `held` by another, `empty`, or
    `shut` (leases of before Redis was restarted may still be used).

    `wait`: seconds until it may send by what its last holder said; None where that is unknown. `hops`: checks whose
    next hop waits for it, as JSON; `Coordinator.take_in` takes them. `out`: tokens of its links' checks that go on
    elsewhere. `deaths`: by link id, how often a session died over it.
    """

    standing: str
    wait: float | None = None
    hops: tuple[str, ...] = ()
    out: tuple[str, ...] = ()
    deaths: Mapping[str, int]


@frozen(kw_only=True)
class LeaseRelease:
    """A gate on its way back. `wait`: seconds until it may send, None where that isn't known. `done`: nothing is due
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
    """One worker's hand on it. Every method but `join` raises Lost when the session is over, and redis.RedisError
    when Redis can't be asked. Then it may have run all the same, and only its answer be lost: every call may be
    repeated."""

    def __init__(self, client: Redis, lease: float):
        self._client = client
        self._lease = lease
        database = client.connection_pool.connection_kwargs.get("db", 0)
        # Redis knows scripts by their text, whatever the database; a restart is to be noticed in each.
        self._sources = {name: f"-- database {database}\n{_source(name)}" for name in _SCRIPTS}
        self._shas = {name: hashlib.sha1(text.encode()).hexdigest() for name, text in self._sources.items()}
        self.session = ""
        self.generation = ""
        #: Steady seconds until which the leases are ours.
        self.deadline = float("-inf")
        #: Seconds spent waiting for Redis, and scripts run; for metrics.
        self.seconds, self.calls = 0.0, 0

    @classmethod
    def connect(cls, url: str, lease: float) -> Coordinator:
        """A hand on the ledger at a redis:// URL; nothing is asked yet."""
        return cls(connect_async(url, "LINKCRAWL_FRONTIER"), lease)

    async def join(self, about: Mapping[str, Any], policies: str) -> None:
        """Begin a session. `about`: what people are shown of this worker. Raises redis.RedisError."""
        self.session, self.deadline = uuid4().hex, float("-inf")
        while True:
            sent = time.monotonic()
            try:
                self.generation = str(await self._client.get(f"{PREFIX}generation") or "")
                if not self.generation:  # nobody was here before; who comes at the same time does the same
                    await self._load_scripts()
                    await self._client.set(f"{PREFIX}generation", 1, nx=True)
                    continue
                joined = {"lease": _ms(self._lease), "about": json.dumps(about), "policies": policies}
                await self._run("join", joined)
            except SessionLost:
                continue
            self.deadline = sent + self._lease - MARGIN
            return

    async def beat(self, *, busy: bool, load: int, policies: str) -> HeartbeatReply:
        """Renew the session. `load`: how many gates with work it holds."""
        sent = time.monotonic()
        said = {"lease": _ms(self._lease), "busy": busy, "load": load, "policies": policies}
        reply = await self._run("beat", said)
        self.deadline = sent + self._lease - MARGIN
        return HeartbeatReply(
            others=reply["others"],
            busy=reply["busy"],
            load=reply["load"],
            agreed=reply["agreed"],
            bells=tuple(reply["bells"]),
        )

    async def leave(self) -> None:
        """End the session; its gates were given back before."""
        await self._run("leave", {})

    async def places(self, hosts: Sequence[str]) -> dict[str, str]:
        """The gates of those of the hosts that have been placed."""
        found = await self._client.hmget(f"{PREFIX}{self.generation}:places", list(hosts)) if hosts else []
        return {host: str(gate) for host, gate in zip(hosts, found, strict=True) if gate is not None}

    async def place(self, hosts: Sequence[tuple[str, str, str]], few: int) -> dict[str, str]:
        """The gates of hosts (host key, registered domain, address or ""), chosen now where they are new."""
        return dict(await self._run("place", {"hosts": hosts, "few": few}))

    async def take(self, gates: Sequence[tuple[str, float, int]], *, wanted: bool = False) -> list[LeaseResult]:
        """Lease gates; with each, when (Unix seconds) links were last seen due there, and how many. `wanted`: have
        others give it."""
        asked = [(gate, _ms(looked), due) for gate, looked, due in gates]
        return [_taken(row) for row in await self._run("take", {"gates": asked, "wanted": wanted}) if row]

    async def give(self, gates: Iterable[LeaseRelease]) -> None:
        """Give gates back."""
        rows = [(each.gate, _wait(each.wait), each.done) for each in gates]
        await self._run("give", {"gates": rows})

    async def waited_for(self, most: int) -> list[str]:
        """Some of the gates that hops wait for."""
        found = await self._client.srandmember(f"{PREFIX}{self.generation}:hopgates", most)
        return list(map(str, found or ()))

    async def send(self, hop: WaitingTransfer, home: str, token: str, journey: str) -> None:
        """Pass a check on to whoever leases the gate, or will; `home`: the gate of its link. The same `journey` is gone
        once, however often it is said."""
        said = {"gate": hop.gate, "hop": hop.text, "home": home, "token": token, "journey": journey}
        await self._run("send", said | self._kept)

    async def collect(self, gates: Sequence[str]) -> tuple[list[WaitingTransfer], dict[str, bool]]:
        """What bells were rung for: the hops that wait for gates of ours, and those of the gates that another worker
        wants, each with whether that one comes before us where both want something of each other."""
        reply = await self._run("collect", {"gates": gates})
        return [WaitingTransfer(gate=gate, text=text) for gate, text in reply["hops"]], dict(reply["wanted"])

    async def take_in(self, hops: Sequence[WaitingTransfer], tickets: Sequence[tuple[str, str]]) -> list[bool]:
        """Take hops out of Redis, and renew the tickets (home, token) of the first of them: which of these are ours
        and still out."""
        arrived = [(hop.gate, hop.text) for hop in hops]
        said = {"arrived": arrived, "renewed": tickets, "watched": (), "ended": ()}
        reply = await self._run("out", said | self._kept)
        return [here and out for here, out in zip(reply["arrived"], reply["renewed"], strict=False)]

    async def out(
        self,
        renewed: Sequence[tuple[str, str]],
        watched: Sequence[tuple[str, str]],
        ended: Sequence[tuple[str, str]] = (),
    ) -> tuple[list[bool], list[bool]]:
        """Say which checks (home, token) from elsewhere we work on, and which have ended; ask after ours elsewhere."""
        said = {"arrived": (), "renewed": renewed, "watched": watched, "ended": ended}
        reply = await self._run("out", said | self._kept)
        return list(reply["renewed"]), list(reply["watched"])

    async def grant(self, limits: Sequence[SharedLimit], permit: str, at: float) -> float:
        """Ask for a permit to start a check under all these limits, now or not at all. Returns the seconds to wait; 0:
        it is granted, and holds until `settle`. `permit`: its name; `at`: Unix seconds, whose windows it counts in."""
        rows = [limit.redis_row() for limit in limits]
        reply = await self._run("grant", {"limits": rows, "permit": permit, "windows": redis_windows(at)})
        return float(reply["wait"]) / 1000

    async def settle(self, limits: Sequence[SharedLimit], permit: str, at: float, *, used: bool) -> None:
        """Report a permit as used (its check has started) or return it. `at`: as when it was granted."""
        rows = [limit.redis_row() for limit in limits]
        await self._run("settle", {"limits": rows, "permit": permit, "used": used, "windows": redis_windows(at)})

    async def flying(self, links: Mapping[str, str]) -> None:
        """What is in flight, by gate."""
        await self._run("flying", {"flying": links})

    async def close(self) -> None:
        """Let go of the connections."""
        await self._client.aclose()

    @property
    def _kept(self) -> dict[str, int]:
        return {"keep": _ms(self._lease * KEEP_LEASES)}

    async def _run(self, script: str, given: Mapping[str, Any]) -> Any:
        began = time.monotonic()
        try:
            reply = await self._client.evalsha(
                self._shas[script], 1, PREFIX, self.session, self.generation, json.dumps(given)
            )
        except redis.exceptions.NoScriptError:
            if any(await self._client.script_exists(*self._shas.values())):  # loading them was broken off
                await self._load_scripts()
                return await self._run(script, given)
            await self._begin_generation()
            raise SessionLost("Redis was restarted") from None
        finally:
            self.calls += 1
            self.seconds += time.monotonic() - began
        if reply == "lost":
            raise SessionLost("the session is over")
        return json.loads(reply)

    async def _begin_generation(self) -> None:
        await self._client.eval(_read("reset.lua"), 1, PREFIX, _ms(self._lease))
        await self._load_scripts()

    async def _load_scripts(self) -> None:
        for text in self._sources.values():
            await self._client.script_load(text)


_SCRIPTS = ("join", "beat", "place", "take", "give", "send", "collect", "out", "grant", "settle", "flying", "leave")


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
        hops=tuple(row.get("hops") or ()),
        out=tuple(row.get("out") or ()),
        deaths={link: int(count) for link, count in zip(deaths[::2], deaths[1::2], strict=True)},
    )
