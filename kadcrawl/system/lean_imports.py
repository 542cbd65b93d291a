"""A process that may idle for weeks imports aiohttp without what only fetching needs.

By itself aiohttp imports a resolver of names, and reads the certificates of all authorities twice. Both take memory and
time in a process that fetches nothing yet. After `import_lean`, the certificates are read when the first TLS connection
with them begins, and the crawl's resolver is loaded with the first name (crawl/fetch/late_resolver.py).

Only the command does so: a program that embeds a peer has aiohttp as it is.

Tests: tests/system/test_lean_imports.py
"""

import ssl
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class LateAuthorities(ssl.SSLContext):
    """A TLS context that reads the certificates of the system's authorities when its first connection begins."""

    def wrap_bio(self, *arguments: Any, **options: Any) -> ssl.SSLObject:
        return _read(self).wrap_bio(*arguments, **options)

    def wrap_socket(self, *arguments: Any, **options: Any) -> ssl.SSLSocket:
        return _read(self).wrap_socket(*arguments, **options)

    def cert_store_stats(self) -> dict[str, int]:
        return _read(self).cert_store_stats()

    def get_ca_certs(self, *arguments: Any, **options: Any) -> Any:
        return _read(self).get_ca_certs(*arguments, **options)


def import_lean() -> None:
    """Import aiohttp, unless it is there, and leave out what can wait."""
    if "aiohttp" not in sys.modules:
        with _without("aiodns"), late_authorities():
            import aiohttp  # noqa: F401 -- the others find it


@contextmanager
def late_authorities() -> Iterator[None]:
    """Let each context that shall have the system's authorities read their certificates later."""
    of_class: Any = ssl.SSLContext
    of_class.set_default_verify_paths = _delay
    try:
        yield
    finally:
        del of_class.set_default_verify_paths  # The method of the base class is there again.


@contextmanager
def _without(package: str) -> Iterator[None]:
    """Let an import of this package fail as if it were not installed, unless it is there."""
    if package in sys.modules:
        yield
        return
    modules: dict[str, Any] = sys.modules
    modules[package] = None  # By this the import system knows that there is no such package.
    try:
        yield
    finally:
        del modules[package]


def _delay(context: ssl.SSLContext) -> None:
    if type(context) is ssl.SSLContext:
        context.__class__ = LateAuthorities


def _read(context: ssl.SSLContext) -> ssl.SSLContext:
    context.__class__ = ssl.SSLContext
    context.set_default_verify_paths()
    return context
