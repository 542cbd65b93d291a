"""The files of the dashboard's pages: read once, and served by their names alone, so that no path leads elsewhere.

Tests: tests/web/test_listener.py
"""

from dataclasses import dataclass
from hashlib import blake2b
from importlib.resources import files
from importlib.resources.abc import Traversable

MEDIA_TYPES = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "mjs": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
    "png": "image/png",
    "txt": "text/plain; charset=utf-8",
}
"""The endings of names that are served, and their media types."""
FILE_BYTES_MAX = 1024 * 1024
"""Bytes of one file of the pages."""


@dataclass(frozen=True, slots=True)
class PageFile:
    """One file of the pages."""

    body: bytes
    media_type: str
    etag: str


def page_files() -> dict[str, PageFile]:
    """Return the files of the pages by their paths below `assets`."""
    found: dict[str, PageFile] = {}
    _collect(files("kadcrawl.web") / "assets", "", found)
    return found


def _collect(folder: Traversable, path: str, found: dict[str, PageFile]) -> None:
    for entry in folder.iterdir():
        name = f"{path}{entry.name}"
        ending = entry.name.rpartition(".")[2]
        if entry.is_dir():
            _collect(entry, f"{name}/", found)
        elif ending in MEDIA_TYPES:
            body = entry.read_bytes()
            assert len(body) <= FILE_BYTES_MAX, f"{name} is too large"
            found[name] = PageFile(body, MEDIA_TYPES[ending], f'"{blake2b(body, digest_size=12).hexdigest()}"')
