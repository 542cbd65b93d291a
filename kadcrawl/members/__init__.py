"""Membership of a swarm: keys, sealed datagrams that only members can read, and TLS connections between members.

`swarm_key` is the secret that all members share, `keyring` the one or two swarm keys that are valid now, and `peer_key`
the key pair of one peer, whose hash is its ID. `credentials` combine them. `sealing` seals datagrams, with a
`replay_window` per sender. `certificates` makes TLS contexts, and `der` writes and reads their DER. `key_file` reads
and writes secrets in files.
"""
