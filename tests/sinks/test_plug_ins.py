"""Test that a sink of another package works as the page about such sinks says, and that a bad package is told."""

import json
import re
import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from kadcrawl.errors import ConfigError
from kadcrawl.sinks import plug_ins
from kadcrawl.sinks.sink_names import check, parse
from tests.support.sinks.delivery import deliver
from tests.support.sinks.peer_directory import Directory

pytestmark = pytest.mark.xdist_group("plug-ins")
"""Keeps these tests in one process, which prepares their fixtures once."""

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "how-to" / "write-a-sink.md"
FILES = re.compile(r'^```\w+ title="(kadcrawl-files-sink/[^"]+)"\n(.*?)^```', re.DOTALL | re.MULTILINE)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the package of the page into a directory of its own, and return the directory."""
    work = tmp_path_factory.mktemp("package")
    for name, text in FILES.findall(PAGE.read_text()):
        (work / name).parent.mkdir(exist_ok=True)
        (work / name).write_text(text)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--no-build-isolation"]
    subprocess.run([*pip, "--target", work / "site", work / "kadcrawl-files-sink"], check=True)
    return work / "site"


async def test_the_sink_of_the_page_has_each_document_once_and_goes_on_where_it_was(
    installed: Path, directory: Directory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(installed)
    name = f"files:{tmp_path / 'results'}"
    directory.write(3, 2)
    first = await deliver(directory.path, name)
    assert (0, []) == (first.lag, first.shortfalls)
    directory.write(2, 1)
    again = await deliver(directory.path, name)
    assert "3 lines" == again.each[0].work.done
    for table in ("pages", "records"):
        found = {path.stem: json.loads(path.read_text()) for path in (tmp_path / "results" / table).iterdir()}
        assert directory.expected[table] == found


def test_the_command_exports_to_the_sink_of_the_page(installed: Path, directory: Directory, tmp_path: Path) -> None:
    directory.write(3)
    command = [sys.executable, "-m", "kadcrawl", "export", str(directory.path), "--to", "files:results"]
    environment = {"PYTHONPATH": f"{ROOT}:{installed}", "PATH": ""}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert (0, "") == (done.returncode, done.stderr)
    assert "3 lines to files:results" in done.stdout
    assert 3 == len(list((tmp_path / "results" / "pages").iterdir()))


def test_without_the_package_its_sink_is_none(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="'files:results' is no sink: write sqlite:FILE"):
        parse("files:results")


def install(monkeypatch: pytest.MonkeyPatch, value: str, kind: str = "odd") -> None:
    """Let an entry point of this value be the only one."""
    entry = EntryPoint(kind, value, plug_ins.GROUP)
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: [entry] if group == plug_ins.GROUP else [])


def test_the_error_of_a_wrong_name_has_the_installed_kinds(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, "json:loads")
    with pytest.raises(ConfigError, match="installed packages also take odd:TARGET"):
        parse("even:results")


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("kadcrawl_no_such_module:Sink", "does not load: ModuleNotFoundError"),
        ("json:no_such_name", "does not load: AttributeError"),
        ("json:loads", "does not load: JSONDecodeError"),
        ("pathlib:Path", "lacks offset, put, close"),
    ],
)
def test_a_package_without_a_sink_is_told_before_the_crawl(
    value: str, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(monkeypatch, value)
    with pytest.raises(ConfigError, match=f"the sink odd .*{says}"):
        check(parse("odd:results"))


def test_a_url_goes_to_the_sink_whole_and_its_password_nowhere_else(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, "builtins:int")
    name = parse("odd://me:s3cret@host/table?token=hidden")
    assert ("odd://me:s3cret@host/table?token=hidden", True) == (name.target, name.has_secret)
    assert name == parse(name.whole)
    assert "odd://***@host/table?..." == name.shown
    with pytest.raises(ConfigError) as raised:
        check(name)
    assert "s3cret" not in str(raised.value)
    assert "hidden" not in str(raised.value)


def test_a_package_takes_no_built_in_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, "builtins:int", "sqlite")
    name = parse("sqlite:/srv/a.db")
    assert not name.is_plug_in
    check(name)
