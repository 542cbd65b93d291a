"""Which URLs belong to the crawl, and which peer owns them."""
