"""`kadcrawl index` writes the index of each WARC file that lacks one."""

from pathlib import Path

from click.testing import CliRunner, Result

from fuzz.data_directories import make
from kadcrawl.cli.app import main


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["index", *map(str, arguments)])


def test_each_warc_file_gets_an_index_once(tmp_path: Path) -> None:
    make(tmp_path, is_finished=True)
    result = run(tmp_path)
    assert result.exit_code == 0, result
    written = sorted(tmp_path.glob("peer-*/warc/*.cdxj"))
    assert [f"wrote {path}" for path in written] == result.output.splitlines()
    assert 2 == len(written)
    assert all(path.read_bytes() for path in written)
    assert (0, "") == ((again := run(tmp_path)).exit_code, again.output)


def test_the_files_of_a_leaf_get_an_index_too(tmp_path: Path) -> None:
    make(tmp_path, is_finished=True, peers=("peer-1", "leaf"))
    result = run(tmp_path)
    assert (0, 2) == (result.exit_code, len(result.output.splitlines())), result
    assert 1 == len([*tmp_path.glob("leaf/warc/*.cdxj")])


def test_a_directory_without_archives_is_refused(tmp_path: Path) -> None:
    result = run(tmp_path)
    assert result.exit_code == 2
    assert "has no WARC files" in result.output + result.stderr
