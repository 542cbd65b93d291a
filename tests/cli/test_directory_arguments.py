"""Test that a command takes its directory as an argument and as --data, with one meaning."""

import shutil
from pathlib import Path

import cloup
import pytest
from click.testing import CliRunner, Result

from fuzz.data_directories import make
from kadcrawl.cli.app import main
from kadcrawl.cli.group import NAMES, group_of

TAKE_DATA_ALONE = {"add", "crawl", "doctor", "join", "queue", "rekey", "scope", "set", "site", "start"}
"""Commands whose arguments are no directories."""


def run(*arguments: object, variables: dict[str, str] | None = None) -> Result:
    return CliRunner(env=variables).invoke(main, [*map(str, arguments)])


@pytest.fixture
def data(tmp_path: Path) -> Path:
    make(tmp_path / "data", is_finished=True)
    return tmp_path / "data"


@pytest.mark.parametrize(
    "command",
    [["status"], ["summary"], ["retry"], ["export", "--to", "-"], ["check-data"], ["index"], ["vacuum"]],
    ids=lambda command: command[0],
)
def test_both_forms_of_a_directory_mean_the_same(command: list[str], data: Path, tmp_path: Path) -> None:
    shutil.copytree(data, tmp_path / "unchanged")
    by_option = run(*command, "--data", data)
    shutil.rmtree(data)
    (tmp_path / "unchanged").rename(data)
    by_argument = run(*command, data)
    assert 0 == by_option.exit_code == by_argument.exit_code, (by_option.output, by_argument.output)
    assert by_option.output == by_argument.output != ""


@pytest.mark.parametrize("command", [["summary"], ["vacuum"]], ids=lambda command: command[0])
def test_a_directory_given_twice_is_refused(command: list[str], data: Path) -> None:
    result = run(*command, data, "--data", data)
    assert 2 == result.exit_code
    assert "a directory is given as DIR or by --data, and not by both" in result.output


@pytest.mark.parametrize("command", [["summary"], ["export", "--to", "-"]], ids=lambda command: command[0])
def test_an_argument_wins_over_the_variable(command: list[str], data: Path, tmp_path: Path) -> None:
    (other := tmp_path / "other").mkdir()
    assert 2 == run(*command, variables={"KADCRAWL_DATA": str(other)}).exit_code
    assert 0 == run(*command, data, variables={"KADCRAWL_DATA": str(other)}).exit_code
    assert 0 == run(*command, variables={"KADCRAWL_DATA": str(data)}).exit_code


@pytest.mark.parametrize("command", [["summary"], ["check-data"]], ids=lambda command: command[0])
def test_with_an_argument_the_variable_may_name_a_file(command: list[str], data: Path, tmp_path: Path) -> None:
    (file := tmp_path / "file").touch()
    by_argument = run(*command, data, variables={"KADCRAWL_DATA": str(file)})
    assert run(*command, data).output == by_argument.output
    by_variable = run(*command, variables={"KADCRAWL_DATA": str(file)})
    assert 2 == by_variable.exit_code
    assert f"Directory '{file}' is a file" in by_variable.output


TAKE_SITES_OR_URLS = (["queue"], ["site", "ls"], ["site", "pause"], ["scope", "add"], ["add"], ["crawl"], ["start"])


@pytest.mark.parametrize("command", TAKE_SITES_OR_URLS, ids=" ".join)
def test_a_directory_in_place_of_a_site_or_url_is_refused_with_what_to_do(
    command: list[str], data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(data.parent)
    result = run(*command, "data")
    assert 2 == result.exit_code
    assert "kadcrawl: data is the directory of a crawl, and no " in result.output
    assert result.output.endswith(": give it as --data data\n")


@pytest.mark.parametrize("option", ["--data", "--peer"])
def test_beside_the_directory_or_a_peer_its_name_may_be_a_site(
    option: str, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(data.parent)
    result = run("queue", "data", option, "data" if option == "--data" else "127.0.0.1:1")
    assert "of data is up" in result.output or "cannot be reached" in result.output


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["status", "nowhere"], "there is no nowhere"),
        (["stop", "nowhere"], "there is no nowhere"),
        (["web", "nowhere"], "there is no nowhere"),
        (["vacuum", "nowhere"], "Invalid value for 'DIR...': there is no directory 'nowhere'"),
        (["vacuum", "--data", "nowhere"], "Invalid value for '--data'"),
        (["vacuum", "--data", "nowhere"], "there is no directory 'nowhere'"),
        (["vacuum"], "Missing argument 'DIR...'"),
    ],
)
def test_what_is_wrong_with_a_directory_is_said(
    arguments: list[str], why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = run(*arguments)
    assert 2 == result.exit_code
    assert why in result.output


def test_every_command_with_a_directory_takes_both_forms_or_has_other_arguments() -> None:
    takes = {"data": set[str](), "DIR": set[str]()}
    for name, command in group_of(NAMES).commands.items():
        assert isinstance(command, cloup.Command | cloup.Group)
        names = {parameter.name for parameter in command.params}
        if "data" in names:
            takes["data"].add(name)
        if names & {"directory", "directories"}:
            takes["DIR"].add(name)
    assert set() == TAKE_DATA_ALONE - takes["data"]
    assert takes["DIR"] == takes["data"] - TAKE_DATA_ALONE
