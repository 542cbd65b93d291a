"""The name that a misspelled name may have meant.

Tests: tests/settings/test_job_file.py
"""

from collections.abc import Iterable


def near_names(name: str, names: Iterable[str]) -> list[str]:
    """Return the one of `names` that is spelled most like `name`, in a list that is empty if none is near."""
    from difflib import get_close_matches  # Not at the top, as a peer lives long, and most files have no such fault.

    return get_close_matches(name, list(names), 1)
