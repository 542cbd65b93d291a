"""What pages lead to: the links of the whole synthetic web, and what is left of it without a site."""

import pytest

from sim.draw import draw
from sim.judge import Expected
from sim.reachable import LinkedPages
from sim.scene import Scene
from sim.synthetic_web import SyntheticResponse
from sim.trial import USUAL, scene_of

HOME, A, B, ONLY_B = "http://a.test/", "http://a.test/1", "http://b.test/", "http://a.test/2"
PAGES = {
    HOME: f'<a href="/1">x</a><a href="{B}">x</a><a href="/other">x</a>',
    A: '<a href="/#top">x</a>',
    B: f'<a href="{ONLY_B}?utm_source=b">x</a>',
    ONLY_B: "",
}


class FourPages:
    """A web in which a page of one site hangs from the other site."""

    def address(self, host: str) -> str | None:
        return None

    def answer(self, host: str, target: str, asked: int) -> SyntheticResponse:
        body = PAGES.get(f"http://{host}{target}")
        return SyntheticResponse(404) if body is None else SyntheticResponse(200, body=body.encode())


def pages_of(scene: Scene) -> tuple[LinkedPages, frozenset[str], frozenset[str]]:
    """Return the pages of a scene, all its URLs, and its seeds."""
    whole: dict[str, Expected] = {**scene.web.truth(scene.job.retries), **scene.optional}
    known = frozenset([*whole, *scene.refused])
    return LinkedPages(scene.web, known), known, frozenset([*scene.job.seeds, *scene.streamed]) & known


@pytest.mark.parametrize("seed", range(20))
def test_the_links_lead_to_each_page_of_the_web(seed: int) -> None:
    pages, known, seeds = pages_of(scene_of(draw(seed, 16), USUAL))
    assert known == pages.reached(seeds, through=known) | seeds


def test_without_a_site_its_pages_and_what_only_they_lead_to_are_not_reached() -> None:
    pages = LinkedPages(FourPages(), PAGES)
    assert (A, B) == pages.links(HOME)
    assert {*PAGES} == pages.reached([HOME], through=PAGES)
    assert {HOME, A} == pages.reached([HOME], through=PAGES, is_left_out=lambda page, url: url == B)


def test_a_page_that_was_fetched_before_has_led_on() -> None:
    pages = LinkedPages(FourPages(), PAGES)
    assert {HOME, A, ONLY_B} == pages.reached([HOME, B], through=PAGES, is_left_out=lambda page, url: url == B)


def test_a_link_may_count_on_one_page_and_not_on_another() -> None:
    pages = LinkedPages(FourPages(), PAGES)
    assert {HOME, A} == pages.reached([A], through=PAGES, is_left_out=lambda page, url: (page, url) == (HOME, B))


def test_no_link_of_a_page_that_may_not_be_fetched_is_followed() -> None:
    pages = LinkedPages(FourPages(), PAGES)
    assert {HOME, A, B} == pages.reached([HOME], through=[HOME, A])
    assert (200, 404) == (pages.status(B), pages.status("http://b.test/gone"))
