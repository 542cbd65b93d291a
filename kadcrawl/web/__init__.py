"""The dashboard: pages in a browser that show the swarm and, if the peer allows it, steer it (`Config.web`).

This room has the server and knows no peer: `source` says what it asks of one. `listener` answers requests, and
`event_stream` sends one viewer the document and then its changes. `hub` has the one gatherer of a peer: all viewers
share it, and it runs only while somebody looks. All else decides: `live_document` turns what was gathered into changes
(`merge_patch`), which `patch_ring` keeps for viewers that come back, `rate_series` has the curves, `tokens` and
`sessions` say who may look, and `request_guard` which requests a page of another site has made.

Only `peer/base.py` imports this room, on demand, so a peer without a dashboard pays nothing. `assets` has the pages.
"""
