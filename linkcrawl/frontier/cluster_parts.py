"""What the rooms of a worker share: the parts of its scheduler, and its hand on the ledger."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from attrs import frozen

from linkcrawl.frontier.cluster_ledger import Ledger
from linkcrawl.frontier.desk import RobotsDesk
from linkcrawl.frontier.feeding import Feeder
from linkcrawl.frontier.gates import Gatekeeper
from linkcrawl.frontier.local import LocalQueue
from linkcrawl.frontier.placing import Placed, Task
from linkcrawl.frontier.workbench import Lane, Workbench
from linkcrawl.network.resolver import Resolver
from linkcrawl.session import Session


@frozen(kw_only=True)
class Parts:
    """`offer` puts a task into its gate, `place` does when its host's address is known; `remember` stores what is known
    of hosts."""

    session: Session
    ledger: Ledger
    bench: Workbench[Task]
    keeper: Gatekeeper
    queue: LocalQueue
    feeder: Feeder
    desk: RobotsDesk
    resolver: Resolver
    offer: Callable[[Placed], None]
    place: Callable[[Task, Lane], None]
    remember: Callable[[], Awaitable[None]]
