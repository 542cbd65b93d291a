from pathlib import Path

import pytest

from scripts.house.documents import departing_documents, rules_of, sentences_of

ROOT = Path(__file__).parents[2]


def test_documents_keep_to_the_rules_of_sentences() -> None:
    assert [] == [str(finding) for finding in departing_documents(ROOT)]


@pytest.mark.parametrize(
    ("sentence", "broken"),
    [
        ("A peer owns the cells nearest to it.", []),
        ("word " * 30, []),
        ("word " * 31, ["long"]),
        ("A peer asks; its siblings answer.", []),
        ("A peer asks; its siblings answer; it goes on.", ["semicolon"]),
        ("A peer tells whoever asks.", ["pronoun"]),
        ("Of cells, of which each has an owner.", ["pronoun"]),
    ],
)
def test_a_sentence_breaks_the_rules_that_it_breaks(sentence: str, broken: list[str]) -> None:
    assert broken == rules_of(sentence)


def test_sentences_are_those_of_paragraphs_and_lists() -> None:
    text = (
        "# Title\n\nOne. Two, `a.b. c` and [three](x.md).\n\n- four\n\n| five |\n|---|\n| six |\n\n```\nseven.\n```\n"
    )
    assert [(3, "One."), (3, "Two, Name and three."), (5, "four")] == list(sentences_of(text))
