"""Test that all cases run in one test, that each failed case is named, and that fixtures are given as ever."""

from pathlib import Path

import pytest

from tests.support.cases import cases

SEEN: list[tuple[int, str]] = []


@cases("number", range(3))
@cases(("letter", "is_first"), [("a", True), ("b", False)])
def test_all_cases_run_and_fixtures_are_given(number: int, letter: str, is_first: bool, tmp_path: Path) -> None:
    assert tmp_path.is_dir()
    assert is_first == (letter == "a")
    SEEN.append((number, letter))
    assert SEEN == [(first, second) for first in range(3) for second in "ab"][: len(SEEN)]
    assert 1 <= len(SEEN) <= 6


def test_one_failed_case_is_named() -> None:
    @cases("number", range(5))
    def is_not_three(number: int) -> None:
        assert number != 3

    with pytest.raises(AssertionError) as failed:
        is_not_three()
    assert ["in the case number=3"] == failed.value.__notes__


def test_the_cases_after_a_failed_case_run_and_all_failures_are_named() -> None:
    @cases(("number", "name"), [(1, "one"), (2, "two"), (3, "three")])
    def is_two(number: int, name: str) -> None:
        assert number == 2

    with pytest.raises(ExceptionGroup, match="2 of 3 cases failed") as failed:
        is_two()
    notes = [error.__notes__ for error in failed.value.exceptions]
    assert [["in the case number=1, name='one'"], ["in the case number=3, name='three'"]] == notes


def test_a_case_that_does_not_raise_as_it_should_is_named() -> None:
    @cases("number", [0, 1])
    def cannot_divide(number: int) -> None:
        with pytest.raises(ZeroDivisionError):
            _ = 1 / number

    with pytest.raises(pytest.fail.Exception) as failed:
        cannot_divide()
    assert ["in the case number=1"] == failed.value.__notes__


def test_a_case_that_is_skipped_hides_no_failure_and_no_other_case() -> None:
    ran = []

    @cases("number", range(4))
    def is_not_one(number: int) -> None:
        if number == 2:
            pytest.skip("not here")
        ran.append(number)
        assert number != 1

    with pytest.raises(AssertionError) as failed:
        is_not_one()
    assert ["in the case number=1"] == failed.value.__notes__
    assert ran == [0, 1, 3]


def test_a_test_is_skipped_if_each_of_its_cases_is() -> None:
    @cases("number", range(2))
    def is_skipped(number: int) -> None:
        pytest.skip(f"not here either, {number}")

    with pytest.raises(pytest.skip.Exception, match="not here either, 0"):
        is_skipped()


def test_a_coroutine_is_refused_as_it_would_never_run() -> None:
    async def waits(number: int) -> None:
        raise AssertionError(number)

    with pytest.raises(TypeError, match="waits is a coroutine"):
        cases("number", [1])(waits)  # type: ignore[arg-type]


def test_a_test_without_cases_or_without_their_name_is_refused() -> None:
    def takes_number(number: int) -> None:
        raise AssertionError(number)

    with pytest.raises(ValueError, match="takes_number has no cases"):
        cases("number", [])(takes_number)
    with pytest.raises(TypeError, match=r"takes_number takes no \['letter'\]"):
        cases("letter", "ab")(takes_number)
