"""Limits as people set them: the table [limits] of a job file, and the options --limit NAME=VALUE.

Sizes, rates and times have units. `none` takes back what the job file, or an earlier run, has set.
"""

from collections.abc import Iterable, Mapping

from kadcrawl.errors import ConfigError
from kadcrawl.settings.durations import shown
from kadcrawl.settings.job_limits import OF_JOB, OF_MACHINE, LimitPairs, check_limit, typed
from kadcrawl.settings.near_names import near_names
from kadcrawl.settings.units import bytes_of, rate_of, seconds_of, shown_size
from kadcrawl.settings.unset import is_none

LIMITS = "limits"
"""The name of the table."""
SETTABLE = (*OF_JOB, *OF_MACHINE)
"""The limits that a person can set, by name."""

SaidLimits = Mapping[str, float | None]
"""Limits as a person set them, by name. None takes a limit back."""


def limits(value: object) -> dict[str, float | None]:
    """Return the limits of the table [limits]. Raises ConfigError, naming the limit."""
    if not isinstance(value, dict):
        raise ConfigError("limits must be a table, begun by [limits], such as body_bytes_max = '10 MB' below it")
    return dict(limit(name, said) for name, said in value.items())


def limit(name: str, said: object) -> tuple[str, float | None]:
    """Return the name and the value of one limit as a person says it. Raises ConfigError, with what would do."""
    known = name.strip().lower().replace("-", "_")
    if known not in SETTABLE:
        near = near_names(known, SETTABLE)
        meant = f"did you mean {near[0]}?" if near else f"there are {', '.join(SETTABLE)}"
        raise ConfigError(f"there is no limit {name!r:.60} to set; {meant}")
    if is_none(said):
        return known, None
    try:
        value = _number(known, said)
    except ValueError as error:
        raise ConfigError(f"{known}: {error}") from None
    check_limit(known, value)
    return known, typed(known, value)


def of_job(said: SaidLimits) -> dict[str, float | None]:
    """Return the limits among these that belong to the job."""
    return {name: value for name, value in said.items() if name in OF_JOB}


def of_machine(said: SaidLimits) -> dict[str, float]:
    """Return the limits among these that belong to the machine."""
    return {name: value for name, value in said.items() if name not in OF_JOB and value is not None}


def joined(before: LimitPairs, *said: SaidLimits) -> LimitPairs:
    """Return the limits of a job after a person, and before the person a file, said these."""
    values: dict[str, float | None] = dict(before)
    for each in said:
        values |= of_job(each)
    return tuple(sorted((name, value) for name, value in values.items() if value is not None))


def limit_shown(name: str, value: float) -> str:
    """Return the value of a limit in the form that `limit` reads."""
    if name.endswith("bytes_s"):
        return f"{shown_size(int(value))}/s"
    if "bytes" in name:
        return shown_size(int(value))
    return shown(value) if name.endswith("_s") else f"{int(value)}"


def names(said: Iterable[str]) -> str:
    """Return names of limits in a sentence."""
    return ", ".join(sorted(said))


def _number(name: str, said: object) -> float:
    if isinstance(said, bool) or not isinstance(said, int | float | str):
        raise ValueError("a limit is a number, or a text such as '10 MB' or '30 s'")
    if not isinstance(said, str):
        return said
    if name.endswith("bytes_s"):
        return rate_of(said)
    if "bytes" in name:
        return bytes_of(said)
    if name.endswith("_s"):
        return seconds_of(said)
    try:
        return int(said.replace(",", "_"))
    except ValueError:
        raise ValueError(f"{said[:40]!r} is no whole number") from None
