"""`cases` runs many small cases of a test in one item of pytest.

Each item of pytest costs some milliseconds in each process: it is collected by all of them, set up, and reported three
times. A case that takes less than that is better run beside its neighbors. All cases run, and each that fails is named.

Tests: tests/support/test_cases.py
"""

import inspect
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any

import pytest


def cases(names: str | tuple[str, ...], values: Iterable[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Run a test once for each of the values, as `pytest.mark.parametrize` does, but as one test.

    With several names, each value is a tuple. The test's fixtures are made once, so it must not change them. It is
    skipped if each case skips itself. Raises TypeError for a coroutine, which would never run.
    """
    given = (names,) if isinstance(names, str) else names
    listed = [(value,) for value in values] if isinstance(names, str) else [*values]

    def decorated(test: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(test)
        if missing := [name for name in given if name not in signature.parameters]:
            raise TypeError(f"{test.__name__} takes no {missing}")
        if inspect.iscoroutinefunction(test):
            raise TypeError(f"{test.__name__} is a coroutine: use pytest.mark.parametrize")
        if not listed:
            raise ValueError(f"{test.__name__} has no cases")

        @wraps(test)
        def all_cases(*args: Any, **fixtures: Any) -> None:
            failed: list[BaseException] = []
            skipped: list[BaseException] = []
            for value in listed:
                named = dict(zip(given, value, strict=True))
                try:
                    test(*args, **fixtures, **named)
                except pytest.skip.Exception as error:
                    skipped.append(error)
                except (Exception, pytest.fail.Exception) as error:  # The second is no Exception.
                    error.add_note("in the case " + ", ".join(f"{name}={one!r}" for name, one in named.items()))
                    failed.append(error)
            if len(failed) == 1:
                raise failed[0]
            if failed:
                raise BaseExceptionGroup(f"{len(failed)} of {len(listed)} cases failed", failed)
            if len(skipped) == len(listed):
                raise skipped[0]

        rest = [one for name, one in signature.parameters.items() if name not in given]
        all_cases.__signature__ = signature.replace(parameters=rest)  # type: ignore[attr-defined]
        return all_cases

    return decorated
