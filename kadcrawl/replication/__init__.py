"""Replication moves cells between peers and keeps copies of them.

The life of a cell: its owner and its backups are the peers nearest to its placement keys (placement/). When a peer
becomes the owner, `owner/sync` makes the cell due, and `owner/catch_up` runs the sync: it asks all holders, reconciles
the records that differ (`anti_entropy`, `epoch_filter_transfer`), and opens the cell for the crawler (`cell_crawl`).
From then on `replicator` sends every change to the backups, and a link counts as accepted once it is on all disks. A
peer that holds a cell it does not own notifies the owner until the owner has decided (`holder_side`), which remembers
it (`providers`). When a nearer
peer joins, it takes the cell over: the old owner releases it, and then keeps or drops its copy as the new owner says.
When the owner dies, its backups notify the next owner, and the cell lives on.

`cells` puts the parts together and watches for stalls, after which every cell is synced anew. `record_codec` makes
batches of records and merges them; `epoch_filter_chunks` cuts large epoch filters into parts. The modules see the
crawl by `crawl_port`, the overlay by `overlay_port`, and each other by `events`; their tasks belong to `peer_tasks`.
"""
