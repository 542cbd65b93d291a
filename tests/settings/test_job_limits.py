"""Test which limits belong to a job, and that a job from elsewhere cannot set them without bounds."""

from dataclasses import fields

import msgspec
import pytest

from kadcrawl.errors import ConfigError
from kadcrawl.settings.job import Job
from kadcrawl.settings.job_limits import OF_JOB, OF_MACHINE, OF_PROGRAM, limits_with
from kadcrawl.settings.limits import Limits


def test_each_limit_is_set_for_the_job_the_machine_or_a_program() -> None:
    names = [*OF_JOB, *OF_MACHINE, *OF_PROGRAM]
    assert sorted(names) == sorted(entry.name for entry in fields(Limits)), "decide in settings/job_limits.py"


def test_the_defaults_are_possible_in_a_job() -> None:
    limits = tuple((name, getattr(Limits(), name)) for name in OF_JOB)
    assert limits_with(Limits(), Job(shared_limits=limits).shared_limits) == Limits()


@pytest.mark.parametrize("name", OF_JOB)
def test_a_limit_of_a_job_has_a_largest_value(name: str) -> None:
    assert Job(shared_limits=((name, OF_JOB[name]),)).shared_limits
    for value in (OF_JOB[name] + 1, -1, float("inf"), float("nan")):
        with pytest.raises(ConfigError, match=f"^{name} must be"):
            Job(shared_limits=((name, value),))
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(f'{{"shared_limits": [["{name}", {OF_JOB[name] + 1}]]}}', type=Job)


@pytest.mark.parametrize("name", [*OF_MACHINE, *OF_PROGRAM, "no_limit", ""])
def test_a_job_sets_no_limit_of_a_machine(name: str) -> None:
    with pytest.raises(ConfigError, match="is no limit of a job"):
        Job(shared_limits=((name, 5),))


def test_a_limit_stands_once_in_a_job() -> None:
    with pytest.raises(ConfigError, match="stands twice"):
        Job(shared_limits=(("redirects_max", 5), ("redirects_max", 6)))


def test_the_limits_of_a_job_win_over_those_of_the_peer_and_keep_their_types() -> None:
    said = Job(shared_limits=(("redirects_max", 5), ("robots_ttl_s", 7)))
    job = msgspec.json.decode(msgspec.json.encode(said), type=Job)
    limits = limits_with(Limits(redirects_max=3, fetches_max=9), job.shared_limits)
    assert Limits(redirects_max=5, robots_ttl_s=7, fetches_max=9) == limits
    assert isinstance(limits.redirects_max, int)
    with pytest.raises(ConfigError, match="redirects_max must be a whole number"):
        Job(shared_limits=(("redirects_max", 5.5),))
