"""Monitoring of one peer: a listener of its own with `/metrics`, `/healthz` and `/readyz`, if `Config.metrics` is set.

`catalog` has the name, kind and meaning of each metric, and `readings` reads the values from the parts of the peer when
somebody asks, so that a peer without a listener pays nothing. `verdict` says in one word why the crawl is not done, and
`readiness` whether the peer is ready. `exposition` makes the text for Prometheus, and `listener` answers the requests.
Only `exposition` and `listener` import prometheus_client and aiohttp.web, and `PeerBase` imports both on demand.
"""
