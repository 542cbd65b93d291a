"""JSON merge patches between two states of a document (RFC 7396).

A patch has only the members that changed, and None for a member that is gone. So a document has no member that is None:
`without_none` leaves them out. Arrays are replaced whole. A decision.
"""

from collections.abc import Mapping
from typing import Any

Json = dict[str, Any]


def without_none(document: Mapping[str, Any]) -> Json:
    """Return a document without the members that are None, at any depth of objects."""
    return {
        name: without_none(value) if isinstance(value, Mapping) else value
        for name, value in document.items()
        if value is not None
    }


def merge_patch(old: Mapping[str, Any], new: Mapping[str, Any]) -> Json:
    """Return the patch that makes the document `new` of `old`. Neither has a member that is None."""
    patch: Json = dict.fromkeys((name for name in old if name not in new), None)
    for name, value in new.items():
        before = old.get(name)
        if before == value and type(before) is type(value):
            continue
        if isinstance(before, dict) and isinstance(value, dict):
            patch[name] = merge_patch(before, value)
        else:
            patch[name] = value
    return patch


def patched(document: Mapping[str, Any], patch: Mapping[str, Any]) -> Json:
    """Return the document that a patch makes of another, as a page does."""
    result = dict(document)
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        elif isinstance(value, Mapping):
            before = result.get(name)
            result[name] = patched(before if isinstance(before, Mapping) else {}, value)
        else:
            result[name] = value
    return result
