from pathlib import Path

import pytest

from scripts.docs.pages import generated_pages

ROOT = Path(__file__).parents[2]
PAGES = generated_pages(ROOT)


@pytest.mark.parametrize("page", sorted(PAGES))
def test_the_generated_page_is_up_to_date(page: str) -> None:
    assert PAGES[page] == (ROOT / page).read_text(encoding="utf-8"), "run: make docs"
