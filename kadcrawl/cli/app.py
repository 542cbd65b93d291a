"""The command `kadcrawl` and the list of its subcommands.

Each subcommand is a few lines: options in, a sentence or a table out, an exit code (exits.py). What only some commands
need is imported inside them, as the rooms of a peer take longer to load than a command may last.

Tests: tests/cli/test_command.py
"""

import cloup

from kadcrawl.cli.commands.check import check
from kadcrawl.cli.commands.check_data import check_data
from kadcrawl.cli.commands.completion import completion
from kadcrawl.cli.commands.control import add, leave, pause, resume, status, stop
from kadcrawl.cli.commands.crawl import crawl
from kadcrawl.cli.commands.doctor import doctor
from kadcrawl.cli.commands.export import export
from kadcrawl.cli.commands.join import join
from kadcrawl.cli.commands.rekey import rekey
from kadcrawl.cli.commands.retry import retry
from kadcrawl.cli.commands.start import start
from kadcrawl.cli.commands.summary import summary
from kadcrawl.cli.commands.train import train
from kadcrawl.cli.environment import name_variables
from kadcrawl.cli.keys import keygen
from kadcrawl.version import VERSION


@cloup.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@cloup.version_option(VERSION)
def main() -> None:
    """A fully decentralized web crawler: no master, no broker, any number of peers.

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


main.section("Crawl", crawl, start, join)
main.section("Look and steer", status, summary, add, retry, pause, resume, leave, stop)
main.section("Before and after a crawl", check, doctor, export, check_data, train)
main.section("Keys", keygen, rekey)
main.section("Shell", completion)
name_variables(main)
