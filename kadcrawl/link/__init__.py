"""Peers talking to peers: what is said (`messages`), and how it travels (`client`, `server`).

Small idempotent things go by UDP (overlay/protocol.py); all that must not be lost goes by the link: one
WebSocket per asker and asked, kept while it is used (`connection`, `incoming`), numbered frames with msgpack inside,
each answered by one message, in any order. A message either gets its answer or
raises RemoteError; the sender may then send it again, as every message says what a repeat means.
"""
