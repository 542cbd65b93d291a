import json
from pathlib import Path

from scripts.compare_links.classes import CLASSES
from scripts.docs.links import PAGE, generate

ROOT = Path(__file__).parents[2]


def test_the_page_explains_every_class_with_a_measured_example() -> None:
    text = generate(ROOT)[PAGE]
    for each in CLASSES.values():
        section = text.partition(f"\n### {each.title} {{")[2].partition("\n###")[0]
        assert "- **Example** (" in section
        assert f"- **Option**: {each.option}" in section
        assert each.right in section


def test_the_measured_figures_have_four_sites_and_nothing_unexplained() -> None:
    figures = json.loads((ROOT / "docs/figures/links.json").read_text())["figures"]
    assert 5 == len(figures["sites"])
    assert CLASSES.keys() == figures["examples"].keys()
    for site in figures["sites"]:
        assert CLASSES.keys() >= {name for classes in site["differences"].values() for name in classes}


def test_a_page_without_figures_says_how_to_measure_them(tmp_path: Path) -> None:
    assert "python -m scripts.figures links" in generate(tmp_path)[PAGE]
