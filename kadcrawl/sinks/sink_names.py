"""The sinks as a person names them: KIND:TARGET, such as sqlite:results.db, mongodb://host/crawl, parquet:s3://bucket/x.

A name may contain a password, so it is never shown as it is. People and logs see `shown`, and `clean` removes secrets
from the texts of other programs.
"""

import re
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Literal, get_args
from urllib.parse import unquote, unquote_plus, urlsplit

from kadcrawl.errors import ConfigError
from kadcrawl.sinks.plug_ins import plug_in, plug_ins

BuiltInKind = Literal["jsonl", "csv", "parquet", "sqlite", "mongodb", "mongodb+srv", "warc", "warc-move"]
BUILT_IN = frozenset(get_args(BuiltInKind))

FORMS = (
    "sqlite:FILE, mongodb://HOST/DATABASE, jsonl:PLACE, csv:PLACE, parquet:PLACE, warc:PLACE or "
    "warc-move:PLACE, where PLACE is a directory or a URL such as s3://bucket/folder"
)
STANDARD_OUTPUT = {"-": "jsonl", "jsonl:-": "jsonl", "csv:-": "csv"}
"""The forms of the standard output, which only `kadcrawl export` has as a place, with the kind of their lines."""
HIDDEN = "***"
"""Text that replaces a secret."""
_S3 = ("s3", "s3a")
_SECRET = re.compile(r"passw(or)?d|passphrase|pwd|secret|token(?!_resource)|signature|^sig$|key$", re.IGNORECASE)
"""Pattern of the names of options with secret values.

MongoDB's tlsCertificateKeyFile and TOKEN_RESOURCE are no secrets."""
_PROPERTIES = "authmechanismproperties"
"""MongoDB option with further options, as NAME:VALUE,NAME:VALUE."""


@dataclass(frozen=True, slots=True)
class SinkName:
    """The parsed name of a sink."""

    kind: str
    """A `BuiltInKind`, or the kind of a plug-in."""
    target: str = field(repr=False)
    """An absolute path, a URL, MongoDB's connection string, or what a plug-in takes."""
    shown: str
    """The name as it was written, without user, password and query."""

    @property
    def is_remote(self) -> bool:
        """True if the target is a URL, for fsspec or MongoDB."""
        return "://" in self.target

    @property
    def whole(self) -> str:
        """The name with an absolute path, as `parse` takes it. It must not be shown."""
        return self.target if self.target.startswith(f"{self.kind}://") else f"{self.kind}:{self.target}"

    @property
    def is_plug_in(self) -> bool:
        """True if the sink comes from another package."""
        return self.kind not in BUILT_IN

    @property
    def has_secret(self) -> bool:
        """True if the target contains a password or a similar secret."""
        return bool(self._secrets)

    def clean(self, text: str) -> str:
        """Return a text about this sink without its secrets."""
        if not self.is_remote:
            return text
        parts, secrets = urlsplit(self.target), self._secrets
        hidden = {self.target, parts.netloc.rpartition("@")[0], parts.query, *secrets}
        hidden |= {meant(secret) for secret in secrets for meant in (unquote, unquote_plus)}
        for each in sorted(hidden - {""}, key=lambda each: (-len(each), each)):
            text = text.replace(each, HIDDEN)
        return text

    @property
    def _secrets(self) -> list[str]:
        """The passwords, tokens and keys in the target, in their escaped form."""
        if not self.is_remote:
            return []
        parts = urlsplit(self.target)
        userinfo = parts.netloc.rpartition("@")[0]
        found = [userinfo.partition(":")[2]] if ":" in userinfo else []
        for option in re.split("[&;]", parts.query):
            name, _, value = option.partition("=")
            if _SECRET.search(unquote(name)):
                found.append(value)
            elif unquote(name).lower() == _PROPERTIES:
                for each in re.split("(?i),|%2c", value):
                    name, *rest = re.split("(?i):|%3a", each, maxsplit=1)
                    found += rest if _SECRET.search(unquote(name)) else []
        return found


def parse(text: str) -> SinkName:
    """Return the parsed name of a sink. Raises ConfigError for an invalid name."""
    kind, colon, target = text.partition(":")
    shown = re.sub(r"\?.*", "?...", re.sub(r"://.*@", f"://{HIDDEN}@", text, flags=re.DOTALL), flags=re.DOTALL)
    if not colon or (kind not in BUILT_IN and kind not in plug_ins()):
        raise ConfigError(f"{shown!r} is no sink: write {FORMS}{_forms_of_plug_ins()}")
    if not target.strip("/"):
        raise ConfigError(f"the sink {shown!r} does not say where: write {FORMS}")
    if target == "-" and kind in BUILT_IN:
        raise ConfigError(
            f"the sink {shown!r} is no place: - is the standard output, which only kadcrawl export --to has, for "
            f"jsonl:- and csv:-. A directory of this name is {kind}:./-"
        )
    if kind == "csv" and target.endswith(".csv"):
        raise ConfigError(
            f"the sink {shown!r} looks like a file, and csv:PLACE is a directory, to which each peer adds files. One "
            "file is written by kadcrawl export DIR --to csv:- > FILE"
        )
    if kind.startswith("mongodb"):
        target = _checked_mongodb(text, shown)
    elif kind not in BUILT_IN:
        target = text if target.startswith("//") else target
    elif kind == "sqlite":
        target = _path(target, shown)
    elif "://" not in target or target.startswith("file://"):
        target = _path(target.removeprefix("file:"), shown)
    return SinkName(kind, target, shown)


def check(name: SinkName) -> None:
    """Raise ConfigError, with the package to install, if the sink needs a missing package or its plug-in refuses it."""
    if name.is_plug_in:
        try:
            plug_in(name.kind, name.target)
        except ConfigError as error:
            raise ConfigError(name.clean(str(error))) from None
        return
    if name.kind.startswith("mongodb"):
        _need("pymongo", "mongodb", name)
        return
    if name.kind == "parquet":
        _need("pyarrow", "parquet", name)
    if name.is_remote:
        protocol = name.target.partition("://")[0]
        _need("fsspec", "s3" if protocol in _S3 else "fsspec", name)
        from fsspec import get_filesystem_class

        try:
            get_filesystem_class(protocol)
        except ImportError as error:
            extra = "kadcrawl[s3]" if protocol in _S3 else "what it asks for"
            raise ConfigError(f"the sink {name.shown} needs more ({error}): pip install '{extra}'") from None
        except ValueError:
            raise ConfigError(f"the sink {name.shown}: fsspec knows no {protocol}://") from None


def check_directory(name: SinkName, data: Path | None = None) -> None:
    """Raise ConfigError for a database in a directory that does not exist, as its name is mistyped.

    `data` is a directory that the caller makes.
    """
    directory = Path(name.target).parent
    is_made = data is not None and directory.is_relative_to(data.absolute())
    if name.kind == "sqlite" and not directory.is_dir() and not is_made:
        raise ConfigError(f"cannot write {name.shown}: there is no directory {directory}")


def _forms_of_plug_ins() -> str:
    kinds = sorted(plug_ins())
    return f"; installed packages also take {', '.join(f'{kind}:TARGET' for kind in kinds)}" if kinds else ""


def _need(module: str, extra: str, name: SinkName) -> None:
    if find_spec(module) is None:
        raise ConfigError(f"the sink {name.shown} needs {module}: pip install 'kadcrawl[{extra}]'")


def _path(text: str, shown: str) -> str:
    if text.startswith("//") and not text.startswith("///"):
        raise ConfigError(f"the sink {shown!r} names a host before its path: an absolute path begins with /")
    path = Path(re.sub("^/+", "/", text)).expanduser()
    return str(path.absolute())


def _checked_mongodb(text: str, shown: str) -> str:
    """Return the connection string if it names a host and a database. pymongo parses the rest."""
    parts = urlsplit(text)
    database = parts.path.strip("/")
    if not parts.netloc.rpartition("@")[2] or not database or "/" in database:
        raise ConfigError(f"the sink {shown!r} must name a host and a database: mongodb://HOST/DATABASE")
    return text
