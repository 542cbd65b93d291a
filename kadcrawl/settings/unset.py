"""The word `none`, by which a person unsets an optional setting in a job file or an option.

It is of use where a setting has a value from elsewhere: from the job file, for an option on the command line, or from
the earlier run of a directory, for both.

Tests: tests/settings/test_job_file.py, tests/cli/test_job_options.py
"""

from collections.abc import Mapping
from dataclasses import fields
from types import NoneType
from typing import Any, get_args

from kadcrawl.settings.job import URL_PARTS_MAX, Job
from kadcrawl.settings.limits import require

NONE = "none"

_TYPES: dict[str, Any] = {entry.name: entry.type for entry in fields(Job)}

UNSET: dict[str, object] = {
    **{field: None for field, kind in _TYPES.items() if NoneType in get_args(kind)},
    **dict.fromkeys(("include", "exclude", "headers", "strip_parameters"), ()),
    **dict.fromkeys(("contact", "proxy_judge", "user_agent", "robots_token", "ca_pem"), ""),
    **dict.fromkeys(("path_segments_max", "path_repeats_max", "query_parameters_max"), URL_PARTS_MAX),
}
"""The values of the fields of `Job` that can be unset, by field."""


def is_none(value: object) -> bool:
    """Return whether a person wrote `none`. Raises ConfigError for a list that has it beside other values."""
    if not isinstance(value, list | tuple):
        return isinstance(value, str) and value.strip().lower() == NONE
    found = sum(map(is_none, value))
    require(not found or len(value) == 1, "none means no value, and cannot go with others; as a pattern write (none)")
    return found == 1


def fields_in_use(values: Mapping[str, object]) -> set[str]:
    """Return the fields among these values that are neither unset nor switched off."""
    return {field for field, value in values.items() if value is not False and (field, value) not in UNSET.items()}
