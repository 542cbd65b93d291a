"""Small data directories of crawls, made by the store and the outputs of a peer, without a network.

A crawl of two peers: both know all URLs, and each has fetched some of them. Some answers are failures, some pages have
records. In an unfinished crawl some URLs are pending, and the journal is as a crash leaves it.
"""

import shutil
from collections.abc import Iterable, Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from random import Random

import msgspec

from fuzz.journals import no_sync, run_now
from kadcrawl.crawl.content.link_finder import FoundLinks
from kadcrawl.crawl.content.record_extractor import ExtractedRecords
from kadcrawl.crawl.fetch.result import FetchResult
from kadcrawl.crawl.output.counters import Counters
from kadcrawl.crawl.output.outputs import Outputs
from kadcrawl.crawl.output.warc import warc_name
from kadcrawl.crawl.scope.partitioner import Partitioner
from kadcrawl.link.wire.messages import Contact
from kadcrawl.peer.job_store import JobRecord
from kadcrawl.settings.job import Job
from kadcrawl.settings.limits import Limits
from kadcrawl.settings.page_rules import Field, PageRules, RecordRule
from kadcrawl.store.store import Store
from kadcrawl.store.visit import Visit
from kadcrawl.system.file_names import ADDRESS, LOCK

USUAL_PART_BYTES = Limits().pages_bytes_max

NOW = 1_800_000_000.0
URLS = 12
PEERS = ("peer-1", "peer-2")
JOB = Job(seeds=("http://a.example/0",), records=(RecordRule(pattern="/[0-9]", fields=(Field("n", "css:p"),)),))
IDS = tuple(bytes((number,)) * 20 for number in range(1, 3))


def url(number: int) -> str:
    return f"http://{'ab'[number % 2]}.example/{number}"


def answer(number: int, address: str) -> FetchResult:
    """Return the answer of a server to the request of a URL."""
    body = b"<p>%d</p>" % number + Random(number).randbytes(50 * number)
    return FetchResult(
        url=address,
        status=404 if number % 5 == 4 else 200,
        error=None,
        detail="",
        request_head=b"GET /%d HTTP/1.1\r\nHost: a.example\r\n\r\n" % number,
        http_version="1.1",
        reason="",
        headers=((b"Content-Type", b"text/html"),),
        body=body,
        content=body,
        content_type="text/html",
        mime="text/html",
        retry_after_s=None,
        address="192.0.2.1",
        started_at=datetime(2026, 1, 2, 3, 4, 5, number, UTC),
        seconds=0.1,
        first_byte_at=0.0,
    )


class DataPeer:
    """The store and the outputs of one peer, opened as the peer opens them."""

    def __init__(self, directory: Path, number: int, job: Job = JOB, pages_bytes_max: int = USUAL_PART_BYTES) -> None:
        """Raises StartError, StorageError and OSError."""
        self.store = Store(directory, 0.0, no_sync, Limits(pages_bytes_max=pages_bytes_max))
        try:
            self._open(directory, number, job)
        except BaseException:
            self.store.close()
            raise

    def _open(self, directory: Path, number: int, job: Job) -> None:
        record = JobRecord(self.store)
        self.job = record.journaled() or job
        self.store.begin(self.job.bits)
        self.store.saved_time.restore(NOW)
        self.counters = Counters.from_bytes(self.store.meta.get("totals"))
        self.partitioner = Partitioner(self.job.partition, self.job.bits)
        name = IDS[number].hex()
        self.outputs = Outputs(
            directory,
            warc_name(self.job.name, name),
            {},
            name,
            self.store,
            Limits(),
            Random(number),
            lambda: NOW,
            rules=PageRules(self.job.roles, self.job.records),
        )
        record.keep(self.job)
        self.store.meta.set("node_id", IDS[number])
        contacts = [Contact(other, "127.0.0.1", 4160) for other in IDS if other != IDS[number]]
        self.store.meta.set("contacts", msgspec.msgpack.encode(contacts))
        self.store.journal.before_commit(self.outputs.flush)
        self.store.journal.before_commit(self._keep_counters)

    def _keep_counters(self) -> Iterable[int]:
        self.store.meta.set("totals", self.counters.to_bytes())
        return ()

    def accept(self, numbers: Iterable[int]) -> None:
        """Accept URLs."""
        for number in numbers:
            place = self.partitioner.locate(url(number))
            if self.store.accept(place.key, place.site, url(number), 1, 0) is not None:
                self.counters.accept()

    def fetch(self, number: int) -> None:
        """Fetch a URL that is pending."""
        entry = self.store.entry(self.partitioner.locate(url(number)).key)
        if entry is None:
            return
        result = answer(number, entry.url)
        why = "http_404" if result.status == 404 else None
        place = self.outputs.keep(result)
        visit = self.store.rounds(entry.key)
        line = self.outputs.line(entry, result, FoundLinks((), [], why), place, visit)
        records = ExtractedRecords() if why else ExtractedRecords([msgspec.Raw(b'{"n":"%d"}' % number)])
        lines = self.outputs.lines(entry, line, records)
        kept = Visit.first(entry.key, entry.site, entry.url, entry.depth)._replace(failed=why) if why else None
        self.counters.answer(len(result.body), len(records.records), is_revisit=visit > 0, is_unchanged=False)
        self.counters.finish(is_first=self.store.finish(entry, *lines, kept, visit))

    def learn(self, numbers: Iterable[int]) -> None:
        """Learn from another peer that these URLs are done."""
        for number in numbers:
            self.store.learn_done(self.partitioner.locate(url(number)).key)

    def pending(self) -> list[int]:
        """Return the numbers of the URLs that are pending here."""
        return [
            number
            for number in range(URLS + 3)
            if self.store.entry(self.partitioner.locate(url(number)).key) is not None
        ]

    def commit(self) -> None:
        run_now(self.store.journal.commit())

    def close(self) -> None:
        """Close the files, as a crash does."""
        self.outputs.close()
        self.store.close()


def make(
    directory: Path,
    *,
    is_finished: bool,
    peers: Sequence[str] = PEERS,
    as_crashed: Path | None = None,
    pages_bytes_max: int = USUAL_PART_BYTES,
) -> None:
    """Make the directory of a crawl, all in order. An unfinished crawl has three pending URLs at the end.

    `as_crashed` gets a copy of the files that a crash at the end leaves.
    """
    for number, name in enumerate(peers):
        peer_directory = directory / name
        peer_directory.mkdir(parents=True)
        (peer_directory / LOCK).touch(0o600)
        (peer_directory / ADDRESS).write_text(f"127.0.0.1:{4160 + number}\n")
        with closing(DataPeer(peer_directory, number, pages_bytes_max=pages_bytes_max)) as peer:
            pending = [] if is_finished else [0, 5, 7]
            mine = [one for one in range(URLS) if one % len(peers) == number and one not in pending]
            peer.accept(range(URLS))
            for one in mine:
                peer.fetch(one)
                if one % 3 == 0 or pages_bytes_max < USUAL_PART_BYTES:
                    peer.commit()
            peer.learn(one for one in range(URLS) if one not in mine and one not in pending)
            peer.commit()
            peer.commit()
            if as_crashed is not None:
                shutil.copytree(peer_directory, as_crashed / name)
