"""What a peer knows of URLs, its own and those it keeps copies of: which were met, and which are still to do.

`schema` is the SQLite file, `store` the one door to it, `page_log` the files people read. A URL enters as PENDING,
with its text, and becomes DONE once, when only its key stays. Nothing is acknowledged before the group commit that
holds it is on disk (`Store.durable`), here and at the backups (`copies`). `placement`, `cell_map` and `holdings`
decide who holds which cell; `sync`, `tell`, `arrival`, `inquiry` and `exchange` bring it there. `seen` (with
`seen_slice`, `filters`, `seen_wire`) remembers keys for a time only; `seen_cells` keeps those of a store, and `slices`
(with `slice_parts`) is how they travel.
"""
