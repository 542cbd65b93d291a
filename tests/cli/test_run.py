"""Test the settings of a process that runs a peer.

The settings are permanent, so each test starts a process of its own.
"""

import subprocess
import sys

from kadcrawl.cli.local.child_process import PROGRAM

BEFORE = """
import resource, sys
soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (64, hard))
from kadcrawl.cli import run as module
from kadcrawl.cli.local.child_process import PROGRAM
"""


def holds(condition: str) -> bool:
    """Return whether the condition holds while a peer runs in a process that began with 64 files."""
    code = f"{BEFORE}\nasync def main(): return {condition}\nsys.exit(0 if module.run(main()) else 3)"
    return subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_it_may_open_as_many_files_as_the_system_lets_it() -> None:
    assert holds("resource.getrlimit(resource.RLIMIT_NOFILE) == (hard, hard)")


def test_names_of_servers_that_are_not_ascii_fill_no_disk() -> None:
    """Python would print a traceback for each, and any stranger can send them."""
    assert holds("sys.unraisablehook is module._unraisable")


def test_where_there_is_no_uvloop_it_runs_on_the_loop_of_asyncio() -> None:
    """Windows has no uvloop."""
    code = (
        "import sys; sys.modules['uvloop'] = None\n"
        "import asyncio, kadcrawl, kadcrawl.cli\n"
        "from kadcrawl.cli.run import run\n"
        "async def main(): return type(asyncio.get_running_loop()).__module__\n"
        "sys.exit(0 if run(main()).startswith('asyncio') else 3)"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_the_imports_of_a_peer_process_hardly_wake_the_garbage_collector() -> None:
    program = PROGRAM.removesuffix("main()") + "import gc; print(gc.get_stats()[0]['collections'])"
    collections = int(subprocess.check_output([sys.executable, "-c", program]))
    assert collections < 50


def test_an_interrupt_before_the_loop_is_there_is_no_warning() -> None:
    """`uvloop` takes some tenths of a second to load, in which a person may press Ctrl-C."""
    code = (
        "from kadcrawl.cli import run as module\n"
        "def interrupted(): raise KeyboardInterrupt\n"
        "module.new_event_loop = interrupted\n"
        "async def main(): pass\n"
        "try: module.run(main())\n"
        "except KeyboardInterrupt: pass"
    )
    run = subprocess.run([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True)
    assert (0, "") == (run.returncode, run.stderr)
