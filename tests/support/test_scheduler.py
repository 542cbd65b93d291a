"""Test that each test is handed out once, neighbors of a module together, and that few done tests are remembered."""

from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.scheduler import ForgetfulScheduler
from tests.support.units import TOGETHER, neighbors

TESTS = [f"tests/test_a.py::test_b[{number}]" for number in range(50)]
GROUPED = [f"tests/test_a.py::test_c[{number}]@group" for number in range(5)]


class Worker:
    """A process of pytest-xdist that has been told which tests to run."""

    def __init__(self) -> None:
        self.waiting: list[int] = []
        self.done: list[int] = []
        self.shutting_down = False
        self.gateway = SimpleNamespace(id="gw")

    def send_runtest_some(self, indices: list[int]) -> None:
        self.waiting.extend(indices)

    def shutdown(self) -> None:
        self.shutting_down = True


def scheduled(pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch, tests: list[str]) -> tuple[Any, list[Any]]:
    monkeypatch.setattr(pytestconfig.option, "tx", ["2*popen"])
    monkeypatch.setattr(pytestconfig.option, "loadscopereorder", True)
    scheduler: Any = ForgetfulScheduler(pytestconfig)
    workers = [Worker(), Worker()]
    for worker in workers:
        scheduler.add_node(worker)
        scheduler.add_node_collection(worker, tests)
    scheduler.schedule()
    return scheduler, workers


def run_next(scheduler: Any, worker: Worker) -> None:
    test = worker.waiting.pop(0)
    worker.done.append(test)
    scheduler.mark_test_complete(worker, test)


def test_each_test_is_run_once_and_few_are_known_as_done(
    pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    scheduler, workers = scheduled(pytestconfig, monkeypatch, TESTS)
    while not scheduler.tests_finished:
        for worker in (one for one in workers if one.waiting):
            run_next(scheduler, worker)
            assert len(scheduler.assigned_work[worker]) <= 4
    for worker in workers:
        assert worker.shutting_down
        while worker.waiting:
            run_next(scheduler, worker)
        assert scheduler.remove_node(worker) is None
    assert sorted([*workers[0].done, *workers[1].done]) == [*range(len(TESTS))]


def test_a_group_stays_in_one_process(pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch) -> None:
    scheduler, workers = scheduled(pytestconfig, monkeypatch, [*TESTS, *GROUPED])
    while not scheduler.tests_finished:
        for worker in (one for one in workers if one.waiting):
            run_next(scheduler, worker)
    group = {*range(len(TESTS), len(TESTS) + len(GROUPED))}
    assert sorted(len(group & {*worker.done, *worker.waiting}) for worker in workers) == [0, len(GROUPED)]


def test_neighbors_of_a_module_run_in_one_process(pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch) -> None:
    others = [f"tests/test_d.py::test_e[{number}]" for number in range(3)]
    scheduler, workers = scheduled(pytestconfig, monkeypatch, [*TESTS, *GROUPED, *others])
    while not scheduler.tests_finished:
        for worker in (one for one in workers if one.waiting):
            run_next(scheduler, worker)
    first, second = ({*worker.done, *worker.waiting} for worker in workers)
    begins = [*range(0, len(TESTS), TOGETHER), len(TESTS), len(TESTS) + len(GROUPED)]
    for begin, end in zip(begins, [*begins[1:], len(TESTS) + len(GROUPED) + len(others)], strict=True):
        assert {*range(begin, end)} <= first or {*range(begin, end)} <= second
    assert first
    assert second


def test_a_unit_is_of_one_module_and_not_larger_than_the_limit() -> None:
    tests = ["a.py::one", *(f"b.py::two[{number}]" for number in range(TOGETHER + 1)), "c.py::T::three", "c.py::four"]
    units = neighbors(tests)
    assert [units[test] for test in tests] == ["a.py 0", *["b.py 0"] * TOGETHER, "b.py 1", "c.py 0", "c.py 0"]


def test_what_a_dead_process_had_not_run_is_run_by_the_others(
    pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    scheduler, (dead, other) = scheduled(pytestconfig, monkeypatch, TESTS)
    for _ in range(7):
        run_next(scheduler, dead)
    crashed = dead.waiting[0]
    assert scheduler.remove_node(dead) == TESTS[crashed]
    while other.waiting:
        run_next(scheduler, other)
    assert not scheduler.has_pending
    assert sorted([*dead.done, *other.done]) == [*range(len(TESTS))]
