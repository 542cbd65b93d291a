"""Fuzzing of the disk: the whole data directory of a crawl with damaged files.

An input states the damage (bytes of any files overwritten, removed or inserted, files emptied or removed, in a crawl
that is finished or that a crash has left) and what follows: the check of the data, the repair, the commands that read a
directory at rest, or peers that go on. Each must raise a documented error or do its work. No line may be glued to
another.
"""

import json
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from functools import cache, partial
from pathlib import Path

from fuzz.data_directories import IDS, PEERS, URLS, DataPeer, make
from fuzz.journals import _memory
from fuzz.target import Bites, Target
from kadcrawl.balance.training_data import load_batches
from kadcrawl.cli.data_check.data_check import check_data
from kadcrawl.cli.data_check.data_repair import repair_data
from kadcrawl.cli.local.resting import job_of, resting_peers, status_of
from kadcrawl.cli.local.retry_at_rest import retry_at_rest
from kadcrawl.cli.local.salvage import is_broken, pending_urls
from kadcrawl.cli.targets import address_of
from kadcrawl.cli.view.failed_examples import examples_at_the_ends
from kadcrawl.cli.view.left_seeds import left_seed_lines
from kadcrawl.cli.view.summary import PageLogs, add_up
from kadcrawl.crawl.fetch.poison_pages import PoisonPages
from kadcrawl.errors import KadcrawlError
from kadcrawl.link.wire.retry_messages import RetryOrder
from kadcrawl.members.key_file import write_secret
from kadcrawl.members.peer_key import PeerKey
from kadcrawl.peer.membership.key_store import KeyStore
from kadcrawl.sinks.batch import BatchSize
from kadcrawl.sinks.log_reader import LogReader
from kadcrawl.system.file_names import PEER_KEY

EDITS_MAX = 4
BATCH = b'{"cores":2,"clock_ghz":2.0,"memory_gb":4.0,"net_mbps":100.0,"disk_mbps":100.0,"urls":8,"seconds":1.5}\n'
BATCH_SIZE = BatchSize(lines_max=100, bytes_max=100_000, wait_s=0.0)


@cache
def prepared(is_finished: bool) -> dict[str, bytes]:
    """Return the files of a crawl by their paths: finished and closed well, or unfinished and left by a crash."""
    with tempfile.TemporaryDirectory(prefix="kadcrawl-fuzz-") as name:
        whole, crashed = Path(name) / "whole", Path(name) / "crashed"
        make(whole, is_finished=is_finished, as_crashed=crashed, pages_bytes_max=1_000)
        directory = whole if is_finished else crashed
        peer = directory / PEERS[0]
        write_secret(peer / PEER_KEY, f"{PeerKey(bytes(range(32))).seed.hex()}\n".encode())
        (peer / "batches.jsonl").write_bytes(BATCH * 2)
        (peer / "reading").write_bytes(bytes(17) * 8)
        return {
            str(path.relative_to(directory)): path.read_bytes()
            for path in sorted(directory.rglob("*"))
            if path.is_file() and not path.name.endswith("-shm")
        }


def data(content: bytes) -> None:
    """Do one thing with a damaged data directory."""
    bites = Bites(content)
    choice = bites.number()
    is_finished, use = bool(choice & 1), USES[(choice >> 1) % len(USES)]
    files: dict[str, bytearray | None] = {name: bytearray(whole) for name, whole in prepared(is_finished).items()}
    for _ in range(EDITS_MAX):
        if not bites.left:
            break
        damage(files, bites)
    before = _open_files()
    with tempfile.TemporaryDirectory(prefix="kadcrawl-fuzz-", dir=_memory()) as name:
        directory = Path(name)
        for file, left in files.items():
            if left is not None:
                path = directory / file
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(left)
                path.chmod(0o600)
        use(directory)
    assert _open_files() == before, "a file stays open"


def damage(files: dict[str, bytearray | None], bites: Bites) -> None:
    """Damage one of the files in one way."""
    names = [name for name, content in files.items() if content]
    name, kind = names[bites.number() % len(names)], bites.number() % 5
    content = files[name]
    assert content is not None, "the file is there"
    at, some = bites.number(3) % len(content), bites.take(bites.number() % 32)
    match kind:
        case 0:
            content[at : at + len(some)] = some[: len(content) - at]
        case 1:
            del content[at : at + 64 * len(some)]
        case 2:
            content[at:at] = some
        case 3:
            del content[at:]
        case _:
            files[name] = None


def _check(directory: Path) -> None:
    """Check the data. Nothing is raised, and nothing is changed."""
    for finding in check_data(directory, _silent).findings:
        assert finding.said, "a finding says something"


def _repair(directory: Path) -> None:
    """Mend the data. What is mended has no torn ends and no damaged lines, and stays so."""
    try:
        left, _ = repair_data(check_data(directory, _silent, with_urls=True), _silent)
    except KadcrawlError as error:
        assert str(error)
        return
    for finding in left.findings:
        mended = finding.kind in ("torn_line", "damaged_line", "short_warc", "cell_count")
        assert not mended or not left.has_good_journal(_peer_of(finding.path)), f"it stays: {finding}"
    _go_on(directory)


def _rest(directory: Path) -> None:
    """Read the directory as the commands that need no running peer, and the sinks."""
    peers = resting_peers(directory)
    job = job_of(peers)
    if job is not None:
        add_up(status_of(peers, job, 2e9).answer.rows, None, job).as_json()
    directories = [directory / name for name in PEERS]
    logs = PageLogs(directories)
    assert logs.repeats >= 0
    assert isinstance(logs.failed_examples, dict)
    examples_at_the_ends(directories)
    list(left_seed_lines(directories))
    with suppress(KadcrawlError):
        load_batches([directory])
    with suppress(KadcrawlError):
        retry_at_rest([one for one in directories if one.exists()], RetryOrder(0))
    for peer in directories:
        _read_peer(peer)


def _read_peer(peer: Path) -> None:
    address_of(peer)
    is_broken(peer)
    list(pending_urls(peer))
    with suppress(OSError):
        PoisonPages(peer).close()
    keys = KeyStore(peer)
    reads: list[Callable[[], object]] = [keys.peer_key, lambda: keys.swarm_key]
    for read in reads:
        with suppress(KadcrawlError):
            read()
    for table in ("pages", "records"):
        reader = LogReader(table, peer / f"{table}.jsonl")
        if reader.source() is not None:
            uses: list[Callable[[], object]] = [partial(reader.read, 0, BATCH_SIZE), partial(reader.lines_after, 0)]
            for use in uses:
                try:
                    use()
                except OSError as error:  # A part is shorter than the index says.
                    assert "is damaged" in str(error)


def _go_on(directory: Path) -> None:
    """Go on with the crawl at both peers. Lines that are written stand alone."""
    for number, name in enumerate(PEERS):
        try:
            peer = DataPeer(directory / name, number)
        except (KadcrawlError, FileNotFoundError) as error:
            assert str(error)
            continue
        with closing(peer):
            before = peer.counters.done
            try:
                peer.accept(range(URLS + 2))
                for pending in peer.pending():
                    peer.fetch(pending)
                peer.commit()
                peer.commit()
            except KadcrawlError as error:
                assert str(error)
                continue
        lines = (directory / name / "pages.jsonl").read_bytes().splitlines(keepends=True)
        for line in lines[len(lines) - (peer.counters.done - before) :]:
            assert json.loads(line)["peer"] == IDS[number].hex()[:16], "the line is whole"


def _peer_of(path: str) -> Path:
    """Return the directory of the peer to which a file belongs."""
    parents = [Path(path), *Path(path).parents]
    return next((parent for parent in parents if parent.name in PEERS), parents[0])


def _silent(path: Path, part: float | None) -> None:
    """Report nothing."""


def _open_files() -> int:
    return len(os.listdir("/dev/fd"))


USES = (_check, _repair, _rest, _go_on)


def damages() -> Iterator[bytes]:
    """Yield no damage at all, and one of each kind in each file, at some places."""
    for choice in range(2 * len(USES)):
        yield bytes((choice,))
    for number in range(len(prepared(True))):
        for kind in range(5):
            use = (number * 5 + kind) % (2 * len(USES))
            yield bytes((use, number, kind)) + (700).to_bytes(3, "big") + b"\4\0\xff\1\x80"


TARGETS = (Target("data", data, damages, bytes_max=64),)
