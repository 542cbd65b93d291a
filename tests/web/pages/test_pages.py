"""The page shows all ten parts, safely, to everybody: in a real Chromium, with a made-up document."""

from typing import Any

import pytest

from tests.web.pages.browser import MODULES, Browser, Page
from tests.web.pages.fake_dashboard import FakeDashboard, serving
from tests.web.pages.made_up import NOW, document

pytestmark = [
    pytest.mark.browser,
    pytest.mark.xdist_group("browser"),
    pytest.mark.asyncio(loop_scope="session"),
]

PARTS = [
    "Pages a second, by peer",
    "Found and done",
    "Key space",
    "Peers",
    "Sites",
    "Failures",
    "Ages of the queue",
    "Events",
    "Sinks",
    "The way of a URL",
]


async def visit(page: Page, dashboard: FakeDashboard) -> None:
    """Open the dashboard with its token, and wait until it has data."""
    await page.do("goto", dashboard.url + "/#token=once")
    await page.shows("pending", ".sentence")


async def texts(page: Page, selector: str) -> list[str]:
    """Return the texts of all elements that a selector finds."""
    found: list[str] = await page.js(
        "(selector) => [...document.querySelectorAll(selector)].map((one) => one.innerText)", selector
    )
    return found


async def test_a_look_tells_the_state_and_why_it_is_not_done(browser: Browser) -> None:
    made = document(8)
    async with serving(made) as dashboard, browser.page() as page:
        await visit(page, dashboard)
        crawl = made["crawl"]
        await page.shows(
            f"Crawling: {crawl['pages']:,} pages at {crawl['pages_per_s']:.1f} a second, "
            f"{crawl['pending']:,} pending, 340 failed.",
            ".figures",
        )
        await page.shows(crawl["verdict"]["sentence"], ".verdict")
        dashboard.change(
            {"crawl": {"state": "done", "verdict": {"done": True, "sentence": "Done: nothing is left to fetch."}}}
        )
        await page.shows("Done: nothing is left to fetch.", ".verdict.done")


async def test_all_parts_are_there_in_order(browser: Browser) -> None:
    async with serving(document(8)) as dashboard, browser.page() as page:
        await visit(page, dashboard)
        assert PARTS == await texts(page, "h2")
        await page.shows("all others", ".charts .legend")
        await page.shows("end in about 15 min", ".charts")
        assert 2 == await page.js("() => document.querySelectorAll('.plots canvas').length")
        assert 6 == await page.js("() => document.querySelectorAll('.ring .arc').length")
        await page.shows("✕ not heard", ".peers")
        await page.shows("leaf", ".peers")
        await page.shows("4 min: Retry-After of a 429", ".sites")
        await page.shows("64 status 404 The site says that there is no such page.", ".failures")
        await page.shows("over 1 d", ".ages")
        await page.shows("200", ".events")
        await page.shows("The disk is full.", ".sinks")


async def test_a_part_that_the_peer_cannot_tell_is_left_out(browser: Browser) -> None:
    made = document(2)
    for part in ("sites", "sites_total", "events", "sinks", "queue_ages", "moves"):
        del made[part]
    for figure in ("name", "end_in_s", "partition", "cell_bits"):
        del made["crawl"][figure]
    async with serving(made) as dashboard, browser.page() as page:
        await visit(page, dashboard)
        left = [*PARTS[:4], "Failures", "The way of a URL"]
        assert left == await texts(page, "h2")
        await page.shows("the end cannot be estimated yet", ".charts")
        assert "undefined" not in await page.js("() => document.body.innerText")


async def test_the_table_and_the_tree_say_what_the_ring_says(browser: Browser) -> None:
    async with serving(document(8)) as dashboard, browser.page() as page:
        await visit(page, dashboard)
        await page.do("check", "input[value=table]")
        shares = await texts(page, ".space .scroll:not(.low) tbody td:nth-child(4)")
        assert 2**16 == sum(int(share.replace(",", "")) for share in shares)
        await page.do("check", "input[value=tree]")
        assert 6 == await page.js("() => document.querySelectorAll('.tree circle:not(.key)').length")


async def test_the_page_says_how_old_the_list_of_sites_is(browser: Browser) -> None:
    async with serving(document(2)) as dashboard, browser.page() as page:
        await visit(page, dashboard)
        await page.shows("The 100 of 1,312 sites", ".sites")
        assert "Counted" not in await page.js("() => document.querySelector('.sites').innerText")
        dashboard.change({"now": NOW + 40})
        await page.shows("Counted 41 s ago.", ".sites")


async def test_moves_are_drawn_while_they_happen(browser: Browser) -> None:
    made = document(8)
    ids = [node_id for node_id, peer in made["peers"].items() if peer["alive"] and peer["kind"] == "full"]
    async with serving(made) as dashboard, browser.page() as page:
        await visit(page, dashboard)
        move = {"at": NOW + 60, "kind": "cells", "from": ids[0], "to": ids[1], "count": 12}
        dashboard.change({"now": NOW + 60, "moves": {"13": move}})
        await page.until("() => document.querySelectorAll('.ring .chord.cells').length === 1")
        dashboard.change({"now": NOW + 120})
        await page.until("() => document.querySelectorAll('.ring .chord').length === 0")
        await page.shows("The last 13 moves", ".moves")


async def test_pictures_stand_still_for_those_who_ask_for_it(browser: Browser) -> None:
    async with serving(document(8)) as dashboard, browser.page(reducedMotion="reduce") as page:
        await visit(page, dashboard)
        # A still picture shows a move for longer, as nobody sees it come and go.
        assert await page.js("() => document.querySelectorAll('.ring .chord').length") >= 7
        assert "none" == await page.js("() => getComputedStyle(document.querySelector('.ring .chord')).animationName")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [320, 1280, 2560])
async def test_everybody_can_use_it(browser: Browser, scheme: str, width: int) -> None:
    """Nothing is wider than the screen, and axe finds nothing against WCAG A and AA."""
    options: dict[str, Any] = {"viewport": {"width": width, "height": 900}, "colorScheme": scheme}
    async with serving(document(8)) as dashboard, browser.page(**options) as page:
        await visit(page, dashboard)
        await page.do("click", ".reasons summary")
        await page.do("click", ".samples button")
        await page.shows("The robots.txt of the site forbids it.", ".samples")
        await ask_way(page)
        assert width >= await page.js("() => document.documentElement.scrollWidth")
        assert [] == await violations(page)


async def violations(page: Page) -> list[str]:
    """Return what axe finds, each with the first element that it found it in."""
    axe = (MODULES / "axe-core" / "axe.min.js").read_text()
    await page.do("evaluate", f"() => {{ {axe} }}")
    found: list[str] = await page.js(
        """async () => {
          const rules = { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"] };
          const { violations } = await axe.run(document, rules);
          return violations.map(({ id, nodes }) => `${id}: ${nodes[0].html} ${nodes[0].failureSummary}`);
        }"""
    )
    return found


async def ask_way(page: Page) -> None:
    await page.do("fill", ".way input", "https://docs0.example.org/guide")
    await page.do("keyboard.press", "Enter")
    await page.shows("The robots.txt of the site allows it.", ".way")


async def test_the_way_of_a_url_is_told_and_shown_in_the_ring(browser: Browser) -> None:
    async with serving(document(8)) as dashboard, browser.page() as page:
        await visit(page, dashboard)
        await ask_way(page)
        await page.shows("Owner peer-1 (10.0.0.1:4000)", ".way")
        await page.shows("State failed: status 404", ".way")
        assert 1 == await page.js("() => document.querySelectorAll('.ring .needle.owner').length")


async def test_a_wrong_url_is_refused_with_a_reason(browser: Browser) -> None:
    async with serving(document(1)) as dashboard, browser.page() as page:
        await visit(page, dashboard)
        await page.do("fill", ".way input", "nonsense")
        await page.do("keyboard.press", "Enter")
        await page.shows("This is no http(s) URL.", ".way .bad")
        assert ["400" in problem for problem in await page.do("problems")] == [True]


async def test_orders_are_sent_as_the_buttons_say(browser: Browser) -> None:
    made = document(8)
    first = max(made["sites"], key=lambda site: made["sites"][site]["pending"])
    async with serving(made) as dashboard, browser.page() as page:
        await visit(page, dashboard)
        row = ".sites tbody tr:first-child"
        await page.do("click", f"{row} button >> text=Pause")
        await page.shows("The order is given to all peers.", ".said")
        await page.do("click", f"{row} button >> text=Slow")
        await page.do("fill", "dialog input", "90")
        await page.do("click", "dialog button[type=submit]")
        await page.until("() => !document.querySelector('dialog')")
        await page.do("click", f"{row} button >> text=Slow")
        await page.do("click", "dialog button >> text=Its own delay")
        await page.until("() => !document.querySelector('dialog')")
        await page.do("click", f"{row} button >> text=Exclude")
        await page.do("click", "dialog button >> text=Cancel")
        await page.until("() => !document.querySelector('dialog')")
        dashboard.change({"sites": {first: {"order": "excluded"}}})
        await page.do("click", f"{row} button >> text=Include")
        await page.do("click", "text=Pause the crawl")
        await page.until("() => true")
        while len(dashboard.orders) < 5:
            await page.shows("The order is given to all peers.", ".said")
    assert [
        {"order": "pause", "site": first},
        {"order": "slow", "site": first, "delay_s": 90},
        {"order": "slow", "site": first, "delay_s": None},
        {"order": "include", "site": first},
        {"order": "pause"},
    ] == dashboard.orders


async def test_without_control_nothing_can_be_ordered_and_the_page_says_why(browser: Browser) -> None:
    async with serving(document(8, control=False)) as dashboard, browser.page() as page:
        await visit(page, dashboard)
        assert 0 == await page.js("() => document.querySelectorAll('.orders button:not(:disabled)').length")
        assert await page.js("() => document.querySelectorAll('.orders button').length") > 10
        await page.shows("Start with --web-control", ".sites")
        assert await page.js("() => !document.body.innerText.includes('Pause the crawl')")


async def test_the_token_leaves_the_address_and_serves_once(browser: Browser) -> None:
    async with serving(document(1)) as dashboard:
        async with browser.page() as page:
            await visit(page, dashboard)
            assert "" == await page.js("() => location.hash")
            await page.do("reload")
            await page.shows("pending", ".sentence")
        async with browser.page() as thief:
            await thief.do("goto", dashboard.url + "/#token=once")
            await thief.shows("There is no session. Run kadcrawl web")
            assert ["401" in problem for problem in await thief.do("problems")] == [True, True]


async def test_hostile_text_stays_text(browser: Browser) -> None:
    hostile = '<img src=x onerror="document.title=1">'
    made = document(2)
    site = next(iter(made["sites"].values()))
    made["sites"] = {hostile: site, "__proto__": site}
    made["events"] = {"1": {"at": NOW, "kind": hostile, "text": f"<script>{hostile}</script>"}}
    made["failures"] = {hostile: {"count": 1, "meaning": hostile, "samples": ["javascript:alert(1)", hostile]}}
    made["sinks"] = {hostile: {"written": 1, "lag": 0, "lag_s": None, "error": hostile}}
    next(iter(made["peers"].values()))["name"] = hostile
    made["crawl"]["verdict"]["sentence"] = hostile
    async with serving(made) as dashboard, browser.page() as page:
        await visit(page, dashboard)
        await page.do("click", ".reasons summary")
        for part in (".verdict", ".peers", ".sites", ".failures", ".events", ".sinks"):
            await page.shows(hostile, part)
        await page.shows("__proto__", ".sites")
        await page.shows("javascript:alert(1)", ".samples")
        assert 0 == await page.js("() => document.querySelectorAll('img, #page script, #page a').length")


async def test_a_lost_connection_is_said_and_taken_up(browser: Browser) -> None:
    async with serving(document(1)) as dashboard, browser.page() as page:
        await visit(page, dashboard)
        dashboard.change({"now": NOW + 1})
        await page.until("() => true")
        dashboard.cut()
        while not dashboard.resumed:
            await page.js("() => new Promise((done) => setTimeout(done, 20))")
        assert ["1"] == dashboard.resumed
        await page.do("clock.install")
        await page.do("reload")
        await page.shows("live", ".link")
        await page.do("clock.runFor", 12_500)
        await page.shows("no data for 12 s, trying again", ".link.lost")
        dashboard.change({"now": NOW + 2})
        await page.do("clock.runFor", 1_100)
        await page.shows("live", ".link")


async def test_the_keyboard_reaches_every_control(browser: Browser) -> None:
    made = document(8)
    made["sites"] = dict(list(made["sites"].items())[:3])
    async with serving(made) as dashboard, browser.page() as page:
        await visit(page, dashboard)
        controls = await page.js(
            """() => {
              const all = [...document.querySelectorAll("button, input, select, summary, [tabindex='0']")];
              window.reached = new Set();
              document.addEventListener("focusin", ({ target }) => window.reached.add(target));
              // Of a group of radio buttons the keyboard reaches the checked one, and the arrows the others.
              const isReached = (one) => !one.disabled && (one.type !== "radio" || one.checked);
              window.expected = all.filter((one) => one.checkVisibility() && isReached(one));
              return window.expected.length;
            }"""
        )
        assert controls > 40
        for _ in range(controls + 2):
            await page.do("keyboard.press", "Tab")
        missed = "() => window.expected.filter((one) => !window.reached.has(one)).map((one) => one.outerHTML)"
        assert [] == await page.js(missed)
        await page.do("focus", "input[value=ring]")
        await page.do("keyboard.press", "ArrowRight")
        await page.until("() => document.querySelector('.tree')")


async def test_a_column_sorts_and_a_filter_finds(browser: Browser) -> None:
    made = document(200)
    async with serving(made) as dashboard, browser.page() as page:
        await visit(page, dashboard)
        rates = sorted((peer["pages_per_s"] for peer in made["peers"].values()), reverse=True)
        await page.do("click", ".peers th button >> text=Pages/s")
        await page.shows(f"{rates[0]:.1f}", ".peers tbody tr:first-child")
        await page.do("fill", ".peers input", "peer-137")
        await page.shows("1 of 200 rows", ".peers")


@pytest.mark.parametrize("peers", [200, 1000])
async def test_a_change_touches_little_of_the_page_however_many_peers_there_are(browser: Browser, peers: int) -> None:
    made = document(peers)
    ids = list(made["peers"])
    async with serving(made) as dashboard, browser.page() as page:
        await visit(page, dashboard)
        await page.shows(f"{peers - 1:,} full", ".peers")
        rows = await page.js("() => document.querySelectorAll('.peers tbody tr').length")
        assert rows < 30
        assert await page.js("() => document.querySelectorAll('*').length") < 4_500 + peers * 3
        await page.js(
            """() => {
              window.touched = 0;
              new MutationObserver((records) => (window.touched += records.length)).observe(document.body, {
                subtree: true, childList: true, characterData: true, attributes: true,
              });
            }"""
        )
        rates = {one: {"pages_per_s": 3.21, "pages": 4_711} for one in ids}
        dashboard.change({"now": NOW + 1, "peers": rates, "crawl": {"pages": 123_456}})
        await page.shows("123,456", ".figures")
        # Two cells in each row in view, and some figures: no row, arc or dot is made anew.
        assert await page.js("() => window.touched") < 100
        # The last row can be reached, and there are no more rows in the page then.
        await page.js("() => document.querySelector('.peers .scroll').scrollTo(0, 1e6)")
        await page.shows(f"peer-{peers}", ".peers tbody")
        assert await page.js("() => document.querySelectorAll('.peers tbody tr').length") < 30
