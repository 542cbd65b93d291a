"""The two Bloom filter engines by name. Only the chosen engine is imported.

Tests: tests/store/bloom/test_filter.py, tests/store/bloom/test_expiring_filter.py
"""

from collections.abc import Callable

from kadcrawl.errors import ConfigError
from kadcrawl.store.bloom.filter import Filter


def _pybloom() -> type[Filter]:
    from kadcrawl.store.bloom.pybloom import PybloomFilter

    return PybloomFilter


def _rbloom() -> type[Filter]:
    try:
        from kadcrawl.store.bloom.rbloom import RbloomFilter
    except ImportError:
        raise ConfigError(
            "filters by rbloom need the extra fast-history: run pip install 'kadcrawl[fast-history]', or choose pybloom"
        ) from None
    return RbloomFilter


ENGINES: dict[str, Callable[[], type[Filter]]] = {"pybloom": _pybloom, "rbloom": _rbloom}
"""The functions that import an engine, by its name: a job needs only one of them."""


def engine(name: str) -> type[Filter]:
    """Return the filter class of an engine. Raises ConfigError for an unknown name or a missing package."""
    if name not in ENGINES:
        raise ConfigError(f"there are no filters by {name!r}; choose one of {', '.join(ENGINES)}")
    return ENGINES[name]()
