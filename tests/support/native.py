"""The two engines of the link extractor. The native one is compiled here, where a compiler exists."""

import os

import pytest

from kadcrawl.crawl.content import native_links
from kadcrawl.crawl.content.native_links import NativeLinks
from scripts import native_build

ENGINES = ("python", "native")


def engine(name: str) -> NativeLinks | None:
    """Return what a link extractor takes as `native`. Skips the test if it cannot be had for lack of a compiler."""
    return native() if name == "native" else None


def native() -> NativeLinks:
    """Return the native module of the sources in this tree."""
    if native_build.compiler(os.environ) is None:
        pytest.skip("the native module is compiled by rustc, which is missing here, or KADCRAWL_PURE is set")
    native_build.ensure()
    module = native_links.load()
    assert module is not None, "it was compiled, and does not load"
    assert module.SOURCES == native_build.digest(), "compiled anew after it was loaded: run the tests again"
    return module
