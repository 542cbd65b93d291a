"""Finds the log of a copy of a peer's directory: all its lines are the first lines of the log of that peer.

A person may keep a backup beside the peers of a crawl. A directory that was moved aside for an older copy of it has
lines that no other directory has, so the same peer in two directories proves nothing about their logs.

Tests: tests/store/test_log_copies.py
"""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from kadcrawl.store.log_parts import guarded, index_of, log_pieces, source_of

_CHUNK_BYTES = 1024 * 1024


def without_copies(paths: Iterable[Path], peer_of: Callable[[Path], bytes | None]) -> list[Path]:
    """Return the logs at these paths, in order, without those whose lines are at the begin of another log of a peer.

    Of equal logs the first stays, and each empty log stays. `peer_of` returns the ID of the peer of a log, if it is
    known. Only logs with the same first line are read.
    """
    found = [*paths]
    by_source: dict[str, list[Path]] = {}
    for path in found:
        if source := _source(path):
            by_source.setdefault(source, []).append(path)
    copies: set[Path] = set()
    for alike in by_source.values():
        kept: list[tuple[bytes | None, Path]] = []
        for path in sorted(alike, key=_size, reverse=True) if len(alike) > 1 else ():
            peer = peer_of(path)
            if peer is not None and any(peer == other and begins(path, longer) for other, longer in kept):
                copies.add(path)
            else:
                kept.append((peer, path))
    return [path for path in found if path not in copies]


def begins(path: Path, other: Path) -> bool:
    """Return whether all bytes of a log are the first bytes of another log, as it is of an empty log.

    A log of which a part is elsewhere or damaged counts as another log.
    """
    theirs, left = _chunks(other), b""
    try:
        for chunk in _chunks(path):
            while len(left) < len(chunk):
                if not (more := next(theirs, b"")):
                    return False
                left += more
            if left[: len(chunk)] != chunk:
                return False
            left = left[len(chunk) :]
    except OSError:
        return False
    return True


def _source(path: Path) -> str:
    """Return the identity of a log, or an empty text before its first line."""
    try:
        return index_of(path).source or source_of(path)
    except OSError:
        return ""


def _size(path: Path) -> int:
    """Return the bytes of a log in all its parts."""
    try:
        return index_of(path).end + (path.stat().st_size if path.exists() else 0)
    except OSError:
        return 0


def _chunks(path: Path) -> Iterator[bytes]:
    """Yield the bytes of a log. Raises OSError, also if a part is elsewhere."""
    for part, file in log_pieces(path):
        if file is None:
            raise FileNotFoundError(f"{'' if part is None else part.file} of {path} is not here")
        while chunk := guarded(path, lambda file=file: file.read(_CHUNK_BYTES)):  # type: ignore[misc]
            yield chunk
