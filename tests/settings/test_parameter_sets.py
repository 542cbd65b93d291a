"""Test the names of parameters that a job strips: sets, single names, and names with a star."""

import pytest

from kadcrawl.errors import ConfigError
from kadcrawl.settings.job import Job
from kadcrawl.settings.parameter_sets import NAME_CHARS_MAX, NAMES_MAX, PARAMETER_SETS, check_parameters, parameters_of


def test_a_set_means_its_parameters_and_any_other_name_itself() -> None:
    assert ["utm_*", "ref", "*"] == list(parameters_of(["utm", "ref", "*"]))
    assert {"gclid", "fbclid", "msclkid"} < set(parameters_of(["click-ids"]))


def test_the_names_of_all_sets_are_good_names() -> None:
    for name, parameters in PARAMETER_SETS.items():
        check_parameters([name, *parameters])
        assert len(parameters) == len(set(parameters))


@pytest.mark.parametrize("name", ["", "a b", "a&b", "a=1", "?a", "a#", "é", "a*b*c", "**", "a\n", "x" * 101])
def test_other_names_are_refused_with_the_names_of_the_sets(name: str) -> None:
    with pytest.raises(ConfigError, match=r"strip_parameters must be names .* \(utm, click-ids|may have one \* in"):
        Job(strip_parameters=(name,))


def test_names_are_allowed_up_to_their_limits() -> None:
    check_parameters(["x" * NAME_CHARS_MAX])
    check_parameters(["x"] * NAMES_MAX)
    with pytest.raises(ConfigError, match="at most 1000 names, not 1001"):
        check_parameters(["x"] * (NAMES_MAX + 1))
