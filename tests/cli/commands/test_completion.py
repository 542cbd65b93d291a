"""Shell completion in real shells: commands, options, choices and file names.

A person's key presses go to bash and zsh by a terminal. Without a shell its tests are skipped, unless
KADCRAWL_REQUIRE_SHELLS says that they must run.
"""

import os
import pty
import re
import resource
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner

from kadcrawl.cli.app import main
from kadcrawl.cli.commands.completion import SHELLS
from tests.support.swarm.command import KADCRAWL

COMPLETED = [
    ("kadcrawl comp", "kadcrawl completion "),
    ("kadcrawl crawl --allow-n", "kadcrawl crawl --allow-network "),
    ("kadcrawl crawl --history bl", "kadcrawl crawl --history bloom "),
    ("kadcrawl check kadcra", "kadcrawl check kadcrawl.toml "),
    ("kadcrawl crawl --job kadcra", "kadcrawl crawl --job kadcrawl.toml "),
]
"""The text before the Tab key, and the text after it."""
ARGUMENTS = {
    "bash": ("--norc", "--noprofile", "-i"),
    "zsh": ("--no-rcs", "--no-globalrcs", "-i"),
}
PREPARED = {"bash": "", "zsh": "autoload -U compinit; compinit -u -D; "}
ANSWER_S = 30.0
CPU_MAX_S = 1.5
"""The limit on the CPU time of one completion, which takes 0.2 s on a machine that does nothing else."""


PAGE = Path(__file__).parents[3] / "docs/how-to/shell-completion.md"


def shell(name: str) -> str:
    """Return the path of a shell, or skip the test."""
    if (path := shutil.which(name)) is None:
        assert name != "bash", "bash is not installed"
        assert os.environ.get("KADCRAWL_REQUIRE_SHELLS") != "1", f"{name} is not installed"
        pytest.skip(f"{name} is not installed")
    return path


def environment(home: Path) -> dict[str, str]:
    path = f"{Path(KADCRAWL).parent}:{os.environ['PATH']}"
    kept = {name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ}
    return kept | {"PATH": path, "HOME": str(home), "TERM": "dumb", "PS1": "$ ", "LANG": "C.UTF-8"}


class Terminal:
    """A person's end of a terminal."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._shown = ""

    def type(self, keys: str) -> None:
        os.write(self._fd, keys.encode())

    def wait_for(self, text: str) -> None:
        """Read until the terminal has shown `text`, and forget all up to there."""
        deadline = time.monotonic() + ANSWER_S
        while text not in self._shown:
            ready, _, _ = select.select([self._fd], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, f"{text!r} is not in {self._shown!r}"
            self._shown += os.read(self._fd, 65_536).decode(errors="replace").replace("\r", "")
            # Bells, and a character that is written over by the same one.
            self._shown = re.sub(r"\x07|\x1b\[[0-9;?]*[A-Za-z]|.\x08", "", self._shown)
        self._shown = self._shown.partition(text)[2]


@contextmanager
def shell_on_a_terminal(name: str, home: Path) -> Iterator[Terminal]:
    """Open a shell on a terminal, with the completion of kadcrawl."""
    program = shell(name)
    ours, its = pty.openpty()
    # A shell without a terminal of its own complains, and reads no keys.
    command = ["setsid", "--ctty", "--wait", program, *ARGUMENTS[name]]
    process = subprocess.Popen(command, stdin=its, stdout=its, stderr=its, env=environment(home), cwd=home)
    os.close(its)
    try:
        terminal = Terminal(ours)
        terminal.type(f"{PREPARED[name]}PS1='$ '; source <(kadcrawl completion {name}); echo rea''dy\n")
        terminal.wait_for("ready\n")
        yield terminal
        terminal.type("\x15exit\n")
        process.wait(ANSWER_S)
    finally:
        process.kill()
        process.wait()
        os.close(ours)


@pytest.mark.parametrize("name", ["bash", "zsh"])
def test_the_tab_key_completes_commands_options_choices_and_files(name: str, tmp_path: Path) -> None:
    (tmp_path / "kadcrawl.toml").touch()
    with shell_on_a_terminal(name, tmp_path) as terminal:
        for before, after in COMPLETED:
            terminal.type(before)
            terminal.wait_for(before)
            terminal.type("\t")
            terminal.wait_for(after.removeprefix(before))
            terminal.type("\x15")  # Ctrl-U clears the line.


@pytest.mark.parametrize(("before", "after"), COMPLETED)
def test_fish_completes_commands_options_choices_and_files(before: str, after: str, tmp_path: Path) -> None:
    (tmp_path / "kadcrawl.toml").touch()
    script = f"kadcrawl completion fish | source; complete -C '{before}'"
    command = [shell("fish"), "--no-config", "-c", script]
    done = subprocess.run(
        command, env=environment(tmp_path), cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True
    )
    assert after.split()[-1] in [line.partition("\t")[0] for line in done.stdout.splitlines()], done


@pytest.mark.parametrize("name", SHELLS)
def test_the_lines_of_the_page_bring_completion_to_each_new_shell(name: str, tmp_path: Path) -> None:
    section = PAGE.read_text().partition(f"\n## {name}\n")[2].partition("\n## ")[0]
    now, for_each = re.findall(r"```\w+\n(.*?)```", section, re.DOTALL)
    program, env = shell(name), environment(tmp_path)
    subprocess.run([program, "-c", for_each], env=env, timeout=60, check=True)
    if name == "fish":
        asked = [program, "-c", "complete -C 'kadcrawl comp'"]
        done = subprocess.run(asked, env=env, capture_output=True, text=True, timeout=60, check=True)
        assert done.stdout.startswith("completion\t")
        assert now == "kadcrawl completion fish | source\n"
    else:
        assert now == f"source <(kadcrawl completion {name})\n", "the line that other tests try"
        assert now == (tmp_path / f".{name}rc").read_text()


@pytest.mark.parametrize("name", SHELLS)
def test_a_script_is_good_in_its_shell(name: str, tmp_path: Path) -> None:
    program = shell(name)
    script = CliRunner().invoke(main, ["completion", name]).output
    (tmp_path / "script").write_text(script)
    done = subprocess.run(
        [program, "-n", str(tmp_path / "script")], env=environment(tmp_path), capture_output=True, timeout=60
    )
    assert (0, b"") == (done.returncode, done.stderr)
    assert "_KADCRAWL_COMPLETE" in script


def test_another_shell_is_refused_with_those_that_are_known() -> None:
    run = CliRunner().invoke(main, ["completion", "csh"])
    assert run.exit_code == 2
    assert "'bash', 'zsh', 'fish'" in run.output


def test_a_completion_is_quick_and_loads_nothing_of_a_peer() -> None:
    """A person waits for it."""
    script = (
        "import sys, os\n"
        "sys.argv = ['kadcrawl']\n"
        "import kadcrawl.cli\n"
        "try:\n"
        "    kadcrawl.cli.main()\n"
        "except SystemExit:\n"
        "    heavy = ('aiohttp', 'kademlia', 'lxml', 'sqlite3', 'rich', 'kadcrawl.crawl', 'kadcrawl.peer')\n"
        "    print('loaded', *(name for name in heavy if name in sys.modules))\n"
    )
    asked = {"_KADCRAWL_COMPLETE": "bash_complete", "COMP_WORDS": "kadcrawl compl", "COMP_CWORD": "1"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, "-c", script], env=os.environ | asked, capture_output=True, text=True, check=True
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < CPU_MAX_S
    assert ["plain,completion", "loaded"] == done.stdout.split("\n")[:2]
