"""Lengths of time as they are shown to a person, exactly or roughly. `units` reads them."""

from decimal import Decimal

UNITS_S = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
"""The seconds of each unit in which a time is shown."""


def shown(seconds: float) -> str:
    """Return a length of time in the largest whole unit, in the form that `units.seconds_of` reads."""
    for unit, unit_s in reversed(UNITS_S.items()):
        if seconds >= unit_s and seconds % unit_s == 0:
            return f"{seconds / unit_s:.0f}{unit}"
    text = f"{Decimal(repr(seconds)):f}"  # `g` would round it, or show an exponent.
    return f"{text.removesuffix('.0')}s"


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
