from pathlib import Path

import pytest

from kadcrawl.cli.app import main
from scripts.docs.exit_codes import codes, codes_by_command, meanings

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", codes())
def test_every_exit_code_has_a_meaning_and_an_advice(name: str) -> None:
    meaning, _, advice = meanings(ROOT)[name].partition("\n\n")
    assert meaning.endswith(".")
    assert advice.endswith(".")


def test_every_exit_code_is_returned_by_a_command() -> None:
    assert set(codes()) == {name for names in codes_by_command(ROOT).values() for name in names}


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (
            "crawl",
            [
                "DONE",
                "NOTHING_FETCHED",
                "MISTAKE",
                "LEFT_BEHIND",
                "UNDELIVERED",
                "INTERRUPTED",
                "LIMIT_OF_BYTES",
                "LIMIT_OF_TIME",
            ],
        ),
        ("join", ["DONE", "MISTAKE", "UNDELIVERED", "INTERRUPTED", "LIMIT_OF_BYTES", "LIMIT_OF_TIME"]),
        ("keygen", ["DONE", "MISTAKE", "INTERRUPTED"]),
    ],
)
def test_the_codes_of_a_command_are_those_in_its_functions(command: str, expected: list[str]) -> None:
    assert expected == codes_by_command(ROOT)[command]


def test_all_commands_are_listed() -> None:
    assert set(main.commands) == set(codes_by_command(ROOT))
