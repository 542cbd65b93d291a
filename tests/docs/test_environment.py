import ast
from functools import cache
from pathlib import Path

import click
import pytest

from kadcrawl.cli.app import main
from kadcrawl.cli.environment import unread, variable_of
from kadcrawl.settings.secrets import VARIABLE_PREFIX
from scripts.docs.environment import OF_COMMAND, OF_DEVELOPMENT, OF_LIBRARIES, _named, generate, variables_read


def options_of(command: click.Command) -> list[click.Option]:
    return [option for option in command.params if isinstance(option, click.Option)]


ROOT = Path(__file__).parents[2]
OF_OPTIONS = {variable_of(option) for command in main.commands.values() for option in options_of(command)}
OWN = {each.name for each in (*OF_COMMAND, *OF_DEVELOPMENT)}


@cache
def read() -> dict[str, set[str]]:
    return variables_read(ROOT)


def test_every_variable_that_the_code_reads_is_described() -> None:
    known = OWN | OF_OPTIONS | {each.name for each in OF_LIBRARIES}
    # Tests may also read and set variables of the system, such as PATH.
    told = {name: trees for name, trees in read().items() if trees != {"tests"} or name.startswith("KADCRAWL_")}
    assert {} == {name: trees for name, trees in told.items() if name not in known}


def test_every_described_variable_is_read_where_the_page_says() -> None:
    # Variables of secrets are read by their start, as each secret has one.
    named = [each.name for each in OF_COMMAND if not each.name.startswith(VARIABLE_PREFIX)]
    assert [] == [name for name in named if "kadcrawl" not in read()[name]]
    assert [] == [each.name for each in OF_DEVELOPMENT if read()[each.name] & {"kadcrawl", "sim"}]


@pytest.mark.parametrize(
    "code",
    [
        "os.environ['A']",
        "os.environ.get('A', '')",
        "os.getenv('A')",
        "X = 'A'\nos.environ.pop(X, None)",
        "option('--a', envvar='A')",
    ],
)
def test_a_variable_is_found_in_each_way_to_read_it(code: str) -> None:
    assert ["A"] == list(_named(ast.parse(code)))


def test_every_variable_of_an_option_stands_on_the_page() -> None:
    (page,) = generate(ROOT).values()
    assert [] == [name for name in OF_OPTIONS if f"`{name}`" not in page]


def test_no_described_variable_is_taken_for_a_mistyped_one() -> None:
    assert [] == unread(dict.fromkeys(OWN | OF_OPTIONS, "1"), main)
