"""Test that forks run each test once, with the outcomes that it has in one process, whatever happens to a fork."""

import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
INI = "[pytest]\naddopts = -q -rA -p no:cacheprovider\nmarkers =\n    xdist_group: tests of one process\n"
NOTES = """
import os, signal, sys, time, warnings
from pathlib import Path

import pytest

HERE = Path(__file__).parent

@pytest.fixture(autouse=True)
def noted(request, tmp_path):
    assert [] == [*tmp_path.iterdir()]
    note("ran", f"{request.node.nodeid.removeprefix('test_it.py::')} {os.getpid()} {tmp_path}")

@pytest.fixture(scope="session", autouse=True)
def used():
    yield
    note("left", str(os.getpid()))

def note(name, line):
    with (HERE / name).open("a") as notes:
        notes.write(line + "\\n")
"""
MANY = """
@pytest.mark.parametrize("number", range(40))
def test_many(number):
    time.sleep(0.02)  # So that a fork that begins late finds a test.
"""


def start(directory: Path, tests: str, *options: str) -> "subprocess.Popen[bytes]":
    """Start pytest on a module, in a session of its own. What it writes goes into the file `said`."""
    (directory / "pytest.ini").write_text(INI)
    (directory / "test_it.py").write_text(NOTES + tests)
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    env |= {"PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    command = [sys.executable, "-m", "pytest", "-p", "tests.support.forks", *options, "test_it.py"]
    with (directory / "said").open("wb") as said:
        return subprocess.Popen(command, cwd=directory, env=env, stdout=said, stderr=said, start_new_session=True)


def run(directory: Path, tests: str, *options: str) -> tuple[int, str]:
    """Return the exit code and the output of pytest."""
    directory.mkdir(exist_ok=True)
    code = start(directory, tests, *options).wait(100)
    return code, (directory / "said").read_text()


def ran(directory: Path) -> list[tuple[str, str]]:
    """Return the tests that ran, in turn, and the process of each."""
    lines = [line.split() for line in (directory / "ran").read_text().splitlines()]
    return [(test, pid) for test, pid, _ in lines]


def test_each_test_runs_once_and_ends_as_in_one_process(tmp_path: Path) -> None:
    tests = (
        MANY
        + """
def test_fails():
    print("said before")
    assert HERE == 3, "as told"

@pytest.mark.skip(reason="for a reason")
def test_is_skipped():
    pass

@pytest.mark.xfail
def test_is_known_to_fail():
    assert False

warnings.warn("mind that", FutureWarning)

def test_warns():
    warnings.warn("mind this", FutureWarning)

@pytest.fixture
def broken():
    yield
    raise ValueError("at the end")

def test_is_left_badly(broken):
    print("x" * 1_000_000)
"""
    )
    (code, alone), (same, forked) = run(tmp_path / "1", tests), run(tmp_path / "2", tests, "--forks", "3")
    assert code == same == 1
    assert Counter(test for test, _ in ran(tmp_path / "1")) == Counter(test for test, _ in ran(tmp_path / "2"))
    assert outcomes(alone) == outcomes(forked)
    assert "1 failed, 42 passed, 1 skipped, 1 xfailed, 2 warnings, 1 error" in forked
    said_by_both = ("as told", "said before", "FutureWarning: mind this", "FutureWarning: mind that", "at the end")
    for text in (*said_by_both, "x" * 1_000_000):
        assert alone.count(text) == forked.count(text) > 0
    processes = {pid for _, pid in ran(tmp_path / "2")}
    assert len(processes) == 3
    assert {*(tmp_path / "2" / "left").read_text().split()} == processes


def outcomes(said: str) -> list[str]:
    """Return the outcome of each test, and their number, without the times."""
    lines = [line for line in said.splitlines() if re.match(r"(PASSED|FAILED|ERROR|SKIPPED|XFAIL) |\d+ \w+, ", line)]
    return sorted(re.sub(r" in [\d.]+s", "", line) for line in lines)


def test_neighbors_and_groups_stay_in_one_process_and_each_process_has_its_directory(tmp_path: Path) -> None:
    tests = """
@pytest.mark.parametrize("number", range(30))
def test_many(number):
    time.sleep(0.01)

@pytest.mark.xdist_group("these")
@pytest.mark.parametrize("number", range(15))
def test_of_a_group(number):
    time.sleep(0.01)
"""
    code, said = run(tmp_path, tests, "--forks", "2")
    assert code == 0, said
    lines = [line.split() for line in (tmp_path / "ran").read_text().splitlines()]
    assert len({pid for test, pid, _ in lines if "group" in test}) == 1
    for first in (0, 12, 24):
        unit = {f"test_many[{number}]" for number in range(first, first + 12)}
        assert len({pid for test, pid, _ in lines if test in unit}) == 1
    processes = {(pid, Path(path).parent.name) for _, pid, path in lines}
    assert sorted(name for _, name in processes) == ["fork-0", "fork-1"]


def test_a_fork_that_dies_fails_its_test_alone(tmp_path: Path) -> None:
    tests = (
        MANY
        + """
def test_dies():
    if os.fork() == 0:  # Its process holds the pipe open.
        while (HERE / "wait").exists():
            time.sleep(0.02)
        os._exit(0)
    os.kill(os.getpid(), signal.SIGKILL)

def test_ends():
    os._exit(3)

@pytest.mark.parametrize("number", range(5))
def test_after(number):
    pass
"""
    )
    (tmp_path / "wait").touch()
    code, said = run(tmp_path, tests, "--forks", "2")
    (tmp_path / "wait").unlink()
    assert code == 1
    assert "2 failed, 45 passed" in said
    assert "the process of this test ended within it: SIGKILL" in said
    assert "the process of this test ended within it: exit code 3" in said
    assert {1} == {*Counter(test for test, _ in ran(tmp_path)).values()}


def test_forks_stop_at_the_first_failure_if_asked_to(tmp_path: Path) -> None:
    tests = "def test_fails():\n    assert False\n" + MANY.replace("pass", "time.sleep(0.1)")
    code, said = run(tmp_path, tests, "--forks", "2", "-x")
    assert code == 1
    assert "1 failed" in said
    assert "stopping after 1 failures" in said
    assert len(ran(tmp_path)) < 41
    assert len((tmp_path / "left").read_text().split()) == 2


@pytest.mark.parametrize("heard_by_all", [True, False])
def test_interrupted_forks_leave_what_they_share(tmp_path: Path, heard_by_all: bool) -> None:
    tests = "@pytest.mark.parametrize('number', range(40))\ndef test_waits(number):\n    time.sleep(60)\n"
    process = start(tmp_path, tests, "--forks", "2")
    while not (tmp_path / "ran").exists() or len(ran(tmp_path)) < 2:
        assert process.poll() is None
        time.sleep(0.02)
    (os.killpg if heard_by_all else os.kill)(process.pid, signal.SIGINT)
    assert pytest.ExitCode.INTERRUPTED == process.wait(100)
    assert {*(tmp_path / "left").read_text().split()} == {pid for _, pid in ran(tmp_path)}
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)


def test_an_error_of_pytest_in_a_fork_is_told(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text("def pytest_runtest_protocol(item):\n    raise OSError('a plugin broke')\n")
    code, said = run(tmp_path, MANY, "--forks", "2")
    assert code == pytest.ExitCode.INTERNAL_ERROR
    assert "pytest failed in a fork" in said
    assert "OSError: a plugin broke" in said


def test_no_test_runs_where_one_cannot_be_collected(tmp_path: Path) -> None:
    code, said = run(tmp_path, MANY + "import a_missing_module", "--forks", "2")
    assert code == pytest.ExitCode.INTERRUPTED
    assert "1 error during collection" in said


def test_a_fork_that_dies_after_its_tests_is_told(tmp_path: Path) -> None:
    tests = """
@pytest.fixture(scope="session", autouse=True)
def dies_at_its_end():
    yield
    os.kill(os.getpid(), signal.SIGKILL)
"""
    code, said = run(tmp_path, MANY + tests, "--forks", "2")
    assert code != 0
    assert "40 passed" not in said
