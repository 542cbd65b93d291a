"""The classes of differences: for each, which side is right, by which standard, and the option that changes kadcrawl.

Tests: tests/scripts/test_compare_links.py
"""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class DifferenceClass:
    """One reason for which two crawlers differ."""

    title: str
    what: str
    """The difference, for a reader of the page."""
    right: str
    """The side that is right, with the standard that says so."""
    option: str
    """The option with which kadcrawl does the same as the others, or the reason that there is none."""


_EMBEDDED: Final = (
    "Both, for their purposes. HTML has them as parts of the page, and hyperlinks lead to other pages. "
    "wget makes a copy that can be read offline."
)
_NO_EMBEDDED: Final = "None: kadcrawl collects pages and their links. ArchiveBox and Browsertrix keep the rest."
_NOFOLLOW: Final = "[`--nofollow ignore`](../how-to/scope-and-traps.md#links-that-say-nofollow)"
_EXCLUDE: Final = "[`--exclude`](../how-to/scope-and-traps.md#set-the-scope) leaves such pages out"

CLASSES: Final[dict[str, DifferenceClass]] = {
    "canonical form": DifferenceClass(
        "Canonical form",
        "The same URL in two spellings: backslashes, dot segments, empty segments, default ports, spaces, the case of "
        "hosts and of percent-escapes.",
        "kadcrawl. The URL standard of the WHATWG reads a backslash as a slash, keeps empty segments, removes dot "
        "segments and default ports, and lowers hosts. RFC 3986, 6.2.2.1 makes the case of escapes equal. Python's "
        "`urljoin`, which Scrapy uses, and wget follow the older RFC 3986 alone.",
        "None: the owner of a URL is found by its canonical form.",
    ),
    "equal after decoding": DifferenceClass(
        "Equal after decoding",
        "wget decodes `%7E` to `~`. Scrapy's filter of duplicates decodes escapes and sorts the parameters of a query, "
        "and of two such URLs it fetches the first.",
        "Both. RFC 3986, 6.2.2.2 allows to decode letters, digits and `-._~`, and the WHATWG does not do it. "
        "No standard allows to sort a query.",
        "[`--sort-query`](../how-to/scope-and-traps.md#sites-that-invent-urls) sorts parameters. None decodes.",
    ),
    "rel=nofollow": DifferenceClass(
        "Links that say nofollow",
        "`<a rel=nofollow>`: wget follows such links, and LinkExtractor lists them with a mark.",
        "Both. HTML only says that the site does not endorse the link. Search engines do not follow it.",
        _NOFOLLOW,
    ),
    "nofollow of the page": DifferenceClass(
        "Pages that say nofollow",
        "`<meta name=robots content=nofollow>`: kadcrawl and wget follow no link of the page. LinkExtractor lists "
        "them.",
        "kadcrawl and wget. No standard says it, but search engines and the manual of wget do.",
        _NOFOLLOW,
    ),
    "file name extensions": DifferenceClass(
        "File name extensions",
        "LinkExtractor leaves out URLs that end in one of 91 extensions, such as `.pdf`, `.png` and `.py`, unless its "
        "`deny_extensions` says otherwise.",
        "kadcrawl. RFC 9110, 8.3 makes `Content-Type` say what a resource is, and not its name.",
        "[`--exclude`](../how-to/scope-and-traps.md#set-the-scope) with a pattern such as `\\.(png|gif)$`",
    ),
    "link elements": DifferenceClass(
        "`<link>` with next, alternate or canonical",
        "kadcrawl follows them, feeds among them. LinkExtractor reads `a` and `area` only.",
        'kadcrawl. HTML, "link types", calls `next` and `alternate` hyperlinks. RFC 6596 calls `canonical` the '
        "preferred URL of the page.",
        _EXCLUDE,
    ),
    "other link elements": DifferenceClass(
        "Other `<link>` elements",
        "wget follows each `<link href>`: style sheets, icons, `search`, and `rev=made` with an address of mail.",
        'Both, for their purposes. HTML, "link types", calls style sheets and icons external resources, no hyperlinks. '
        "`help`, `license`, `prev` and `search` are hyperlinks that kadcrawl leaves out, as `a` names them too.",
        "None: name such a page as a further seed.",
    ),
    "frames": DifferenceClass(
        "Frames",
        "kadcrawl and wget follow `src` of `frame` and `iframe`. LinkExtractor needs `tags` and `attrs` that say so.",
        "kadcrawl and wget. HTML shows another page there, and a site of frames may have no other link.",
        _EXCLUDE,
    ),
    "meta refresh": DifferenceClass(
        "`<meta http-equiv=refresh>`",
        "kadcrawl and wget count the target as a link. LinkExtractor does not, and Scrapy redirects if the time is "
        "less than 100 s.",
        'kadcrawl and wget. HTML, "shared declarative refresh steps": a browser goes there.',
        _EXCLUDE,
    ),
    "after the end": DifferenceClass(
        "Links after `</html>`",
        "A link behind the end tags of `body` and `html`. LinkExtractor does not see it.",
        'kadcrawl. HTML, "after after body", calls it an error of the page, and reads the link as a part of the body.',
        "None.",
    ),
    "other schemes": DifferenceClass(
        "Other schemes",
        "LinkExtractor lists `ftp:` and `file:` URLs. `mailto:` and `javascript:` are left out by all three.",
        "Both. HTML allows any scheme, and a crawler speaks HTTP.",
        "None.",
    ),
    "the page itself": DifferenceClass(
        "Links to the page itself",
        "LinkExtractor lists the links of a page to itself, such as `#top`. kadcrawl does not count them. No request "
        "comes of it.",
        "Both.",
        "None.",
    ),
    "raw text": DifferenceClass(
        "Markup in raw text",
        "What looks like a link within `<textarea>` or `<title>`. wget fetches it.",
        'kadcrawl and LinkExtractor. HTML, "RCDATA state", has no tags in there, and a browser shows no link.',
        "None.",
    ),
    "embedded": DifferenceClass(
        "Images, scripts and media",
        "wget fetches `src` of `img`, `script`, `source`, `video` and others, and `data` of `object`.",
        _EMBEDDED,
        _NO_EMBEDDED,
    ),
    "srcset": DifferenceClass(
        "Images in `srcset`", "wget fetches each candidate of a `srcset`.", _EMBEDDED, _NO_EMBEDDED
    ),
    "style": DifferenceClass(
        "`url()` of styles",
        "wget fetches what `url()` and `@import` name, in style sheets, in `<style>` and in `style=`.",
        _EMBEDDED,
        _NO_EMBEDDED,
    ),
    "only from such a page": DifferenceClass(
        "Named by a page of another class",
        "A URL on pages or style sheets that only one of the two has fetched, for another reason of this list.",
        "As that reason.",
        "As that reason.",
    ),
}
"""All classes by name."""
