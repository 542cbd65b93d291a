"""`--forks N` runs the tests in N forks of the process that has collected them.

Each process of pytest-xdist imports and collects all tests itself, and sends five messages for each test. A fork has
the imports and the tests from the start, shares their memory, and sends one message for each test.

The numbers of all units of tests stand in a pipe, from which each fork takes the next one when it is free. A fork
that dies fails the test that it ran. What else it had taken runs in the next round of forks, as all tests do that have
no result at the end of a round.

The plugin is loaded by `-p tests.support.forks`.

Tests: tests/support/test_forks.py
"""

import os
import signal
import sys
import time
from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from mmap import mmap
from multiprocessing.connection import Connection, Pipe
from selectors import EVENT_READ, DefaultSelector
from struct import Struct
from traceback import format_exception
from typing import Any, NamedTuple
from warnings import WarningMessage

import pytest
from _pytest._io import TerminalWriter
from _pytest.config import create_terminal_writer

from tests.support.units import neighbors

UNIT = Struct("=i")
UNITS_MAX = 65536 // UNIT.size
"""Limit on the units of a round, as a pipe holds 64 KiB."""
POLL_S = 1.0
"""Seconds between two looks for dead forks, whose pipes are held open by processes that they began."""
LEAVE_S = 30.0
"""Seconds in which an interrupted fork may end its test."""


class Ran(NamedTuple):
    """What a fork says of the test that it has run, the first of those it has taken."""

    reports: list[Any]
    """Those of passed tests as they are, and others as the plugins write them for another process."""
    warnings: list[dict[str, Any]]


class Took(NamedTuple):
    """The tests that a fork has taken, which it runs in this order."""

    tests: list[int]


class Broke(NamedTuple):
    """An error in pytest itself, after which the fork ends."""

    error: str


Said = Ran | Took | Broke


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option `--forks`."""
    help_line = "run the tests in this many forks of the process that has collected them"
    parser.getgroup("forks").addoption("--forks", type=int, default=0, metavar="N", help=help_line)


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Run the tests in forks, unless pytest would run none, or a person would debug them."""
    option = session.config.option
    if not option.forks or option.collectonly or option.usepdb:
        return None
    if session.testsfailed and not option.continue_on_collection_errors:
        return None
    Round.run_all(session, option.forks)
    return True


def units(items: Sequence[pytest.Item]) -> list[list[int]]:
    """Return the numbers of the tests that run together, the largest unit first."""
    near = neighbors(item.nodeid for item in items)
    found: dict[str, list[int]] = defaultdict(list)
    for number, item in enumerate(items):
        found[group(item) or near[item.nodeid]].append(number)
    return sorted(found.values(), key=len, reverse=True)


def group(item: pytest.Item) -> str:
    """Return the name of the groups of a test, as pytest-xdist has it, or nothing."""
    return "_".join(sorted(str(mark.args[0]) for mark in item.iter_markers("xdist_group")))


class Fork:
    """A process that runs tests, as the process sees it that reports their results."""

    def __init__(self, pid: int, connection: "Connection[Any, Said]") -> None:
        self.pid = pid
        self.connection = connection
        self.waiting: deque[int] = deque()
        """The tests that it has taken and not run. It runs the first of them now."""
        self.status: int | None = None
        """The exit code or, below 0, the signal of a process that has ended."""

    def has_ended(self, options: int = os.WNOHANG) -> bool:
        """Return whether the process has ended."""
        if self.status is None:
            ended, status = os.waitpid(self.pid, options)
            if ended:
                self.status = os.waitstatus_to_exitcode(status)
        return self.status is not None

    def interrupt(self) -> None:
        """Let the process end its test early."""
        if not self.has_ended():
            os.kill(self.pid, signal.SIGINT)

    def end(self, within_s: float) -> None:
        """Wait for the end of the process, and kill it if it takes too long."""
        until = time.monotonic() + within_s
        while not self.has_ended() and time.monotonic() < until:
            time.sleep(0.05)
        if not self.has_ended():
            os.kill(self.pid, signal.SIGKILL)
            self.has_ended(options=0)


class Round:
    """Forks that share the tests that are left."""

    def __init__(self, session: pytest.Session, left: list[list[int]]) -> None:
        self.session = session
        self.left = left
        self._forks: list[Fork] = []
        self._stop = mmap(-1, 1)  # All forks see it.
        self._queue, queued = os.pipe()
        for number in range(len(left)):
            os.write(queued, UNIT.pack(number))
        os.close(queued)

    @classmethod
    def run_all(cls, session: pytest.Session, processes: int) -> None:
        """Run all tests, each of them once."""
        left = units(session.items)
        while left:
            done = cls(session, left[:UNITS_MAX]).run(processes)
            if session.shouldfail:
                raise session.Failed(session.shouldfail)
            if session.shouldstop:
                raise session.Interrupted(session.shouldstop)
            if not done:
                raise RuntimeError("the forks ended without a test")
            left = [rest for unit in left if (rest := [test for test in unit if test not in done])]

    def run(self, processes: int) -> set[int]:
        """Run the tests, report them, and return those that have a result."""
        done: set[int] = set()
        try:
            for number in range(min(processes, len(self.left))):
                self._forks.append(self._fork(number))
            for fork, said in self._said():
                if isinstance(said, Took):
                    fork.waiting.extend(said.tests)
                elif isinstance(said, Broke):
                    raise RuntimeError(f"pytest failed in a fork:\n{said.error}")
                else:
                    done.add(test := fork.waiting.popleft())
                    self._report(self.session.items[test], said or Ran([_crash(self.session.items[test], fork)], []))
                if self.session.shouldfail or self.session.shouldstop:
                    self._stop[0] = 1
        except BaseException:
            self._stop[0] = 1
            for fork in self._forks:
                fork.interrupt()
            raise
        finally:
            for fork in self._forks:
                fork.end(LEAVE_S)
                fork.connection.close()
            os.close(self._queue)
        return done

    def _fork(self, number: int) -> Fork:
        """Return a new fork, which runs tests and ends."""
        hears, says = Pipe(duplex=False)
        if pid := os.fork():
            says.close()
            return Fork(pid, hears)
        try:
            for connection in [hears, *(fork.connection for fork in self._forks)]:
                connection.close()
            run_units(self.session, self._units(), says, f"fork-{number}")
        finally:
            os._exit(0)  # The end of pytest, and the exit functions, are for the first process.

    def _units(self) -> Iterator[list[int]]:
        """Take units until none is left, or until the tests are to stop."""
        while not self._stop[0] and (unit := os.read(self._queue, UNIT.size)):
            yield self.left[UNIT.unpack(unit)[0]]

    def _said(self) -> Iterator[tuple[Fork, Said | None]]:
        """Yield what the forks say, or None where a fork ended within a test."""
        with DefaultSelector() as selector:
            for fork in self._forks:
                selector.register(fork.connection, EVENT_READ, fork)
            while speaking := selector.get_map():
                ready = [key.data for key, _ in selector.select(POLL_S)]
                for fork in ready or [key.data for key in speaking.values()]:
                    try:
                        if ready or fork.connection.poll():
                            yield fork, fork.connection.recv()
                            continue
                    except EOFError:
                        fork.has_ended(options=0)
                    if fork.has_ended():
                        selector.unregister(fork.connection)
                        if self._stop[0]:
                            continue
                        if fork.waiting:
                            yield fork, None
                        elif fork.status:
                            raise RuntimeError(f"a fork ended after its tests: {_reason(fork.status)}")

    def _report(self, item: pytest.Item, ran: Ran) -> None:
        """Tell pytest of a test as if it had run here."""
        hook = self.session.config.hook
        hook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        for data in ran.reports:
            if isinstance(data, dict):
                data = hook.pytest_report_from_serializable(config=self.session.config, data=data)
            hook.pytest_runtest_logreport(report=data)
        hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        for warning in ran.warnings:
            hook.pytest_warning_recorded.call_historic(kwargs=warning)


class Results:
    """What the tests of a fork come to, and the terminal that pytest sees there."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.reports: list[Any] = []
        self.warnings: list[dict[str, Any]] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep a report until its test has ended."""
        if type(report) is pytest.TestReport and report.passed:
            self.reports.append(report)  # It has plain values only, so most reports need no more.
        else:
            self.reports.append(self.config.hook.pytest_report_to_serializable(config=self.config, report=report))

    def pytest_warning_recorded(
        self, warning_message: WarningMessage, when: str, nodeid: str, location: tuple[str, int, str] | None
    ) -> None:
        """Keep a warning, without the objects that it may hold."""
        text, at = str(warning_message.message), (warning_message.filename, warning_message.lineno)
        kept = WarningMessage(text, warning_message.category, *at)
        self.warnings.append({"warning_message": kept, "when": when, "nodeid": nodeid, "location": location})

    def take(self) -> Ran:
        """Return the results of the test that has ended."""
        ran = Ran(self.reports, self.warnings)
        self.reports, self.warnings = [], []
        return ran

    @property
    def _tw(self) -> TerminalWriter:
        """The stacks of a test whose time is over stand in its captured output."""
        return create_terminal_writer(self.config, sys.stderr)


def run_units(session: pytest.Session, found: Iterator[list[int]], says: "Connection[Said, Any]", name: str) -> None:
    """Run units of tests in a fork of pytest, and say what they come to."""
    try:
        results = Results(session.config)
        _leave_files_of_the_first_process(session.config, name)
        session.config.pluginmanager.unregister(name="terminalreporter")
        session.config.pluginmanager.register(results, "terminalreporter")
        results.take()  # The warnings from before are known.
        unit = next(found, None)
        while unit:
            says.send(Took(unit))
            following = None
            for test, after in zip_longest(unit, unit[1:]):
                if after is None:  # Not earlier, as others may be free. Not later, as the two units may share fixtures.
                    following = next(found, None)
                    after = following[0] if following else None
                session.config.hook.pytest_runtest_protocol(
                    item=session.items[test], nextitem=None if after is None else session.items[after]
                )
                says.send(results.take())
                if session.shouldfail or session.shouldstop:
                    return
            unit = following
    except KeyboardInterrupt:
        pass
    except BaseException as error:
        says.send(Broke("".join(format_exception(error))))
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        session._setupstate.teardown_exact(None)


def _leave_files_of_the_first_process(config: pytest.Config, name: str) -> None:
    """Give a fork its own temporary directory, and its own files of captured output."""
    factory: pytest.TempPathFactory = config._tmp_path_factory  # type: ignore[attr-defined]
    factory._basetemp = factory.getbasetemp() / name
    factory._basetemp.mkdir(mode=0o700, exist_ok=True)  # It is there in a second round.
    if capture := config.pluginmanager.get_plugin("capturemanager"):
        capture.stop_global_capturing()
        capture.start_global_capturing()
        capture.suspend_global_capture()


def _crash(item: pytest.Item, fork: Fork) -> dict[str, Any]:
    """Return the report of a test in which its process ended."""
    error = f"the process of this test ended within it: {_reason(fork.status)}"
    report = pytest.TestReport(item.nodeid, item.location, {}, "failed", error, "call")
    found: dict[str, Any] = item.config.hook.pytest_report_to_serializable(config=item.config, report=report)
    return found


def _reason(status: int | None) -> str:
    if status is not None and status < 0:
        return signal.Signals(-status).name
    return f"exit code {status}"
