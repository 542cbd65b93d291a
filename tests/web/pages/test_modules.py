"""The modules of the page that draw nothing, run in the browser: owners, patches, forms of numbers."""

import json
from random import Random
from typing import Any

import pytest
import pytest_asyncio

from kadcrawl.keys import Cell, anchor
from kadcrawl.overlay.ownership import owner_bucket
from tests.web.pages.browser import Browser, Page
from tests.web.pages.fake_dashboard import serving
from tests.web.pages.made_up import document

pytestmark = [
    pytest.mark.browser,
    pytest.mark.xdist_group("browser"),
    pytest.mark.asyncio(loop_scope="session"),
]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def page(browser: Browser) -> Any:
    """A page with the modules at hand: its URL is that of a style sheet, so nothing of the page itself runs."""
    async with serving(document(1)) as dashboard, browser.page() as blank:
        await blank.do("goto", dashboard.url + "/assets/style.css")
        yield blank
        await blank.do("problems")  # The browser has looked for a favicon.


def owner_in_kadcrawl(ids: list[int], target: int) -> int:
    """Return the peer that finds itself nearest by its table, as `overlay.ownership` does."""
    owners = []
    for me in ids:
        mask = 0
        for other in ids:
            if other != me:
                mask |= 1 << ((me ^ other).bit_length() - 1)
        if owner_bucket(me, target, mask) == -1:
            owners.append(me)
    [owner] = owners
    return owner


@pytest.mark.parametrize(("peers", "close"), [(1, False), (2, False), (2, True), (7, True), (60, False)])
async def test_owners_are_those_of_kadcrawl(page: Page, peers: int, close: bool) -> None:
    random = Random(peers)
    ids = [random.getrandbits(160) for _ in range(peers)]
    if close:  # Two peers agree in so many bits that the cells do not tell them apart.
        ids[1] = ids[0] ^ (1 << 70)
    bits = 10
    cells = range(2**bits) if peers < 10 else random.sample(range(2**bits), 100)
    expected = {cell: f"{owner_in_kadcrawl(ids, anchor(Cell(cell), bits)):040x}" for cell in cells}
    told = await page.js(
        """async ({ ids, bits, cells }) => {
          const { arcsOf, ownerOf, pointsOf, sharesOf } = await import("/assets/keys.js");
          const points = pointsOf(ids);
          const arcs = arcsOf(points, bits);
          const inArc = (cell) => arcs.find(({ from, to }) => from <= cell / 2 ** bits && cell / 2 ** bits < to).id;
          return JSON.stringify({
            owners: cells.map((cell) => ownerOf(cell, bits, points)),
            inArcs: cells.map(inArc),
            shares: [...sharesOf(points, bits)].map(([id, share]) => [id, share * 2 ** bits]),
            ends: [0, ...arcs.map(({ to }) => to)],
            starts: [...arcs.map(({ from }) => from), 1],
          });
        }""",
        {"ids": [f"{one:040x}" for one in ids], "bits": bits, "cells": list(cells)},
    )
    answer = json.loads(told)
    assert list(expected.values()) == answer["owners"] == answer["inArcs"]
    assert answer["ends"] == answer["starts"], "the arcs leave no gap"
    if peers < 10:
        owned = list(expected.values())
        assert {f"{one:040x}": owned.count(f"{one:040x}") for one in ids} == dict(answer["shares"])


async def test_a_patch_is_applied_as_the_standard_says(page: Page) -> None:
    cases: list[tuple[Any, Any, Any]] = [  # The examples of RFC 7396 that can happen to a document.
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": "foo"}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
        ({"__proto__": {"pending": 1}}, {"__proto__": {"pending": 2}}, {"__proto__": {"pending": 2}}),
    ]
    merged = await page.js(
        """async (texts) => {
          const { mergePatch } = await import("/assets/patch.js");
          return texts.map(([before, patch]) => JSON.stringify(mergePatch(JSON.parse(before), JSON.parse(patch))));
        }""",
        [[json.dumps(before), json.dumps(patch)] for before, patch, _ in cases],
    )
    assert [after for _, _, after in cases] == [json.loads(text) for text in merged]


async def test_the_series_grows_by_a_point_and_keeps_its_length(page: Page) -> None:
    told = await page.js(
        """async () => {
          const { POINTS_MAX, withPoint } = await import("/assets/patch.js");
          let series = { t: [], found: [], done: [], rates: {} };
          for (let at = 1; at <= POINTS_MAX + 5; at += 1) {
            series = withPoint(series, { t: at, found: 2 * at, done: at, rates: at < 4 ? { a: 1, b: 2 } : { b: 2 } });
          }
          const again = withPoint(series, { t: 5, found: 0, done: 0, rates: {} });
          const { t, rates } = series;
          return [POINTS_MAX, t.length, t[0], rates.b.length, "a" in rates, again === series];
        }""",
    )
    assert [600, 600, 6, 600, False, True] == told


async def test_numbers_have_one_form(page: Page) -> None:
    told = await page.js(
        """async () => {
          const { bytes, count, duration, label, percent, rate } = await import("/assets/format.js");
          return [
            count(1234567), count(null), rate(0.043), rate(4.12), rate(412.3),
            bytes(999), bytes(48123456), bytes(123456789),
            duration(0.52), duration(59.7), duration(200), duration(7500), duration(360000),
            label(2500000), label(0.5), percent(0.0625),
          ];
        }""",
    )
    assert ["1,234,567", "–", "0.04", "4.1", "412", "999 B", "48.1 MB", "123 MB"] == told[:8]
    assert ["0.5 s", "1 min", "3 min 20 s", "2 h 5 min", "4 d 4 h", "2.5 M", "0.5", "6.25 %"] == told[8:]


async def test_few_peers_have_bands_and_the_end_is_on_the_axis_when_near(page: Page) -> None:
    told = await page.js(
        """async () => {
          const { axisOf, fastest, stack } = await import("/assets/series.js");
          const rates = { a: [1, 1], b: [5, null], c: [3, 3], others: [10, 10] };
          const ids = fastest(rates, 2);
          const { values, sums } = stack({ t: [1, 2], rates }, ids);
          return [ids, values, sums, ...[40, 4000, null].map((end) => axisOf([0, 100], 100, end))];
        }""",
    )
    assert [["b", "c"], [[5, 0], [3, 3], [11, 11]], [[5, 0], [8, 3], [19, 14]], [0, 140], [0, 100], [0, 100]] == told
