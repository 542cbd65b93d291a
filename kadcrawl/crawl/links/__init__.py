"""Links on their way to the peers that own them, and those that arrive."""
