"""Test sizes as people write them."""

import pytest

from kadcrawl.settings.sizes import bytes_of


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("0", 0),
        ("500", 500),
        ("500 B", 500),
        ("64kB", 64_000),
        ("1.5 MB", 1_500_000),
        ("10MiB", 10 * 1024**2),
        (" 2gib ", 2 * 1024**3),
        ("3GB", 3 * 1000**3),
    ],
)
def test_a_size_is_read_with_its_unit(text: str, size: int) -> None:
    assert size == bytes_of(text)


@pytest.mark.parametrize("text", ["", "x", "-1", "10 ib", "10m", "1e3", "10 MB 5", "٣"])
def test_other_text_is_no_size(text: str) -> None:
    with pytest.raises(ValueError, match="is no size, such as"):
        bytes_of(text)
