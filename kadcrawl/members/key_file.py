"""Secrets in files: readable by their owner alone, and refused if others could have read them.

Tests: tests/members/test_keys.py
"""

import os
import stat
import sys
from pathlib import Path

from kadcrawl.errors import ConfigError, StartError
from kadcrawl.members.swarm_key import SwarmKey

STDIN = Path("-")
KEY_FILE_BYTES_MAX = 4096
"""Bytes of a file with a key. A longer file has none."""


def read_key(path: Path) -> SwarmKey:
    """Return the key in the first line of a file, a pipe, or the standard input (`-`).

    Raises ConfigError if there is none, or others may read it.
    """
    source = "the standard input" if path == STDIN else str(path)
    if path != STDIN and not path.exists() and _is_key(path.name):
        raise ConfigError(
            "that is a key where the name of a file is wanted, and every user of a machine can see it there: make "
            "another (kadcrawl keygen > FILE), and give the file's name"
        )
    secret = sys.stdin.buffer.read(KEY_FILE_BYTES_MAX) if path == STDIN else read_secret(path, pipe=True)
    try:
        return SwarmKey.from_text(secret.decode(errors="replace").strip().partition("\n")[0], source)
    except ConfigError as error:
        raise ConfigError(f"{source}: {error}") from None


def read_kept_key(path: Path) -> SwarmKey:
    """Return the key that a peer has kept in its directory. Raises ConfigError if it cannot be read any more."""
    secret = read_secret(path)
    try:
        return SwarmKey.from_text(secret.decode(errors="replace"), str(path))
    except ConfigError:
        raise ConfigError(f"{path} is damaged: copy it from another peer of the swarm") from None


def read_secret(path: Path, *, pipe: bool = False, what: str = "key", bytes_max: int = KEY_FILE_BYTES_MAX) -> bytes:
    """Return the content of a file that only its owner may read, or of a pipe if `pipe`, as far as `bytes_max`.

    Raises ConfigError, with advice. `what` names the content.
    """
    try:
        with open(path, "rb", opener=_at_once) as file:
            mode = os.fstat(file.fileno()).st_mode
            if pipe and stat.S_ISFIFO(mode):  # Bytes of a pipe can be read only once.
                os.set_blocking(file.fileno(), True)
                return file.read(bytes_max)
            if not stat.S_ISREG(mode):
                raise ConfigError(f"{path} is no regular file: give a file that holds the {what}")
            if mode & (stat.S_IRWXG | stat.S_IRWXO):
                raise ConfigError(f"others can read {path}, so it keeps no secret: chmod 600 {path}")
            return file.read(bytes_max)
    except OSError as error:
        raise ConfigError(f"cannot read the {what} in {path}: {error.strerror}") from None


def _is_key(text: str) -> bool:
    try:
        SwarmKey.from_text(text)
    except ConfigError:
        return False
    return True


def _at_once(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)  # Else open would wait for a writer of a pipe.


def write_secret(path: Path, secret: bytes) -> None:
    """Write a secret to a file that no other user can read, atomically and durably. Raises StartError."""
    # One process at a time uses a directory, so one name suffices.
    new = path.with_name(f".{path.name}.new")
    try:
        new.unlink(missing_ok=True)
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(secret)
            file.flush()
            os.fsync(descriptor)
        new.replace(path)
        directory = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)
    except OSError as error:
        raise StartError(f"cannot write {path}: {error.strerror}") from None
