"""Who is let into a swarm: its key, each peer's own key, datagrams only members can read, connections only they get."""
