"""`kadcrawl train`: a network that predicts running times (P2), learned from measured crawls.

Tests: tests/cli/test_command_train.py
"""

from pathlib import Path

import click
import cloup

from kadcrawl.cli.directory_arguments import directories_argument
from kadcrawl.cli.exits import DONE, told
from kadcrawl.cli.types import WholeNumber
from kadcrawl.system.plural import counted


@cloup.command(short_help="Learn from finished crawls how long machines take.")
@directories_argument
@cloup.option(
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    required=True,
    metavar="FILE",
    help="Write the network to this file, for --network.",
)
@cloup.option(
    "--seed",
    type=WholeNumber(0, 2**32 - 1),
    default=0,
    show_default=True,
    help="The random start of the training. Any number will do.",
)
@told
def train(directories: tuple[Path, ...], output: Path, seed: int) -> int:
    """Learn from the crawls in DIR... how long peers take, by their powers, for a number of URLs.

    Each peer of a crawl with --balance predictive writes what it measures to batches.jsonl in its directory; all such
    files below DIR... are read. Training needs scikit-learn: pip install 'kadcrawl[predict]'. Predicting needs nothing.
    """
    from kadcrawl.balance.predict import train_network
    from kadcrawl.balance.training_data import load_batches, save_network

    found, skipped = load_batches(directories)
    save_network(train_network(found, seed=seed), output)
    machines = len({batch.profile for batch in found})
    others = f" ({counted(skipped, 'line is none', 'lines are none')})" if skipped else ""
    batches, kinds = counted(len(found), "batch", "batches"), counted(machines, "kind")
    click.echo(f"learned from {batches}{others} of {kinds} of machines; {output}")
    return DONE
