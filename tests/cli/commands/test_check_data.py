"""`kadcrawl check-data`: what it prints, its exit codes, and that it refuses a running peer."""

import json
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from fuzz.data_directories import make
from kadcrawl.cli.app import main
from kadcrawl.cli.commands import check_data as command
from kadcrawl.peer.directory import Directory
from tests.support.sites.web import Web, html
from tests.support.swarm.command import kadcrawl


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["check-data", *map(str, arguments)])


def test_data_in_order_is_well(tmp_path: Path) -> None:
    make(tmp_path, is_finished=True)
    result = run(tmp_path, tmp_path / "peer-1")
    assert result.exit_code == 0, result
    assert f"{tmp_path}: 2 peers, 12 page lines: all is well\n" in result.output
    assert f"{tmp_path / 'peer-1'}: 1 peer, 6 page lines: 1 note\n" in result.output


def test_damage_is_named_and_mended(tmp_path: Path) -> None:
    make(tmp_path, is_finished=True)
    pages = tmp_path / "peer-2" / "pages.jsonl"
    whole = pages.read_bytes()
    pages.write_bytes(whole[:-10])
    damaged = run(tmp_path)
    assert damaged.exit_code == 5
    assert f"problem  {pages}: the last line is incomplete" in damaged.output
    assert "         -> the next start of the peer mends it; --repair mends it now\n" in damaged.output
    assert pages.read_bytes() == whole[:-10], "nothing is changed without --repair"
    mended = run(tmp_path, "--repair")
    assert mended.exit_code == 0, mended
    assert f"mended   {pages}: the last line is incomplete" in mended.output
    assert mended.output.endswith(": all is well\n")
    assert pages.read_bytes() == whole
    assert "mended" not in run(tmp_path, "--repair").output


def test_json_has_the_findings(tmp_path: Path) -> None:
    make(tmp_path, is_finished=True)
    pages = tmp_path / "peer-2" / "pages.jsonl"
    pages.write_bytes(pages.read_bytes()[:-10])
    (tmp_path / "peer-1" / "address").write_text("nowhere")
    result = run(tmp_path, "--repair", "--json")
    told = json.loads(result.stdout)
    assert (0, 0, 1, 2, 12) == (
        result.exit_code,
        *(told[name] for name in ("problems", "notes", "peers", "page_lines")),
    )
    assert ["address"] == [finding["kind"] for finding in told["findings"]]
    expected = {"outcome": "problem", "kind": "torn_line", "path": str(pages), "count": 1}
    assert expected.items() <= told["mended"][0].items()


@pytest.mark.parametrize("repair", [(), ("--repair",)])
def test_a_directory_with_a_running_peer_is_refused(tmp_path: Path, repair: tuple[str, ...]) -> None:
    make(tmp_path, is_finished=True)
    with closing(Directory(tmp_path / "peer-2")):
        result = run(tmp_path, *repair)
    assert result.exit_code == 2
    assert f"a peer is running in {tmp_path / 'peer-2'}, so its files change: stop it" in result.output
    assert run(tmp_path, *repair).exit_code == 0


def test_a_directory_without_data_is_refused(tmp_path: Path) -> None:
    result = run(tmp_path)
    assert (2, f"kadcrawl: {tmp_path} holds no data of a peer: name the directory of a crawl, or of a peer\n") == (
        result.exit_code,
        result.output,
    )


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path, is_finished=True)

    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied", "some/file")

    monkeypatch.setattr("kadcrawl.cli.data_check.data_check.check_records", refuse)
    result = run(tmp_path)
    assert (2, "kadcrawl: cannot check some/file: Permission denied\n") == (result.exit_code, result.output)


def test_a_long_check_says_where_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path, is_finished=True)
    clock = iter(range(10**6))
    monkeypatch.setattr(command, "steady", lambda: float(next(clock)))
    result = run(tmp_path)
    assert result.exit_code == 0
    assert "checking " in result.stderr
    assert "%" in result.stderr
    assert "checking" not in result.stdout


@pytest.mark.chaos
async def test_the_same_command_goes_on_with_torn_files_and_lost_pages_are_fetched_again(tmp_path: Path) -> None:
    data = tmp_path / "data"
    async with Web() as site:
        site.pages["/"] = lambda request: html("/1", "/2", "/3")
        site.fallback = lambda request: html()
        options = ("--delay", "0", "--allow-network", "127.0.0.0/8", "--insecure", "--data", str(data))
        first = await kadcrawl("crawl", site.url("/"), *options)
        assert first.code == 0, first
        pages = data / "peer-1" / "pages.jsonl"
        whole = pages.read_bytes()
        (warc,) = (data / "peer-1" / "warc").iterdir()
        pages.write_bytes(whole[:-20])
        warc.write_bytes(warc.read_bytes()[: json.loads(whole.splitlines()[-1])["offset"] + 20])
        again = await kadcrawl("crawl", "--insecure", "--data", str(data))
        assert (0, whole) == (again.code, pages.read_bytes()), again
        assert "Traceback" not in again.err
        assert 5 == run(data).exit_code, "the record of a page is lost"
        assert 0 == (await kadcrawl("check-data", str(data), "--repair")).code
        last = await kadcrawl("crawl", "--insecure", "--data", str(data))
        assert last.code == 0, last
        assert 5 == sum(site.fetched[site.url(path)] for path in ("/", "/1", "/2", "/3")), "one page twice"
    result = run(data)
    assert (0, f"{data}: 1 peer, 5 page lines: all is well\n") == (result.exit_code, result.output)
