"""The decisions of load balance: who is heavy, by how much, who takes it, and for how long (P1 1.4, P2).

A peer's URLs to crawl fill its *work area* of W URLs first. What is beyond goes in *heavy blocks* of H URLs, the unit
that moves, the same for all. Its *level* is what it has beyond the work area, or lacks in it, counted in blocks
(`level`). W comes from the rates at which URLs arrive and are crawled, and all peers look at their levels at the same
instants (`sizing`). At such an instant a heavy peer, and nobody else, asks its neighbors for their levels and offers
its blocks to light ones, near buckets first; each takes only what leaves it not heavy (`shedding`).

A count of URLs does not tell a slow peer with few from a quick one with many. So a peer's powers are measured
(`powers`), its running time is learned from them and from what peers have measured (`predict`, `lessons`), a batch is
shared out so that all end together (`shares`), and what time there is to drain may stand in for the level (`drain`).
What is lent is lent on a lease that both ends count safely (`leases`). And there is less to balance if a joiner takes
an ID that splits a large range (`identity`).

Nothing here talks, waits or keeps URLs: how a block gets to its taker and comes back if that one dies, and which share
of its site's politeness it carries, is for those who use these decisions.
"""
