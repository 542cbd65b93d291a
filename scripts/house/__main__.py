"""Print the figures of the house, each with its worst places: `make house`, or `python -m scripts.house --all`."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import click

from scripts.house.figures import HouseFigure, figures, sentences_by_room
from scripts.house.sentences import RULES
from scripts.house.source import Source, read, room_of

ROOT = Path(__file__).parent.parent.parent


@click.command(help=__doc__)
@click.option("--worst", type=click.IntRange(0), default=5, show_default=True, help="Places to print per figure.")
@click.option("--all", "whole", is_flag=True, help="Print all places, as file:line: text.")
@click.option("--room", help="Print the figures of one room or tree, such as crawl, sim or tests.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON with all places.")
@click.option(
    "--root",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default=ROOT,
    help="Repository to measure, by default that of this file.",
)
def main(worst: int, whole: bool, room: str | None, as_json: bool, root: Path) -> None:
    """Print figures. The exit code does not depend on them."""
    sources = read(root)
    measured = figures(root, sources, room)
    if as_json:
        click.echo(json.dumps({figure.name: asdict(figure) for figure in measured}, indent=1))
        return
    for figure in measured:
        _print(figure, None if whole else worst)
    _print_rooms(measured[-1], [source for source in sources if room in (None, room_of(source.path))])


def _print(figure: HouseFigure, worst: int | None) -> None:
    values = ", ".join(f"{name} {value:g}" for name, value in figure.values.items())
    click.echo(f"{figure.name}: {values} (aim: {figure.aim})")
    for finding in figure.findings[:worst]:
        text = str(finding)
        click.echo(f"    {text if worst is None or len(text) <= 240 else text[:239] + '…'}")


def _print_rooms(sentences: HouseFigure, sources: Sequence[Source]) -> None:
    click.echo(f"\n{'room':<14}{'sentences':>10}{'departing':>10}" + "".join(f"{rule:>10}" for rule in RULES))
    for name, pieces, departing, rules in sentences_by_room(sentences, sources):
        click.echo(f"{name:<14}{pieces:>10}{departing:>10}" + "".join(f"{rules[rule]:>10}" for rule in RULES))


if __name__ == "__main__":
    main()
