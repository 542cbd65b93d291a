import re
from pathlib import Path

from tests.support.cases import cases

ROOT = Path(__file__).parents[2]
DECISIONS = ROOT / "docs/explanation/decisions"
PAGES = sorted(path for path in DECISIONS.glob("*.md") if path.name != "index.md")


@cases("page", PAGES)
def test_a_decision_has_its_context_its_choice_and_its_price(page: Path) -> None:
    chapters = re.findall(r"^## (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    assert ["Context", "Choice", "Price", "Code and tests"] == chapters


@cases("page", PAGES)
def test_the_code_and_the_tests_of_a_decision_are_there(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    named = re.findall(r"^- \[`([a-z_/]+\.py)(?:::(test_\w+))?`\]\(\.\./\.\./\.\./(.+)\)$", text, re.MULTILINE)
    assert {path.partition("/")[0] for path, _, _ in named} == {"kadcrawl", "tests"}
    for path, test, target in named:
        assert path == target
        code = (ROOT / path).read_text(encoding="utf-8")
        assert not test or re.search(rf"^(async )?def {test}\(", code, re.MULTILINE), f"{path}::{test}"


def test_the_index_names_each_decision_once_by_its_title() -> None:
    index = re.findall(r"^- \[(.+?)\]\(([a-z0-9-]+\.md)\)", (DECISIONS / "index.md").read_text("utf-8"), re.MULTILINE)
    titles = [(page.read_text("utf-8").partition("\n")[0].removeprefix("# "), page.name) for page in PAGES]
    assert titles == sorted(index, key=lambda entry: entry[1])
