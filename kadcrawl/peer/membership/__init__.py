"""Entering a swarm: the way in, the node ID, the keys, and the way back after a restart.

`endpoints` opens the two network ends of a peer, and asks another peer for its swarm (Hello). `bootstrap` finds a peer
that answers and checks its swarm, and `newcomers` answers such questions. `node_id` chooses the ID. `key_store` keeps
the secrets of a directory, `key_rotation` changes the swarm's key, and `key_refusals` notices that this peer missed a
change. `known_peers` remembers contacts for the next run, and `departed` the counters of peers that left.
"""
