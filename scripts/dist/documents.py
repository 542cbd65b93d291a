"""The programs that the documents show, taken out of them as they are."""

import re
from pathlib import Path

from scripts.dist.steps import DistError

HOW_TO_SIMULATE = "docs/how-to/simulate-your-own-job.md"


def embedding_example(root: Path, url: str) -> str:
    """Return the README's program with a peer in it, but for where it crawls."""
    program = python_block(root / "README.md", "Peer(")
    for written, here in (
        ("https://example.org/", url),
        ("delay_s=1.0", "delay_s=0.0"),
        ('data=Path("crawl-data")', 'data=Path("crawl-data"), allow_networks=("127.0.0.0/8",)'),
    ):
        if written not in program:
            raise DistError(f"README.md: its embedding example has no {written}; adapt {__name__}")
        program = program.replace(written, here)
    return program


def simulation_example(root: Path) -> str:
    """Return the test that the page on simulations shows."""
    return python_block(root / HOW_TO_SIMULATE, "def test_")


def python_block(document: Path, mark: str) -> str:
    """Return the one block of Python in a document that has `mark` in it."""
    blocks = re.findall(
        r"^```python\b[^\n]*\n(.*?)^```", document.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )
    found = [block for block in blocks if mark in block]
    if len(found) != 1:
        raise DistError(f"{document.name} should have one block of Python with {mark!r}, not {len(found)}")
    return str(found[0])
