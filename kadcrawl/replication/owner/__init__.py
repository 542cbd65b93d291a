"""The owner's side of replication: when a cell is synced, and how.

`sync` decides when a cell is due and queues the syncs; `catch_up` runs one attempt, `sync_progress` holds its states
and decisions, `batched_cell_queries` asks the holders, and `cell_opener` opens the cell. `join` asks the siblings of a
newcomer for its cells. `trust` decides whose DONE records count, and `work_quota` and `release_wait` limit what claims
to hold a cell can cost.
"""
