"""The hook of the example counts words, which no selector can do."""

from collections import Counter

from kadcrawl import Page


def word_count(page: Page) -> dict[str, object] | None:
    """Return the number of words of the page, and the commonest word, or None for a page without text."""
    words = Counter(" ".join(page.selector.css("p ::text").getall()).split())
    if not words:
        return None
    return {
        "title": page.selector.css("h1::text").get(),
        "words": words.total(),
        "commonest": words.most_common(1)[0][0],
    }
