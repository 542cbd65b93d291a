"""The records of a peer: the URLs that it knows, their states, and the facts about sites.

`store` is the entrance: `Store` owns the history (the state of every key) and the frontier (the text of PENDING keys).
A URL enters as PENDING with its text, and becomes DONE once. Then only its key stays. `schema` defines the SQLite
tables and the states. `journal` owns the files and the group commit: a write is acknowledged only after the commit that
holds it is on disk (`Journal.durable`). `line_log` writes pages.jsonl and records.jsonl.

The tables are plain objects over the journal: `frontier_table`, `visit_table`, `site_table`, `meta_table` (which also
has the time of the last run) and `cell_digest_table`. `cell_scan` reads a cell in key order, and `site_key_counts`
counts the keys of a site. `cell_digest` defines the digest that peers compare. bloom/ keeps done keys as fingerprints
that expire. `events` tells other rooms of changes. `frontier_entry` and `visit` are the values that travel between
rooms.
"""
