"""`kadcrawl crawl`: a parent process starts peers on this machine, watches them, and ends with them."""
