"""From bytes to meaning: character sets, links, sitemaps, near duplicates, records. Decisions only."""
