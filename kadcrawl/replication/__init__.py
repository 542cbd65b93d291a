"""Cells move between peers, and copies of them are kept: sync, backups, anti-entropy."""
