"""The benchmark: real sites crawled by kadcrawl and by other crawlers, side by side on one machine."""
