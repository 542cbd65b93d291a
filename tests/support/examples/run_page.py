"""A page is run from top to bottom: its machines, its web, its steps, and the end of all that it started."""

import asyncio
import random
import re
import secrets
import signal
import socket
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.support.examples.compare import begins_with, difference, matches, renewed
from tests.support.examples.console import HERE, NUMBERS
from tests.support.examples.example_web import NAMES
from tests.support.examples.machine import Done, Machine, TooLong
from tests.support.examples.plan import CheckJob, Plan, Problem, RunCommand, RunProgram, RunScript, Step, WriteFile
from tests.support.examples.processes import MARK, signal_all
from tests.support.examples.programs import MACHINES, ROOT, write_programs
from tests.support.examples.virtual_network import PACE, VARIABLE, VirtualNetwork, as_json
from tests.support.examples.web_server import serving

HOME_SHOWN: Final = "/home/you"
"""The directory of a machine as pages show it."""
CLAIM_PORT: Final = 4159
"""The port by which a page claims its addresses."""
PARTING_S: Final = 3.0
"""Seconds for processes to end after SIGTERM."""
LOOKED_S: Final = 15.0
"""Seconds for which a swarm may be on its way to the state of the page."""
LOOKED_AGAIN_S: Final = 1.0
_LOOKS: Final = re.compile(r"kadcrawl status\b")
"""A command that a reader would repeat until it shows the state that the page speaks of."""
NOT_FILLED: Final = ("?",)
"""An output that its writer left to be filled in."""
_SITE_CUSTOMIZE = "from tests.support.examples.virtual_network import install\n\ninstall()\n"


@dataclass(frozen=True, slots=True)
class NewOutput:
    """The output that belongs into a page, in place of some of its lines."""

    line: int
    """The first line of the page to be replaced, from 1."""
    count: int
    lines: Sequence[str]


@dataclass(slots=True)
class Outcome:
    """The problems, new outputs and times of a page that was run."""

    problems: list[Problem] = field(default_factory=list)
    differences: list[Problem] = field(default_factory=list)
    """Outputs that differ from the page. `new_outputs` has the right ones."""
    new_outputs: list[NewOutput] = field(default_factory=list)
    seconds: dict[int, float] = field(default_factory=dict)
    """Line of a step -> seconds that the step took."""


async def run_page(plan: Plan, directory: Path, root: Path = ROOT) -> Outcome:
    """Run the steps of a page in a directory that is empty, with the packages of the tree at `root`."""
    outcome = Outcome()
    if not plan.steps:
        return outcome
    async with _machines(directory, root) as machines:
        for step in plan.steps:
            began = time.monotonic()
            try:
                await _run_step(step, machines, outcome)
            except TooLong as error:
                outcome.problems.append(Problem(step.line, f"{error}\n{difference([], error.lines)}"))
                break  # What follows needs it.
            finally:
                outcome.seconds[step.line] = outcome.seconds.get(step.line, 0.0) + time.monotonic() - began
    return outcome


async def _run_step(step: Step, machines: Mapping[str, Machine], outcome: Outcome) -> None:
    here = machines[HERE]
    if isinstance(step, RunCommand):
        await _run_command(step, machines[step.command.machine], outcome)
    elif isinstance(step, WriteFile):
        path = machines[step.machine].home / step.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(step.text)
    elif isinstance(step, CheckJob):
        job = here.scratch / "job.toml"
        job.write_text(step.text)
        _must_succeed(step, "kadcrawl check", await here.run(f"(cd {here.home} && kadcrawl check {job})"), outcome)
    elif isinstance(step, RunScript):
        script = here.scratch / "script.sh"
        script.write_text(step.text)
        _must_succeed(step, "the script", await here.run(f"bash -e {script}", step.columns, step.pace), outcome)
    elif isinstance(step, RunProgram):
        name = "test_example.py" if step.has_tests else "example.py"
        (here.home / name).write_text(step.text)
        runner = "pytest -q" if step.has_tests else "python"
        done = await here.run(f"(cd {here.home} && {runner} {name})", step.columns, step.pace)
        _must_succeed(step, "the tests" if step.has_tests else "the program", done, outcome)


def _must_succeed(step: Step, what: str, done: Done, outcome: Outcome) -> None:
    if done.exit_code != 0:
        said = "\n".join(f"  | {line}" for line in done.lines)
        outcome.problems.append(Problem(step.line, f"{what} failed with exit code {done.exit_code}:\n{said}"))


async def _run_command(step: RunCommand, machine: Machine, outcome: Outcome) -> None:
    command = step.command
    shown = command.output

    def is_shown(lines: Sequence[str]) -> bool:
        return begins_with(shown, lines)

    if step.background:
        awaited = None if shown in ((), NOT_FILLED) else is_shown
        done = await machine.begin(command.text, awaited, step.columns, step.pace)
    else:
        done = await machine.run(command.text, step.columns, step.pace)
        looked_until = time.monotonic() + LOOKED_S
        while _LOOKS.match(command.text) and not _is_filled_in_by(done, shown) and time.monotonic() < looked_until:
            await asyncio.sleep(LOOKED_AGAIN_S)
            done = await machine.run(command.text, step.columns, step.pace)
    same = begins_with if done.exit_code is None else matches
    if done.exit_code is not None and done.exit_code != command.exit_code:
        said = "\n".join(f"  | {line}" for line in done.lines)
        why = f"exit code {done.exit_code} instead of {command.exit_code}"
        outcome.problems.append(Problem(step.line, f"$ {command.text}\n{why}; the output is\n{said}"))
    elif shown and not same(shown, done.lines):
        outcome.differences.append(Problem(step.line, f"$ {command.text}\n{difference(shown, done.lines)}"))
        lines = renewed([] if shown == NOT_FILLED else shown, done.lines)
        outcome.new_outputs.append(NewOutput(step.output_line, len(shown), lines))


def _is_filled_in_by(done: Done, shown: Sequence[str]) -> bool:
    return shown in ((), NOT_FILLED) or matches(shown, done.lines)


@asynccontextmanager
async def _machines(directory: Path, root: Path) -> AsyncIterator[dict[str, Machine]]:
    """Give the machines of a page, and end all that they started."""
    mark = secrets.token_hex(8)
    homes, scratch, library, ports = (directory / name for name in ("machines", "scratch", "library", "ports"))
    for made in (homes, scratch, library, ports):
        made.mkdir()
    (library / "sitecustomize.py").write_text(_SITE_CUSTOMIZE)
    for name, package in (("kadcrawl", root / "kadcrawl"), ("kadcrawl_sim", root / "sim"), ("tests", ROOT / "tests")):
        (library / name).symlink_to(package)
    write_programs(directory / "bin")

    def shown(text: str) -> str:
        for name in NUMBERS:
            text = text.replace(str(homes / name), HOME_SHOWN)
        return text.replace(str(scratch), HOME_SHOWN)

    machines: dict[str, Machine] = {}
    async with serving(directory) as sites:
        with _claimed_prefix() as prefix:
            for name, number in NUMBERS.items():
                home = homes / name
                home.mkdir()
                network = VirtualNetwork(prefix, number, NAMES, sites, str(ports))
                environment = _environment(directory, library, network) | {MARK: mark, "HOME": str(home)}
                (home / ".venv").mkdir()
                (home / ".venv/bin").symlink_to(directory / "bin")
                machines[name] = Machine(home, scratch, environment, shown)
            try:
                yield machines
            finally:
                await _end(mark)
                for machine in machines.values():
                    await machine.close()


def _environment(directory: Path, library: Path, network: VirtualNetwork) -> dict[str, str]:
    return {
        "PATH": f"{directory / 'bin'}:/usr/bin:/bin",
        "PYTHONPATH": str(library),
        "LANG": "C.UTF-8",
        "TZ": "UTC",
        "TERM": "dumb",
        "COLUMNS": "80",
        "USER": "you",
        "SSL_CERT_FILE": str(directory / "authority.pem"),
        "PIP_NO_INDEX": "1",
        PACE: "50",
        VARIABLE: as_json(network),
        MACHINES: str(directory / "machines"),
    }


@contextmanager
def _claimed_prefix() -> Iterator[str]:
    """Give a range of loopback addresses that no other page has at the same time."""
    draw = random.SystemRandom()
    while True:
        prefix = f"127.{draw.randint(64, 250)}.{draw.randint(1, 250)}."
        with socket.socket() as claim:
            try:
                claim.bind((f"{prefix}254", CLAIM_PORT))
            except OSError:
                continue
            yield prefix
            return


async def _end(mark: str) -> None:
    """End all processes of a page, by force if they do not end by themselves."""
    deadline = time.monotonic() + PARTING_S
    signal_all(mark, signal.SIGTERM)
    while signal_all(mark, signal.SIGCONT) and time.monotonic() < deadline:
        await asyncio.sleep(0.05)
    while signal_all(mark, signal.SIGKILL):
        await asyncio.sleep(0.02)
