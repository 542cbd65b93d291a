"""robots.txt: rules (RFC 9309) and their cache."""
