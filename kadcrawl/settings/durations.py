"""Lengths of time as people write them: 90, 90s, 15m, 12h, 7d, 2w. A number without a unit is in seconds."""

import re

UNITS_S = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 7 * 86_400}

_DURATION = re.compile(r"(?P<number>\d{1,12}(?:\.\d{1,6})?)\s*(?P<unit>[smhdw]?)", re.ASCII)


def seconds_of(text: str) -> float:
    """Return the seconds of a length of time. Raises ValueError with a sentence for a person."""
    found = _DURATION.fullmatch(text.strip().lower())
    if found is None:
        raise ValueError(f"{text[:40]!r} is no length of time, such as 90s, 15m, 12h, 7d or 2w")
    return float(found["number"]) * UNITS_S[found["unit"] or "s"]


def shown(seconds: float) -> str:
    """Return a length of time in the largest whole unit, in the form that `seconds_of` reads."""
    for unit, unit_s in reversed(UNITS_S.items()):
        if seconds >= unit_s and seconds % unit_s == 0 and unit != "w":
            return f"{seconds / unit_s:.0f}{unit}"
    return f"{seconds:g}s"


def roughly(seconds: float) -> str:
    """Return an approximate length of time in at most two units: 3 d 4 h, 12 min, or 5 s."""
    minutes = max(1, round(seconds / 60))
    if seconds < 59.5:
        return f"{seconds:.0f} s"
    if minutes < 60:
        return f"{minutes} min"
    if minutes < 48 * 60:
        return f"{minutes // 60} h {minutes % 60} min" if minutes % 60 else f"{minutes // 60} h"
    hours = round(seconds / 3600)
    return f"{hours // 24} d {hours % 24} h" if hours % 24 else f"{hours // 24} d"
