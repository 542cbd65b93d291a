"""Calls the login hook of a job in a process of its own, which ends with the call.

A login is rare, so no process waits for the next. It is killed with all that it started when it takes too long.
"""

import asyncio
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress

import msgspec

from kadcrawl.crawl.content.record_worker import START_S
from kadcrawl.crawl.cookies.login_request import REPLY_BYTES_MAX, LoginAnswer, LoginHookError, LoginPage, read_answer
from kadcrawl.crawl.cookies.login_worker import LoginCall, LoginReply
from kadcrawl.errors import StartError
from kadcrawl.settings.limits import Limits

CallHook = Callable[[str, LoginPage, Limits], Awaitable[LoginAnswer]]
"""Calls a hook with a page. Raises LoginHookError."""


async def call_login_hook(hook: str, page: LoginPage, limits: Limits) -> LoginAnswer:
    """Return the answer of a hook to a page. Raises LoginHookError."""
    return read_answer(bytes((await _call(hook, page, limits)).answer))


async def check_login_hooks(hooks: Iterable[str], limits: Limits) -> None:
    """Import these hooks. Raises StartError, saying what to do, if one of them is not there."""
    for hook in sorted(hooks):
        try:
            await _call(hook, None, limits)
        except LoginHookError as error:
            raise StartError(
                f"this machine lacks the login hook {hook} of the job: {error}; it must be importable from where "
                "kadcrawl runs, so put its module into that directory or install it"
            ) from None


async def _call(hook: str, page: LoginPage | None, limits: Limits) -> LoginReply:
    """Return the reply of the process. Raises LoginHookError."""
    call = LoginCall(hook, limits.record_memory_bytes, limits.record_time_s, page)
    try:
        async with asyncio.timeout(START_S + limits.record_time_s):
            data = await _run(msgspec.json.encode(call))
    except TimeoutError:
        raise LoginHookError(f"not done after {START_S + limits.record_time_s:g} s") from None
    except OSError as error:
        raise LoginHookError(f"its process does not start: {error.strerror}") from None
    try:
        reply = msgspec.json.decode(data, type=LoginReply)
    except msgspec.DecodeError:
        raise LoginHookError(
            f"its process ended without an answer, or took more than {limits.record_time_s:g} s"
        ) from None
    if reply.error:
        raise LoginHookError(reply.error)
    return reply


async def _run(data: bytes) -> bytes:
    """Return the output of one process with this input, as much as may be an answer. Raises OSError."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-P",  # From the directory it runs in nothing is imported but hooks.
        "-c",
        "from kadcrawl.crawl.cookies.login_worker import main; main()",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env={name: value for name, value in os.environ.items() if not name.startswith("KADCRAWL_")},  # Passwords.
        start_new_session=True,  # What it starts can be killed with it.
    )
    assert process.stdin is not None, "stdin is a pipe"
    assert process.stdout is not None, "stdout is a pipe"
    try:
        process.stdin.write(data)
        with suppress(ConnectionError):
            await process.stdin.drain()
        process.stdin.close()
        output = b""
        while len(output) <= REPLY_BYTES_MAX and (more := await process.stdout.read(REPLY_BYTES_MAX)):
            output += more
        return output if len(output) <= REPLY_BYTES_MAX else b""
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
