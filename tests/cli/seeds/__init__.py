"""Seeds from files and pipes: the reader, the feeder, and the commands."""
