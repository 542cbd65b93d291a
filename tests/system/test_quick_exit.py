"""Test that a quick exit does all that an exit of Python does, but free the objects."""

import subprocess
import sys

import pytest

PROGRAM = """
from kadcrawl.system.quick_exit import allow_quick_exit, exit_quickly
allow_quick_exit()
import atexit, logging, os, sys, threading, time

class Object:
    def __del__(self):
        os.write(2, b"freed ")

class Late(logging.Handler):
    def flush(self):
        os.write(2, b"log ")

kept = Object()
kept.itself = kept
handler = Late()
ended = threading.Event()
def work():
    threading.main_thread().join()
    os.write(2, b"thread ")
threading.Thread(target=work).start()
atexit.register(os.write, 2, b"registered ")
sys.stdout.write("said")
{end}
"""


def ended(end: str, **streams: int) -> "subprocess.CompletedProcess[bytes]":
    """Run the program to this end."""
    program = PROGRAM.replace("{end}", end)
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | streams
    return subprocess.run([sys.executable, "-c", program], **pipes, timeout=60)  # type: ignore[call-overload,no-any-return]


@pytest.mark.parametrize("code", [0, 2])
def test_a_quick_exit_frees_nothing_and_does_all_else(code: int) -> None:
    run = ended(f"exit_quickly({code})")
    assert (code, b"said") == (run.returncode, run.stdout)
    assert b"freed" not in run.stderr
    assert run.stderr.startswith(b"thread registered ")
    assert b"log" in run.stderr


@pytest.mark.parametrize(("end", "code"), [("", 0), ("sys.exit(3)", 3), ("raise ValueError", 1)])
def test_any_other_exit_is_that_of_python(end: str, code: int) -> None:
    run = ended(end)
    assert (code, b"said") == (run.returncode, run.stdout)
    assert b"freed" in run.stderr


def test_output_that_cannot_be_written_fails_as_ever() -> None:
    with open("/dev/full", "wb") as full:
        quick, usual = (ended(end, stdout=full.fileno()) for end in ("exit_quickly(0)", "sys.exit(0)"))
    assert quick.returncode == usual.returncode != 0


def test_without_preparation_an_exit_is_that_of_python() -> None:
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM.replace("allow_quick_exit()\n", "").replace("{end}", "exit_quickly(5)")],
        capture_output=True,
        timeout=60,
    )
    assert (5, b"said") == (run.returncode, run.stdout)
    assert b"freed" in run.stderr
