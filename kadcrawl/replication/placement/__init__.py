"""Which peers hold a cell, by firstdiff (P1 1.3)."""
