"""Requests through proxies: the pool, its health checks, the fetcher that uses it."""
