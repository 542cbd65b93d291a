"""The comparison of kadcrawl with `wget -r` and Scrapy's LinkExtractor gives each difference a reason.

`mentions` reads a page without kadcrawl's parser and lists where it names URLs. `rules` finds the reason for a
difference in these mentions, and `classes` says which side is right. `clients` runs the three crawlers, and
`scrapy_client` is Scrapy in an environment of its own. `specimen` is a small site with a difference of every class.
`python -m scripts.figures links` measures all of it on four documentation sites.
"""
