"""What commands look for in the directory of a peer."""

SWARM_KEY = "swarm.key"
PEER_KEY = "peer.key"
ADDRESS = "address"
"""Where the peer listens, as HOST:PORT; of a peer that has ended, where it listened."""
