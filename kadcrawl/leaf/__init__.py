"""A leaf: a peer that owns no cells and listens on no port, and fetches pages that full peers lend it (P3).

`leaf.py` is the facade `Leaf`, used like a `Peer`. It asks full peers for work (`work_requests.py`), one after another
as `peer_selection.py` decides. `leaf_crawl.py` fetches the lent pages and reports them. Links go to the owners that
`leaf_owners.py` remembers. A page that is finished after its loan ended is reported by `late_reports.py`.

A lent page stays PENDING at its owner, so a leaf may vanish at any moment. The full peer's side is
lending/leaf_host.py.
"""
