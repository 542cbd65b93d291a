"""Sinks as a person names them: KIND:TARGET, e.g. sqlite:results.db, mongodb://host/crawl, parquet:s3://bucket/crawl.

A name may hold a password, so it is never shown as it is: `shown` is for people and logs, `clean` for what others say.
"""

import re
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Literal, cast, get_args
from urllib.parse import unquote, urlsplit

from kadcrawl.errors import ConfigError

Kind = Literal["jsonl", "parquet", "sqlite", "mongodb", "mongodb+srv", "warc", "warc-move"]

FORMS = (
    "sqlite:FILE, mongodb://HOST/DATABASE, jsonl:PLACE, parquet:PLACE, warc:PLACE or warc-move:PLACE, "
    "where PLACE is a directory or a URL such as s3://bucket/folder"
)
HIDDEN = "***"
_S3 = ("s3", "s3a")


@dataclass(frozen=True, slots=True)
class SinkName:
    """A sink, named."""

    kind: Kind
    target: str = field(repr=False)
    """An absolute path, a URL, or MongoDB's connection string."""
    shown: str
    """As it was written, without user, password and query."""

    @property
    def is_remote(self) -> bool:
        """Whether the target is a URL, for fsspec or MongoDB."""
        return "://" in self.target

    @property
    def whole(self) -> str:
        """The name with its path made absolute, as `parse` takes it: not to be shown."""
        return self.target if self.kind.startswith("mongodb") else f"{self.kind}:{self.target}"

    @property
    def has_password(self) -> bool:
        return self.is_remote and ":" in urlsplit(self.target).netloc.rpartition("@")[0]

    def clean(self, text: str) -> str:
        """Return what somebody said of this sink without what must not be shown."""
        parts = urlsplit(self.target) if self.is_remote else None
        if parts is None:
            return text
        userinfo = parts.netloc.rpartition("@")[0]
        password = userinfo.partition(":")[2]
        secrets = {self.target, userinfo, password, unquote(password), parts.query} - {""}
        for secret in sorted(secrets, key=lambda secret: (-len(secret), secret)):
            text = text.replace(secret, HIDDEN)
        return text


def parse(text: str) -> SinkName:
    """Return the sink of this name. Raises ConfigError for what is none."""
    kind, colon, target = text.partition(":")
    shown = re.sub(r"\?.*", "?...", re.sub(r"://.*@", f"://{HIDDEN}@", text, flags=re.DOTALL), flags=re.DOTALL)
    if not colon or kind not in get_args(Kind):
        raise ConfigError(f"{shown!r} is no sink: write {FORMS}")
    if not target.strip("/"):
        raise ConfigError(f"the sink {shown!r} does not say where: write {FORMS}")
    if kind.startswith("mongodb"):
        target = _checked_mongodb(text, shown)
    elif kind == "sqlite":
        target = _path(target, shown)
    elif "://" not in target or target.startswith("file://"):
        target = _path(target.removeprefix("file:"), shown)
    return SinkName(cast(Kind, kind), target, shown)


def check(name: SinkName) -> None:
    """Raise ConfigError, saying what to install, if what this sink needs is not there."""
    if name.kind.startswith("mongodb"):
        _need("pymongo", "mongodb", name)
        return
    if name.kind == "parquet":
        _need("pyarrow", "parquet", name)
    if name.is_remote:
        _need("fsspec", "fsspec", name)
        protocol = name.target.partition("://")[0]
        from fsspec import get_filesystem_class

        try:
            get_filesystem_class(protocol)
        except ImportError as error:
            extra = "kadcrawl[s3]" if protocol in _S3 else "what it asks for"
            raise ConfigError(f"the sink {name.shown} needs more ({error}): pip install '{extra}'") from None
        except ValueError:
            raise ConfigError(f"the sink {name.shown}: fsspec knows no {protocol}://") from None


def _need(module: str, extra: str, name: SinkName) -> None:
    if find_spec(module) is None:
        raise ConfigError(f"the sink {name.shown} needs {module}: pip install 'kadcrawl[{extra}]'")


def _path(text: str, shown: str) -> str:
    if text.startswith("//") and not text.startswith("///"):
        raise ConfigError(f"the sink {shown!r} names a host before its path: an absolute path begins with /")
    path = Path(re.sub("^/+", "/", text)).expanduser()
    return str(path.absolute())


def _checked_mongodb(text: str, shown: str) -> str:
    """Return the connection string if it names a host and a database; pymongo reads the rest of it."""
    parts = urlsplit(text)
    database = parts.path.strip("/")
    if not parts.netloc.rpartition("@")[2] or not database or "/" in database:
        raise ConfigError(f"the sink {shown!r} must name a host and a database: mongodb://HOST/DATABASE")
    return text
