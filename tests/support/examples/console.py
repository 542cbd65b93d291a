"""The commands of a block, each with the output that the page shows for it."""

import re
from dataclasses import dataclass
from typing import Final

HERE: Final = "here"
"""The name of the reader's machine, whose prompt is `$`."""
NUMBERS: Final = {"one": 1, "two": 2, "three": 3, "four": 4, "five": 5, HERE: 50}
"""Name of a machine in a prompt -> number of the machine, which is 10.0.0.NUMBER."""
_PROMPT: Final = re.compile(rf"^({'|'.join(name for name in NUMBERS if name != HERE)})?\$ +(\S.*)$")
_STATUS: Final = re.compile(r"^echo \$\?$")


class BadConsole(ValueError):
    """The block does not keep to the rules of a console. `line` is its line in the block, from 0."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line


@dataclass(frozen=True, slots=True)
class Command:
    """A command as a reader types it."""

    machine: str
    text: str
    output: tuple[str, ...]
    """The lines that the page shows. Without any, only the exit code counts."""
    line: int
    """The line of the prompt in the block, from 0."""
    output_line: int
    """The line in the block where the output begins."""
    exit_code: int = 0


def commands(text: str) -> list[Command]:
    """Return the commands of a console block. Raises BadConsole."""
    lines = text.splitlines()
    found: list[Command] = []
    number = 0
    while number < len(lines):
        prompt = _PROMPT.match(lines[number])
        if prompt is None:
            raise BadConsole(number, "a console block begins with a prompt, such as `$ kadcrawl ...`")
        begin, machine, command = number, prompt[1] or HERE, prompt[2]
        while command.endswith("\\") and number + 1 < len(lines):
            number += 1
            command += "\n" + lines[number]
        number += 1
        first = number
        while number < len(lines) and not _PROMPT.match(lines[number]):
            number += 1
        output = _without_blank_end(lines[first:number])
        if _STATUS.match(command):
            found.append(_with_exit_code(found.pop() if found else None, output, begin))
        else:
            found.append(Command(machine, command, output, begin, first))
    return found


def _with_exit_code(command: Command | None, output: tuple[str, ...], line: int) -> Command:
    if command is None or len(output) != 1 or not output[0].strip().isdigit():
        raise BadConsole(line, "`$ echo $?` follows a command, and its output is the exit code")
    return Command(
        command.machine, command.text, command.output, command.line, command.output_line, int(output[0].strip())
    )


def _without_blank_end(lines: list[str]) -> tuple[str, ...]:
    while lines and not lines[-1].strip():
        lines = lines[:-1]
    return tuple(lines)
