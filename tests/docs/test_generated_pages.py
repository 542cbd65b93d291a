from pathlib import Path

from scripts.docs.pages import generated_pages

ROOT = Path(__file__).parents[2]


def test_every_generated_page_is_up_to_date() -> None:
    pages = generated_pages(ROOT)
    assert len(pages) > 20
    stale = [page for page, text in pages.items() if text != (ROOT / page).read_text(encoding="utf-8")]
    assert [] == stale, "run: make docs"
