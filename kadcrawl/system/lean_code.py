"""`drop_docstrings` lets a process that may idle for weeks import code without docstrings.

The docstrings of all packages together take nearly two megabytes in a peer. Python drops them with ``-OO``, but
then it drops assertions too, and it would have to begin anew with that option. After `drop_docstrings`, modules are
imported without them. `help()` of such a function has no text, and all else is the same.

Only the command does so: a program that embeds a peer has its code as it is.

Tests: tests/system/test_lean_code.py
"""

import sys
from importlib.machinery import (
    BYTECODE_SUFFIXES,
    EXTENSION_SUFFIXES,
    SOURCE_SUFFIXES,
    ExtensionFileLoader,
    FileFinder,
    SourceFileLoader,
    SourcelessFileLoader,
)
from inspect import CO_NEWLOCALS
from opcode import opmap
from types import CodeType
from typing import Final

_LOADS: Final = tuple(opmap[name] for name in ("LOAD_CONST", "RETURN_CONST") if name in opmap)
"""The instructions that use a constant."""
_TEXT_MIN: Final = 16
"""Characters of a text that is left out: to leave out a shorter text gains little."""
_CLASS_DOC: Final = "."
"""The docstring that a class gets. Without a docstring `dataclass` would build its own from the fields."""
_CLASS_NAMES: Final = ("__name__", "__module__", "__qualname__")
_CLASS_DOC_AT: Final = {(*_CLASS_NAMES, "__doc__"): 1, (*_CLASS_NAMES, "__firstlineno__", "__doc__"): 2}
"""The first names in the code of a class that has a text -> the place of the text. The latter is Python 3.13."""


class LeanLoader(SourceFileLoader):
    """A loader of modules that leaves out docstrings."""

    def get_code(self, fullname: str) -> CodeType | None:
        code = super().get_code(fullname)
        return None if code is None else without_docstrings(code)


def drop_docstrings() -> None:
    """Import modules without docstrings from now on, in this process.

    Python 3.14 marks the docstring of a function in another way. There docstrings stay.
    """
    if sys.version_info < (3, 14):
        loaders = (
            (ExtensionFileLoader, EXTENSION_SUFFIXES),
            (LeanLoader, SOURCE_SUFFIXES),
            (SourcelessFileLoader, BYTECODE_SUFFIXES),
        )
        sys.path_hooks.insert(0, FileFinder.path_hook(*loaders))
        sys.path_importer_cache.clear()


def without_docstrings(code: CodeType) -> CodeType:
    """Return this code, and all code in it, without docstrings."""
    consts = code.co_consts
    lean = [without_docstrings(const) if type(const) is CodeType else const for const in consts]
    if code.co_flags & CO_NEWLOCALS:  # A function, whose text no instruction uses.
        if not code.co_name.startswith("<") and _is_text(code, 0, uses=0):
            lean[0] = None
    elif code.co_names[:1] == ("__doc__",):  # A module, which stores its text once.
        if _is_text(code, 0, uses=1):
            lean[0] = None
    else:
        for names, at in _CLASS_DOC_AT.items():
            if code.co_names[: len(names)] == names and _is_text(code, at, uses=1):
                lean[at] = _CLASS_DOC
    if all(one is other for one, other in zip(lean, consts, strict=True)):
        return code
    return code.replace(co_consts=tuple(lean))


def _is_text(code: CodeType, index: int, *, uses: int) -> bool:
    """Return whether a constant is a long text that so many instructions use.

    Python keeps equal constants once, so code may use its own text for something else.
    """
    const = code.co_consts[index] if index < len(code.co_consts) else None
    if not isinstance(const, str) or len(const) < _TEXT_MIN:
        return False
    return uses == sum(code.co_code.count(bytes((load, index))) for load in _LOADS)
