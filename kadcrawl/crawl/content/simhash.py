"""The SimHash of a page's text is 64 bits, and near-identical pages differ in few of them. A decision: no I/O, no
clock.

The method is Charikar's (2002), as Manku, Jain and Das Sarma (WWW 2007) use it: every shingle of the text is hashed to
64 bits, and each bit of the result is the majority of that bit over all shingles. So a date or a counter on a long page
changes hardly a bit. Pages that differ in at most 3 bits count as near duplicates.

The text is the bytes without tags, scripts and styles: words of any script, in ASCII's lower case. A shingle is a word
with the next three words. The computation works on long integers that hold one hash after the other, in time linear in
the page. A loop over shingles and bits takes many times as long, and the package `simhash`, with numpy, four times.
Even so a SimHash costs twice as much as finding the links, 0.7 ms for 50 KB, so it is off unless asked for
(`Job.simhash`). The same bytes have the same value everywhere.
"""

import re
from functools import lru_cache
from hashlib import blake2b

TEXT_BYTES_MAX = 1024 * 1024
"""Bytes of a page that count. Later bytes change nothing."""
BITS = 64
SHINGLE_WORDS = 4
"""Words a shingle reaches over."""

_UNSEEN = re.compile(rb"<(?:(script|style)[\s>].*?(?:</\1|\Z)|!--.*?(?:-->|\Z))", re.DOTALL | re.IGNORECASE)
_LETTERS = frozenset(b"0123456789abcdefghijklmnopqrstuvwxyz") | frozenset(range(0x80, 0x100))
_WORDS = bytes(letter if letter in _LETTERS else 32 for letter in bytes(range(256)).lower())
"""Translates text to words with spaces between."""


def simhash(html: bytes) -> int | None:
    """Return the SimHash of an HTML page, or None for a page with fewer words than a shingle."""
    seen = _UNSEEN.sub(b"<>", html[:TEXT_BYTES_MAX])
    text = b" ".join([part.partition(b">")[2] for part in (b">" + seen).split(b"<")])
    words = text.translate(_WORDS).split()
    shingles = len(words) - SHINGLE_WORDS + 1
    if shingles < 1:
        return None
    hashes = int.from_bytes(b"".join(map(_hash, words)), "little")
    # Shifted by more than a word, so that no bit meets itself and the order of the words counts.
    mixed = hashes ^ hashes >> BITS + 21 ^ hashes >> 2 * BITS + 42
    return _majority(mixed & (1 << BITS * shingles) - 1, shingles)


@lru_cache(65_536)
def _hash(word: bytes) -> bytes:
    return blake2b(word, digest_size=BITS // 8).digest()


def _majority(numbers: int, count: int) -> int:
    """Return the bits that more than half of `count` numbers of 64 bits have. One integer holds all the numbers."""
    more, equal = 0, (1 << BITS) - 1
    planes = _counts(numbers, count)
    half = count // 2
    for place in range(max(len(planes), half.bit_length()) - 1, -1, -1):
        plane = planes[place] if place < len(planes) else 0
        if half >> place & 1:
            equal &= plane
        else:
            more |= equal & plane
            equal &= ~plane
    return more


def _counts(numbers: int, count: int) -> list[int]:
    """Return how many numbers have each bit, in binary: one number of 64 bits for each place, the units first."""
    planes = []
    while count:
        carries, carried = 0, 0
        while count > 1:
            # Full adders, for a third of the numbers at a time: three of them make a sum and a carry. Two make these
            # with nothing.
            part = max(count // 3, 1)
            bits = BITS * part
            low = (1 << bits) - 1
            a, b, c = numbers & low, numbers >> bits & low, numbers >> 2 * bits & low
            either = a ^ b
            carries |= (a & b | c & either) << BITS * carried
            carried += part
            numbers = numbers >> 3 * bits << bits | either ^ c
            count = max(count - 2 * part, 1)
        planes.append(numbers)
        numbers, count = carries, carried
    return planes
