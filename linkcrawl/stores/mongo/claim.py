"""The claim of one crawl on a MongoDB store: a lease by the server's clock that its holder renews."""

from __future__ import annotations

import logging
import threading
import time
from typing import Any
from uuid import uuid4

from pymongo import ReturnDocument
from pymongo.collection import Collection
from pymongo.errors import DuplicateKeyError, PyMongoError

from linkcrawl.clock import boot_time
from linkcrawl.errors import ClaimLost, StoreBusy
from linkcrawl.stores.contract import ClusterName
from linkcrawl.stores.process_identity import is_alive, this_process

logger = logging.getLogger(__name__)

#: Seconds from a renewal until the claim expires. A crawl on another machine waits so long after a kill.
LEASE = 15.0
#: Seconds before the claim expires from which no request is sent: another crawl may take it then.
MARGIN = 1.0
#: Seconds between two looks at the claim of a crawl that may be dead.
LOOK = 0.25


class Claim:
    """Held from `take` until `release`. Times are the server's ($$NOW), whatever the clocks of crawlers say.

    A crawl that finds the claim taken watches it: a living holder on this machine is seen at once, one elsewhere when
    it renews, and the claim of a dead one expires. A crawl that could not renew in time loses the claim for good once
    another has taken it: its host memory is outdated then. By a clock that counts suspensions it knows when its claim
    may have expired, and sends nothing from then on (`is_held`).
    """

    def __init__(self, meta: Collection[dict[str, Any]], where: str, lease: float = LEASE):
        self._meta = meta
        self._where = where
        self._lease = lease
        self._me = {**this_process(), "id": uuid4().hex}
        self._is_shared = False
        self._renewed = 0.0
        self._lost: str | None = None
        self._ending = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def taken(self) -> bool:
        """True where this crawl has taken the claim; it may have lost it since (see `check`)."""
        return self._thread is not None

    def is_taken(self) -> bool:
        """True where a crawl has the claim that isn't known to be dead. Raises PyMongoError."""
        holder = self._meta.find_one({"_id": "claim", "$expr": {"$gt": ["$until", "$$NOW"]}})
        return holder is not None and is_alive(holder) is not False

    def take(self, shared: ClusterName | None = None) -> None:
        """Take the claim. Raises StoreBusy, within two lengths of a lease, where another crawl has it; PyMongoError.
        `shared`: a cluster, whose workers hold the claim together as long as one of them renews it."""
        if self._thread is not None:
            return
        if shared is not None:
            # no single process is the cluster, so no look at a process shows its end
            self._me |= {"machine": None, "started": None, "server": shared.server}
            self._me["id"] = self._find_shared(shared)
            self._is_shared = True
        deadline = boot_time() + self._lease + 1
        first = holder = self._renew()
        while holder["id"] != self._me["id"]:
            renewed = holder["until"] != first["until"]
            if renewed or is_alive(holder) or boot_time() > deadline:
                raise StoreBusy(f"LINKCRAWL_STORE: {self._held_by(holder)}: wait for its end, or stop it")
            time.sleep(LOOK)
            holder = self._renew(instead_of=holder["id"] if is_alive(holder) is False else None)
        self._thread = threading.Thread(target=self._keep, name="store-claim", daemon=True)
        self._thread.start()

    def rename(self, shared: ClusterName) -> None:
        """Have the claim name the Redis that its cluster meets at now, from now on. Raises PyMongoError."""
        self._me = {**self._me, "server": shared.server}
        self._renew_or_lose()

    def _find_shared(self, shared: ClusterName) -> str:
        """The id of the claim that workers of this cluster hold, whatever the name by which they reach its Redis; else
        a new one. Where the claim names another Redis, that may have been restarted, or there are two by one name: its
        holders say which, as soon as they have noticed. Raises StoreBusy."""
        deadline = boot_time() + self._lease + 1
        while True:
            query = {"_id": "claim", "$expr": {"$gt": ["$until", "$$NOW"]}}
            holder = self._meta.find_one(query)
            if holder is None or "server" not in holder:
                return f"cluster at {shared.url}"
            if not (holder["server"] and shared.server):
                return f"cluster at {shared.url}"  # only their URLs tell them apart
            if holder["server"] == shared.server:
                return str(holder["id"])
            if boot_time() > deadline:
                raise StoreBusy(
                    f"LINKCRAWL_STORE: {self._held_by(holder)}, a worker that meets others at another Redis: all "
                    "workers of a store need the same LINKCRAWL_FRONTIER; wait for its end, or stop it"
                )
            time.sleep(LOOK)

    @property
    def is_held(self) -> bool:
        """True while nobody else can have taken the claim. Asks no server; any thread may ask."""
        return self._lost is None and boot_time() < self._renewed + self._lease - MARGIN

    def check(self) -> None:
        """Raises ClaimLost where another crawl has taken the claim meanwhile; PyMongoError."""
        if self._lost is None and boot_time() - self._renewed > self._lease * 2 / 3:
            self._renew_or_lose()  # the machine slept, or the server was away
        if self._lost is not None:
            raise ClaimLost(f"{self._where}: the claim was not renewed in time and is lost: {self._lost}")

    def release(self) -> None:
        """Give the claim up at once. Raises PyMongoError; the claim expires then."""
        if self._thread is None:
            return
        self._ending.set()
        self._thread.join()
        self._thread = None
        if not self._is_shared:  # else it expires after its last holder
            self._meta.delete_one({"_id": "claim", "id": self._me["id"]})

    def _keep(self) -> None:
        while self._lost is None and not self._ending.wait(self._lease / 3):
            try:
                self._renew_or_lose()
            except PyMongoError:
                continue  # nobody else can reach the server either, or `check` will see
            except Exception:
                logger.exception("%s: the claim could not be renewed by a fault of ours", self._where)

    def _renew_or_lose(self) -> None:
        holder = self._renew()
        if holder["id"] != self._me["id"]:
            self._lost = self._held_by(holder)

    def _renew(self, instead_of: str | None = None) -> dict[str, Any]:
        """Take or renew the claim where it is free, expired, ours, or held by `instead_of`, a dead process; in one
        atomic update. Returns the present holder."""
        before = boot_time()
        free = [
            {"$in": ["$id", [self._me["id"], instead_of]]},
            {"$lte": ["$until", "$$NOW"]},  # a missing one is less than any date
        ]
        mine = {"$mergeObjects": [{"$literal": self._me}, {"_id": "claim", "until": self._end()}]}
        update = [{"$replaceWith": {"$cond": [{"$or": free}, mine, "$$ROOT"]}}]
        try:
            holder = self._meta.find_one_and_update(
                {"_id": "claim"}, update, upsert=True, return_document=ReturnDocument.AFTER
            )
        except DuplicateKeyError:  # another has made the document just now
            return self._renew(instead_of)
        assert holder is not None  # as it is made where there was none
        if holder["id"] == self._me["id"]:
            self._renewed = before
        return holder

    def _end(self) -> dict[str, Any]:
        return {"$add": ["$$NOW", int(self._lease * 1000)]}

    def _held_by(self, holder: dict[str, Any]) -> str:
        return f"another crawl (process {holder['pid']} on {holder['host']}) holds this store ({self._where})"
