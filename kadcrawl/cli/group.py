"""The command `kadcrawl` as a group of subcommands, of which only those are imported that a process may need.

Each subcommand is a few lines: options in, a sentence or a table out, an exit code (exits.py). What only some commands
need is imported inside them, as the rooms of a peer take longer to load than a command may last. A peer lives for
weeks in the process of `kadcrawl start`, so that process does without the options of all other commands.

Tests: tests/cli/test_group.py
"""

import os
from collections.abc import Container
from importlib import import_module

import cloup

from kadcrawl.cli.environment import mistyped, name_variables, unread
from kadcrawl.cli.say import say
from kadcrawl.version import VERSION

HELP = """\
A fully decentralized web crawler: no master, no broker, any number of peers.

\b
Crawl a site with four peers on this machine, to the end:
    kadcrawl crawl https://example.org/ --peers 4 --contact me@example.org

\b
Or build a swarm over several machines. Any peer may come, go, or be asked:
    kadcrawl keygen > swarm.key
    one$  kadcrawl start https://example.org/ --key-file swarm.key --listen 10.0.0.1:4160 --contact me@example.org
    two$  kadcrawl join --key-file swarm.key --bootstrap 10.0.0.1:4160 --listen 10.0.0.2:4160
    two$  kadcrawl status

\b
A file can keep the job, and a command shows what it would do:
    kadcrawl check kadcrawl.toml https://example.org/login
    kadcrawl crawl --job kadcrawl.toml

Each option can also be an environment variable, such as KADCRAWL_MAX_PAGES for --max-pages. The command line wins
over the environment, and the environment over a job file.

A swarm keeps to one request per second and site unless told otherwise, obeys robots.txt, and knows by itself when
the crawl is done.
"""

SECTIONS = {
    "Crawl": {"crawl": "commands.crawl", "start": "commands.start", "join": "commands.join"},
    "Look and steer": {
        "status": "commands.control",
        "summary": "commands.summary",
        "web": "commands.web",
        "add": "commands.control",
        "retry": "commands.retry",
        "site": "commands.site",
        "queue": "commands.queue",
        "set": "commands.set",
        "scope": "commands.scope",
        "pause": "commands.control",
        "resume": "commands.control",
        "leave": "commands.control",
        "stop": "commands.control",
    },
    "Before and after a crawl": {
        "check": "commands.check",
        "doctor": "commands.doctor",
        "export": "commands.export",
        "check-data": "commands.check_data",
        "index": "commands.index",
        "vacuum": "commands.vacuum",
        "train": "commands.train",
    },
    "Keys": {"keygen": "keys", "rekey": "commands.rekey"},
    "Shell": {"completion": "commands.completion"},
}
"""The sections of the help: the names of their subcommands, and the modules below `kadcrawl.cli` that have them."""
NAMES = frozenset(name for section in SECTIONS.values() for name in section)


def group_of(names: Container[str]) -> cloup.Group:
    """Return the command with the subcommands of these names."""

    settings = {"help_option_names": ["-h", "--help"], "max_content_width": 100}

    @cloup.group(help=HELP, context_settings=settings)
    @cloup.version_option(VERSION)
    def main() -> None:
        if unread(os.environ, main):  # By the options of other commands, most often.
            for sentence in mistyped(os.environ, group_of(NAMES)):
                say(f"kadcrawl: {sentence}", err=True)

    for title, modules in SECTIONS.items():
        if wanted := [_command(name, module) for name, module in modules.items() if name in names]:
            main.section(title, *wanted)
    name_variables(main)
    return main


def group_for(arguments: list[str]) -> cloup.Group:
    """Return the command for this command line: with its subcommand, or with all if it names none of them."""
    return group_of(arguments[:1] if arguments and arguments[0] in NAMES else NAMES)


def _command(name: str, module: str) -> cloup.Command:
    found = import_module(f"kadcrawl.cli.{module}")
    identifier = name.replace("-", "_")
    command = getattr(found, identifier, None) or getattr(found, f"{identifier}_")  # `set` is a name of Python.
    assert isinstance(command, cloup.Command), "each subcommand is a function of its name"
    return command
