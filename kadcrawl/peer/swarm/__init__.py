"""What the whole swarm is told to do: paused or not, its seeds, its page budget."""
