"""Peers talking to peers: what is said (`messages`), and how it travels (`client`, `server`).

Small idempotent things go by UDP (overlay/protocol.py); all that must not be lost goes by the link: one HTTP POST
per message over a kept TCP connection, msgpack inside, answered by one message. A message either gets its answer or
raises RemoteError; the sender may then send it again, as every message says what a repeat means.
"""
