"""The hook of the example: what no selector can say of a page."""

from collections import Counter

from kadcrawl import Page


def word_count(page: Page) -> dict[str, object] | None:
    """Return how many words the page has, and the commonest; nothing for a page without text."""
    words = Counter(" ".join(page.selector.css("p ::text").getall()).split())
    if not words:
        return None
    return {
        "title": page.selector.css("h1::text").get(),
        "words": words.total(),
        "commonest": words.most_common(1)[0][0],
    }
