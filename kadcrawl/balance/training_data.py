"""The files of prediction (P2): what each peer has measured, and the network that was trained from it.

Batches are lines of JSON, a peer's own in the directory of that peer. A batch *grows*: the first 8 URLs are one, the
first 16 with them another, up to `SIZES`[-1]; then the next begins. So all sizes are met at every peer, however quick,
and the number of URLs is given and the seconds are measured, not the other way round. The network is one JSON object.
Both may come from other people's machines, so everything in them is checked.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from math import isfinite
from os import SEEK_END
from pathlib import Path
from typing import Annotated

import msgspec

from kadcrawl.balance.machine_profile import PROFILE_MOST, MachineProfile
from kadcrawl.balance.predict import BATCH_MOST, HIDDEN_MAX, INPUTS, BatchTiming, NeuralNetwork
from kadcrawl.errors import ConfigError

BATCHES_FILE = "batches.jsonl"
BATCH_SIZES = (8, 16, 32, BATCH_MOST)
"""URLs at which a growing batch is written down."""
TRAINING_BYTES_MAX = 4 << 20
"""A peer writes no more than this, and no more is read: more would teach nothing new."""


MEASURED_MOST = 10**9
"""URLs, or seconds, in a batch: more was not measured."""


class _Line(msgspec.Struct, forbid_unknown_fields=True):
    cores: Annotated[int, msgspec.Meta(ge=1, le=int(PROFILE_MOST["cores"]))]
    clock_ghz: float
    memory_gb: float
    net_mbps: float
    disk_mbps: float
    urls: Annotated[int, msgspec.Meta(ge=1, le=MEASURED_MOST)]
    seconds: Annotated[float, msgspec.Meta(gt=0, le=MEASURED_MOST)]


class GrowingBatch:
    """A batch that grows."""

    def __init__(self) -> None:
        self._urls = 0
        self._seconds = 0.0
        self._next = 0

    def measured(self, urls: int, seconds: float) -> tuple[int, float] | None:
        """Take in what was crawled since the last time, and how long it took; return the batch if it has grown so far.

        That is (URLs, seconds), of all since the batch began.
        """
        self._urls += urls
        self._seconds += seconds
        if self._urls < BATCH_SIZES[self._next]:
            return None
        grown = self._urls, self._seconds
        while self._next < len(BATCH_SIZES) and BATCH_SIZES[self._next] <= self._urls:
            self._next += 1
        if self._next == len(BATCH_SIZES):
            self._urls, self._seconds, self._next = 0, 0.0, 0
        return grown


def batch_line(batch: BatchTiming) -> bytes:
    """Return a batch as a line of its file."""
    return msgspec.json.encode({**asdict(batch.profile), "urls": batch.urls, "seconds": batch.seconds}) + b"\n"


def append_batch(batch: BatchTiming, path: Path) -> None:
    """Add a batch to a file of them, if that is not too long already. Raises OSError as the disk does."""
    with path.open("a+b") as file:
        size = file.seek(0, SEEK_END)
        if size >= TRAINING_BYTES_MAX:
            return
        file.seek(max(0, size - 1))
        # A peer that died while it wrote has left half a line, which must not spoil this one.
        file.write((b"" if file.read() in (b"", b"\n") else b"\n") + batch_line(batch))


def load_batches(directories: Sequence[Path]) -> tuple[list[BatchTiming], int]:
    """Return all batches in the files below these directories, and how many lines of them are none.

    Raises ConfigError if a file cannot be read, or if there is no batch.
    """
    files = [file for directory in directories for file in sorted(directory.rglob(BATCHES_FILE))]
    read = [batch for file in files for batch in _read(file)]
    found = [batch for batch in read if batch is not None]
    if not found:
        raise ConfigError(
            f"there are no batches in any {BATCHES_FILE} below {', '.join(map(str, directories))}: "
            "crawl with --balance predictive first, with a --power for each that a machine does not tell, "
            "and name the directories of its peers"
        )
    return found, len(read) - len(found)


def save_network(network: NeuralNetwork, path: Path) -> None:
    """Write a network. Raises ConfigError if that cannot be done."""
    try:
        path.write_bytes(msgspec.json.encode(network) + b"\n")
    except OSError as error:
        raise ConfigError(f"cannot write the network to {path}: {error.strerror}") from None


def load_network(path: Path) -> NeuralNetwork:
    """Return a network as `save` wrote it. Raises ConfigError for anything else."""
    try:
        data = _bytes(path)
    except OSError as error:
        raise ConfigError(f"cannot read the network {path}: {error.strerror}") from None
    try:
        network = msgspec.json.decode(data, type=NeuralNetwork)
    except (msgspec.DecodeError, RecursionError) as error:
        raise ConfigError(f"{path} is no network: {error}; make one with kadcrawl train") from None
    if (why := _why_not(network)) is not None:
        raise ConfigError(f"{path} is no network: {why}; make one with kadcrawl train")
    return network


def _read(file: Path) -> Iterator[BatchTiming | None]:
    """Yield the batches of a file; None for each line that is none."""
    try:
        lines = _bytes(file).splitlines(keepends=True)
    except OSError as error:
        raise ConfigError(f"cannot read {file}: {error.strerror}") from None
    for text in lines:
        if not text.endswith(b"\n"):
            return  # A peer that died while it wrote has left half a line; and what is beyond the most is cut off.
        try:
            one = msgspec.json.decode(text, type=_Line)
            powers = MachineProfile(one.cores, one.clock_ghz, one.memory_gb, one.net_mbps, one.disk_mbps)
            yield BatchTiming(powers, one.urls, one.seconds)
        except (msgspec.DecodeError, ValueError, RecursionError):
            yield None


def _bytes(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(TRAINING_BYTES_MAX)


def _why_not(network: NeuralNetwork) -> str | None:
    """Return why nothing can be predicted by such a network; None if it can."""
    rows = (network.least, network.span, network.out_of_hidden, *network.into_hidden)
    if not all(isfinite(x) for row in rows for x in row) or not isfinite(network.least_s + network.span_s):
        return "a number in it is not finite"
    if len(network.least) != INPUTS or len(network.span) != INPUTS:
        return f"it must have {INPUTS} inputs"
    if not 1 <= len(network.into_hidden) <= HIDDEN_MAX or any(len(row) != INPUTS + 1 for row in network.into_hidden):
        return f"it must have up to {HIDDEN_MAX} hidden units of {INPUTS + 1} weights"
    if len(network.out_of_hidden) != len(network.into_hidden) + 1:
        return "it must have a weight for each hidden unit and a bias"
    if min(network.span) <= 0 or network.span_s <= 0:
        return "its ranges must be above 0"
    return None
