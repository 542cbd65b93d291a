"""The blocks of code of a Markdown page, with their lines, titles, and the comments that concern them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from markdown_it import MarkdownIt
from markdown_it.token import Token

_TITLE: Final = re.compile(r"""\btitle=(?:"([^"]+)"|'([^']+)')""")
_NOT_RUN: Final = re.compile(r"<!--\s*not run:?(.*?)-->", re.DOTALL)
_COLUMNS: Final = re.compile(r"<!--\s*columns:\s*(\d+)\s*-->")
_PACE: Final = re.compile(r"<!--\s*pace:\s*(\d+)\s*-->")
_CONTAINER: Final = re.compile(r'^(\s*)(?:!!!|\?\?\?\+?|===)\s+(?:[\w-]+|")')
"""The head of an admonition or a tab of MkDocs Material, whose content is indented and no code."""
_INDENT: Final = 4


@dataclass(frozen=True, slots=True)
class Block:
    """A block of code."""

    language: str
    """The first word after the fence, or "" if the fence is bare."""
    title: str
    """The file that the block is written to, or ""."""
    text: str
    line: int
    """The line of the page where the block begins, counted from 1."""
    end: int
    """The line of the page where the block ends."""
    not_run: str | None = None
    """The reason of a comment "not run" before the block. Without a comment it is None."""
    columns: int = 80
    """The width of the terminal."""
    pace: int = 50
    """Seconds of a delay that pass in one second."""


def blocks(markdown: str) -> list[Block]:
    """Return the fenced and the indented blocks of a page in order."""
    found: list[Block] = []
    comment = ""
    for token in MarkdownIt("commonmark").parse(_without_containers(markdown)):
        if token.type in ("fence", "code_block"):
            found.append(_block(token, comment))
        comment = comment + token.content if token.type == "html_block" else ""
    return found


def _block(token: Token, comment: str) -> Block:
    assert token.map is not None, "a block has lines"
    title = _TITLE.search(token.info)
    not_run = _NOT_RUN.search(comment)
    columns = _COLUMNS.search(comment)
    pace = _PACE.search(comment)
    words = token.info.split()
    return Block(
        language=words[0].strip("{}.").lower() if words and token.type == "fence" else "",
        title=(title[1] or title[2]) if title else "",
        text=token.content,
        line=token.map[0] + 1,
        end=token.map[1],
        not_run=not_run[1].strip() if not_run else None,
        columns=int(columns[1]) if columns else 80,
        pace=int(pace[1]) if pace else 50,
    )


def _without_containers(markdown: str) -> str:
    """Return the page with the content of admonitions and tabs moved to the left, line by line."""
    return "".join(_moved(markdown.splitlines(keepends=True)))


def _moved(lines: list[str]) -> Iterator[str]:
    depths: list[int] = []
    fence = ""
    for line in lines:
        indent = len(line) - len(line.lstrip(" "))
        while depths and line.strip() and indent < depths[-1]:
            depths.pop()
        moved = line[depths[-1] :] if depths and line.strip() else line
        if marker := re.match(r"\s*(`{3,}|~{3,})", moved):
            if not fence:
                fence = marker[1]
            elif moved.strip() == fence:
                fence = ""
        if not fence and (head := _CONTAINER.match(line)) and len(head[1]) == (depths[-1] if depths else 0):
            depths.append(len(head[1]) + _INDENT)
            yield "\n"
            continue
        yield moved
