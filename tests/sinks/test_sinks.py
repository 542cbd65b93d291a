"""Test that each kind of sink contains one document per key and misses none, after repeats, interruptions or late
names."""

import gc
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kadcrawl.crawl.output.outputs import PageLine
from kadcrawl.sinks import destinations, log_work, mongo, part_files
from kadcrawl.sinks.batch import DocumentBatch
from kadcrawl.sinks.log_reader import LogReader
from kadcrawl.store.last_answer import LastAnswer
from tests.support.sinks.delivery import deliver, delivering
from tests.support.sinks.mongo_server import MongoServer
from tests.support.sinks.peer_directory import Directory, Documents
from tests.support.sinks.readers import Read, in_csv, in_json_lines, in_mongodb, in_parquet, in_sqlite

Named = tuple[str, Read]
DIGEST = "sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ"


async def exactly(read: Read, *directories: Directory) -> None:
    """Fail unless the sink contains exactly the documents of these directories, each once."""
    found, counts = await read()
    for table in ("pages", "records"):
        assert {k: d for each in directories for k, d in each.expected[table].items()} == found[table]
    assert set(counts.values()) <= {1}


async def test_all_of_both_logs_arrives_and_later_only_what_is_new(directory: Directory, sink: Named) -> None:
    name, read = sink
    directory.write(3, 2)
    first = await deliver(directory.path, name)
    assert (0, []) == (first.lag, first.shortfalls)
    await exactly(read, directory)
    directory.write(2, 1)
    second = await deliver(directory.path, name)
    await exactly(read, directory)
    assert second.each[0].work.done == "3 lines"
    again = await deliver(directory.path, name)
    assert again.each[0].work.done == "0 lines"
    directory.write(1, 0)
    assert (await deliver(directory.path, name)).each[0].work.done == "1 line"


async def test_after_an_unchanged_visit_a_sink_has_the_last_answer_beside_the_visit(
    directory: Directory, sink: Named
) -> None:
    name, read = sink
    answer = LastAnswer("text/html", 5120, DIGEST, "2026-11-21T10:00:00.000Z", "a" * 16, "warc/x.warc.gz", 4096)
    known = msgspec.structs.asdict(answer)
    fields = {"answer_status": 200} | {f"answer_{field}": value for field, value in known.items()}
    for visit, status, mime in ((0, 200, "text/html"), (1, 304, ""), (2, None, "")):
        line = PageLine(
            f"{7:040x}", "https://example.org/", status, mime, 0, "", 0, 0, f"2026-11-2{visit + 1}T10:00:00.000Z", 9,
            "b" * 16, visit=visit, unchanged="not_modified" if status == 304 else None,
            failed=None if status else "robots", **fields,
        )  # fmt: skip
        directory.add("pages", msgspec.json.decode(msgspec.json.encode(line)))
        await deliver(directory.path, name)
        found, _ = await read()
        (document,) = found["pages"].values()
        assert (status, visit) == (document.get("status"), document.get("visit", 0))
        assert fields.items() <= document.items()


async def test_several_peers_write_one_sink(directory: Directory, sink: Named, tmp_path: Path) -> None:
    name, read = sink
    other = Directory(tmp_path / "peer-2")
    other._number = 100
    directory.write(2, 1)
    other.write(2, 1)
    async with delivering(directory.path, name) as one, delivering(other.path, name) as two:
        await one.finish()
        await two.finish()
    assert not one.shortfalls + two.shortfalls
    await exactly(read, directory, other)


@contextmanager
def killed_between_documents_and_mark(name: str) -> Iterator[None]:
    """Let deliveries to this sink break off once the documents are written."""

    async def failing(self: object, batch: DocumentBatch) -> None:
        raise OSError("killed")

    def unfinished(self: Any, name: str, chunks: destinations.Chunks) -> None:
        path = self._path / name
        (path.parent / (path.name + destinations.UNFINISHED)).write_bytes(b"".join(chunks())[:50])
        raise OSError("killed")

    with pytest.MonkeyPatch.context() as patch:
        if not name.startswith("sqlite"):
            patch.setattr(mongo.MongoSink, "_keep_offset", failing)
            patch.setattr(destinations.DirectoryDestination, "write", unfinished)
            yield
            return
        with closing(sqlite3.connect(name.removeprefix("sqlite:"))) as db:
            db.execute("CREATE TRIGGER kill BEFORE INSERT ON kadcrawl_marks BEGIN SELECT RAISE(ABORT, 'killed'); END")
            yield
            db.execute("DROP TRIGGER kill")


async def test_a_kill_between_documents_and_mark_leaves_each_once(directory: Directory, sink: Named) -> None:
    name, read = sink
    directory.write(3, 1)
    await deliver(directory.path, name)
    before = dict(directory.expected["pages"])
    directory.write(3, 1)
    with killed_between_documents_and_mark(name):
        async with delivering(directory.path, name) as broken:
            await broken.finish(patience_s=0.01)
    assert "lacks 3 pages and 1 record" in broken.shortfalls[0]
    assert "killed" in broken.shortfalls[0]
    there = (await read())[0]["pages"]
    # MongoDB has the documents by now, and gets them again; the others undo what they cannot finish.
    assert there == (directory.expected["pages"] if name.startswith("mongodb") else before)
    await deliver(directory.path, name)
    await exactly(read, directory)


async def test_what_is_delivered_again_overwrites(
    directory: Directory, sink: Named, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, read = sink
    directory.write(3, 1)
    await deliver(directory.path, name)

    async def nothing(self: object, reader: LogReader) -> int:
        return 0

    monkeypatch.setattr(log_work.LogWork, "_offset_of", nothing)
    again = await deliver(directory.path, name)
    assert again.each[0].work.done == "4 lines"
    await exactly(read, directory)


@pytest.mark.parametrize("sink", ["sqlite", "mongodb"], indirect=True)
@pytest.mark.parametrize("apart", [False, True])
async def test_a_page_finished_twice_is_the_later_line(directory: Directory, sink: Named, apart: bool) -> None:
    name, read = sink
    directory.write(1)
    (key,) = directory.expected["pages"]
    if apart:
        await deliver(directory.path, name)
    directory.add("pages", {"key": key, "url": "https://example.org/1", "status": 404, "failed": "http_404"})
    await deliver(directory.path, name)
    await exactly(read, directory)


async def test_parts_have_a_row_for_each_visit(directory: Directory, tmp_path: Path) -> None:
    directory.write(1)
    ((key, first),) = directory.expected["pages"].items()
    for visit in (1, 2):
        directory.add("pages", first | {"visit": visit})
    kinds: dict[str, Callable[[Path], tuple[Documents, Counter[str]]]] = {
        "jsonl": in_json_lines, "csv": in_csv, "parquet": in_parquet,
    }  # fmt: skip
    for kind, read in kinds.items():
        await deliver(directory.path, f"{kind}:{tmp_path / kind}")
        found, counts = read(tmp_path / kind)
        assert counts == {key: 3}
        assert found["pages"] == {key: first | {"visit": 2}}


async def test_a_sink_that_was_emptied_is_filled_again(directory: Directory, tmp_path: Path) -> None:
    directory.write(3)
    path = tmp_path / "a.db"
    await deliver(directory.path, f"sqlite:{path}")
    path.unlink()
    await deliver(directory.path, f"sqlite:{path}")
    assert directory.expected == in_sqlite(path)[0]


async def test_big_batches_are_cut(directory: Directory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory.write(25)
    monkeypatch.setattr(part_files.PartSink.__init__, "__defaults__", (part_files.SIZE._replace(lines_max=10),))
    await deliver(directory.path, f"jsonl:{tmp_path}/out")
    assert directory.expected == in_json_lines(tmp_path / "out")[0]
    sizes = [len(path.read_bytes().splitlines()) for path in sorted((tmp_path / "out/pages").iterdir())]
    assert [10, 10, 5] == sizes


async def test_bad_lines_are_refused_and_hold_nobody_up(directory: Directory, sink: Named) -> None:
    name, read = sink
    directory.write(2)
    if not name.startswith("jsonl"):  # Which copies lines as they are.
        directory.append("pages", b'{"torn\n[1]\n{"status": 200}\n{"key": 7}\n')
        if name.startswith("mongodb"):
            directory.append("pages", b'{"key": "big", "links": 99999999999999999999999}\n')
        else:
            directory.add("pages", {"key": "big", "url": "u", "links": 99999999999999999999999})
    directory.write(2)
    done = await deliver(directory.path, name)
    assert not done.shortfalls
    assert done.each[0].work.refused == {"jsonl": 0, "mongodb": 5}.get(name.partition(":")[0], 4)
    await exactly(read, directory)


async def test_a_line_counts_once_it_is_whole(directory: Directory, sink: Named) -> None:
    name, read = sink
    directory.write(2)
    directory.append("pages", b'{"key": "last", "url": "https://exam')
    done = await deliver(directory.path, name)
    await exactly(read, directory)
    assert not done.shortfalls  # Nobody was promised half a line.
    directory.expected["pages"]["last"] = {"key": "last", "url": "https://example.net/"}
    directory.append("pages", b'ple.net/"}\n')
    await deliver(directory.path, name)
    await exactly(read, directory)


async def test_a_table_of_others_is_left_alone(directory: Directory, tmp_path: Path) -> None:
    path = tmp_path / "theirs.db"
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("CREATE TABLE pages (number INTEGER)")
    directory.write(1)
    async with delivering(directory.path, f"sqlite:{path}") as deliveries:
        await deliveries.finish(patience_s=0.1)
    assert "not kadcrawl's" in deliveries.shortfalls[0]


@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")  # PyMongo leaves to Python what is being connected.
async def test_mongodb_may_go_and_return(directory: Directory, mongo: MongoServer) -> None:
    if not mongo.can_close:
        pytest.skip("the server is somebody else's")
    directory.write(3)
    async with delivering(directory.path, mongo.uri) as deliveries:
        await deliveries.finish()
        mongo.close()
        directory.write(3, 1)
        await deliveries.finish(patience_s=0.1)
        (said,) = deliveries.shortfalls
        assert said.startswith(f"the sink mongodb://{mongo.address}/crawl?... lacks 3 pages and 1 record: ")
        mongo.open()
        await deliveries.finish()
        assert not deliveries.shortfalls
    assert directory.expected == (await in_mongodb(mongo.uri))[0]
    gc.collect()  # What is left of those connections, while their warning is passed over.
