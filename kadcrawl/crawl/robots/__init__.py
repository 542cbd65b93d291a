"""The rules of robots.txt (RFC 9309), and a cache of the rules by origin.

`rules` parses a file and decides whether a URL is allowed. `cache` keeps the rules in memory and in the store, and
remembers the searches for missing rules. `crawl/robots_fetch.py` makes the requests.
"""
