"""The exit codes of commands, and the sentences for expected errors.

Tests: tests/cli/test_command.py
"""

import asyncio
import errno
import sys
from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any

from kadcrawl.cli.early_interrupt import raise_interrupt
from kadcrawl.cli.say import settle_errors, silence, tell
from kadcrawl.errors import KadcrawlError

DONE = 0
"""The command did its work.

Nothing is to be done."""
NOTHING_FETCHED = 1
"""The crawl ended, and no server answered any request.

The last line of the crawl names the reasons, and `pages.jsonl` has the reason of each URL."""
MISTAKE = 2
"""The command could not do its work as asked.

The message says why, and what to change."""
LEFT_BEHIND = 3
"""The crawl ended without URLs that only crashed peers knew, or before `--max-pages`, as crashed peers had pages left
of it.

Run the same command again: it goes on with these URLs."""
UNDELIVERED = 4
"""A sink lacks results. All results are in the directory of the peer.

Run the same command again, or `kadcrawl export`, once the sink works."""
PROBLEMS = 5
"""The check of this machine, or of data, found a problem, or figures lack those of a damaged journal.

The report names each problem, and what to do."""
INTERRUPTED = 11
"""Ctrl-C ended the command, SIGTERM or a closed terminal ended a command that runs peers, or `kadcrawl stop` ended a
local crawl.

Run the same command again: a crawl goes on where it stopped. A peer that was asked to leave goes on leaving."""

LIMIT_OF_BYTES = 14
"""The crawl reached `--max-bytes`, and URLs are left.

Run the same command with a larger `--max-bytes`: it goes on with the URLs that are left. Browsertrix Crawler has the
same code."""
LIMIT_OF_TIME = 15
"""The crawl reached `--max-time`, and URLs are left.

Run the same command with a longer `--max-time`: it goes on with the URLs that are left. Browsertrix Crawler has the
same code."""


def code_of_limit(limit: str) -> int:
    """Return the exit code of a crawl that this limit of the whole swarm has ended (`PeerRow.limit`)."""
    return LIMIT_OF_TIME if limit == "time" else LIMIT_OF_BYTES if limit == "bytes" else DONE


def told(command: Callable[..., int]) -> Callable[..., None]:
    """Turn expected errors of a command into a sentence and an exit code."""

    @wraps(command)
    def wrapper(*args: Any, **options: Any) -> None:
        try:
            raise_interrupt()
            code = command(*args, **options)
        except (KadcrawlError, BaseExceptionGroup, KeyboardInterrupt, asyncio.CancelledError) as error:
            leaves = list(leaves_of(error))
            ours = [leaf for leaf in leaves if isinstance(leaf, KadcrawlError)]
            if ours:
                tell(f"kadcrawl: {ours[0].for_people}", err=True)
                code = MISTAKE
            elif is_interrupt(error):
                tell("kadcrawl: interrupted; run the same command again", err=True)
                code = INTERRUPTED
            else:
                raise
        except OSError as error:
            if error.errno != errno.ENOSPC:  # A full disk under a crawl is never this: that crawl waits for room.
                raise
            tell("kadcrawl: its output could not be written, as the disk it goes to is full", err=True)
            silence(sys.stdout)  # Or Python would try once more at its end.
            code = MISTAKE
        settle_errors()
        sys.exit(code)

    return wrapper


def is_interrupt(error: BaseException) -> bool:
    """Return whether Ctrl-C, or a signal that counts like it, ended a command by this exception."""
    return all(isinstance(leaf, KeyboardInterrupt | asyncio.CancelledError) for leaf in leaves_of(error))


def leaves_of(error: BaseException) -> Iterator[BaseException]:
    """Yield the exceptions in a group of groups, or the exception itself."""
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from leaves_of(inner)
    else:
        yield error
