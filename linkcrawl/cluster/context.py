"""What the rooms of a worker share: the parts of its scheduler, and its hand on the ledger."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from attrs import frozen

from linkcrawl.cluster.coordinator import Coordinator
from linkcrawl.frontier.due_queue import DueQueue
from linkcrawl.frontier.feeder import Feeder
from linkcrawl.frontier.gates.gatekeeper import Gatekeeper
from linkcrawl.frontier.gates.workbench import Lane, Workbench
from linkcrawl.frontier.robots_fetcher import RobotsFetcher
from linkcrawl.frontier.router import RoutedTask, Task
from linkcrawl.network.resolver import Resolver
from linkcrawl.session import Session


@frozen(kw_only=True)
class WorkerContext:
    """`offer` puts a task into its gate, `place` does when its host's address is known; `remember` stores what is known
    of hosts."""

    session: Session
    ledger: Coordinator
    bench: Workbench[Task]
    keeper: Gatekeeper
    queue: DueQueue
    feeder: Feeder
    desk: RobotsFetcher
    resolver: Resolver
    offer: Callable[[RoutedTask], None]
    place: Callable[[Task, Lane], None]
    remember: Callable[[], Awaitable[None]]
