"""Rules for the first sentence of a piece of prose, as regular expressions.

The first sentence ends at `.`, `!`, `?` or a blank line. Its head ends at the first colon: the head names the subject,
the tail explains. Names in backticks and words in double quotes are names, not prose. The rules:

- `long`: head or tail has more than 20 words.
- `semicolon`: in the head.
- `opening`: the head begins with a noun clause (who, what, whether, how, where, when, why, which), with a pronoun (it,
  they, one, those, this is), or with a dropped subject: a preposition or conjunction without a main clause after a
  comma, a participle ("Called when ..."), or "X too".
- `pronoun`: "what", "whom", "whoever" and their kin and "of which" anywhere in the sentence; "who" unless it follows
  its noun; in the head, "one" and "ones" without a noun. In the tail "one" may stand for a noun of the head.
- `vague`: "thing", "things" and "something" in the head.

A regular expression does not know metaphors or missing verbs: a sentence that passes may still be a riddle.
"""

import re
from collections.abc import Iterator
from typing import Final

WORDS_AIM: Final = 20
RULES: Final = ("long", "semicolon", "opening", "pronoun", "vague")

_END: Final = re.compile(r"(?<!\be\.g)(?<!\bi\.e)(?<!\bcf)(?<!\bvs)[.!?][\"')\]]*(?=\s|$)|\n\s*\n")
_NAMES: Final = re.compile(r"``[^`]+``|`[^`]+`|\"[^\"]*\"|“[^”]*”")
_NAME: Final = "Name"
_WORD: Final = re.compile(r"\S*\w\S*")

_NOUN_CLAUSE: Final = re.compile(r"(?:who|whom|whose|what|which|whether|how|where|when|why)(?:ever)?\b", re.I)
_PRONOUN: Final = re.compile(
    r"(?:it|its|they|their|he|she|ones?|those|such)\b(?! (?:hundred|thousand|million)\b)"
    r"|(?:this|these|that) (?:is|are|was|were|has|have|can|may|must|which|who)\b",
    re.I,
)
_ONE_AND_NOUN: Final = re.compile(r"one (?:of\b|or more\b|[a-z-]+\b(?<!\bthat)(?<!\bwhich)(?<!\bwho))", re.I)
_FRAGMENT: Final = re.compile(
    r"(?:after|among|and|as|at|because|before|between|but|by|during|except|for|from|if|in|like|of|on|or|over|per"
    r"|since|so|than|through|to|under|unless|until|with|within|without|while)\b",
    re.I,
)
_PARTICIPLE: Final = re.compile(r"(?:asked|called|counted|given|held|kept|known|made|said|taken|told|used)\b", re.I)
_TOO: Final = re.compile(r"\S+ (?:too|also|as well)$", re.I)

_WHAT: Final = re.compile(r"\b(?:what|whom|whoever|whomever|whatever|whichever)\b|\bof which\b", re.I)
_WHO: Final = re.compile(
    r"(?:^|\b(?:about|and|as|ask|asks|at|but|by|for|from|is|know|knows|matter|of|on|or|say|says|see|sees|tell|tells|than"
    r"|that|to|with)\s+|[;(]\s*)who\b",
    re.I,
)
_ONE: Final = re.compile(
    r"\bones\b|\bone\b(?! at a time| by one| or more| another| in \d)"
    r"(?=[^\w\s-]|\s*$|\s+(?:a|after|and|as|at|before|but|by|can|does|for|from|had|has|if|in|is|it|may|must|not|on|or"
    r"|than|that|the|they|to|was|when|which|who|whose|will|with)\b)",
    re.I,
)
_VAGUE: Final = re.compile(r"\b(?:some)?things?\b", re.I)


def first_sentence(text: str) -> str:
    """Return the first sentence of a docstring on one line, without its full stop."""
    text = text.strip()
    end = _END.search(text)
    return " ".join(text[: end.start() if end else len(text)].split())


def departures(text: str) -> list[str]:
    """Return the rules that the first sentence of `text` breaks, in the order of `RULES`."""
    sentence = _NAMES.sub(_NAME, first_sentence(text))
    head, _, tail = (part.strip() for part in sentence.partition(": "))
    return [rule for rule in RULES if rule in set(_broken(head, tail))]


def _broken(head: str, tail: str) -> Iterator[str]:
    if max(len(_WORD.findall(part)) for part in (head, tail)) > WORDS_AIM:
        yield "long"
    if ";" in head:
        yield "semicolon"
    if _opens_without_subject(head):
        yield "opening"
    if any(_WHAT.search(part) or _WHO.search(part) for part in (head, tail)) or _ONE.search(head):
        yield "pronoun"
    if _VAGUE.search(head):
        yield "vague"


def _opens_without_subject(head: str) -> bool:
    if _NOUN_CLAUSE.match(head) or _PARTICIPLE.match(head) or _TOO.match(head):
        return True
    if _PRONOUN.match(head):
        return not _ONE_AND_NOUN.match(head) or bool(_ONE.match(head))
    if _FRAGMENT.match(head):
        _, comma, clause = head.partition(", ")
        return not comma or bool(_FRAGMENT.match(clause) or _NOUN_CLAUSE.match(clause)) or len(clause.split()) < 3
    return False
