"""Test that the command line loads the one subcommand that it names, and says the same as with all of them."""

import subprocess
import sys

import pytest
from click.testing import CliRunner

from kadcrawl.cli.app import main
from kadcrawl.cli.group import NAMES, SECTIONS, group_for


def test_each_name_is_a_command_of_the_whole() -> None:
    assert set(main.commands) == NAMES
    assert list(SECTIONS) == [section.title for section in main.list_sections(None)]  # type: ignore[arg-type]


def test_a_command_line_loads_only_its_subcommand() -> None:
    assert ["start"] == list(group_for(["start", "--help"]).commands)


@pytest.mark.parametrize("arguments", [[], ["--help"], ["--version"], ["begin"], ["-h", "start"]])
def test_any_other_command_line_has_all_subcommands(arguments: list[str]) -> None:
    assert NAMES == set(group_for(arguments).commands)


@pytest.mark.parametrize("name", sorted(NAMES))
def test_a_subcommand_says_the_same_alone(name: str) -> None:
    runner = CliRunner()
    alone, among_all = (runner.invoke(group, [name, "--help"]).output for group in (group_for([name]), main))
    assert among_all == alone
    assert "Usage:" in alone


def test_an_option_has_its_environment_variable_in_a_command_alone() -> None:
    variables = {parameter.envvar for parameter in group_for(["start"]).commands["start"].params}
    assert "KADCRAWL_MAX_PAGES" in variables


def test_a_peer_started_by_hand_loads_no_other_command() -> None:
    script = (
        "import sys; from kadcrawl.cli.group import group_for; group_for(['join']);"
        "print(*sorted(name for name in sys.modules if name.startswith('kadcrawl.cli.commands.')))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "kadcrawl.cli.commands.join\n" == done.stdout
