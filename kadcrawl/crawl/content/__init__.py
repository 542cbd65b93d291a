"""The content of a page becomes links, text and records here. Decisions only.

`charset` turns bytes into text. `html_walk` finds tags, and `html_links` their links; `native_links` is faster.
`canonical_link` reads a page's canonical URL, and `sitemap` reads sitemaps. `link_finder` decides which links of
an answer are followed. `simhash` and `near_duplicates`
find pages with nearly the same text. `record_rules` takes records out of a page, in the process `record_worker`, which
`record_extractor` drives. `page` is the page that a user of the library sees.
"""
