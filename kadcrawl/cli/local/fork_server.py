"""A fork server for the peers of `kadcrawl crawl`: it imports once what each peer needs, and forks for each peer.

Imports are most of the start of a peer, in time and in memory. The command forks the server before it reads its
options: a process with a thread, an event loop or an open journal could not be forked safely. So what the options need
is not in the peers. What both need is imported before, for both. The server imports the rest when the first peer is
asked for. Forked peers share the pages of memory that none of them changes.

The server ends when the last peer of the first start is there, because its memory would be no longer shared once the
peers change theirs. A peer is no child of the server: it is forked twice, and the command adopts it (subreaper.py). So
the command waits for each peer itself, and the end of the server is the end of nothing else. A peer that is started
later, or where the server cannot work, is a new process of Python (child_process.py). Only Linux has what is needed.
On macOS, system libraries do not survive a fork.

Tests: tests/cli/local/test_fork_server.py
"""

import gc
import os
import signal
import socket
import struct
import sys
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module

from kadcrawl.system.inherited_fds import close_inherited

ASK = b"?"
"""The command asks for a peer by this byte, and the two descriptors for the peer's stdin and stdout."""
PID = struct.Struct("=i")
"""The server answers with the process ID of the peer."""

_MAIN = "kadcrawl.cli.local.child_main"
_SHARED = (
    "ctypes",
    "kadcrawl.cli.local.protocol",
    "kadcrawl.cli.log_file",
    "kadcrawl.cli.own_peers",
    "kadcrawl.cli.run",
    "kadcrawl.settings.job_file",
)
_OF_PEERS = (_MAIN, "cryptography.hazmat.primitives.kdf.hkdf", "encodings.idna", "platformdirs.unix")
"""The last three are loaded by the first connection, and by the note of a peer's address."""


@dataclass(frozen=True, slots=True)
class ForkServer:
    """The server as the command sees it."""

    pid: int
    control: socket.socket
    """It does not block. Its end is the end of the server."""


_servers: list[ForkServer] = []
"""The server of this process, until somebody takes it."""


def take_server() -> ForkServer | None:
    """Return the server of this process to its only user, or None if there is none."""
    return _servers.pop() if _servers else None


def can_fork() -> bool:
    """Return whether this system has all that the server needs."""
    if sys.platform != "linux" or not hasattr(os, "pidfd_open"):
        return False
    try:
        os.close(os.pidfd_open(os.getpid()))
    except OSError:  # An old kernel, or a sandbox.
        return False
    return True


def start_server() -> None:
    """Start the server of this process, if the system can. In a forked peer this call lives the peer, and exits."""
    if not can_fork():
        return
    _import_shared()
    if signal.getsignal(signal.SIGCHLD) == signal.SIG_IGN:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # Some supervisors ignore it, and then no child has an end.
    ours, theirs = socket.socketpair()
    on_interrupt = signal.getsignal(signal.SIGINT)
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        pid = os.fork()
    except OSError:
        pid = -1  # Whatever the reason is, the options are told first.
    if pid == 0:
        # Ctrl-C is the command's to understand, also before the server has a session of its own.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        os.setsid()
    signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
    if pid == 0:
        ours.close()
        stdin, stdout = _serve(theirs)
        _become_peer(theirs, stdin, stdout)
        signal.signal(signal.SIGINT, on_interrupt)
        from kadcrawl.cli.local.child_main import main

        main()
        sys.exit()
    theirs.close()
    if pid < 0:
        ours.close()
        return
    ours.setblocking(False)
    _servers.append(ForkServer(pid, ours))


def _import_shared() -> None:
    """Import what both the command and a peer need."""
    for module in _SHARED:
        import_module(module)
    with suppress(ModuleNotFoundError):
        import_module("uvloop")


def _import_peer() -> None:
    """Import what only a peer needs. Nothing of it may start a thread, or keep a file open."""
    from kadcrawl.system.lean_imports import import_lean

    import_lean()
    for module in _OF_PEERS:
        import_module(module)


def _serve(control: socket.socket) -> tuple[int, int]:
    """Fork for each peer that the command asks for, and exit when it asks no more.

    Returns in the process of a peer, with the descriptors for its stdin and its stdout.
    """
    try:
        _leave_streams(control)
        while True:
            said, descriptors, *_ = socket.recv_fds(control, len(ASK), 2)
            if said != ASK or len(descriptors) != 2:
                break
            if _MAIN not in sys.modules:
                _import_peer()
                gc.freeze()  # Or the garbage collector of each peer would write into the shared pages.
            pid = _fork_orphan()
            if pid == 0:
                return descriptors[0], descriptors[1]
            for descriptor in descriptors:
                os.close(descriptor)
            control.sendall(PID.pack(pid))
    except Exception:  # The command starts the peer in another way, and if that fails too, it says why.
        os._exit(1)
    os._exit(0)


def _leave_streams(control: socket.socket) -> None:
    """Keep only stderr, or who reads the command's output would wait for the server as well."""
    from kadcrawl.system.process_title import set_title

    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(nothing, 1)
    close_inherited(but=control.fileno())
    os.environ.pop("KADCRAWL_KEY", None)  # A peer has it from the command, which takes it out of its own environment.
    if not sys.flags.safe_path:
        del sys.path[0]  # The directory the crawl was begun in, which may be anybody's.
    set_title("start of peers")


def _fork_orphan() -> int:
    """Fork twice, so that the new process is an orphan. Returns its process ID, and 0 in the process itself."""
    readable, writable = os.pipe()
    between = os.fork()
    if between == 0:
        os.close(readable)
        if (pid := os.fork()) == 0:
            os.close(writable)
            return 0
        os.write(writable, PID.pack(pid))
        os._exit(0)
    os.close(writable)
    with open(readable, "rb") as pipe:
        said = pipe.read()
    os.waitpid(between, 0)
    (pid,) = PID.unpack(said)
    return int(pid)


def _become_peer(control: socket.socket, stdin: int, stdout: int) -> None:
    """Give this process the streams and the session of a peer."""
    control.close()
    os.setsid()
    for descriptor, stream in ((stdin, 0), (stdout, 1)):
        os.dup2(descriptor, stream)
        os.close(descriptor)
    # Python has none for streams that the command began without.
    sys.stdin = sys.stdin or os.fdopen(0)
    sys.stdout = sys.stdout or os.fdopen(1, "w")
