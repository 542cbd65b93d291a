"""The messages between peers: one frozen dataclass per message, its limits, and what a repeat means."""
