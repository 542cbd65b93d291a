"""Every example of the documentation does as its page says (CONTRIBUTING.md, "Examples in the documentation").

`UPDATE_EXAMPLES=1 pytest tests/docs/test_examples.py`, or `make examples`, writes the outputs of a real run into the
pages. `EXAMPLES_ROOT=/path/to/tree` takes the pages, and the packages, of another work tree.
"""

import os
import resource
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from scripts.docs.pages import generated_pages
from tests.support.examples.page import blocks
from tests.support.examples.plan import plan
from tests.support.examples.repository_commands import read_repository
from tests.support.examples.run_page import run_page
from tests.support.examples.update import updated

ROOT = Path(__file__).parents[2]
DOCUMENTS = Path(os.environ.get("EXAMPLES_ROOT", ROOT))
PAGES = [
    name
    for name in (
        "README.md",
        "CONTRIBUTING.md",
        "SECURITY.md",
        *sorted(path.relative_to(DOCUMENTS).as_posix() for path in DOCUMENTS.glob("docs/**/*.md")),
    )
    if "```" in (DOCUMENTS / name).read_text(encoding="utf-8")
]
REPOSITORY = read_repository(DOCUMENTS)
UPDATE = bool(os.environ.get("UPDATE_EXAMPLES"))


@cache
def generated() -> set[str]:
    """Return the names of the generated pages."""
    return {*generated_pages(ROOT)}


def _cpu_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@pytest.mark.timeout(600)
@pytest.mark.examples
@pytest.mark.parametrize("page", PAGES)
async def test_the_page_does_as_it_says(
    page: str, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    text = (DOCUMENTS / page).read_text(encoding="utf-8")
    planned = plan(blocks(text), REPOSITORY, page in generated())
    cpu = _cpu_of_children()
    outcome = await run_page(planned, tmp_path, DOCUMENTS)
    record_property("example_cpu", _cpu_of_children() - cpu)
    for line, reason in planned.not_run:
        record_property("not_run", f"{page}:{line}: {reason}")
    for line, seconds in outcome.seconds.items():
        record_property("example", (seconds, f"{page}:{line}"))
    if UPDATE and outcome.new_outputs:
        (DOCUMENTS / page).write_text(updated(text, outcome.new_outputs), encoding="utf-8")
    differences = [] if UPDATE else outcome.differences
    found = sorted([*planned.problems, *outcome.problems, *differences], key=lambda problem: problem.line)
    if found:
        pytest.fail("\n\n".join(f"{page}:{problem.line}: {problem.message}" for problem in found), pytrace=False)
