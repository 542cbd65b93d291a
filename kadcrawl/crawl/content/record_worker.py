"""The worker: the process of a peer in which pages become records, as selectors and hooks may loop, grow or crash.

It is told its rules, answers whether their hooks are there, and then answers each page in turn; both ends speak in
frames, four bytes of length and that much JSON or msgpack. Its memory has a limit, and an alarm ends it should a page
take too long and nobody be left to kill it. What a hook prints goes to stderr. It exits when its input ends.

Tests: tests/crawl/content/test_record_extractor.py
"""

import os
import resource
import signal
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from typing import BinaryIO

import msgspec

from kadcrawl.crawl.content.page import Page
from kadcrawl.crawl.content.record_rules import Hook, RecordError, extract
from kadcrawl.settings.limits import Limits
from kadcrawl.settings.page_rules import RecordRule
from kadcrawl.system.inherited_fds import close_inherited
from kadcrawl.system.process_title import set_title

LENGTH_BYTES = 4
ERROR_CHARS_MAX = 300
"""Limit on the characters of the reason for which a page has no records."""
START_S = 60.0
"""Seconds for the imports of hooks."""
ALARM_AFTER_S = 5.0
"""Seconds by which the worker's own alarm ends a page later than the peer does."""


class Begin(msgspec.Struct):
    """The first frame: the rules and limits of the worker."""

    records: tuple[RecordRule, ...]
    limits: Limits


class Ask(msgspec.Struct):
    """A page, and which of the rules it has."""

    rule: int
    page: Page


class WorkerReply(msgspec.Struct, omit_defaults=True):
    """Records, or why there are none."""

    records: list[msgspec.Raw] = []
    error: str | None = None
    spent: bool = False
    """The worker is out of memory and exits."""


def framed(message: Begin | Ask | WorkerReply) -> bytes:
    """Return a message as one frame, with pages in msgpack, as they are bytes."""
    data = msgspec.msgpack.encode(message) if isinstance(message, Ask) else msgspec.json.encode(message)
    return len(data).to_bytes(LENGTH_BYTES, "big") + data


def main() -> None:
    """Answer frames on stdin by frames on stdout until stdin ends."""
    close_inherited()
    set_title("records")
    asked, answered = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    # From now on these are the hooks': they hear nothing, and what they print is no frame.
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    if not (first := _frame(asked)):
        return  # The peer died before it wrote the rules.
    begin = msgspec.json.decode(first, type=Begin)
    bound_memory(begin.limits.record_memory_bytes)
    signal.setitimer(signal.ITIMER_REAL, START_S + ALARM_AFTER_S)
    if any(rule.hook for rule in begin.records):
        with suppress(OSError):  # If it is gone nothing is found there.
            sys.path.insert(0, os.getcwd())  # Whoever allows hooks here means those of this directory.
    try:
        # In the time of the start: on a slow machine the import takes longer than a page may, and the first would pay.
        import_module("parsel")
        hooks = {rule.hook: load(rule.hook) for rule in begin.records if rule.hook}
    except BaseException as error:
        _answer(answered, WorkerReply(error=said(error)))
        return
    signal.setitimer(signal.ITIMER_REAL, 0)
    _answer(answered, WorkerReply())
    decoder = msgspec.msgpack.Decoder(Ask)
    while data := _frame(asked):
        signal.setitimer(signal.ITIMER_REAL, begin.limits.record_time_s + ALARM_AFTER_S)
        reply = _reply(begin, hooks, decoder, data)
        _answer(answered, reply)
        if reply.spent:
            return
        signal.setitimer(signal.ITIMER_REAL, 0)


def load(hook: str) -> Callable[..., object]:
    """Import a ``module:function``. Raises RecordError if it is none, and whatever importing it raises."""
    module, _, name = hook.partition(":")
    function: Callable[..., object] | None = getattr(import_module(module), name, None)
    if not callable(function):
        raise RecordError(f"module {module} has no function {name}")
    return function


def said(error: BaseException) -> str:
    """Return a description of an exception: its text and the place in the code that raised it last."""
    try:
        what = str(error)
    except Exception:
        what = "(its text cannot be made)"
    if not isinstance(error, RecordError):
        what = f"{type(error).__name__}: {what}" if what else type(error).__name__
        if frames := traceback.extract_tb(error.__traceback__):
            what = f"{what[: ERROR_CHARS_MAX - 100]} ({os.path.basename(frames[-1].filename)}:{frames[-1].lineno})"
    return what[:ERROR_CHARS_MAX].encode("utf-8", "replace").decode()


def _reply(begin: Begin, hooks: dict[str, Hook], decoder: "msgspec.msgpack.Decoder[Ask]", data: bytes) -> WorkerReply:
    try:
        ask = decoder.decode(data)
        rule = begin.records[ask.rule]
        records = extract(rule, hooks.get(rule.hook), ask.page, begin.limits)
        return WorkerReply([msgspec.Raw(record) for record in records])
    except MemoryError:
        return WorkerReply(error="out of memory", spent=True)
    except BaseException as error:  # SystemExit as well.
        return WorkerReply(error=said(error))


def bound_memory(memory_bytes: int) -> None:
    """Limit the address space of this process, if the system can."""
    with suppress(ValueError, OSError):  # macOS has no such limit.
        resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _frame(stream: BinaryIO) -> bytes:
    """Return the next frame, or an empty frame at the end, also where the peer died within a frame."""
    head = stream.read(LENGTH_BYTES)
    length = int.from_bytes(head, "big")
    frame = stream.read(length) if len(head) == LENGTH_BYTES else b""
    return frame if len(frame) == length else b""


def _answer(stream: BinaryIO, reply: WorkerReply) -> None:
    try:
        stream.write(framed(reply))
        stream.flush()
    except BrokenPipeError:
        sys.exit(0)  # The peer is gone.
