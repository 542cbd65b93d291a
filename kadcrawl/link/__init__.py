"""The link: connections between peers, for all messages that must not be lost.

Small idempotent messages travel by UDP (overlay/protocol.py). All others travel by the link: one WebSocket per asking
and answering peer, kept while in use, with numbered frames of msgpack. Each request is answered by one message, in any
order. A request either gets its answer or raises RemoteError. The caller may then send it again, as every message
states the effect of a repeat (`wire`).

`client` asks, over a `client_connection` to each peer. `server` answers, with a `server_connection` per connection:
`acceptor` lets members in, `admission_control` bounds their bytes and turns, `sender_check` compares the sender in a
message with the proven one. `peer_score` counts misbehavior and bans peers. `http_log` limits the log lines of aiohttp.
"""
