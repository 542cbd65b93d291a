"""`ForgetfulScheduler` hands tests to the processes of pytest-xdist, at a cost that does not grow with the tests done.

Tests: tests/support/test_scheduler.py
"""

from collections.abc import Iterable, Sequence

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadGroupScheduling
from xdist.workermanage import WorkerController

from tests.support.units import neighbors


class Collected(list[str]):
    """The tests of a process, which finds the place of each of them without a search."""

    def __init__(self, tests: Iterable[str]) -> None:
        super().__init__(tests)
        self._places = {test: place for place, test in enumerate(self)}

    def index(self, test: str, *_: object) -> int:
        return self._places[test]


class ForgetfulScheduler(LoadGroupScheduling):  # type: ignore[misc]  # the package is untyped
    """The scheduler of `--dist loadgroup`, which forgets the groups that are done, and keeps neighbors together.

    The original counts all tests that a process has ever run, after each of them. With 15,000 tests in two processes
    that takes 19 s. It also sends each test alone, for which all tests are searched, to whichever process is free. So
    each process would prepare what the tests of one module share.
    """

    def __init__(self, config: pytest.Config, log: Producer | None = None) -> None:
        super().__init__(config, log)
        self._units: dict[str, str] = {}

    def add_node_collection(self, node: WorkerController, collection: Sequence[str]) -> None:
        """Note the tests that a process has found."""
        super().add_node_collection(node, collection)
        if node in self.registered_collections:
            self.registered_collections[node] = Collected(collection)

    def schedule(self) -> None:
        """Hand the first tests to each process."""
        if not self._units:
            self._units = neighbors(next(iter(self.registered_collections.values())))
        super().schedule()

    def mark_test_complete(self, node: WorkerController, item_index: int, duration: float = 0) -> None:
        """Mark a test as done, after forgetting those done before."""
        groups = self.assigned_work[node]
        for name in [name for name, tests in groups.items() if all(tests.values())]:
            del groups[name]
        super().mark_test_complete(node, item_index, duration)

    def _split_scope(self, nodeid: str) -> str:
        """Return the group of a test, or the unit of its neighbors if it has none."""
        group: str = super()._split_scope(nodeid)
        return self._units[nodeid] if group == nodeid else group
