import dataclasses
from pathlib import Path

import pytest

from kadcrawl.settings.limits import Limits
from scripts.docs.docstrings import field_docstrings
from scripts.docs.limits import GROUPS, ROOMS, constants, readable
from tests.support.cases import cases

ROOT = Path(__file__).parents[2]
FIELDS = [field.name for field in dataclasses.fields(Limits)]


@cases("field", FIELDS)
def test_every_field_of_limits_has_a_text(field: str) -> None:
    assert field_docstrings(ROOT, Limits)[field]


def test_the_groups_begin_with_fields_and_the_first_with_the_first() -> None:
    assert set() == GROUPS.keys() - set(FIELDS)
    assert FIELDS[0] == next(iter(GROUPS))


def test_every_constant_that_is_a_limit_has_a_text_and_a_room() -> None:
    found = list(constants(ROOT))
    assert len(found) > 200
    assert [] == [f"{limit.path}: {limit.name}" for limit in found if not limit.text or limit.room not in ROOMS]


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("body_bytes_max", 32 * 1024**2, "32 MiB"),
        ("warc_bytes_max", 1_000_000_000, "1 GB"),
        ("DATAGRAM_BYTES_MAX", 1120, "1,120 bytes"),
        ("rate_min_bytes_s", 512, "512 bytes/s"),
        ("robots_ttl_s", 86_400.0, "1 day"),
        ("BAN_MAX_S", 90.0, "90 s"),
        ("URL_S_MIN", 1e-6, "0.000001 s"),
        ("URLS_CHARS_MAX", 1000, "1,000 characters"),
        ("COUNT_MAX", 2**53, "2^53"),
        ("fetches_max", 64, "64"),
    ],
)
def test_a_value_is_shown_in_the_unit_of_its_name(name: str, value: float, expected: str) -> None:
    assert expected == readable(name, value)
