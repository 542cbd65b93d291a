"""Numbers with their nouns, for sentences.

Tests: tests/system/test_plural.py
"""


def plural(count: int, name: str, names: str = "") -> str:
    """Return a number with its noun."""
    return f"{count:,} {noun(count, name, names)}"


def counted(count: int, name: str, names: str = "") -> str:
    """Return a number without separators, as programs may read it, with its noun."""
    return f"{count} {noun(count, name, names)}"


def noun(count: int, name: str, names: str = "") -> str:
    """Return the noun that goes with a number."""
    return name if count == 1 else names or f"{name}s"
