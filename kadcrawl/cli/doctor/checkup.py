"""The list of checks, each with a time limit. A check that hangs, such as on a dead network mount, ends no other check.

Checks of the disk and the system run in threads of their own. What needs a library is imported inside its check, as the
library may be the very thing that is missing.

Tests: tests/cli/doctor/test_checkup.py, tests/cli/commands/test_doctor.py
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from kadcrawl.cli.doctor import machine_probes
from kadcrawl.cli.doctor.check_result import CheckResult, note, problem
from kadcrawl.cli.doctor.machine import ClockFacts, clock_finding, disk_findings, files_finding, memory_finding
from kadcrawl.cli.options import listen_at
from kadcrawl.cli.view.addresses import shown
from kadcrawl.errors import StartError
from kadcrawl.settings.config import Config
from kadcrawl.system.clock import wall
from kadcrawl.system.daemon_threads import DaemonThreadExecutor
from kadcrawl.system.directory_lock import is_running
from kadcrawl.system.printable import printable

if TYPE_CHECKING:
    from kadcrawl.members.swarm_key import SwarmKey

NOTICE_S: Final = 1.0
"""Seconds after which a check that is under way is named."""
LIMIT_S: Final = 20.0
SITE_LIMIT_S: Final = 60.0

Result = TypeVar("Result")
Found = Coroutine[Any, Any, Sequence[CheckResult]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The options of the command."""

    data: Path
    listen: tuple[str, int] | None = None
    bootstrap: Sequence[tuple[str, int]] = ()
    key_file: Path | None = None
    url: str | None = None
    allow_networks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Check:
    """One check: its name for a person who waits, and its time limit."""

    name: str
    run: Callable[[], Found]
    limit_s: float = LIMIT_S


@dataclass(slots=True)
class Checkup:
    """The checks of these options, in the order in which a person reads them."""

    options: Options
    _key: "SwarmKey | None" = field(default=None, init=False)
    _site_ahead_s: float | None = field(default=None, init=False)

    @property
    def checks(self) -> list[Check]:
        options = self.options
        return [
            Check("the libraries", self._libraries),
            Check("the helpers", self._helpers),
            Check("the system", self._system),
            Check("the disk", self._disk),
            Check("the directory", self._directory),
            Check("the key", self._key_file),
            Check("the addresses", self._addresses),
            *(Check(f"the peer at {shown(at)}", partial(self._bootstrap, at)) for at in options.bootstrap),
            *([Check("the site", self._site, SITE_LIMIT_S)] if options.url is not None else []),
            Check("the clock", self._clock),  # After the site, which may tell the time.
        ]

    async def findings(self, say: Callable[[str], None]) -> AsyncIterator[CheckResult]:
        """Run all checks in turn and yield their results. `say` is given the name of a check that takes long."""
        for check in self.checks:
            for finding in await _within(check, say):
                yield finding

    async def _libraries(self) -> Sequence[CheckResult]:
        found = machine_probes.requirements()
        version = machine_probes.python_version()
        if found is None:
            return [
                note(
                    "libraries",
                    "kadcrawl is not installed as a package, so its requirements are not known",
                    "pip install kadcrawl, or make setup in its repository",
                )
            ]
        try:
            from kadcrawl.cli.doctor import libraries
        except ImportError as error:
            return [problem("libraries", f"{error.name} is not installed", f"pip install {error.name}")]
        needed, python = found
        return [
            libraries.python_finding(version, python),
            *libraries.library_findings(needed, machine_probes.installed),
            *libraries.loading_findings(await _in_thread(machine_probes.loading_error)),
            *libraries.extra_findings(needed, machine_probes.installed),
        ]

    async def _helpers(self) -> Sequence[CheckResult]:
        from kadcrawl.cli.doctor.helper_probes import helpers
        from kadcrawl.cli.doctor.libraries import helper_findings

        return helper_findings(helpers())

    async def _system(self) -> Sequence[CheckResult]:
        return [files_finding(*machine_probes.file_limits()), memory_finding(machine_probes.available_memory())]

    async def _disk(self) -> Sequence[CheckResult]:
        return disk_findings(await _in_thread(machine_probes.disk_facts, self.options.data))

    async def _directory(self) -> Sequence[CheckResult]:
        from kadcrawl.cli.doctor.directory_probes import directory_findings

        return await _in_thread(directory_findings, self.options.data)

    async def _key_file(self) -> Sequence[CheckResult]:
        from kadcrawl.cli.doctor.directory_probes import key_findings

        findings, self._key = await _in_thread(key_findings, self.options.key_file, self.options.data)
        return findings

    async def _addresses(self) -> Sequence[CheckResult]:
        from kadcrawl.cli.doctor.directory_probes import peers_here
        from kadcrawl.cli.doctor.network_probes import listening_errors, own_addresses
        from kadcrawl.cli.doctor.reach import addresses_finding, listen_findings

        address = self._listening()
        own = any(map(is_running, peers_here(self.options.data)))
        return [
            addresses_finding(own_addresses()),
            *listen_findings(
                address, listening_errors(address), is_own_peer=own, is_chosen=self.options.listen is not None
            ),
        ]

    def _listening(self) -> tuple[str, int]:
        """Return the IP address and port to listen at. Raises ConfigError for a host that is no IP address."""
        host, port = listen_at(self.options.listen, self.options.data)
        return Config(data=self.options.data, host=host, port=port).host, port

    async def _bootstrap(self, address: tuple[str, int]) -> Sequence[CheckResult]:
        from kadcrawl.cli.doctor.network_probes import bootstrap_facts
        from kadcrawl.cli.doctor.reach import bootstrap_findings
        from kadcrawl.peer.membership.bootstrap_names import addresses_of, is_srv

        found: list[CheckResult] = []
        try:
            addresses = await addresses_of([address], None) if is_srv(address) else [address]
        except StartError:
            said = f"there is no SRV record {printable(address[0])}, or its hosts have no address"
            return [problem("bootstrap", said, "check the record in the DNS, or give HOST:PORT")]
        for each in addresses:
            facts = await bootstrap_facts(each, self._key, self.options.data)
            found += bootstrap_findings(facts, self._listening()[0])
        return found

    async def _site(self) -> Sequence[CheckResult]:
        from kadcrawl.cli.doctor.network_probes import site_facts
        from kadcrawl.cli.doctor.reach import site_findings

        assert self.options.url is not None
        facts, self._site_ahead_s = await site_facts(self.options.url, self.options.data, self.options.allow_networks)
        return site_findings(facts)

    async def _clock(self) -> Sequence[CheckResult]:
        from kadcrawl.cli.doctor.directory_probes import journal_time

        now, last = wall(), await _in_thread(journal_time, self.options.data)
        facts = ClockFacts(
            now_s=now,
            synchronized=machine_probes.clock_is_synchronized(),
            site_ahead_s=self._site_ahead_s,
            journal_ahead_s=None if last is None else last - now,
        )
        return [clock_finding(facts)]


async def _within(check: Check, say: Callable[[str], None]) -> Sequence[CheckResult]:
    """Return the results of a check, or a problem if it takes too long."""
    task = asyncio.create_task(check.run())
    try:
        done, _ = await asyncio.wait({task}, timeout=NOTICE_S)
        if not done:
            say(f"checking {check.name} ...")
            done, _ = await asyncio.wait({task}, timeout=check.limit_s - NOTICE_S)
        if done:
            return task.result()
    except ImportError as error:
        return [problem(_topic(check), f"{error}", "install what is missing, as said under libraries")]
    except OSError as error:
        return [problem(_topic(check), f"{error}", "check that you may read and write there")]
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    return [
        problem(
            _topic(check), f"no result within {check.limit_s:g} s", "look for a network mount that hangs, or a firewall"
        )
    ]


def _topic(check: Check) -> str:
    return check.name.removeprefix("the ")


async def _in_thread(function: Callable[..., Result], *arguments: Any) -> Result:
    """Call a function in a thread that nobody waits for when the command ends."""
    return await asyncio.get_running_loop().run_in_executor(DaemonThreadExecutor(), function, *arguments)
