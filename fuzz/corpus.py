"""The inputs that are kept: few and small, and each makes kadcrawl do something that those before it do not.

What libFuzzer finds interesting is a thousand inputs an hour. Of these are kept, the smallest first, as many as fit
that run a line no other has run, or run it several times where others ran it once. That is counted in plain Python, so
it is the same on every machine, and the lines run are also how the tests see that the work of an input is bounded.
"""

import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, TypeAlias

import kadcrawl
from fuzz.target import Target
from fuzz.watch import name_of

KEPT = Path(__file__).parent / "corpus"
"""A directory for each target."""
KEPT_BYTES_MAX = 16 * 1024
"""The most bytes that are kept of a target."""

KEPT_LINES_MAX = 20_000
"""Run by one input: the tests run through all of them, and soon."""
MANY = 3
"""From so often on, one number of times that a line is run is like another."""

TraceFunction: TypeAlias = Callable[[FrameType, str, Any], Any]

_PACKAGE = str(Path(kadcrawl.__file__).parent)


def kept(name: str) -> dict[str, bytes]:
    """Return the inputs kept of a target, by the names of their files."""
    directory = KEPT / name
    return {path.name: path.read_bytes() for path in sorted(directory.iterdir())} if directory.is_dir() else {}


def keep(target: Target, candidates: Iterable[bytes]) -> int:
    """Keep the candidates that add coverage, and return their number."""
    held = kept(target.name)
    met: set[object] = set()
    for data in [*target.seeds(), *held.values()]:
        met |= features(lines_run(target.one, data))
    left = KEPT_BYTES_MAX - sum(map(len, held.values()))
    count = 0
    for data in sorted(candidates, key=lambda data: (len(data), data)):
        if len(data) > left:
            break
        try:
            run = lines_run(target.one, data)
        except Exception:
            continue  # A fault: that is written down elsewhere.
        if run.total() <= KEPT_LINES_MAX and (news := features(run) - met):
            met |= news
            left -= len(data)
            count += 1
            directory = KEPT / target.name
            directory.mkdir(parents=True, exist_ok=True)
            (directory / name_of(data)).write_bytes(data)
    return count


def features(run: Counter[tuple[CodeType, int]]) -> set[object]:
    """Return which lines were run, and how often about."""
    return {(line, min(count, MANY)) for line, count in run.items()}


def lines_run(one: Callable[[bytes], object], data: bytes) -> Counter[tuple[CodeType, int]]:
    """Return how often an input runs which line of kadcrawl. Raises what `one` does."""
    # The hash of a code takes longer than most of its lines, so it is asked for once.
    found: dict[int, tuple[CodeType, dict[int, int], TraceFunction | None]] = {}

    def enter(frame: FrameType, event: str, argument: Any) -> TraceFunction | None:
        code = frame.f_code
        if (known := found.get(id(code))) is None:
            lines: dict[int, int] = defaultdict(int)
            is_ours = code.co_filename.startswith(_PACKAGE)
            known = found[id(code)] = (code, lines, _counting(lines) if is_ours else None)
        return known[2]

    before = sys.gettrace()
    sys.settrace(enter)
    try:
        one(data)
    finally:
        sys.settrace(before)
    counted: Counter[tuple[CodeType, int]] = Counter()
    for code, lines, _ in found.values():
        for line, count in lines.items():
            counted[code, line] += count
    return counted


def _counting(lines: dict[int, int]) -> TraceFunction:
    """Return what counts the lines that are run of a code."""

    def step(frame: FrameType, event: str, argument: Any) -> TraceFunction:
        if event == "line":
            lines[frame.f_lineno] += 1
        return step

    return step
