"""Real peers, really killed, stopped, restarted and cut off, in the middle of a crawl of real pages."""
