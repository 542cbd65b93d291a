"""Numbers go with their nouns."""

import pytest

from kadcrawl.system.plural import plural


@pytest.mark.parametrize(("count", "said"), [(0, "0 pages"), (1, "1 page"), (2, "2 pages"), (1234, "1,234 pages")])
def test_one_is_singular(count: int, said: str) -> None:
    assert said == plural(count, "page")


def test_a_verb_goes_with_its_number() -> None:
    assert ["1 line names", "2 lines name"] == [plural(count, "line names", "lines name") for count in (1, 2)]
