"""Rules for the sentences of the documents: README.md and the other pages at the root, and docs/.

The first sentence of a page obeys the rules of `scripts.house.sentences`. Every other sentence in a paragraph or a list
has at most 30 words, at most one semicolon, and no "whoever", "whom" or "of which". Tables, code and the
change log are not judged: rows are not sentences.

Tests: tests/docs/test_prose.py
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from markdown_it import MarkdownIt
from markdown_it.token import Token

from scripts.house.sentences import departures
from scripts.house.source import HouseFinding

WORDS_MAX: Final = 30
NOT_JUDGED: Final = {"CHANGELOG.md"}

_END: Final = re.compile(r"(?<!\be\.g)(?<!\bi\.e)(?<!\bcf)(?<!\bvs)[.!?][\"')\]]*(?=\s|$)|:(?=\s|$)")
_WORD: Final = re.compile(r"\S*\w\S*")
_DIRECTIVE: Final = "::: "
"""The beginning of a directive of the API reference, whose lists of names are no sentences."""
_PRONOUN: Final = re.compile(r"\b(?:whom|whoever|whomever|of which)\b", re.I)
_IMAGE_OR_LINK: Final = {"image", "html_inline"}


def document_paths(root: Path) -> list[Path]:
    """Return the documents of the repository."""
    pages = (*root.glob("*.md"), *(root / "docs").rglob("*.md"))
    return sorted(page for page in pages if page.name not in NOT_JUDGED)


def departing_documents(root: Path) -> list[HouseFinding]:
    """Return a finding for each sentence that breaks rules, in order of page and line."""
    return [finding for path in document_paths(root) for finding in _departing(root, path)]


def sentences_of(text: str) -> Iterator[tuple[int, str]]:
    """Yield each sentence of a document's paragraphs and lists, with its paragraph's line."""
    for line, paragraph in _paragraphs(MarkdownIt("commonmark").enable("table").parse(text)):
        start = 0
        for end in (*(match.end() for match in _END.finditer(paragraph)), len(paragraph)):
            if sentence := paragraph[start:end].strip():
                yield line, sentence
            start = end


def rules_of(sentence: str) -> list[str]:
    """Return the rules that a sentence breaks."""
    broken = {
        "long": len(_WORD.findall(sentence)) > WORDS_MAX,
        "semicolon": sentence.count(";") > 1,
        "pronoun": _PRONOUN.search(sentence) is not None,
    }
    return [rule for rule, breaks in broken.items() if breaks]


def _departing(root: Path, path: Path) -> Iterator[HouseFinding]:
    name = str(path.relative_to(root))
    for place, (line, sentence) in enumerate(sentences_of(path.read_text(encoding="utf-8"))):
        rules = rules_of(sentence)
        if place == 0:
            rules += [f"first sentence: {rule}" for rule in departures(sentence)]
        if rules:
            yield HouseFinding(name, line, f"{', '.join(rules)}: {sentence}", len(sentence.split()))


def _paragraphs(tokens: Sequence[Token]) -> Iterator[tuple[int, str]]:
    in_table = False
    for before, token in zip((None, *tokens), tokens, strict=False):
        in_table = (in_table or token.type == "table_open") and token.type != "table_close"
        in_paragraph = before is not None and before.type == "paragraph_open" and not in_table
        if token.type == "inline" and in_paragraph and not token.content.startswith(_DIRECTIVE):
            yield (token.map or [0])[0] + 1, _plain(token.children or [])


def _plain(children: Sequence[Token]) -> str:
    """Return the text of a paragraph. A name in backticks counts as a word and ends no sentence."""
    parts = (
        "Name" if child.type == "code_inline" else " " if child.type in ("softbreak", "hardbreak") else child.content
        for child in children
        if child.type not in _IMAGE_OR_LINK
    )
    return "".join(parts)
