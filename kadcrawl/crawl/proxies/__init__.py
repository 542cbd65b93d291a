"""Requests through proxies, which are chosen, verified and refilled here.

`pool` decides which proxy a site is asked through. `health` is the state of one proxy. `health_memory`
keeps it in the journal. `health_checks` verifies proxies and reads lists of proxies. `page_proxies` finds the proxies
of a web page. `fetcher` fetches through the pool.
"""
