"""A process that has imported the command, and forks for each command that a test starts.

The imports of the command cost more CPU than most of what commands do in tests. Each process of pytest starts one
server (forked_command.py is its side of it). The server has no thread, no event loop and no open file. So its forks go
on as new processes of Python would, with the same `main`.

A fork differs from a new process in four ways. Its imports are done, so what an import reads from the environment was
read by the server. A missing import goes unseen, as all modules are there. `ps` shows the line of the server. And at
its end a fork does not free all modules, for which it would copy them: it ends as peers of `kadcrawl crawl` do
(kadcrawl/system/quick_exit.py). So tests of the start, of memory and of the environment of processes make new
processes, as do the examples of the documentation and all tests of `make test-chaos`. With `KADCRAWL_TESTS_EXEC=1` all
tests do.

Tests: tests/support/swarm/test_forked_command.py
"""

import gc
import os
import pickle
import signal
import socket
import struct
import sys
from contextlib import suppress
from errno import EAGAIN
from importlib import import_module
from pkgutil import walk_packages

LENGTH = struct.Struct("=i")
"""The length of a pickled request. The streams of a new process come with it."""
ANSWER = struct.Struct("=i")
"""The server is ready (0), the process ID of a new process or the number of an error below 0, or a wait status."""
STREAMS = 3
Begin = tuple[list[str], dict[str, str], str]
"""A request for a new process: its arguments, its environment and its directory. A number asks to reap a process."""

LEFT_OUT = ("kadcrawl.__main__", "kadcrawl.peer.tracing.otel_traces", "kadcrawl.sinks.mongo", "kadcrawl.sinks.parquet")
"""Modules that are not imported: a program, and large libraries that few commands use, one of which has threads."""
OF_CONNECTIONS = ("cryptography.hazmat.primitives.kdf.hkdf", "encodings.idna", "platformdirs.unix", "uvloop")
"""Modules that kadcrawl imports only when it needs them."""


def main() -> None:
    """Serve the test process at the other end of a socket, and run the command in each fork."""
    program, descriptor = sys.argv[1:]
    sys.path[0] = os.path.dirname(program)  # As in the process of that script.
    from kadcrawl.system.quick_exit import allow_quick_exit, exit_quickly

    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # Also in tests below `nohup`, which ignores a closed terminal.
    allow_quick_exit()
    import_command()
    if len(os.listdir("/proc/self/task")) > 1:
        raise RuntimeError("an import started a thread, so the server cannot fork: add the module to LEFT_OUT")
    gc.freeze()  # Or the garbage collector of each fork would write into the shared pages.
    control = socket.socket(fileno=int(descriptor))
    control.sendall(ANSWER.pack(0))
    arguments, environment, directory = _serve(control)
    os.chdir(directory)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = [program, *arguments]
    from kadcrawl.cli import main as command

    try:
        command()
    except SystemExit as ending:
        gc.collect()  # What the end of Python would find: a task that was destroyed, or never awaited.
        if isinstance(ending.code, int):
            exit_quickly(ending.code)
        raise


def import_command() -> None:
    """Import all that commands and peers may need."""
    from kadcrawl.system.lean_imports import import_lean

    import_lean()  # As peers do. It comes first, as it does nothing where aiohttp is there.
    for module in walk_packages(import_module("kadcrawl").__path__, "kadcrawl."):
        if module.name not in LEFT_OUT:
            import_module(module.name)
    for name in OF_CONNECTIONS:
        with suppress(ModuleNotFoundError):
            import_module(name)


def _serve(control: socket.socket) -> Begin:
    """Fork and reap as the test process asks, and exit when it is gone. Returns in the process of a command."""
    running: set[int] = set()
    while True:
        said, descriptors, *_ = socket.recv_fds(control, LENGTH.size, STREAMS)
        if len(said) < LENGTH.size:
            break
        request: int | Begin = pickle.loads(_receive(control, *LENGTH.unpack(said)))
        if isinstance(request, int):
            control.sendall(ANSWER.pack(os.waitpid(request, 0)[1]))
            running.remove(request)
            continue
        try:
            pid = os.fork()
        except OSError as error:
            control.sendall(ANSWER.pack(-(error.errno or EAGAIN)))
            pid = -1
        if pid == 0:
            _become_command(control, descriptors)
            return request
        if pid > 0:
            running.add(pid)
        for descriptor in descriptors:
            os.close(descriptor)
    for pid in running:  # The test process was killed, or gave up an answer.
        with suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
    os._exit(0)


def _become_command(control: socket.socket, descriptors: list[int]) -> None:
    """Give this process a session and streams of its own, and tell the test process that it runs."""
    from kadcrawl.system.inherited_fds import close_inherited

    os.setsid()
    for stream, descriptor in enumerate(descriptors):
        os.dup2(descriptor, stream)
    control.sendall(ANSWER.pack(os.getpid()))  # Not earlier, as a test may signal the group of this process.
    control.close()
    close_inherited()


def _receive(control: socket.socket, length: int) -> bytes:
    said = b""
    while len(said) < length:
        if not (more := control.recv(length - len(said))):
            raise EOFError("the test process ended within a request")
        said += more
    return said


if __name__ == "__main__":
    main()
