"""The list of generated pages: each a path below the repository and the text that belongs there."""

from collections.abc import Callable, Mapping
from pathlib import Path

from scripts.docs import (
    cli,
    environment,
    exit_codes,
    limits,
    links,
    log_events,
    long_figures,
    metrics,
    odd_servers,
    schemas,
    settings,
    wire,
    wire_shape,
)
from scripts.docs.figures import figure_pages

Generator = Callable[[Path], Mapping[str, str]]
"""A function from the repository's root to pages, each a path relative to the root and its whole text."""

GENERATORS: tuple[Generator, ...] = (
    cli.generate,
    environment.generate,
    exit_codes.generate,
    limits.generate,
    links.generate,
    log_events.generate,
    long_figures.generate,
    metrics.generate,
    odd_servers.generate,
    schemas.generate,
    settings.generate,
    wire.generate,
    wire_shape.generate,
    figure_pages,
)


def generated_pages(root: Path) -> dict[str, str]:
    """Return all generated pages."""
    return {page: text for generate in GENERATORS for page, text in generate(root).items()}
