"""The crawl of one peer: from a found link to a finished page."""
