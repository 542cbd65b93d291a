"""The built site: strict, offline, and with a search that answers what people ask."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from lunr import lunr

pytestmark = pytest.mark.xdist_group("site")
"""Keeps these tests in one process, which prepares their fixtures once."""

ROOT = Path(__file__).parents[2]
TITLE_BOOST = 1_000
"""The weight of a title in the site's own search."""
BEST = 5
"""Results that a person sees without scrolling."""

QUESTIONS = {
    "How do I crawl with two machines?": "how-to/several-machines",
    "What does exit code 3 mean?": "reference/exit-codes",
    "What is in pages.jsonl?": "reference/pages",
    "How do I get the pages again next week?": "how-to/recrawl",
    "Is it faster than Scrapy?": "benchmarks",
}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the site, built as `make docs` builds it."""
    place = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-d", str(place)]
    built = subprocess.run(
        command, cwd=ROOT, env=os.environ | {"NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True, check=False
    )
    assert (0, "") == (built.returncode, built.stderr)
    return place


@pytest.fixture(scope="module")
def found(site: Path) -> Any:
    """Return the index of the site's search, as a browser builds it."""
    documents = json.loads((site / "search/search_index.json").read_text(encoding="utf-8"))["docs"]
    return lunr(ref="location", fields=[{"field_name": "title", "boost": TITLE_BOOST}, "text"], documents=documents)


@pytest.mark.parametrize("question", QUESTIONS)
def test_the_search_answers_what_people_ask(found: Any, question: str) -> None:
    words = " ".join(re.findall(r"[\w.]+", question))
    places = [result["ref"].partition(".html")[0] for result in found.search(words)[:BEST]]
    assert QUESTIONS[question] in places


def test_the_site_needs_nothing_from_elsewhere(site: Path) -> None:
    loads = re.compile(
        r"<(?:script|img|iframe)[^>]*\ssrc=[\"'](?:https?:)?//|<link[^>]*stylesheet[^>]*href=[\"'](?:https?:)?//"
    )
    assert [] == [str(page) for page in site.rglob("*.html") if loads.search(page.read_text(encoding="utf-8"))]
    assert [] == [str(page) for page in site.rglob("*.html") if 'data-md-component="source"' in page.read_text("utf-8")]


def test_pages_opened_from_the_disk_have_a_search(site: Path) -> None:
    assert (site / "search/search_index.js").exists()
    page = (site / "how-to/recrawl.html").read_text(encoding="utf-8")
    assert '<script src="../assets/iframe-worker.js"' in page
    assert (site / "assets/iframe-worker.js").exists()
