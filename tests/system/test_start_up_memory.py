"""Test that a process drops only pages of files that it can read again."""

import re
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from kadcrawl.system import start_up_memory
from kadcrawl.system.start_up_memory import FilePages, Mapping, mappings, shared_indexes, unchanged_mappings

FIGURES = "Size:  {size} kB\nRss:  8 kB\nPrivate_Clean: 8 kB\nPrivate_Dirty: {dirty} kB\nAnonymous: {anonymous} kB\n"
PLACE = "7f0000001000-7f0000003000"
FILE = "fe:00 7    /usr/lib/libx.so"


def smaps(mode: str, inode: int = 7, dirty: int = 0, anonymous: int = 0) -> str:
    text = f"{PLACE} {mode} 00001000 fe:00 {inode}    /usr/lib/libx.so\n"
    return text + FIGURES.format(size=8, dirty=dirty, anonymous=anonymous) + "VmFlags: rd mr mw me\n"


@pytest.mark.parametrize("mode", ["r-xp", "r--p"])
def test_unchanged_pages_of_a_file_can_be_dropped(mode: str) -> None:
    assert [Mapping(0x7F0000001000, 0x2000, FILE)] == list(unchanged_mappings(smaps(mode)))


@pytest.mark.parametrize(
    "kept",
    [
        smaps("rw-p"),
        smaps("r--s"),
        smaps("r-xp", inode=0),
        smaps("r--p", dirty=4),
        smaps("r--p", anonymous=4),
    ],
    ids=["writable", "shared", "no file", "dirty", "relocated"],
)
def test_pages_that_exist_in_memory_only_are_kept(kept: str) -> None:
    assert [] == list(unchanged_mappings(kept))
    assert 1 == len(list(unchanged_mappings(kept + smaps("r-xp")))), "the mapping after it is another"


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has smaps")
@pytest.mark.parametrize("way", ["give_back", "give_back_again"])
def test_a_process_with_libraries_is_smaller_after_it_and_goes_on(way: str) -> None:
    script = """
import re, ssl, sqlite3, sys
from kadcrawl.system import start_up_memory
def rss():
    return int(re.search(r"^VmRSS:\\s+(\\d+)", open("/proc/self/status").read(), re.M)[1])
ssl.create_default_context()
before = rss()
getattr(start_up_memory, sys.argv[1])()
after = rss()
ssl.create_default_context()
print(before, after, sqlite3.connect(":memory:").execute("SELECT 1 + 1").fetchone()[0])
"""
    before, after, said = subprocess.check_output([sys.executable, "-c", script, way], text=True).split()
    assert int(after) < int(before) - 1024
    assert said == "2"


def test_only_an_idle_process_collects_garbage_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A peer that crawls has too many objects."""
    collected: list[int] = []
    monkeypatch.setattr("gc.collect", lambda: collected.append(1))
    monkeypatch.setattr(FilePages, "look_and_drop", lambda pages: None)
    start_up_memory.give_back_again()
    assert not collected
    start_up_memory.give_back()
    assert (sys.platform == "linux") == bool(collected)


def test_the_real_file_has_such_mappings() -> None:
    with open("/proc/self/smaps", encoding="utf-8") as file:
        text = file.read()
    found = list(unchanged_mappings(text))
    assert found
    assert len(found) < len(re.findall(r"^[0-9a-f]+-[0-9a-f]+ ", text, re.MULTILINE))


def test_of_shared_mappings_only_the_indexes_of_journals_are_dropped() -> None:
    path = "/work/my data/peer-1/journal.db-shm"
    index = smaps("rw-s").replace("/usr/lib/libx.so", path)
    assert [Mapping(0x7F0000001000, 0x2000, f"fe:00 7    {path}")] == list(
        shared_indexes(smaps("rw-s") + index + smaps("r-xp"))
    )


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has smaps")
def test_a_journal_whose_index_is_dropped_goes_on(tmp_path: Path) -> None:
    def index_bytes() -> int:
        mapped = Path("/proc/self/smaps").read_text().partition("journal.db-shm\n")[2]
        found = re.search(r"^Rss: +(\d+) kB$", mapped, re.MULTILINE)
        assert found is not None
        return int(found[1]) * 1024

    with closing(sqlite3.connect(tmp_path / "journal.db", isolation_level=None)) as db:
        db.executescript("PRAGMA journal_mode=WAL; CREATE TABLE page (url TEXT); INSERT INTO page VALUES ('a')")
        before = index_bytes()
        FilePages().look_and_drop()
        assert index_bytes() == 0 < before
        db.execute("INSERT INTO page VALUES ('b')")
        assert [("a",), ("b",)] == db.execute("SELECT url FROM page").fetchall()
        with closing(sqlite3.connect(tmp_path / "journal.db")) as reader:
            assert (2,) == reader.execute("SELECT count(*) FROM page").fetchone()


def test_the_list_of_mappings_names_those_of_the_look_alike() -> None:
    def lines(text: str) -> str:
        return "".join(re.findall(r"^[0-9a-f]+-[0-9a-f]+ .*\n", text, re.MULTILINE))

    look = smaps("r--p", anonymous=4) + smaps("rw-p") + smaps("r-xp").replace("7f", "7e")
    assert set(unchanged_mappings(look)) < set(mappings(lines(look)))
    assert len(list(mappings(lines(look)))) == 2


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has smaps")
def test_between_two_looks_only_mappings_of_the_last_look_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    dropped: list[Mapping] = []
    monkeypatch.setattr(start_up_memory, "drop_mappings", dropped.extend)
    pages = FilePages()
    pages.drop()
    assert not dropped, "nothing is known before the first look"
    pages.look_and_drop()
    looked = {one for one in dropped if not one.file.endswith("-shm")}
    dropped.clear()
    changed, gone = next(iter(looked)), Mapping(0x1000, 0x1000, FILE)
    pages._unchanged = looked - {changed} | {gone}
    pages.drop()
    assert looked - {changed} == set(dropped), "neither a mapping that had changed, nor one that is gone"
