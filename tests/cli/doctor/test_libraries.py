"""A library that is missing or too old is a problem with the command that installs it. Extras are named."""

from dataclasses import replace

import pytest

from kadcrawl.cli.doctor.check_result import CheckOutcome
from kadcrawl.cli.doctor.libraries import (
    EXTRAS,
    Helpers,
    extra_findings,
    helper_findings,
    library_findings,
    python_finding,
)
from kadcrawl.cli.doctor.machine_probes import installed, requirements

REQUIRED = [
    "aiohttp>=3.14,<3.15",
    "lxml>=5.2",
    'uvloop>=0.21; sys_platform != "win32"',
    'old-backport>=1; python_version < "3"',
    'rbloom>=1.5; extra == "fast-history"',
    'pyarrow>=18; extra == "parquet"',
    'fsspec>=2024.6; extra == "s3"',
    's3fs>=2024.6; extra == "s3"',
    'pytest; extra == "test"',
]
GOOD = {"aiohttp": "3.14.1", "lxml": "6.0", "uvloop": "0.22.1"}


def test_all_that_is_required_is_there() -> None:
    (finding,) = library_findings(REQUIRED, GOOD.get)
    assert (CheckOutcome.OK, "all 3 that kadcrawl requires") == (finding.outcome, finding.said)


@pytest.mark.parametrize(
    ("versions", "said", "advice"),
    [
        ({"lxml": None}, "lxml is not installed, and kadcrawl needs lxml>=5.2", "pip install 'lxml>=5.2'"),
        ({"lxml": "5.1"}, "lxml 5.1, and kadcrawl needs lxml>=5.2", "pip install 'lxml>=5.2'"),
        (
            {"aiohttp": "3.15.0"},
            "aiohttp 3.15.0, and kadcrawl needs aiohttp<3.15,>=3.14",
            "pip install 'aiohttp<3.15,>=3.14'",
        ),
    ],
)
def test_a_library_that_is_missing_or_of_another_version_is_a_problem(
    versions: dict[str, str | None], said: str, advice: str
) -> None:
    (finding,) = library_findings(REQUIRED, (GOOD | versions).get)
    assert (CheckOutcome.PROBLEM, said, advice) == (finding.outcome, finding.said, finding.advice)


def test_extras_are_named_with_what_they_bring() -> None:
    there, missing = extra_findings(REQUIRED, (GOOD | {"rbloom": "1.6", "fsspec": "2025.1"}).get)
    assert (CheckOutcome.OK, CheckOutcome.OK) == (there.outcome, missing.outcome)
    assert "fast-history" in there.said
    assert "parquet (the sink parquet:)" in missing.said
    assert "s3 (sinks at s3:// URLs)" in missing.said
    assert "test" not in missing.said.replace("own tests", "")


def test_an_extra_that_is_out_of_date_is_a_note() -> None:
    outdated = extra_findings(REQUIRED, (GOOD | {"rbloom": "1.0"}).get)[0]
    assert (CheckOutcome.NOTE, "fast-history is out of date: rbloom 1.0 (needs >=1.5)") == (
        outdated.outcome,
        outdated.said,
    )
    assert "pip install 'kadcrawl[fast-history]'" == outdated.advice


def test_the_extras_are_those_of_the_package() -> None:
    found = requirements()
    assert found is not None
    of_users = {extra for extra in EXTRAS if any(f'extra == "{extra}"' in one for one in found[0])}
    assert set(EXTRAS) == of_users


@pytest.mark.parametrize(
    ("version", "required", "outcome"),
    [
        ("3.10.9", ">=3.11", CheckOutcome.PROBLEM),
        ("3.11.0", ">=3.11", CheckOutcome.OK),
        ("3.15.0rc1", ">=3.11", CheckOutcome.OK),
        ("3.8.0", None, CheckOutcome.OK),
    ],
)
def test_the_python_must_be_one_for_kadcrawl(version: str, required: str | None, outcome: CheckOutcome) -> None:
    assert outcome is python_finding(version, required).outcome


HELPERS = Helpers(uvloop=True, http_parser=True, packet_filter=True, native_links=True, is_pure=False)
NO_HELPERS = Helpers(uvloop=False, http_parser=False, packet_filter=False, native_links=False, is_pure=False)


@pytest.mark.parametrize(
    ("helpers", "notes"),
    [
        (HELPERS, []),
        (replace(HELPERS, uvloop=False), ["uvloop"]),
        (replace(HELPERS, http_parser=False), ["compiled parser"]),
        (replace(HELPERS, native_links=False), ["native link extractor"]),
        (NO_HELPERS, ["uvloop", "compiled parser", "datagrams", "native link extractor"]),
    ],
)
def test_a_compiled_part_that_is_not_in_use_is_a_note_with_advice(helpers: Helpers, notes: list[str]) -> None:
    *noted, in_use = helper_findings(helpers)
    assert CheckOutcome.OK is in_use.outcome
    assert len(notes) == len(noted)
    for finding, word in zip(noted, notes, strict=True):
        assert finding.outcome is CheckOutcome.NOTE
        assert word in finding.said
        assert finding.advice
        assert word not in in_use.said


def test_the_compiled_parts_in_use_are_named() -> None:
    (finding,) = helper_findings(HELPERS)
    for name in ("uvloop", "HTTP parser", "native link extractor", "packet filter"):
        assert name in finding.said
    assert "in use: none" in helper_findings(NO_HELPERS)[-1].said


def test_a_native_link_extractor_that_a_person_switched_off_is_no_note() -> None:
    (finding,) = helper_findings(replace(HELPERS, native_links=False, is_pure=True))
    assert CheckOutcome.OK is finding.outcome
    assert "KADCRAWL_PURE" in finding.said


def test_the_installed_version_is_that_of_the_metadata() -> None:
    version = installed("pytest")
    assert version is not None
    assert version == pytest.__version__
    assert installed("no-such-package-anywhere") is None
