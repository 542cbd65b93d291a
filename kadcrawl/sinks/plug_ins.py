"""Sinks of other packages: each is an entry point in the group `kadcrawl.sinks`, named by the kind of the sink.

The entry point is a function of the sink's target, or a class, that makes a `BlockingSink` (sink.py). So results go to
any database without a change here. A peer loads only the plug-ins that its sinks name.

Tests: tests/sinks/test_plug_ins.py
"""

from typing import TYPE_CHECKING

from kadcrawl.errors import ConfigError
from kadcrawl.sinks.sink import BlockingSink

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "kadcrawl.sinks"
METHODS = ("open", "offset", "put", "close")


def plug_ins() -> "dict[str, EntryPoint]":
    """Return the entry points of installed sinks by kind. Of two with one kind the first found counts."""
    from importlib.metadata import entry_points  # Not at the top: most crawls have no sinks.

    found: dict[str, EntryPoint] = {}
    for each in entry_points(group=GROUP):
        found.setdefault(each.name, each)
    return found


def plug_in(kind: str, target: str) -> BlockingSink:
    """Return the sink of an installed package.

    Raises ConfigError if there is none of this kind, if its package does not load, and if it refuses the target or
    makes no sink.
    """
    entry = plug_ins().get(kind)
    if entry is None:
        raise ConfigError(f"no installed package has sinks of the kind {kind}: install the package, or name another")
    try:
        made = entry.load()(target)
    except ConfigError:
        raise
    except Exception as error:  # Any code may be behind the name.
        raise ConfigError(f"the sink {kind} ({entry.value}) does not load: {type(error).__name__}: {error}") from error
    if missing := [name for name in METHODS if not callable(getattr(made, name, None))]:
        raise ConfigError(f"the sink {kind} ({entry.value}) lacks {', '.join(missing)}: see kadcrawl.sinks.sink")
    if not hasattr(made, "size"):
        raise ConfigError(f"the sink {kind} ({entry.value}) lacks size: see kadcrawl.sinks.sink")
    sink: BlockingSink = made
    return sink
