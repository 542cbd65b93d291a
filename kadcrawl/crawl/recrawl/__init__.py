"""When a page is fetched again, and the rounds of a URL."""
