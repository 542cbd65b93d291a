"""Facts about a regular expression that are proven from its parts, for warnings of rules that never apply.

A pattern is *searched* in canonical URLs (urls.py). What can be proven is little: the literal texts that every match
contains, the literal text with which a URL must begin, and whether the pattern is found in each URL that has a given
begin. Where nothing is proven, no fact is claimed. A decision.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

# The parser of the standard library: a parser of our own could read a pattern otherwise than the crawl does.
from re import _constants as ops, _parser as parser  # type: ignore[attr-defined] # isort: skip

NOT_LITERAL = re.IGNORECASE | re.LOCALE | re.MULTILINE
"""Flags with which a literal stands for other texts, or the begin of a line for the begin of a URL."""
COPIES_MAX = 10
"""Repeats of a part that are written out."""
_NEVER = re.compile(r'[\x00-\x20"#<>\x7f-\U0010ffff]|%(?:[0-9A-F][a-f]|[a-f][0-9A-Fa-f])')
"""A text that no canonical URL has: a character that is always escaped, or an escape in lower case."""
_LOOKING = frozenset({ops.ASSERT, ops.ASSERT_NOT})
SCHEMES = ("http://", "https://")
"""The begins of all canonical URLs."""


@dataclass(frozen=True)
class PatternFacts:
    """The facts about one pattern, which is a valid regular expression."""

    pattern: str

    @cached_property
    def literals(self) -> tuple[str, ...]:
        """Texts that every URL contains in which the pattern is found."""
        return tuple(filter(None, self._runs[1]))

    @cached_property
    def begin(self) -> str | None:
        """The text with which every such URL begins, or None if it may begin with any."""
        is_anchored, runs = self._runs
        return runs[0] if is_anchored and runs else None

    def is_found_in(self, url: str) -> bool:
        """Return whether the pattern is found in a canonical URL."""
        return self._compiled.search(url) is not None

    @property
    def impossible(self) -> str | None:
        """A text that no canonical URL has, but every URL in which the pattern is found would have. None without."""
        found = (_NEVER.search(text) for text in self.literals)
        return next((match[0] for match in found if match is not None), None)

    def may_begin(self, begins: Sequence[str]) -> bool:
        """Return whether a URL with one of these begins may match, as far as its begin is concerned."""
        begin = self.begin
        return begin is None or any(begin.startswith(one) or one.startswith(begin) for one in begins)

    def always_found(self, begins: Sequence[str] = SCHEMES) -> bool:
        """Return whether the pattern is found in every URL that has one of these begins."""
        return self._grows and bool(begins) and all(self._compiled.search(one) for one in begins)

    def found_with(self, other: "PatternFacts") -> bool:
        """Return whether this pattern is found in every URL in which the other pattern is found."""
        if self.pattern == other.pattern:
            return True
        if not self._grows:
            return False
        if other.begin is not None and self._compiled.search(other.begin):
            return True
        return not self._is_anchored and any(self._compiled.search(text) for text in other.literals)

    # --- inside --------------------------------------------------------------------------------------------------

    @cached_property
    def _compiled(self) -> re.Pattern[str]:
        return re.compile(self.pattern)

    @cached_property
    def _tree(self) -> Any:
        return parser.parse(self.pattern)

    @cached_property
    def _grows(self) -> bool:
        """True if a match in a text is also a match in each longer text with the same begin.

        Nothing in the pattern looks at what follows.
        """
        return not any(op in _LOOKING or (op is ops.AT and not _is_begin(what)) for op, what in _all_parts(self._tree))

    @cached_property
    def _is_anchored(self) -> bool:
        """True if the pattern says in any of its parts where the URL begins."""
        return any(op is ops.AT and _is_begin(what) for op, what in _all_parts(self._tree))

    @cached_property
    def _runs(self) -> tuple[bool, list[str]]:
        """Whether the pattern begins with the begin of the URL, and its literal texts, the first one there if so."""
        if self._tree.state.flags & NOT_LITERAL:
            return False, []
        runs = [""]
        parts = [*self._tree]
        is_anchored = bool(parts) and parts[0][0] is ops.AT and _is_begin(parts[0][1])
        _read(parts, runs)
        return is_anchored, runs


def _is_begin(where: Any) -> bool:
    return where in (ops.AT_BEGINNING, ops.AT_BEGINNING_STRING)


def _read(parts: Iterable[tuple[Any, Any]], runs: list[str]) -> None:
    """Add the literal texts of these parts, one after the other, to `runs`, whose last text still goes on."""
    for op, what in parts:
        if op is ops.LITERAL:
            runs[-1] += chr(what)
        elif op is ops.SUBPATTERN and not what[1] and not what[2]:
            _read(what[3], runs)
        elif op is ops.ATOMIC_GROUP:
            _read(what, runs)
        elif op in (ops.MAX_REPEAT, ops.MIN_REPEAT, ops.POSSESSIVE_REPEAT) and what[0]:
            least, most, repeated = what
            copies = min(int(least), COPIES_MAX)
            for _ in range(copies):
                _read(repeated, runs)
            if copies != most:
                runs.append("")
        elif op is not ops.AT and op not in _LOOKING:  # Those take up no characters.
            runs.append("")


def _all_parts(parts: Iterable[tuple[Any, Any]]) -> Iterable[tuple[Any, Any]]:
    """Yield all parts, and the parts within them."""
    for op, what in parts:
        yield op, what
        for inner in what if isinstance(what, tuple | list) else (what,):
            if isinstance(inner, parser.SubPattern):
                yield from _all_parts(inner)
            elif isinstance(inner, list):
                for branch in inner:
                    if isinstance(branch, parser.SubPattern):
                        yield from _all_parts(branch)
