"""`--sink` and `kadcrawl export`: killed at any moment, the databases hold each finished page once, and lack none."""

import os
import signal
from pathlib import Path

import pytest
from click.testing import CliRunner

from kadcrawl.cli.app import main
from kadcrawl.cli.commands import crawl as crawl_module, export
from tests.support.sinks.peer_directory import Directory
from tests.support.sinks.readers import in_json_lines, in_parquet, in_sqlite
from tests.support.sites.web import Web, html
from tests.support.swarm.command import LOOPBACK, crawl, ended, finished, kadcrawl, slow_web, start, until


async def test_a_crawl_killed_as_a_whole_has_every_page_once_in_its_sink(tmp_path: Path) -> None:
    data, path = tmp_path / "data", tmp_path / "results.db"
    async with slow_web(150) as site:
        command = [*crawl(data, site.url("/0"), peers=1), "--sink", f"sqlite:{path}"]
        process = await start(*command)
        await until(lambda: path.exists() and in_sink(path) >= 30, process)
        pids = [int(pid) for pid in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()]
        for pid in (*pids, process.pid):
            os.kill(pid, signal.SIGKILL)
        await ended(process)
        run = await kadcrawl(*command)
        assert run.code == 0, run
    found, counts = in_sqlite(path)
    assert set(finished(data)) == {page["url"] for page in found["pages"].values()}
    assert (150, {1}) == (len(found["pages"]), set(counts.values()))


def in_sink(path: Path) -> int:
    try:
        return len(in_sqlite(path)[0]["pages"])
    except Exception:  # It is being made.
        return 0


def test_what_peers_have_left_is_delivered_and_what_cannot_be_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export, "EXPORT_STALL_S", 0.1)
    data, out = tmp_path / "data", tmp_path / "out"
    data.mkdir()
    peers = [Directory(data / name) for name in ("peer-1", "peer-2")]
    peers[0].write(3, 1)
    peers[1].write(0, 0)
    peers[1].append("pages", b"")
    out.write_text("not a directory")
    command = ["export", str(data), "--to", f"jsonl:{out}", "--to", f"parquet:{tmp_path}/p"]
    done = CliRunner().invoke(main, command)
    assert done.exit_code == 4, done.output
    assert f"the sink jsonl:{out} lacks 3 pages and 1 record: NotADirectoryError" in done.output
    assert "kadcrawl export goes on" in done.output
    out.unlink()
    done = CliRunner().invoke(main, command)
    assert done.exit_code == 0, done.output
    assert f"{data}/peer-1: 4 lines to jsonl:{out}\n" in done.output
    assert f"{data}/peer-2: 0 lines to jsonl:{out}\n" in done.output
    assert peers[0].expected == in_json_lines(out)[0] == in_parquet(tmp_path / "p")[0]


def test_a_crawl_whose_sink_lacks_something_says_so_by_its_exit_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def undelivered(directory: Path, sinks: tuple[str, ...]) -> bool:
        asked.append((directory, sinks))
        return False

    monkeypatch.setattr(crawl_module, "deliver", undelivered)
    sink = f"sqlite:{tmp_path}/a.db"
    command = ["crawl", "http://127.0.0.1:1/", "--retries", "0", "--data", str(tmp_path / "data"), "--sink", sink]
    done = CliRunner().invoke(main, command)
    assert done.exit_code == 4, done.output
    assert [(tmp_path / "data", (sink,))] == asked
    assert len(in_sqlite(tmp_path / "a.db")[0]["pages"]) == 1  # The peer's own part.


def test_a_job_file_names_local_sinks_and_check_hides_their_passwords(tmp_path: Path) -> None:
    file = tmp_path / "job.toml"
    file.write_text('seeds = ["http://127.0.0.1/"]\nsinks = ["sqlite:a.db", "mongodb://me:secret@h/db"]\n')
    done = CliRunner().invoke(main, ["check", str(file)])
    assert done.exit_code == 0, done.output
    assert "sinks" in done.output
    assert "mongodb://***@h/db" in done.output
    assert "secret" not in done.output
    as_json = CliRunner().invoke(main, ["check", str(file), "--json"]).output
    assert '"mongodb://***@h/db"' in as_json
    assert "secret" not in as_json
    file.write_text('sinks = ["mongodb://me:secret@h/"]')
    done = CliRunner().invoke(main, ["check", str(file)])
    assert done.exit_code == 2
    assert "must name a host and a database" in done.output
    assert "secret" not in done.output
    file.write_text('sinks = "mongodb://me:secret@h/db"')
    done = CliRunner().invoke(main, ["check", str(file)])
    assert "job.toml, line 1: sinks must be a list of sinks" in done.output
    assert "secret" not in done.output


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["crawl", "http://127.0.0.1/", "--sink", "results.db"], "is no sink"),
        (["crawl", "http://127.0.0.1/", "--sink", "mongodb://me:pass@h/db"], "environment variable KADCRAWL_SINK"),
        (
            ["crawl", "http://127.0.0.1/", "--sink", "mongodb://h/db?tlsCertificateKeyFilePassword=pass"],
            "environment variable KADCRAWL_SINK",
        ),
        (["export", ".", "--to", "sqlite:a.db"], "there is no pages.jsonl in ."),
        (["export", ".", "--to", "sqlite:nowhere/a.db"], "cannot write sqlite:nowhere/a.db: there is no directory"),
        (["export", "."], "--to"),
        (["crawl", "http://127.0.0.1/", "--sink", "sqlite:nowhere/a.db"], "there is no directory "),
        (
            ["crawl", "http://127.0.0.1/", "--sink", "sqlite:a.db", "--sink", "sqlite:../no/a.db"],
            "there is no directory ",
        ),
        (["start", "http://127.0.0.1/", "--sink", "sqlite:nowhere/a.db"], "there is no directory "),
        (["join", "--bootstrap", "127.0.0.1:9", "--sink", "sqlite:nowhere/a.db"], "there is no directory "),
    ],
)
def test_mistakes_are_said(arguments: list[str], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(main, arguments)
    assert done.exit_code == 2
    assert says in done.output
    assert [] == [*tmp_path.iterdir()]


async def test_a_database_may_be_in_the_directory_of_the_crawl_which_is_not_there_yet(tmp_path: Path) -> None:
    data = tmp_path / "data"
    async with Web() as site:
        site.fallback = lambda request: html()
        options = ("--delay", "0", "--insecure", *LOOPBACK, "--sink", f"sqlite:{data}/results/pages.db")
        crawled = await kadcrawl("crawl", site.url("/"), *options, "--data", str(data))
    assert crawled.code == 0, crawled
    assert 1 == len(in_sqlite(data / "results/pages.db")[0]["pages"])


async def test_a_sink_that_is_down_is_told_of_without_lines_of_a_log(tmp_path: Path) -> None:
    data, broken = tmp_path / "data", tmp_path / "broken.db"
    broken.write_text("this is no database, and long enough to be read as one" * 100)
    async with Web() as site:
        site.fallback = lambda request: html()
        options = ("--delay", "0", "--insecure", *LOOPBACK)
        crawled = await kadcrawl("crawl", site.url("/"), *options, "--data", str(data))
        assert crawled.code == 0, crawled
    exported = await kadcrawl("export", str(data), "--to", f"sqlite:{broken}")
    assert (4, False) == (exported.code, "sink.down" in exported.out + exported.err), exported
    assert f"the sink sqlite:{broken} lacks" in exported.out + exported.err, exported
