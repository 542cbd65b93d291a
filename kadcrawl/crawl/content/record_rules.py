"""A record rule takes records out of one page: a decision that runs in the worker (record_worker.py), where it may go
wrong.

Whatever the rule and the page, the result is a few records as JSON, within the limits, or one of many exceptions. The
rule builds a tree of an untrusted page. lxml stays within some 25 times the page and nests 2,048 deep, but a page can
make it slow. So a rule runs where time and memory are bounded from outside.
"""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import msgspec

from kadcrawl.crawl.content.page import Page
from kadcrawl.crawl.fetch.result import HTML
from kadcrawl.settings.limits import Limits
from kadcrawl.settings.page_rules import Field, RecordRule

if TYPE_CHECKING:
    from parsel import Selector, SelectorList

Hook = Callable[[Page], object]


class RecordError(Exception):
    """The page has no records, and why, in words for its page line."""


def extract(rule: RecordRule, hook: Hook | None, page: Page, limits: Limits) -> list[bytes]:
    """Return the records of a page, each one JSON object. Raises RecordError, and whatever the hook raises."""
    found = _by_hook(hook(page)) if hook is not None else _by_fields(rule, page)
    records, size = [], 0
    for record in found:
        try:
            encoded = msgspec.json.encode(record)
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            raise RecordError(f"a record is no JSON: {error}") from None
        records.append(encoded)
        size += len(encoded)
        if size > limits.record_bytes_max or len(records) > limits.records_per_page_max:
            raise RecordError(
                f"more than {limits.records_per_page_max} records or {limits.record_bytes_max} bytes of them"
            )
    return records


def _by_hook(result: object) -> list[dict[Any, Any]]:
    if result is None:
        return []
    found: list[Any] = result if isinstance(result, list) else [result]
    for one in found:
        if not isinstance(one, dict):
            inside = " in a list" if isinstance(result, list) else ""
            raise RecordError(f"the hook returned {type(one).__name__}{inside}, not dict, list of dict or None")
    return found


def _by_fields(rule: RecordRule, page: Page) -> Iterator[dict[str, Any]]:
    if page.mime not in HTML:
        return
    for root in _select(page.selector, rule.each) if rule.each else [page.selector]:
        if rule.each and isinstance(root.root, str):
            raise RecordError("each finds texts; it must find elements, so leave out ::text, ::attr() or text()")
        record = {field.name: _value(root, field) for field in rule.fields}
        if any(value not in (None, []) for value in record.values()):
            yield record


def _value(root: "Selector", field: Field) -> str | list[str] | None:
    found = _select(root, field.selector)
    return found.getall() if field.every else found.get()


def _select(root: "Selector", selector: str) -> "SelectorList[Selector]":
    kind, _, expression = selector.partition(":")
    try:
        return root.css(expression) if kind == "css" else root.xpath(expression)
    except ValueError as error:
        raise RecordError(f"{expression}: {error}") from None
