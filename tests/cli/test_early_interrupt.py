"""Test that Ctrl-C before a command runs is one sentence, whatever is being imported at that moment."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from kadcrawl.cli import early_interrupt, exits

INTERRUPTED_AT = """
import os, signal, sys
signal.signal(signal.SIGINT, {handler})
class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            sys.meta_path.remove(self)
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupting())
from kadcrawl.cli import main
sys.argv = ["kadcrawl", *{words!r}]
main()
"""
"""A program that gets Ctrl-C when it imports a module."""
URL = "http://127.0.0.1:9/"


def run_interrupted(
    module: str, *words: str, handler: str = "default_int_handler"
) -> "subprocess.CompletedProcess[str]":
    code = INTERRUPTED_AT.format(handler=f"signal.{handler}", module=module, words=words)
    return subprocess.run([sys.executable, "-c", code], text=True, capture_output=True, timeout=60)


@pytest.mark.parametrize(
    ("module", "words"),
    [
        ("kadcrawl.system.garbage", ["status"]),
        ("click", ["status"]),
        ("kadcrawl.cli.local.fork_server", ["crawl", URL]),
        ("kadcrawl.cli.local.supervisor", ["crawl", URL]),
        ("click", ["start", URL]),
        ("kadcrawl.peer.peer", ["start", URL]),
    ],
    ids=["first of all", "options", "fork server", "options of a crawl", "options of a peer", "a peer"],
)
def test_ctrl_c_in_the_imports_is_one_sentence(module: str, words: list[str], tmp_path: Path) -> None:
    run = run_interrupted(module, *words, "--data", str(tmp_path / "data"))
    assert ("kadcrawl: interrupted\n", "", exits.INTERRUPTED) == (run.stderr, run.stdout, run.returncode)
    assert not (tmp_path / "data").exists()


def test_a_command_that_ignores_ctrl_c_goes_on(tmp_path: Path) -> None:
    run = run_interrupted("click", "status", "--data", str(tmp_path / "data"), handler="SIG_IGN")
    assert ("there is no" in run.stderr, exits.MISTAKE) == (True, run.returncode), run


def test_next_to_nothing_is_imported_before_ctrl_c_is_understood() -> None:
    """Before, a KeyboardInterrupt would be a traceback."""
    code = "import sys; before = {*sys.modules}; import kadcrawl.cli; print(*{*sys.modules} - before)"
    run = subprocess.run([sys.executable, "-c", code], text=True, capture_output=True, timeout=60, check=True)
    ours = {name for name in run.stdout.split() if name.partition(".")[0] == "kadcrawl"}
    assert {"kadcrawl", "kadcrawl.version", "kadcrawl.cli"} == ours
    assert [] == [name for name in run.stdout.split() if name in ("asyncio", "click", "msgspec", "typing")]


def test_a_running_command_gets_the_interrupt_as_an_exception(monkeypatch: pytest.MonkeyPatch) -> None:
    before = signal.signal(signal.SIGINT, early_interrupt.end_interrupted)
    try:

        def command() -> int:
            os.kill(os.getpid(), signal.SIGINT)
            raise AssertionError("the signal has an effect")

        with pytest.raises(SystemExit) as ending:
            exits.told(command)()
        assert exits.INTERRUPTED == ending.value.code == early_interrupt.CODE
    finally:
        signal.signal(signal.SIGINT, before)
