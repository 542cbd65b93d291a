"""An example of a job with roles and records, with kadcrawl.toml."""
