from pathlib import Path

import pytest

from scripts.docs.markdown import anchor, prose, table

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("text", "markdown"),
    [
        ("see --max-pages and KADCRAWL_KEY", "see `--max-pages` and `KADCRAWL_KEY`"),
        ("`already` and ``a`b``", "`already` and ``a`b``"),
        ("a file job.toml, a field body_bytes_max", "a file `job.toml`, a field `body_bytes_max`"),
        ("a<b * [x]", r"a\<b \* \[x\]"),
        ("two\n    lines", "two lines"),
        ("[[roles]] of http://127.0.0.1/x.", "`[[roles]]` of `http://127.0.0.1/x`."),
    ],
)
def test_names_in_prose_become_code_and_the_rest_stays_text(text: str, markdown: str) -> None:
    assert markdown == prose(text)


def test_a_module_in_prose_becomes_a_link() -> None:
    assert "([urls.py](../../kadcrawl/urls.py))" == prose("(urls.py)", ROOT)
    assert "(gone/urls.py)" == prose("(gone/urls.py)", ROOT)


def test_a_cell_of_a_table_is_one_line_without_bars() -> None:
    assert "| a |\n| --- |\n| x\\|y z |" == table(["a"], [["x|y\nz"]])


@pytest.mark.parametrize(("title", "expected"), [("kadcrawl crawl", "kadcrawl-crawl"), ("`a_b`: C", "a_b-c")])
def test_an_anchor_is_the_one_of_mkdocs(title: str, expected: str) -> None:
    assert expected == anchor(title)
