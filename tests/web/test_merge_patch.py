"""Test merge patches: what a page makes of the patch is the new document."""

from typing import Any

import pytest
from hypothesis import given, strategies as st

from kadcrawl.web.merge_patch import merge_patch, patched, without_none

LEAVES = st.booleans() | st.integers(-3, 3) | st.floats(allow_nan=False) | st.text("ab", max_size=2)
VALUES = st.recursive(
    LEAVES | st.lists(LEAVES, max_size=3), lambda inner: st.dictionaries(st.sampled_from("abcd"), inner, max_size=4)
)
DOCUMENTS = st.dictionaries(st.sampled_from("abcd"), VALUES, max_size=4)


@given(DOCUMENTS, DOCUMENTS)
def test_the_patch_makes_the_new_document_of_the_old(old: dict[str, Any], new: dict[str, Any]) -> None:
    assert repr(sorted(new.items())) == repr(sorted(patched(old, merge_patch(old, new)).items())) or new == patched(
        old, merge_patch(old, new)
    )


@given(DOCUMENTS)
def test_no_change_is_an_empty_patch(document: dict[str, Any]) -> None:
    assert {} == merge_patch(document, dict(document))


@pytest.mark.parametrize(
    ("old", "patch", "new"),
    [  # Cases of RFC 7396, appendix A.
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ],
)
def test_a_patch_is_applied_as_the_standard_says(
    old: dict[str, Any], patch: dict[str, Any], new: dict[str, Any]
) -> None:
    assert new == patched(old, patch)


def test_a_document_has_no_member_that_is_none() -> None:
    assert {"a": {"c": [None]}} == without_none({"a": {"b": None, "c": [None]}, "d": None})
