"""Loans of pending URLs from heavy peers to light ones (P1 1.4, P2)."""
