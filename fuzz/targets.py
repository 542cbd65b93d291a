"""The targets by name. A module is imported when its target is asked for, as the child counts what is run of it."""

from importlib import import_module

from fuzz.target import Target

MODULES = {
    "datagram": "datagrams",
    "sealed": "sealed",
    "frame": "frames",
    "epoch_filters": "frames",
    "robots": "pages",
    "html": "pages",
    "sitemap": "pages",
    "body": "pages",
    "urls": "words",
    "job": "words",
    "proxies": "words",
    "journal": "journals",
    "data": "data_files",
}
"""Name of a target -> the target."""
NAMES = tuple(MODULES)


def target(name: str) -> Target:
    """Return the target of this name, one of `NAMES`."""
    found: dict[str, Target] = {one.name: one for one in import_module(f"fuzz.{MODULES[name]}").TARGETS}
    return found[name]
