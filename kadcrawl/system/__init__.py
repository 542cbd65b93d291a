"""The operating system as kadcrawl uses it: clocks, files, threads, sockets and tasks. No module knows of crawling."""
