"""Hooks of the tests: one that does as it should, and others that do not."""

import os
import sys
import time
from contextlib import suppress
from pathlib import Path

from kadcrawl import Page


def title(page: Page) -> dict[str, object]:
    print("what a hook prints is no answer")
    return {"title": page.selector.css("title::text").get(), "role": page.role, "of": [page.mime, page.charset]}


def loaded(page: Page) -> dict[str, bool]:
    """Tell whether the selectors are imported, without a use of them."""
    return {"parsel": "parsel" in sys.modules}


def several(page: Page) -> list[dict[str, object]]:
    return [{"link": link} for link in page.links]


def nothing(page: Page) -> None:
    return None


def sees(page: Page) -> dict[str, object]:
    return {"env": [name for name in os.environ if name.startswith("KADCRAWL_")], "path": sys.path[:1]}


def raises(page: Page) -> None:
    raise ValueError("as it was told")


def quotes(page: Page) -> None:
    raise ValueError(page.selector.css("h1::text").get())


def exits(page: Page) -> None:
    sys.exit(3)


def dies(page: Page) -> None:
    os._exit(3)


def loops(page: Page) -> None:
    while True:
        time.sleep(0.01)


def allocates(page: Page) -> dict[str, int]:
    return {"bytes": len(bytearray(1 << 40))}


def grows(page: Page, kept: list[bytearray] = []) -> dict[str, int]:  # noqa: B006 -- it is to leak
    """Fill the memory over several pages. Each page alone needs little."""
    kept.append(bytearray(120 << 20))
    return {"pages": len(kept)}


def a_number(page: Page) -> int:
    return 3


def an_object(page: Page) -> dict[str, object]:
    return {"object": object()}


def endless_text(page: Page) -> list[dict[str, str]]:
    return [{"text": "x" * 200_000}] * 6


def holds(page: Page) -> dict[str, dict[str, str]]:
    return {"worker": _held(os.getpid()), "peer": _held(os.getppid())}


def _held(pid: int) -> dict[str, str]:
    held = {}
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # It was for the listing.
            held[descriptor.name] = os.readlink(descriptor)
    return held
