"""Requests through proxies, which are chosen, verified and refilled here.

`pool` decides which proxy a site is asked through. `health` is the state of one proxy. `health_checks` verifies proxies
and reads lists of proxies. `fetcher` fetches through the pool.
"""
