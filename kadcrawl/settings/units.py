"""Times and sizes as people write them: 90, 90 s, 15 min, 1 day, 64 KiB, 10 MB. Every setting with a unit is read here.

A number without a unit is in seconds or bytes. kB, MB, GB and TB are powers of 1000, as on disks, and KiB, MiB, GiB and
TiB powers of 1024. Upper and lower case mean the same. `durations` shows times.
"""

import re

SECONDS = {
    "ms": 0.001,
    **dict.fromkeys(("", "s", "sec", "second", "seconds"), 1),
    **dict.fromkeys(("m", "min", "minute", "minutes"), 60),
    **dict.fromkeys(("h", "hour", "hours"), 3600),
    **dict.fromkeys(("d", "day", "days"), 86_400),
    **dict.fromkeys(("w", "week", "weeks"), 7 * 86_400),
}
BYTES = {
    **dict.fromkeys(("", "b", "byte", "bytes"), 1),
    **{f"{letter}b": 1000**power for power, letter in enumerate("kmgt", 1)},
    **{f"{letter}ib": 1024**power for power, letter in enumerate("kmgt", 1)},
}

_QUANTITY = re.compile(
    r"(?P<number>\d{1,3}(?:[_,]\d{3}){1,4}|\d{1,15})(?P<part>\.\d{1,20})?\s*(?P<unit>[a-z]{0,7})", re.ASCII
)


def seconds_of(text: str) -> float:
    """Return the seconds of a length of time. Raises ValueError with a sentence for a person."""
    return _read(text, SECONDS, "length of time, such as 90s, 15m, 12h, 7 days or 2w")


def bytes_of(text: str) -> int:
    """Return the bytes of a size. Raises ValueError with a sentence for a person."""
    return round(_read(text, BYTES, "size, such as 500 kB, 64 KiB, 10 MB or 1.5 GiB"))


def rate_of(text: str) -> int:
    """Return the bytes per second of a rate. Raises ValueError with a sentence for a person."""
    what = "rate, such as 512, 64 KiB/s or 1 MB/s"
    return round(_read(re.sub(r"(?i)\s*/\s*s(?:ec)?\s*\Z", "", text), BYTES, what, text))


def _read(text: str, units: dict[str, float], what: str, whole: str | None = None) -> float:
    found = _QUANTITY.fullmatch(text.strip().lower())
    if found is None or found["unit"] not in units:
        raise ValueError(f"{(whole or text)[:40]!r} is no {what}")
    return float(re.sub("[_,]", "", found["number"]) + (found["part"] or "")) * units[found["unit"]]


def shown_size(size: int) -> str:
    """Return a size in the largest unit that divides it, in the form that `bytes_of` reads."""
    for letter, power in (("T", 4), ("G", 3), ("M", 2), ("K", 1)):
        for unit, base in ((f"{letter}iB", 1024), (f"{'k' if letter == 'K' else letter}B", 1000)):
            if size >= base**power and size % base**power == 0:
                return f"{size // base**power} {unit}"
    return f"{size} bytes"
