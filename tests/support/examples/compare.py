"""Outputs are compared line by line, after figures that vary from run to run are masked on both sides.

`...` alone in a line of the page stands for any lines, and inside a line for any text. Lines that tell of the progress
of a crawl or a check every few seconds are left out on both sides, as a busy machine prints more of them.
"""

import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from functools import lru_cache
from typing import Final

ANY: Final = "..."

_MASKS: Final = tuple(
    (re.compile(pattern), mask)
    for pattern, mask in (
        (r"\x1b\[[0-9;?]*[A-Za-z]", ""),
        (r"\b\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d([.,]\d+)?)?(Z|[+-]\d\d:?\d\d)?)?", "DATE"),
        (r"\b\d{14,17}\b", "DATE"),
        (r"(\"?\b(?:ms|seconds|offset|warc_offset|peer_messages|due_s|pid|length)\"?: ?)\d+(\.\d+)?", r"\1N"),
        (r"\b\d+(\.\d+)?/s\b", "N/s"),
        (r"\b\d+(\.\d+)? ?(s|ms|us|seconds)\b", "N s"),
        (r"\b\d+\.\d+ (seconds|minutes|hours)\b", r"N \1"),
        (r"\b\d+(\.\d+)? ?[kKMG]i?B\b", "N bytes"),
        (r"\b\d+(\.\d+)? ?bytes free\b", "N bytes free"),
        (r"\b\d+:\d\d(:\d\d)?\b", "TIME"),
        (r"(\b\d+\.\d+\.\d+\.\d+|\blocalhost|\]):[1-9]\d{4}\b", r"\1:PORT"),
        (r"\b(?=[a-z]*\d)[0-9a-f]{8,}\b", "HEX"),
        (r"\b(?=[0-9]*[a-f])[0-9a-f]{8,}\b", "HEX"),
        (r"^(HEX@\S+ .+ )\d+$", r"\1N"),  # `kadcrawl status`: messages between peers
        (r"\b(pid|PID|process) \d+\b", r"\1 N"),
        (r"\[\d+\] \d+$", "[N] N"),
        # How wide a column is depends on the figures in it.
        (r"(?<=\S)[ \t]{2,}", " "),
        (r"[─━]{2,}|-{4,}|={4,}", "─"),
        (r"\s+$", ""),
    )
)
_PROGRESS: Final = re.compile(r"^\w[\w ]*: \d[\d,]* pages? \(.*\bpending\b.*$|^checking \S+(: \d+%)?$")


@lru_cache(maxsize=10_000)
def masked(line: str) -> str:
    """Return the line with each figure that varies replaced by its kind."""
    for pattern, mask in _MASKS:
        line = pattern.sub(mask, line)
    return line


def compared(lines: Sequence[str]) -> list[str]:
    """Return the lines without progress, blank ends, and with figures masked."""
    kept = [masked(line) for line in lines if not _PROGRESS.match(line)]
    while kept and not kept[-1]:
        kept.pop()
    return kept


def matches(expected: Sequence[str], actual: Sequence[str]) -> bool:
    """Return whether an output equals the output of the page."""
    return _match(tuple(compared(expected)), tuple(compared(actual)))


def begins_with(expected: Sequence[str], actual: Sequence[str]) -> bool:
    """Return whether an output that may go on begins as the page shows it."""
    return _match((*compared(expected), ANY), tuple(compared(actual)))


def _match(expected: tuple[str, ...], actual: tuple[str, ...]) -> bool:
    """Match lines against lines with `...`, without trying any line twice for the same gap."""
    reached = {0}
    for line in expected:
        if line.strip() == ANY:
            reached = set(range(min(reached), len(actual) + 1)) if reached else set()
        else:
            pattern = _pattern(line)
            reached = {at + 1 for at in reached if at < len(actual) and pattern.fullmatch(actual[at])}
    return len(actual) in reached


@lru_cache(maxsize=10_000)
def _pattern(line: str) -> re.Pattern[str]:
    return re.compile(".*".join(re.escape(part) for part in re.split(r"\.\.\.|…", line)))


def renewed(expected: Sequence[str], actual: Sequence[str]) -> list[str]:
    """Return the output for the page: the real one, with the gaps `...` that the page had, as far as they still fit."""
    shown = [line.rstrip() for line in actual if not _PROGRESS.match(line)]
    while shown and not shown[-1]:
        shown.pop()
    new: list[str] = []
    steps = SequenceMatcher(None, [masked(line) for line in expected], [masked(line) for line in shown], autojunk=False)
    for kind, begin, end, first, last in steps.get_opcodes():
        old, real = list(expected[begin:end]), shown[first:last]
        if kind == "equal":
            new += old
            continue
        gaps = [number for number, line in enumerate(old) if line.strip() == ANY]
        if not gaps:
            new += real
            continue
        before, after = gaps[0], len(old) - 1 - gaps[-1]
        tail = real[len(real) - after :] if after else []
        new += [*real[:before], old[gaps[0]], *tail] if len(real) > before + after else real
    return new


def difference(expected: Sequence[str], actual: Sequence[str]) -> str:
    """Return both outputs for a person."""
    want = "\n".join(f"  | {line}" for line in expected)
    have = "\n".join(f"  | {line.rstrip()}" for line in actual) or "  (nothing)"
    return f"the page shows\n{want}\nbut the output is\n{have}"
