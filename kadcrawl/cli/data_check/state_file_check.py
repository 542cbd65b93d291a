"""The check of the small files of a peer: its keys, its address, and its measured batches.

Tests: tests/cli/data_check/test_data_check.py
"""

from collections.abc import Callable, Iterator
from pathlib import Path

from kadcrawl.balance.training_data import BATCHES_FILE, load_batches
from kadcrawl.cli.data_check.data_finding import DataFinding, damage, oddity
from kadcrawl.cli.targets import address_of
from kadcrawl.errors import ConfigError, StartError
from kadcrawl.peer.membership.key_store import KeyStore
from kadcrawl.system.file_names import ADDRESS, PEER_KEY, SWARM_KEY
from kadcrawl.system.plural import plural


def check_state_files(directory: Path) -> Iterator[DataFinding]:
    """Yield the findings about the small files in the directory of a peer."""
    keys = KeyStore(directory)
    reads: dict[str, Callable[[], object]] = {
        SWARM_KEY: lambda: None if (kept := keys.swarm_key) is None else keys.kept(kept, 0.0),
        PEER_KEY: keys.peer_key,
    }
    for name, read in reads.items():
        try:
            read()
        except (ConfigError, StartError) as error:
            yield damage("key", directory / name, 1, str(error))
    if (directory / ADDRESS).exists() and address_of(directory) is None:
        said = "it holds no address"
        yield oddity("address", directory / ADDRESS, 1, said, "the next start of the peer writes it anew")
    if (directory / BATCHES_FILE).exists():
        try:
            invalid = load_batches([directory])[1]
        except ConfigError as error:
            yield oddity("batches", directory / BATCHES_FILE, 1, str(error))
        else:
            if invalid:
                said = f"{plural(invalid, 'line')} are no batches; training leaves them out"
                yield oddity("batches", directory / BATCHES_FILE, invalid, said)
