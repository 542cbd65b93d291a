"""What commands look for in the directory of a peer."""

JOURNAL = "peer.sqlite"
SWARM_KEY = "swarm.key"
FORMER_KEY = "swarm.key.former"
"""The key, and below it until when it is good, in seconds since 1970."""
PEER_KEY = "peer.key"
ADDRESS = "address"
"""Where the peer listens, as HOST:PORT; of a peer that has ended, where it listened."""
