"""Names of the files in a peer's directory that commands look for."""

JOURNAL = "peer.sqlite"
SWARM_KEY = "swarm.key"
FORMER_KEY = "swarm.key.former"
"""The former key, and in the second line the end of its validity, in seconds since 1970."""
PEER_KEY = "peer.key"
ADDRESS = "address"
"""The address the peer listens at, as HOST:PORT. After the peer has ended it is the last address."""
