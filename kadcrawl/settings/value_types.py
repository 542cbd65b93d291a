"""The check that the values of settings have the types of their fields, for programs that no type checker reads.

A text in place of a tuple of texts is the mistake to fear: each of its characters would count as a pattern.

Tests: tests/settings/test_value_types.py
"""

from collections.abc import Mapping
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from kadcrawl.settings.limits import require

_known_hints: dict[type, Mapping[str, Any]] = {}
"""The types of the fields of each class of settings that was made so far."""


def check_types(settings: object) -> None:
    """Turn lists into tuples, and raise ConfigError for a value that is not of the type of its field.

    `settings` is a frozen dataclass. The error has no value in it, as a value may be a secret. Choices between words
    are checked elsewhere.
    """
    for name, hint in _hints(type(settings)).items():
        value = getattr(settings, name)
        if isinstance(value, list):
            value = tuple(value)
            object.__setattr__(settings, name, value)
        if not _fits(value, hint):
            found = "one with other values" if isinstance(value, tuple) else f"a {type(value).__name__}"
            require(False, f"{name} must be {_words(hint)}, not {found}")


def _hints(settings: type) -> Mapping[str, Any]:
    if settings not in _known_hints:
        _known_hints[settings] = get_type_hints(settings)
    return _known_hints[settings]


def _fits(value: object, hint: Any) -> bool:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return any(_fits(value, each) for each in arguments)
    if origin is Literal:
        return True
    if origin is tuple:
        if not isinstance(value, tuple):
            return False
        if arguments[-1] is ...:
            return all(_fits(each, arguments[0]) for each in value)
        return len(value) == len(arguments) and all(map(_fits, value, arguments))
    if hint in (int, float) and isinstance(value, bool):
        return False
    return isinstance(value, int | float if hint is float else hint)


def _words(hint: Any) -> str:
    """Return the name of a type for a person."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return " or ".join(_words(each) for each in arguments)
    if origin is tuple:
        return f"a tuple of {_words(arguments[0])}" if arguments[-1] is ... else f"a tuple ({_list(arguments)})"
    return "None" if hint is type(None) else "number" if hint is float else str(getattr(hint, "__name__", hint))


def _list(hints: tuple[Any, ...]) -> str:
    return ", ".join(map(_words, hints))
