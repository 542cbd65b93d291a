"""`kadcrawl doctor` checks this machine, its network, a key, a directory, other peers and a site.

It says what to do about each thing that is not well.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click
import cloup
from cloup import option, option_group

from kadcrawl.cli.exits import DONE, PROBLEMS, told
from kadcrawl.cli.options import ALLOW_NETWORK, Address
from kadcrawl.system.printable import printable
from kadcrawl.urls import seed
from kadcrawl.version import VERSION

if TYPE_CHECKING:
    from kadcrawl.cli.doctor.check_result import CheckResult
    from kadcrawl.cli.doctor.checkup import Checkup

COLORS = {"ok": "green", "note": "yellow", "problem": "red"}
CHECK_WIDTH = 10


@cloup.command(short_help="Check this machine for problems, and say what to do.")
@cloup.argument("url", required=False, metavar="[URL]")
@option_group(
    "Look at",
    option(
        "--data",
        type=click.Path(path_type=Path),
        default=Path("crawl-data"),
        show_default=True,
        help="Directory of a peer or of a crawl. It need not be there yet, and is not made.",
    ),
    option(
        "--listen",
        type=Address(),
        help="Address for other peers, as start and join have it.  [default: where the peer of --data listened before, "
        "or 127.0.0.1:4160]",
    ),
    option("--bootstrap", type=Address(), multiple=True, help="A peer of the swarm to join. Repeatable."),
    option(
        "--key-file",
        type=click.Path(path_type=Path, dir_okay=False),
        metavar="FILE",
        help="The swarm's key is in this file.  [default: KADCRAWL_KEY in the environment, or the key in --data]",
    ),
    ALLOW_NETWORK,
    option("--json", "as_json", is_flag=True, help="Print JSON instead of lines."),
)
@told
def doctor(
    url: str | None,
    data: Path,
    listen: tuple[str, int] | None,
    bootstrap: tuple[tuple[str, int], ...],
    key_file: Path | None,
    allow_network: tuple[str, ...],
    as_json: bool,
) -> int:
    """Check this machine for problems that keep a peer from working, and give advice.

    The checks are about Python and the libraries, open files, memory, the clock, and the disk and the directory of
    --data. They are also about the key, the addresses of this machine, and the port of --listen. Each --bootstrap peer
    is asked by TCP and UDP, as a newcomer asks it. With URL, its site is asked for this page as a crawl asks, but
    without regard to its robots.txt.

    \b
        kadcrawl doctor                                          # before the first crawl
        kadcrawl doctor https://example.org/                     # why does a site not answer?
        kadcrawl doctor --listen 10.0.0.2:4160 --bootstrap 10.0.0.1:4160 --key-file swarm.key

    \b
    Exit codes: 0  no problem was found, though there may be notes
                2  it could not be done as asked
                5  there is a problem
    """
    from kadcrawl.cli.doctor.checkup import Checkup, Options
    from kadcrawl.cli.run import run

    options = Options(
        data=data,
        listen=listen,
        bootstrap=bootstrap,
        key_file=key_file,
        url=None if url is None else seed(url),
        allow_networks=allow_network,
    )
    findings = run(_checkup(Checkup(options), as_json))
    if as_json:
        click.echo(json.dumps(_as_json(findings), indent=2))
    return PROBLEMS if any(finding.outcome == "problem" for finding in findings) else DONE


async def _checkup(checkup: "Checkup", as_json: bool) -> list["CheckResult"]:
    """Run the checks, and print each finding as it is there."""
    from kadcrawl.cli.doctor.check_result import conclusion
    from kadcrawl.cli.doctor.machine_probes import system_name

    if not as_json:
        click.echo(f"kadcrawl {VERSION} on {system_name()}\n")
    findings = []
    async for finding in checkup.findings(lambda text: click.echo(text, err=True)):
        findings.append(finding)
        if not as_json:
            for line in _lines(finding):
                click.echo(line)
    if not as_json:
        click.echo(f"\n{conclusion(findings)}")
    return findings


def _lines(finding: "CheckResult") -> list[str]:
    outcome = click.style(f"{finding.outcome:8}", fg=COLORS[finding.outcome])
    lines = [f"{outcome} {finding.check:{CHECK_WIDTH}} {printable(finding.said)}"]
    if finding.advice:
        lines.append(f"{'':8} {'':{CHECK_WIDTH}} -> {printable(finding.advice)}")
    return lines


def _as_json(findings: Sequence["CheckResult"]) -> dict[str, object]:
    return {
        "version": VERSION,
        "problems": sum(finding.outcome == "problem" for finding in findings),
        "notes": sum(finding.outcome == "note" for finding in findings),
        "findings": [asdict(finding) for finding in findings],
    }
