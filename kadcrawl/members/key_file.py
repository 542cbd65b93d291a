"""Secrets in files: written for their owner alone, and refused if others could have read them."""

import os
import stat
from pathlib import Path

from kadcrawl.errors import ConfigError, StartError
from kadcrawl.swarm_key import SwarmKey

FILE_BYTES_MAX = 4096
"""Of a file with a key; anything longer is none."""


def read_key(path: Path) -> SwarmKey:
    """Return the key in a file. Raises ConfigError if there is none, or others may read it."""
    text = read_secret(path).decode(errors="replace")
    try:
        return SwarmKey.from_text(text)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None


def read_secret(path: Path) -> bytes:
    """Return what is in a file that only its owner may read. Raises ConfigError, with what to do."""
    try:
        with open(path, "rb", opener=_at_once) as file:
            mode = os.fstat(file.fileno()).st_mode
            if not stat.S_ISREG(mode):
                raise ConfigError(f"{path} is no file with a key in it")
            if mode & (stat.S_IRWXG | stat.S_IRWXO):
                raise ConfigError(f"others can read {path}, so it keeps no secret: chmod 600 {path}")
            return file.read(FILE_BYTES_MAX)
    except OSError as error:
        raise ConfigError(f"cannot read the key in {path}: {error.strerror}") from None


def _at_once(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)  # A pipe would be waited for.


def write_secret(path: Path, secret: bytes) -> None:
    """Put a secret where nobody else can read it, whole or not at all, durably. Raises StartError."""
    # One process at a time uses a directory, so one name will do.
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
