"""`ForgetfulScheduler` hands tests to the processes of pytest-xdist, at a cost that does not grow with the tests done.

Tests: tests/support/test_scheduler.py
"""

from xdist.scheduler import LoadGroupScheduling
from xdist.workermanage import WorkerController


class ForgetfulScheduler(LoadGroupScheduling):  # type: ignore[misc]  # the package is untyped
    """The scheduler of `--dist loadgroup`, which forgets the groups that are done.

    The original counts all tests that a process has ever run, after each of them. With 15,000 tests in two processes
    that takes 19 s.
    """

    def mark_test_complete(self, node: WorkerController, item_index: int, duration: float = 0) -> None:
        """Mark a test as done, after forgetting those done before."""
        groups = self.assigned_work[node]
        for name in [name for name, tests in groups.items() if all(tests.values())]:
            del groups[name]
        super().mark_test_complete(node, item_index, duration)
