import re
from functools import cache
from pathlib import Path

import click
import pytest

from kadcrawl.cli.app import main
from scripts.docs.cli import PAGE, exit_texts, generate
from scripts.docs.exit_codes import codes, codes_by_command

ROOT = Path(__file__).parents[2]


@cache
def text() -> str:
    return generate(ROOT)[PAGE]


@cache
def sections() -> dict[str, str]:
    return dict(re.findall(r"^## kadcrawl ([\w-]+)\n(.*?)(?=^## |\Z)", text(), re.DOTALL | re.MULTILINE))


@pytest.mark.parametrize("command", sorted(main.commands))
def test_every_option_of_a_command_has_a_row(command: str) -> None:
    options = [option for option in main.commands[command].params if isinstance(option, click.Option)]
    rows = [f"\n| {', '.join(f'`{name}`' for name in option.opts)}" for option in options]
    assert [] == [row for row in rows if row not in sections()[command]]


@pytest.mark.parametrize("command", sorted(main.commands))
def test_a_help_explains_only_exit_codes_that_its_command_returns(command: str) -> None:
    numbers = {codes()[name] for name in codes_by_command(ROOT)[command]}
    assert set() == exit_texts(main.commands[command]).keys() - numbers


def test_a_default_and_a_variable_of_the_help_have_columns_of_their_own() -> None:
    row = next(line for line in sections()["crawl"].splitlines() if line.startswith("| `--key-file`"))
    assert "[`KADCRAWL_KEY`](environment.md#kadcrawl_key)" in row.split(" | ")[2]
    assert "default:" not in text()
    assert "\\[env" not in text()


def test_no_help_has_a_default_in_a_form_that_is_not_read() -> None:
    assert [] == re.findall(r"\(default|by default:", text())
