"""Programs about kadcrawl: the demo, the benchmark, and the real sites that tests and benchmark crawl."""
