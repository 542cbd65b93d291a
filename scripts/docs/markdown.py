"""Markdown of the generated pages: prose made safe, tables, links to source files, and the notice of the source."""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

_CODE = re.compile(r"(`+)(.+?)\1")
_WORDS = re.compile(
    r"(?<![\w/`-])(?:"
    r"--[a-z]+(?:-[a-z]+)*"  # options
    r"|KADCRAWL_[A-Z_]+"
    r"|https?://[^\s,;)'\"]*[\w/*]"
    r"|[a-z]+(?:_[a-z0-9]+)+(?![\w/]|\.\w)"  # names with an underscore, as in code
    r"|\[\[[a-z]+\]\]"
    r"|[\w.-]+\.(?:jsonl|toml|former|key|html|xml|txt|db|sqlite|json)(?:\.gz)?\b"
    r")"
)
_SOURCE = re.compile(r"(?<![\w/`])((?:[a-z_]+/)*[a-z_]+\.py)\b")


def notice(source: str) -> str:
    """Return the comment under a title that names the source of a generated page."""
    return f"<!-- `make docs` generates this page from {source}. Change it there. -->"


def page(title: str, source: str, *parts: str) -> str:
    """Return a whole page."""
    return "\n\n".join([f"# {title}", notice(source), *(part.strip("\n") for part in parts if part)]) + "\n"


def code(text: str) -> str:
    """Return the text as code within a line."""
    fence = "``" if "`" in text else "`"
    return f"{fence}{text}{fence}"


def prose(text: str, root: Path | None = None, up: str = "../..") -> str:
    """Return plain text of a docstring or a help text as Markdown.

    Names of options, variables and files become code. With the repository's root, a path of a module of the package
    becomes a link, for a page that lies `up` below the root.
    """
    text = " ".join(text.split())
    parts: list[str] = []
    end = 0
    for found in _CODE.finditer(text):
        parts += _plain(text[end : found.start()], root, up), code(found[2])
        end = found.end()
    return "".join([*parts, _plain(text[end:], root, up)])


def _plain(text: str, root: Path | None, up: str) -> str:
    parts: list[str] = []
    end = 0
    for found in _WORDS.finditer(text):
        parts += _linked(text[end : found.start()], root, up), code(found[0])
        end = found.end()
    return "".join([*parts, _linked(text[end:], root, up)])


def _linked(text: str, root: Path | None, up: str) -> str:
    parts: list[str] = []
    end = 0
    for found in _SOURCE.finditer(text):
        if root is None or not (root / "kadcrawl" / found[1]).exists():
            continue
        parts += _escaped(text[end : found.start()]), f"[{found[1]}]({up}/kadcrawl/{found[1]})"
        end = found.end()
    return "".join([*parts, _escaped(text[end:])])


def _escaped(text: str) -> str:
    return re.sub(r"([\\*_<\[\]])", r"\\\1", text)


def paragraphs(text: str, root: Path | None = None, up: str = "../..") -> str:
    """Return the paragraphs of a docstring as Markdown."""
    return "\n\n".join(prose(each, root, up) for each in re.split(r"\n\s*\n", text.strip()))


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of cells that are Markdown already."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(_cell(cell) for cell in line)} |" for line in lines)


def _cell(text: str) -> str:
    return re.sub(r"(?<!\\)\|", r"\\|", text.replace("\n\n", "<br>").replace("\n", " ")).strip()


def anchor(title: str) -> str:
    """Return the anchor that both MkDocs and code hosts give a heading."""
    return re.sub(r"[\s-]+", "-", re.sub(r"[^\w\s-]", "", title.replace("`", "")).strip().lower())
