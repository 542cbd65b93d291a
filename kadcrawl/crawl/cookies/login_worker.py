"""The process that calls a login hook, once: a function of the machine may loop, grow, crash, or print secrets.

It reads one call as JSON from its input, and writes one reply. Its memory has a limit, and an alarm ends it. What the
hook prints goes nowhere, and of an exception only the type and the place are told, as its text may have a secret.

Tests: tests/crawl/cookies/test_login_hook.py
"""

import os
import signal
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress

import msgspec

from kadcrawl.crawl.content.record_rules import RecordError
from kadcrawl.crawl.content.record_worker import START_S, bound_memory, load, said
from kadcrawl.crawl.cookies.login_request import LoginPage
from kadcrawl.system.inherited_fds import close_inherited


class LoginCall(msgspec.Struct):
    """The hook, its bounds, and the page, or no page for an import alone."""

    hook: str
    memory_bytes: int
    time_s: float
    page: LoginPage | None = None


class LoginReply(msgspec.Struct, omit_defaults=True):
    """The result of a hook, or the reason for none."""

    answer: msgspec.Raw = msgspec.Raw(b"null")
    error: str = ""


def main() -> None:
    """Answer the call on stdin by a reply on stdout."""
    close_inherited()
    output = os.fdopen(os.dup(1), "wb")
    try:
        call = msgspec.json.decode(sys.stdin.buffer.read(), type=LoginCall)
    except msgspec.DecodeError:
        return  # The peer died before it had written the call.
    silence = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(silence, stream)
    bound_memory(call.memory_bytes)
    signal.setitimer(signal.ITIMER_REAL, START_S)
    with suppress(OSError):  # If it is gone nothing is found there.
        sys.path.insert(0, os.getcwd())  # Whoever allows hooks here means those of this directory.
    with suppress(BrokenPipeError):  # The peer is gone.
        output.write(msgspec.json.encode(_reply(call)))
        output.flush()
    os._exit(0)  # The threads of a hook do not keep the process.


def _reply(call: LoginCall) -> LoginReply:
    try:
        function: Callable[[LoginPage], object] = load(call.hook)
    except BaseException as error:
        return LoginReply(error=said(error))  # No secret is in this process but the page's, which no import sees.
    if call.page is None:
        return LoginReply()
    signal.setitimer(signal.ITIMER_REAL, call.time_s)
    try:
        return LoginReply(msgspec.Raw(msgspec.json.encode(function(call.page))))
    except BaseException as error:
        return LoginReply(error=error.args[0] if isinstance(error, RecordError) else _place(error))


def _place(error: BaseException) -> str:
    """Return the type of an exception and its place in the code."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f" ({os.path.basename(frames[-1].filename)}:{frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}{place}"
