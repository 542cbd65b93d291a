"""Tells a site that is down from a network of this peer that is bad, and lets other peers fetch what this peer cannot.

A failure to connect may lie with the site or with the peer: no route, no name server, a refused address, a wrong clock,
dead proxies. So such a failure of one peer is not final. `relayed_fetcher` asks another peer to make the same request,
in the same slot of the site, and `relay_host` answers other peers that ask. `opinions` remembers for each host what
came of that. `network_health` decides from all requests whether the network of this peer fails, and `self_test` finds
out when it works again.
"""
