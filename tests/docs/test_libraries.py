"""The page about libraries names all that `pip install kadcrawl` brings, and every extra for users."""

import re
from configparser import ConfigParser
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/explanation/libraries.md").read_text(encoding="utf-8")


def _setup() -> ConfigParser:
    setup = ConfigParser()
    setup.read(ROOT / "setup.cfg", encoding="utf-8")
    return setup


def _names(requirements: str) -> list[str]:
    return [re.split(r"[<>=;!\[ ]", line, maxsplit=1)[0] for line in requirements.splitlines() if line]


def test_each_required_library_has_its_reason() -> None:
    rows = "\n".join(line for line in PAGE.splitlines() if line.startswith("| ")).lower()
    required = _names(_setup()["options"]["install_requires"])
    assert required
    assert [] == [name for name in required if f"[{name.lower()}]" not in rows]


def test_each_extra_is_named() -> None:
    assert [] == [extra for extra in _setup()["options.extras_require"] if f"`{extra}`" not in PAGE]


def test_the_page_names_the_exact_release_of_kademlia() -> None:
    (required,) = [line for line in _setup()["options"]["install_requires"].splitlines() if line.startswith("kademlia")]
    assert f"({required.removeprefix('kademlia==')})" in PAGE
