"""Measured figures in the documentation: tables made of the files in docs/figures, between two comments of a page.

A page has `<!-- figures: NAME -->` and `<!-- end figures -->`. What stands between is written by `python -m
scripts.docs`, by the function of that name in `figure_blocks` or `figure_sentences`. Single figures are in
`named_figures`.

Tests: tests/docs/test_figures.py, tests/docs/test_generated_pages.py
"""

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from scripts.docs.figure_blocks import BLOCKS, KeptFigures
from scripts.docs.figure_sentences import SENTENCES
from scripts.docs.loss_table import losses
from scripts.docs.memory_blocks import MEMORY_BLOCKS
from scripts.docs.named_figures import NAMED
from scripts.docs.paper_blocks import PAPER_BLOCKS

_MARKED = re.compile(r"(<!-- figures: ([a-z0-9-]+) -->\n).*?(<!-- end figures -->)", re.DOTALL)
_NAMED = re.compile(r"(<!-- figure: ([a-z0-9-]+) -->)[^\n]*?(<!-- end figure -->)")
RENDERED: Final[Mapping[str, Callable[[KeptFigures], str]]] = {
    **BLOCKS,
    **SENTENCES,
    **MEMORY_BLOCKS,
    **PAPER_BLOCKS,
    "losses": losses,
}
"""Functions from the kept files to Markdown."""


class FiguresMissingError(Exception):
    """A page wants figures that nobody has measured. The text says how to measure them."""


class Kept:
    """The files in docs/figures, read when they are needed."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._files: dict[str, dict[str, Any]] = {}

    def __getitem__(self, name: str) -> Any:
        """Return the figures in a file. Raises FiguresMissingError."""
        return self._file(name)["figures"]

    def cores(self, name: str) -> int:
        """Return the cores of the machine that measured these figures. Raises FiguresMissingError."""
        return int(self._file(name)["cores"])

    def measured(self, *names: str) -> str:
        """Return the sentence that says how and when these figures were measured. Raises FiguresMissingError."""
        files = [self._file(name) for name in names]
        first = files[0]
        commands = " and ".join(dict.fromkeys(f"`{file['command']}`" for file in files))
        dates = " to ".join(sorted({file["date"] for file in files}))
        return (
            f"*Measured by {commands} with kadcrawl {first['version']}, Python {first['python']}, "
            f"{first['cores']} shared cores, {dates}.*"
        )

    def _file(self, name: str) -> dict[str, Any]:
        if name not in self._files:
            path = self._directory / f"{name}.json"
            if not path.exists():
                raise FiguresMissingError(f"Not measured on this release yet: `python -m scripts.figures {name}`")
            self._files[name] = msgspec.json.decode(path.read_bytes())
        return self._files[name]


def with_figures(text: str, kept: Kept, page: str) -> str:
    """Return a page with its figures written anew, or the command that measures missing figures. Raises ValueError."""

    def anew(match: re.Match[str]) -> str:
        if match[2] not in RENDERED:
            raise ValueError(f"{page}: no function makes the figures {match[2]!r}; there are {', '.join(RENDERED)}")
        try:
            block = RENDERED[match[2]](kept).rstrip()
        except FiguresMissingError as error:
            block = f"*{error}.*"
        return f"{match[1]}{block}\n{match[3]}"

    def named_anew(match: re.Match[str]) -> str:
        if match[2] not in NAMED:
            raise ValueError(f"{page}: no figure has the name {match[2]!r}; there are {', '.join(NAMED)}")
        try:
            figure = NAMED[match[2]](kept)
        except FiguresMissingError:
            figure = "(not measured yet)"
        return f"{match[1]}{figure}{match[3]}"

    return _NAMED.sub(named_anew, _MARKED.sub(anew, text))


def pages_with_figures(root: Path) -> Iterator[Path]:
    """Yield the pages that have figures."""
    for path in sorted([root / "README.md", *(root / "docs").rglob("*.md")]):
        text = path.read_text(encoding="utf-8")
        if "<!-- figures: " in text or "<!-- figure: " in text:
            yield path


def figure_pages(root: Path) -> dict[str, str]:
    """Return each page that has figures, with its figures written anew."""
    kept = Kept(root / "docs/figures")
    return {
        str(path.relative_to(root)): with_figures(path.read_text(encoding="utf-8"), kept, path.name)
        for path in pages_with_figures(root)
    }
