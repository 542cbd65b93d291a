"""The done keys of cells as fingerprints that expire (P4): Bloom filters by cell and epoch.

`cell_filters` keeps the filters of all cells of a store, in the journal and in memory. A cell has one
`expiring_filter`, made of one `epoch_filter` for each live epoch. `calendar_epochs` numbers epochs that follow the
calendar. `encoding` turns filters into bytes for the wire and the disk. `fingerprints` keeps the digests of cells in
step with their filters. `filter` defines the shape of a single Bloom filter, and `engines` names the two packages that
implement it: `pybloom` (Python) and `rbloom` (Rust).
"""
