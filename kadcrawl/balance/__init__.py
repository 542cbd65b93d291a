"""The decisions of load balance: which peers are heavy, by how much, who takes their excess, and for how long.

The URLs that a peer has to crawl first fill its work area of W URLs (P1 1.4). URLs beyond it form heavy blocks of H
URLs, the unit of lending, equal for all peers. The load level counts the blocks beyond the work area, or missing in it
(`level.py`). W follows from the rates at which URLs arrive and are crawled, and all peers update at the same instants
(`sizing.py`). At an update only heavy peers act: they ask their neighbors for their levels and offer blocks to light
peers, near buckets first. A light peer takes only blocks that leave it not heavy (`shedding.py`).

A count of URLs does not tell a slow peer with few URLs from a fast peer with many (P2). So a peer measures its machine
(`machine_profile.py`, `machine_benchmark.py`). A model learns throughput from such profiles and from measured batches
(`predict.py`, `training_data.py`), a batch is divided so that all peers end together (`batch_partition.py`, and
`block_division.py` for the blocks of a heavy peer), and seconds to drain can replace the level (`drain.py`).

A loan has a lease that both ends count safely (`leases.py`), and a failed loan bars its site and borrower for a while
(`loan_backoff.py`). A full peer deals its sites to its leaves (`leaf_sites.py`, by the hash of `two_level_hash.py`) and
lends each its share of the ready pages (`leaf_allotment.py`). A joiner balances the
ranges by taking an ID that splits a large range (`identity.py`).

No module here sends messages, waits, or keeps URLs: lending/ does.
"""
