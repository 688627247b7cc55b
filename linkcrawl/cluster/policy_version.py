"""Compares the policies of all workers. While they differ no gate is leased: hosts that share a gate by one file may
have gates of their own by another."""

from __future__ import annotations

import hashlib
import logging

from attrs import evolve

from linkcrawl.cluster.coordinator import HeartbeatReply
from linkcrawl.politeness.policy.rules import Policies
from linkcrawl.session import Session

logger = logging.getLogger(__name__)

#: Seconds that policies may differ before it is logged, as workers read an edited file one after the other; and between
#: two lines about it.
DIFFER, REPEAT = 10.0, 60.0


def fingerprint(policies: Policies) -> str:
    """A digest of the rules of policies."""
    return hashlib.blake2b(repr(policies.rules).encode(), digest_size=8).hexdigest()


class PolicyVersion:
    """Publishes a fingerprint of this worker's policies, and observes whether the others' are the same."""

    def __init__(self, session: Session):
        self._session = session
        self._published = ""
        self._differ_since: float | None = None
        self._warned_at = float("-inf")

    def publish(self, *, is_regrouping: bool) -> str:
        """The fingerprint of the rules that our gates are leased by: the rules of before while one of these gates is
        ours, for others may wait for it."""
        if not is_regrouping:
            self._published = self._fingerprint()
        return self._published

    def observe(self, heartbeat: HeartbeatReply) -> HeartbeatReply:
        """The reply to a heartbeat that has published ours, judged by our rules of now. Warns where workers differ for
        long."""
        now, agreed = self._session.now(), heartbeat.agreed and self._published == self._fingerprint()
        if agreed:
            self._differ_since = None
        elif self._differ_since is None:
            self._differ_since = now
        if self.has_differed_for(DIFFER) and now - self._warned_at > REPEAT:
            self._warned_at = now
            logger.warning("Workers have different policies: no gate changes hands until all have read the same file")
        return evolve(heartbeat, agreed=agreed)

    def has_differed_for(self, seconds: float) -> bool:
        """True where workers have had different policies for so many seconds."""
        return self._differ_since is not None and self._session.now() - self._differ_since > seconds

    def _fingerprint(self) -> str:
        return fingerprint(self._session.policies)
