"""Sizes as people write them: 500, 500B, 64kB, 10MB, 10MiB, 1GiB. A number without a unit is in bytes."""

import re

UNITS_BYTES = {"b": 1, "kb": 1000, "mb": 1000**2, "gb": 1000**3, "kib": 1024, "mib": 1024**2, "gib": 1024**3}

_SIZE = re.compile(r"(?P<number>\d{1,12}(?:\.\d{1,6})?)\s*(?P<unit>[kmg]?i?b)?", re.ASCII)


def bytes_of(text: str) -> int:
    """Return the bytes of a size. Raises ValueError with a sentence for a person."""
    found = _SIZE.fullmatch(text.strip().lower())
    unit = found["unit"] or "b" if found is not None else ""
    if found is None or unit not in UNITS_BYTES:
        raise ValueError(f"{text[:40]!r} is no size, such as 500kB, 10MB or 64MiB")
    return int(float(found["number"]) * UNITS_BYTES[unit])
