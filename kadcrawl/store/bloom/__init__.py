"""History as fingerprints that expire (P4): Bloom filters per cell and period."""
