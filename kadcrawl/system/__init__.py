"""What a process needs of its machine: clocks, files, threads, turns."""
