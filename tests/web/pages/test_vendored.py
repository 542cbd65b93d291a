"""The assets: vendored files are unchanged and have licenses, nothing is inline, and nothing comes from outside."""

import json
import re
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
ASSETS = ROOT / "kadcrawl" / "web" / "assets"
VENDOR = ASSETS / "vendor"
OWN = sorted(path for path in ASSETS.rglob("*.js") if VENDOR not in path.parents)
LINE_MAX = 350


def test_vendored_files_are_those_that_their_authors_published() -> None:
    vendored = json.loads((VENDOR / "VENDORED.json").read_text())
    files = {path.name for path in VENDOR.iterdir() if not path.name.startswith("LICENSE")} - {"VENDORED.json"}
    assert files == vendored.keys()
    for name, entry in vendored.items():
        assert entry["sha256"] == sha256((VENDOR / name).read_bytes()).hexdigest(), name
        assert (VENDOR / entry["license_file"]).is_file()
        assert re.fullmatch(r"\d+\.\d+\.\d+", entry["version"])


def test_vendored_libraries_are_named_in_the_documentation() -> None:
    libraries = (ROOT / "docs" / "explanation" / "libraries.md").read_text()
    for entry in json.loads((VENDOR / "VENDORED.json").read_text()).values():
        assert f"{entry['package']}@{entry['version']}" in libraries


class Tags(HTMLParser):
    """Collects the tags of a page, and the text of scripts and styles."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


def test_the_page_has_nothing_inline_and_nothing_from_outside() -> None:
    parser = Tags()
    parser.feed((ASSETS / "index.html").read_text())
    assert [] == [tag for tag, _ in parser.tags if tag == "style"]
    assert [] == [attributes for tag, attributes in parser.tags if tag == "script" and not attributes.get("src")]
    assert [] == [attributes for _, attributes in parser.tags if {"style", "onclick", "onload"} & attributes.keys()]
    links = [link for _, attributes in parser.tags if (link := attributes.get("src") or attributes.get("href"))]
    assert len(links) > 4
    for link in links:
        assert (ASSETS / link.removeprefix("/assets/")).is_file(), link


@pytest.mark.parametrize("path", OWN, ids=lambda path: path.name)
def test_crawled_text_cannot_become_markup(path: Path) -> None:
    """Preact makes text nodes of text. What else could make markup or code of it is not used at all."""
    text = path.read_text()
    ways = r"innerHTML|outerHTML|insertAdjacentHTML|dangerouslySetInnerHTML|document\.write|\beval\b|Function\(|href=\$"
    assert [] == re.findall(ways, text)
    assert len(text.splitlines()) <= LINE_MAX


@pytest.mark.parametrize("path", OWN, ids=lambda path: path.name)
def test_modules_import_files_that_are_there(path: Path) -> None:
    assert path.read_text().startswith("/**"), "a module says its idea"
    for name in re.findall(r'from "([^"]+)"', path.read_text()):
        assert (path.parent / name).is_file(), name
