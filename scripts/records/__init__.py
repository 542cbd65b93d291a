"""An example of a job with roles and records; see kadcrawl.toml."""
