"""Masters and slaves: a site that keeps its leaf costs its web fewer connections, and the crawl no time."""

import pytest

from sim.papers.experiment import Result
from sim.papers.leaves import FIRST_COME, HASHED, LeafWorld, cost, leaves

pytestmark = pytest.mark.worlds

SMALL = LeafWorld(name="small", peers=1, leaves=3, sites=12, pages=30, delay_s=1.0, answer_s=0.1)


def result() -> Result:
    return leaves(1, lambda share: None, worlds=[SMALL])


def test_with_a_leaf_for_each_site_fewer_connections_are_opened_and_the_crawl_is_as_fast() -> None:
    hashed, first_come = (cost(1, SMALL, dealt) for dealt in (HASHED, FIRST_COME))
    assert min(hashed.pages, first_come.pages) > SMALL.sites * SMALL.pages / 2
    assert hashed.pairs < 0.7 * first_come.pairs
    assert hashed.connections_per_page < 0.5 * first_come.connections_per_page
    assert hashed.robots <= first_come.robots <= first_come.all_robots
    assert hashed.seconds < 1.1 * first_come.seconds


def test_the_same_seed_gives_the_same_result() -> None:
    assert result() == result()
