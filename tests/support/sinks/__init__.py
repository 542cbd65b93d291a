"""A peer's directory, deliveries from the directory to sinks, and readers of the sinks."""
