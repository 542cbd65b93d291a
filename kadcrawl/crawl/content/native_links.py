"""The native part of the link extractor, if it was built: `native/src` in Rust, compiled to the module `_native`.

The module is optional. `html_links` has the reference for each of its functions, and does everything where the module
is missing or ``KADCRAWL_PURE=1`` switches it off.

Tests: tests/crawl/content/test_native_links.py
"""

import importlib
import os
from collections.abc import Mapping
from typing import Any, Final, Protocol, cast

MODULE: Final = "kadcrawl.crawl.content._native"
PURE: Final = "KADCRAWL_PURE"
"""The variable of the environment that switches the module off."""


class NativeLinks(Protocol):
    """The functions of the module."""

    SOURCES: str
    """The digest of the sources that the module was built from."""

    def tags(self, markup: bytes, start: int, tags_max: int, /) -> tuple[list[bytes], int]:
        """Return the link tags of a page in UTF-8, without their ``<``, from a place on, at most so many.

        Also return the place up to which the page was read.
        """

    def join(self, base: str, href: bytes, /) -> str | None:
        """Return the canonical URL of a plain href on a page, or None if that takes the URL parser."""

    def plain(self, tags: list[bytes], base: str, agent: str, /) -> tuple[dict[bytes, Any], list[bytes]]:
        """Return the URLs of the tags among these that need no parser, and the others that may say something."""

    def meanings(
        self, markup: bytes, known: dict[bytes, Any], nothing: object, base: str, tags_max: int, agent: str, /
    ) -> tuple[list[Any], list[bytes], dict[bytes, Any], list[int]] | None:
        """Return None if Python has to read this page, or the meanings of its tags.

        These are: the meanings of the tags that say something, with an unknown tag in the place of its meaning; the
        unknown tags; the tags that `known` lacked, with the meanings found here; and the places of meanings that are no
        URLs. The class of `nothing` makes such a meaning of a URL and two truth values: the link is followed, and it is
        the page's canonical URL.
        """


def is_switched_off(environment: Mapping[str, str]) -> bool:
    """Return whether a person wants everything done in Python."""
    return environment.get(PURE, "") not in ("", "0")


def load() -> NativeLinks | None:
    """Return the module, or None if it was not compiled for this Python."""
    try:
        return cast(NativeLinks, importlib.import_module(MODULE))
    except ImportError:
        return None


NATIVE: Final = None if is_switched_off(os.environ) else load()
"""The module that this process uses."""
