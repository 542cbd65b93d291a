"""Test that a fork reads the options of a peer's command, and this process alone runs the peer."""

import os
import pickle
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from kadcrawl.cli import lean_start, peer_order
from kadcrawl.cli.machine import LogSettings
from kadcrawl.cli.peer_order import PeerOrder
from kadcrawl.members.swarm_key import SwarmKey
from kadcrawl.settings.config import Config
from kadcrawl.settings.job import Job
from kadcrawl.settings.limits import Limits
from kadcrawl.settings.secrets import Secrets
from kadcrawl.settings.site_rules import SiteRule
from kadcrawl.system.file_names import SWARM_KEY

READS = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
HERE = os.getpid()
from kadcrawl.cli import group, lean_start, peer_order
def command():
    {command}
def carry_out(order):
    print("carried out", order, os.getpid() == HERE, "colorsys" in sys.modules, flush=True)
    return 7
group.group_for = lambda arguments: command
peer_order.carry_out = carry_out
lean_start.start_lean(["join"])
"""
READ_JOIN = 'lean_start.start_lean(["join"])'
"""The last line of `READS`."""


def reads(command: str) -> "subprocess.CompletedProcess[str]":
    """Run the start of a peer whose options are read by this command."""
    code = READS.format(command=command)
    return subprocess.run([sys.executable, "-c", code], text=True, capture_output=True, timeout=60)


def kadcrawl(*words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([sys.executable, "-m", "kadcrawl", *words], text=True, capture_output=True, timeout=60)


def test_an_order_is_the_same_in_another_process(tmp_path: Path) -> None:
    config = Config(
        data=tmp_path,
        swarm_key=SwarmKey.generate(),
        allow_networks=("127.0.0.0/8",),
        secrets=Secrets({"name": "value"}),
        limits=Limits(fetches_max=7),
    )
    job = Job(contact="me@example.org", delay_s=2.0, sites=(SiteRule(match=("a.example",), delay_s=3.0),))
    order = PeerOrder(config=config, log=LogSettings(level="debug"), bootstrap=[("127.0.0.1", 4)], job=job)
    assert order == pickle.loads(pickle.dumps(order))


def test_what_a_fork_reads_is_carried_out_here_without_the_options() -> None:
    run = reads("import colorsys; print('reading', flush=True); sys.exit(lean_start.hand_over('the order'))")
    assert ["reading", "carried out the order True False"] == run.stdout.splitlines()
    assert 7 == run.returncode


@pytest.mark.parametrize(
    ("ending", "code"),
    [
        ("print('help'); sys.exit(0)", 0),
        ("print('help'); sys.exit(2)", 2),
        ("print('help'); lean_start.hand_over('the order'); sys.exit(3)", 3),
        ("print('help', flush=True); os.kill(os.getpid(), signal.SIGKILL)", 128 + signal.SIGKILL),
    ],
)
def test_a_fork_without_an_order_is_the_whole_command(ending: str, code: int) -> None:
    run = reads(ending)
    assert "help\n" == run.stdout
    assert code == run.returncode


@pytest.mark.parametrize(
    ("words", "has_peer"), [('["start"]', True), ('["join"]', True), ('["join", "--leaf"]', False)]
)
def test_the_peer_is_loaded_while_the_options_are_read(words: str, has_peer: bool) -> None:
    code = READS.format(command="sys.exit(lean_start.hand_over('the order'))")
    code = code.replace(
        "return 7", "print('kadcrawl.peer.peer' in sys.modules, 'kadcrawl.cli.options' in sys.modules); return 7"
    )
    code = code.replace(
        READ_JOIN,
        f"""
loaded = lean_start._load
def load(arguments, is_needed):
    loaded(arguments, is_needed)
    print("loaded", flush=True)
    os.write(go, b"x")
lean_start._load = load
lean_start.start_lean({words})""",
    )
    code = "import os\nwait, go = os.pipe()\n" + code.replace("def command():", "def command():\n    os.read(wait, 1)")
    run = subprocess.run([sys.executable, "-c", code], text=True, stdout=subprocess.PIPE, timeout=60)
    assert ["loaded", "carried out the order True False", f"{has_peer} False"] == run.stdout.splitlines()


def test_ctrl_c_ends_both_and_the_fork_says_so() -> None:
    """Ctrl-C goes to all processes of the terminal. In the background of a script, processes ignore it at first."""
    run = reads(
        "os.kill(os.getppid(), signal.SIGINT); from kadcrawl.cli import early_interrupt; "
        "print('said', flush=True); early_interrupt.end_interrupted()"
    )
    assert ("said\n", "kadcrawl: interrupted\n", 11) == (run.stdout, run.stderr, run.returncode)


def test_another_ctrl_c_while_the_command_ends_changes_nothing() -> None:
    code = READS.format(command="os.kill(HERE, signal.SIGINT); os.write(2, b'said'); os._exit(11)").replace(
        READ_JOIN, f"import atexit; atexit.register(os.kill, HERE, signal.SIGINT); {READ_JOIN}"
    )
    run = subprocess.run([sys.executable, "-c", code], text=True, capture_output=True, timeout=60)
    assert ("", "said", 11) == (run.stdout, run.stderr, run.returncode)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 11), (signal.SIGTERM, 143)])
def test_a_signal_to_this_process_alone_ends_both(number: int, code: int) -> None:
    run = reads(f"os.kill(os.getppid(), {int(number)}); sys.exit(lean_start.hand_over('the order'))")
    assert ("", code) == (run.stdout, run.returncode)


def test_a_caller_may_ignore_the_end_of_its_children() -> None:
    program = READS.format(command="sys.exit(lean_start.hand_over('the order'))")
    code = f"import signal; signal.signal(signal.SIGCHLD, signal.SIG_IGN)\n{program}"
    run = subprocess.run([sys.executable, "-c", code], text=True, capture_output=True, timeout=60)
    assert ("", 7) == (run.stderr, run.returncode)


def test_the_key_does_not_stay_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KADCRAWL_KEY", "secret")
    code = READS.format(command="sys.exit(lean_start.hand_over('the order'))").replace(
        "return 7", "print('KADCRAWL_KEY' in os.environ); return 7"
    )
    run = subprocess.run([sys.executable, "-c", code], text=True, stdout=subprocess.PIPE, timeout=60)
    assert "False" == run.stdout.splitlines()[-1]


def test_without_a_fork_one_process_does_both(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peer_order, "carry_out", lambda order: order)
    assert 5 == lean_start.hand_over(5)  # type: ignore[arg-type]


def test_mistakes_and_help_are_as_of_other_commands(tmp_path: Path) -> None:
    wrong = kadcrawl("join", "--bootstrap", "127.0.0.1:1", "--data", str(tmp_path))
    assert 2 == wrong.returncode
    assert SWARM_KEY in wrong.stderr or "key" in wrong.stderr
    assert 1 == len(wrong.stderr.splitlines())
    usage = kadcrawl("start", "--no-such-option")
    assert 2 == usage.returncode
    assert 1 == usage.stderr.count("--no-such-option")
    assert "--bootstrap" in kadcrawl("join", "--help").stdout


def test_an_output_that_nobody_reads_is_no_fault() -> None:
    readable, writable = os.pipe()
    os.close(readable)
    with open(writable, "wb") as nowhere:
        code = READS.format(command="sys.exit(lean_start.hand_over('the order'))")
        run = subprocess.run(
            [sys.executable, "-c", code], text=True, stdout=nowhere, stderr=subprocess.PIPE, timeout=60
        )
    assert "" == run.stderr
    assert 1 == run.returncode


@pytest.mark.parametrize("call", ["['join', '--help'], lambda: True", "['join'], lambda: False"])
def test_no_peer_is_loaded_for_a_command_that_only_says_something(call: str) -> None:
    load = f"import sys; from kadcrawl.cli import lean_start as start; start._load({call})"
    code = f"{load}; print('kadcrawl.peer.peer' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], text=True, stdout=subprocess.PIPE, timeout=60)
    assert "False\n" == run.stdout
