"""Test that the SimHash of a page is the SimHash of its shingles.

Similar pages have near hashes, different pages far ones.
"""

from hashlib import blake2b
from random import Random

import pytest

from kadcrawl.crawl.content.simhash import SHINGLE_WORDS, TEXT_BYTES_MAX, simhash

CHANCE = Random(1)
WORDS = [f"word{CHANCE.randrange(2_000)}" for _ in range(3_000)]
MASK = (1 << 64) - 1


def page_of_words(*words: str) -> bytes:
    return f"<title>t</title><p>{' '.join(words)}</p>".encode()


def bits(one: int | None, other: int | None) -> int:
    assert one is not None
    assert other is not None
    return (one ^ other).bit_count()


def by_the_book(words: list[str]) -> int:
    """Charikar's definition, bit by bit: the value of a shingle is that of its words, shifted into each other."""
    counts = [0] * 64
    for start in range(len(words) - SHINGLE_WORDS + 1):
        shingle = b"".join(
            blake2b(word.encode(), digest_size=8).digest() for word in words[start : start + SHINGLE_WORDS]
        )
        number = int.from_bytes(shingle, "little")
        value = (number ^ number >> 85 ^ number >> 170) & MASK
        counts = [count + (1 if value >> bit & 1 else -1) for bit, count in enumerate(counts)]
    return sum(1 << bit for bit, count in enumerate(counts) if count > 0)


@pytest.mark.parametrize("count", [*range(4, 40), 100, 1_000])
def test_each_bit_is_what_most_shingles_have(count: int) -> None:
    words = WORDS[:count]
    assert by_the_book(words) == simhash(" ".join(words).encode())


@pytest.mark.parametrize("html", [b"", b"<p>", b"<p>only three words</p>", b"<script>a b c d e f</script>"])
def test_a_page_without_text_has_none(html: bytes) -> None:
    assert simhash(html) is None


def test_only_the_text_counts() -> None:
    plain = simhash(b"the quick brown fox jumps over it")
    for html in (
        b"<p class='x y'>The QUICK <b>brown</b>, fox;\njumps (over) it!",
        b"<STYLE>p {color: red}</style>the quick brown fox<!-- not this > --> jumps over it",
        b"<script>var a = 'b <p> c';</SCRIPT> the quick brown fox jumps over it<script>and no end",
    ):
        assert plain == simhash(html)
    assert plain != simhash(b"it over jumps fox brown quick the")


def test_only_pages_that_differ_in_a_few_words_are_near_duplicates() -> None:
    changed = [*WORDS]
    changed[100], changed[2_000] = "2026-11-22", "1234567"
    assert bits(simhash(page_of_words(*WORDS)), simhash(page_of_words(*changed))) <= 3
    assert bits(simhash(page_of_words(*WORDS)), simhash(page_of_words(*reversed(WORDS)))) > 10


def test_what_stands_beyond_the_limit_changes_nothing() -> None:
    longest = b"<p>one two three four five".ljust(TEXT_BYTES_MAX)
    assert simhash(longest) == simhash(longest + b"six seven")


@pytest.mark.parametrize("unit", [b"<script>", b"<!--", b"<", b"a ", b"<style ", b">"])
def test_a_hostile_page_takes_time_in_proportion_to_its_length(unit: bytes) -> None:
    simhash((unit * TEXT_BYTES_MAX)[:TEXT_BYTES_MAX])
