"""What one change of the swarm costs the page: changes of its elements, layouts and styles as counts, and times.

The counts are those of Chromium (Performance.getMetrics) and of a MutationObserver. Times depend on the machine.

Tests: tests/web/pages/test_simulated_swarm.py
"""

from dataclasses import dataclass
from pathlib import Path

from sim.dashboard_recording import Gathered

from .chromium import Browser, Page
from .replay import Replay, replaying

COUNT_CHANGES = """
window.changes = 0;
window.EventSource = class extends EventSource {
  constructor(...args) {
    super(...args);
    this.addEventListener("change", () => (window.changes += 1));
  }
};
"""
"""Counts the changes that the server has told. It runs before the scripts of the page."""
DRAWN = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done))))"
"""Returns when the page has drawn all that it was told: it draws in the next frame."""
QUIET = {"viewport": {"width": 1280, "height": 900}, "reducedMotion": "reduce"}
"""The options of the page: nothing moves by itself, so that counts are those of the changes."""
WATCH = """() => {
  window.touched = 0;
  new MutationObserver((records) => (window.touched += records.length)).observe(document.body, {
    subtree: true, childList: true, characterData: true, attributes: true,
  });
}"""
"""Counts the changes of elements, attributes and texts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """What the page did to show one change."""

    touched: int
    """Elements, attributes and texts that changed."""
    layouts: int
    styles: int
    """Times that styles were worked out."""
    elements: int
    """Elements in the page."""
    script_ms: float
    layout_ms: float
    """Time for layouts and styles."""


async def replay_frames(browser: Browser, looks: list[Gathered], directory: Path) -> list[Frame]:
    """Show a recording, and return the frame of each change."""
    async with replaying(looks, directory) as replay, browser.page(**QUIET) as page:
        await open_first(page, replay)
        return [await frame_of_next(page, replay) for _ in looks[1:]]


async def open_first(page: Page, replay: Replay) -> None:
    """Open the page with the first look of a recording."""
    await page.do("addInitScript", {"content": COUNT_CHANGES})
    await page.do("goto", replay.url)
    replay.tell_next()
    await page.shows("pending", ".sentence")
    await page.until("() => document.querySelectorAll('.plots canvas').length === 2")
    await page.js(DRAWN)
    await page.js(WATCH)
    await page.metrics()


async def frame_of_next(page: Page, replay: Replay) -> Frame:
    """Tell the next look, wait until the page has drawn it, and return what that took."""
    changes, touched = await page.js("() => [window.changes, window.touched]")
    before = await page.metrics()
    replay.tell_next()
    await page.until("(before) => window.changes > before", changes)
    await page.js(DRAWN)
    after = await page.metrics()
    touched_by_now, elements = await page.js("() => [window.touched, document.querySelectorAll('*').length]")

    def grown(*names: str) -> float:
        return sum(after[name] - before[name] for name in names)

    return Frame(
        touched=touched_by_now - touched,
        layouts=round(grown("LayoutCount")),
        styles=round(grown("RecalcStyleCount")),
        elements=elements,
        script_ms=1000 * grown("ScriptDuration"),
        layout_ms=1000 * grown("LayoutDuration", "RecalcStyleDuration"),
    )
