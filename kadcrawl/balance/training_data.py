"""The files of prediction (P2): the batches that each peer has measured, and the trained network.

Batches are lines of JSON in the directory of the peer that measured them. A batch *grows*: the first 8 URLs are a
batch, the first 16 URLs with them another, up to `BATCH_SIZES`[-1], and then the next begins. So all sizes occur at
every peer, however fast, and the number of URLs is given while the seconds are measured. The network is one JSON
object. Both files may come from other people's machines, so every value in them is checked.
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
"""Bytes of a file that are written and read at most: more batches would teach nothing new."""


MEASURED_MOST = 10**9
"""URLs, or seconds, in a batch at most: a larger number is no measurement."""


class _Line(msgspec.Struct, forbid_unknown_fields=True):
    cores: Annotated[int, msgspec.Meta(ge=1, le=int(PROFILE_MOST["cores"]))]
    clock_ghz: float
    memory_gb: float
    net_mbps: float
    disk_mbps: float
    urls: Annotated[int, msgspec.Meta(ge=1, le=MEASURED_MOST)]
    seconds: Annotated[float, msgspec.Meta(gt=0, le=MEASURED_MOST)]


class GrowingBatch:
    """A batch that grows from size to size."""

    def __init__(self) -> None:
        self._urls = 0
        self._seconds = 0.0
        self._next = 0

    def measured(self, urls: int, seconds: float) -> tuple[int, float] | None:
        """Add crawled URLs and their seconds, and return the batch if it has reached the next size.

        The batch is (URLs, seconds) since it began.
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
    """Append a batch to a file of batches, unless the file is too long. Raises OSError as the disk does."""
    with path.open("a+b") as file:
        size = file.seek(0, SEEK_END)
        if size >= TRAINING_BYTES_MAX:
            return
        file.seek(max(0, size - 1))
        # A peer that died while it wrote has left half a line, which must not spoil this line.
        file.write((b"" if file.read() in (b"", b"\n") else b"\n") + batch_line(batch))


def load_batches(directories: Sequence[Path]) -> tuple[list[BatchTiming], int]:
    """Return all batches in the files below these directories, and the number of invalid lines.

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
    """Write a network. Raises ConfigError if the file cannot be written."""
    try:
        path.write_bytes(msgspec.json.encode(network) + b"\n")
    except OSError as error:
        raise ConfigError(f"cannot write the network to {path}: {error.strerror}") from None


def load_network(path: Path) -> NeuralNetwork:
    """Return a network that `save_network` wrote. Raises ConfigError for any other file."""
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
    """Yield the batches of a file, and None for each invalid line."""
    try:
        lines = _bytes(file).splitlines(keepends=True)
    except OSError as error:
        raise ConfigError(f"cannot read {file}: {error.strerror}") from None
    for text in lines:
        if not text.endswith(b"\n"):
            return  # A peer that died while it wrote has left half a line, and bytes beyond the limit are cut off.
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
    """Return the reason why a network cannot predict, or None if it can."""
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
