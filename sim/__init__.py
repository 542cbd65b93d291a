"""Worlds to crawl and judges of what was done there. May import kadcrawl, is never imported by it."""
