"""How a peer enters a swarm, proves that it belongs to it, and finds it again."""
