from pathlib import Path

import pytest

from scripts.docs.hooks import outside_links

BASE = "https://code.example/blob/main/"


def outside(tmp_path: Path, markdown: str, page: str = "how-to/a.md") -> tuple[str, list[str]]:
    (tmp_path / "kadcrawl").mkdir()
    (tmp_path / "kadcrawl/urls.py").touch()
    return outside_links(markdown, page, tmp_path, BASE)


def test_a_link_to_a_file_of_the_repository_is_absolute_in_the_site(tmp_path: Path) -> None:
    assert outside(tmp_path, "see [urls](../../kadcrawl/urls.py#L3).") == (
        f"see [urls]({BASE}kadcrawl/urls.py#L3).",
        [],
    )


def test_a_link_inside_the_documentation_stays(tmp_path: Path) -> None:
    text = "[words](../glossary.md#cell) and [home](../index.md)"
    assert outside(tmp_path, text) == (text, [])


@pytest.mark.parametrize("target", ["../../kadcrawl/gone.py", "../../../etc/passwd"])
def test_a_link_to_a_file_that_is_not_there_is_named(tmp_path: Path, target: str) -> None:
    assert outside(tmp_path, f"[gone]({target})")[1] == [target]


def test_code_is_left_as_it_is(tmp_path: Path) -> None:
    text = "```python\nx = f[0](../../gone)\n```\n"
    assert outside(tmp_path, text) == (text, [])
