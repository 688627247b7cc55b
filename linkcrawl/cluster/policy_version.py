"""Whether all workers keep the same policies: until they do no gate changes hands, for by one file hosts may share a
gate that by another are apart."""

from __future__ import annotations

import hashlib
import logging

from attrs import evolve

from linkcrawl.cluster.coordinator import HeartbeatReply
from linkcrawl.session import Session

logger = logging.getLogger(__name__)

#: Seconds that they may differ without a word of it, as they read an edited file one after the other; and between two
#: lines about it.
DIFFER, REPEAT = 10.0, 60.0


class PolicyVersion:
    """What this worker says of its policies, and what it hears of the others'."""

    def __init__(self, session: Session):
        self._session = session
        self._said = ""
        self._differ_since: float | None = None
        self._told = float("-inf")

    def say(self, *, is_regrouping: bool) -> str:
        """The fingerprint of the rules that our gates are leased by: those of before, as long as one of these is ours,
        for others may wait for it."""
        if not is_regrouping:
            self._said = self._fingerprint()
        return self._said

    def hear(self, beat: HeartbeatReply) -> HeartbeatReply:
        """How the cluster is, after we have said so. Tells people where workers differ for long."""
        now, agreed = self._session.now(), beat.agreed and self._said == self._fingerprint()
        if agreed:
            self._differ_since = None
        elif self._differ_since is None:
            self._differ_since = now
        if self.differ_for(DIFFER) and now - self._told > REPEAT:
            self._told = now
            logger.warning("Workers have different policies: no gate changes hands until all have read the same file")
        return evolve(beat, agreed=agreed)

    def differ_for(self, seconds: float) -> bool:
        """Whether workers have had different policies for so long."""
        return self._differ_since is not None and self._session.now() - self._differ_since > seconds

    def _fingerprint(self) -> str:
        return hashlib.blake2b(repr(self._session.policies.rules).encode(), digest_size=8).hexdigest()
